#include "core/broker/talk.h"

#include <stdlib.h>

#include "base/check.h"

struct talk *talk_new(void *owner)
{
    struct talk *t = calloc(1, sizeof *t);
    if (t != NULL)
        t->owner = owner;
    return t;
}

void talk_free(struct talk *t)
{
    if (t != NULL && t->in_flight)
        t->owner = NULL;
    else
        free(t);
}

void talk_send(struct channel *c, struct talk *t, int16_t api_key, int64_t deadline_us,
               struct now now)
{
    CHECK(!t->in_flight);
    t->in_flight = true;
    t->sent_us = now.mono_us;
    t->call.api_key = api_key;
    t->call.request = &t->request;
    t->call.deadline_us = deadline_us;
    channel_call(c, &t->call, now);
}

void *talk_landed(struct channel_call *call)
{
    struct talk *t = CONTAINER_OF(call, struct talk, call);
    void *owner = t->owner;
    t->in_flight = false;
    if (owner == NULL)
        free(t);
    return owner;
}
