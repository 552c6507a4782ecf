/* One connection of the load: a ring of requests in flight, sent in as few calls as they fit, and
 * their answers, checked in order. */
#ifndef LOAD_CONNECTION_H
#define LOAD_CONNECTION_H

#include "load/answer.h"

struct slot {
    int64_t begin_ns; /* when it was, or should have been, sent */
    struct asked asked;
};

struct connection {
    int fd;
    const struct request *request;
    struct answers *answers;
    uint32_t slots_n;
    struct slot *slots;
    uint8_t *heads;                       /* slots_n copies of the request's head */
    uint32_t asked_n, sent_n, answered_n; /* ever; asked_n - answered_n are in flight */
    size_t sent_of_next;                  /* bytes of request sent_n that are sent */
    bool blocked;                         /* the socket has no room */

    uint8_t *in; /* in_n bytes received, from the start of a frame, of in_cap */
    size_t in_n, in_cap;
    size_t skip; /* bytes of an answer still to come that nobody looks at */
};

/* Called for every answer that is right. */
struct connection_events {
    void (*answered)(void *ctx, struct connection *c, int64_t begin_ns);
    void *ctx;
};

/* Connects. False, with a line on stderr. */
bool connection_open(struct connection *c, const struct request *r, struct answers *as,
                     uint16_t port, uint32_t slots_n);
void connection_close(struct connection *c);
static inline bool connection_has_slot(const struct connection *c)
{
    return c->asked_n - c->answered_n < c->slots_n;
}
/* Puts a request into a free slot; connection_send sends it. */
void connection_ask(struct connection *c, int64_t begin_ns, int32_t partition, int64_t offset);
/* Sends what is asked as far as the socket takes it. False, with a line on stderr, when it broke.
 */
bool connection_send(struct connection *c);
/* Takes what has come. False, with a line on stderr, when the
 * connection broke or an answer is wrong. */
bool connection_receive(struct connection *c, const struct connection_events *events);

#endif
