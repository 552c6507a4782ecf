/* The parts of the broker's life; shared by the files of core/broker only. */
#ifndef BROKER_INSIDE_H
#define BROKER_INSIDE_H

#include "core/broker/broker.h"
#include "core/broker/talk.h"

/* [next, end) of a block that began at start. */
struct producer_id_block {
    int64_t start, next, end;
};

struct broker {
    struct env *env;
    struct timers *timers;
    struct channel *life_channel, *forwarding;
    const struct config *config;
    const struct image *image;
    int32_t node_id;
    const char *cluster_id;
    struct uuid directory_id;
    int64_t previous_broker_epoch;
    void (*changed)(void *ctx, enum broker_state state);
    void (*refused)(void *ctx, int16_t error);
    void *ctx;

    enum broker_state state;
    struct uuid incarnation_id;
    int64_t epoch; /* -1: not registered */
    bool started, logs_loaded;
    bool behind;         /* the controller waits until we have applied our registration */
    bool again;          /* something changed while a call was in flight */
    bool told_cordoned;  /* by the last heartbeat: our directory takes no new replicas */
    uint32_t failures_n; /* in a row */
    uint64_t answers_n;
    int64_t in_use_us; /* since when our id is another's; -1: it is not */
    bool refused_for_good;
    struct talk *life;  /* registration, then heartbeats */
    struct timer timer; /* of the next one */
    struct broker_registration_request_listener *listeners;
    int32_t listeners_n;
    struct broker_registration_request_feature *features;
    int32_t features_n;

    struct talk *ids;
    struct producer_id_block block, next_block; /* empty: next == end */
    int64_t ids_not_before_us;                  /* after an error */
    struct list ids_waiting;                    /* struct producer_id_op: for the next block */
    struct timer ids_timer;                     /* while any waits: until when */
};

/* producer_ids.c: who waits for a block has waited long enough. */
void broker_ids_late(struct timer *t);

#endif
