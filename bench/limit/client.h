/* One connection of the do-nothing server. */
#ifndef LIMIT_CLIENT_H
#define LIMIT_CLIENT_H

#include "limit/files.h"
#include "limit/templates.h"

struct answers {
    struct arena arena;
    struct str topic;
    struct answer_template api_versions, produce, fetch; /* p == NULL: not made yet */
    int32_t fetch_bytes;                                 /* what fetch was made for */
};

struct client {
    int fd;
    struct answers *answers;
    struct files *files;
    bool watched_for_room;
    uint8_t *in; /* in_n bytes from the start of a frame */
    size_t in_n, in_cap;
    uint8_t *out; /* out_n bytes of answers, out_sent of them sent */
    size_t out_n, out_sent, out_cap;
    int slice_fd; /* behind them slice_n bytes of that file, and a fetch's tail */
    int64_t slice_at;
    size_t slice_n;
    bool tail;
};

/* NULL when there is no memory. */
struct client *client_new(int fd, struct answers *answers, struct files *files);
void client_free(struct client *c);
/* Receives once and serves what is whole. False: the connection is to be closed. */
bool client_receive(struct client *c);
/* Sends what is answered and serves what waited for that; false as above. After files_settle. */
bool client_send(struct client *c);
static inline bool client_waits_for_room(const struct client *c)
{
    return c->out_n > 0 || c->slice_n > 0 || c->tail;
}

#endif
