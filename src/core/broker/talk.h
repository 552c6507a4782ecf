/* One kind of call to the controller, sent again and again. Apart from its owner in memory, so that
 * a call in flight may outlive it. */
#ifndef BROKER_TALK_H
#define BROKER_TALK_H

#include "core/broker/channel.h"

struct talk {
    struct channel_call call; /* done and error are the owner's to set */
    void *owner;              /* NULL: it is gone; talk_landed frees this */
    bool in_flight;
    int64_t sent_us;
    union {
        struct broker_registration_request registration;
        struct broker_heartbeat_request heartbeat;
        struct allocate_producer_ids_request producer_ids;
        struct controller_registration_request controller;
    } request;
};

/* NULL: out of memory. */
struct talk *talk_new(void *owner);
/* Now, or when its call lands. */
void talk_free(struct talk *t);
/* t->request, which stays until it has landed; none may be in flight. */
void talk_send(struct channel *c, struct talk *t, int16_t api_key, int64_t deadline_us,
               struct now now);
/* The first thing in done(): the owner; NULL: it is gone, and so is the talk. */
void *talk_landed(struct channel_call *call);

#endif
