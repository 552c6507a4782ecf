/* The parts of the broker's life; shared by the files of core/broker only. */
#ifndef BROKER_INSIDE_H
#define BROKER_INSIDE_H

#include "core/broker/broker.h"
#include "core/broker/talk.h"

/* [next, end) of a block that began at start. */
struct producer_id_block {
    int64_t start, next, end;
};

/* A log directory as the controller is told of it. */
struct directory {
    const char *path;
    struct uuid id;
    bool offline;
    bool said;         /* that it is, by the request in flight */
    bool heard;        /* and by one that was answered */
    int64_t failed_us; /* since when it is to be told */
};

struct broker {
    struct env *env;
    struct timers *timers;
    struct channel *life_channel, *forwarding;
    const struct config *config;
    const struct image *image;
    int32_t node_id;
    const char *cluster_id;
    struct directory *directories;
    size_t directories_n;
    int64_t previous_broker_epoch;
    void (*changed)(void *ctx, enum broker_state state);
    void (*refused)(void *ctx, int16_t error);
    void (*unheard)(void *ctx, const char *path);
    void *ctx;

    enum broker_state state;
    struct uuid incarnation_id;
    int64_t epoch; /* -1: not registered */
    bool started, logs_loaded;
    bool behind;            /* the controller waits until we have applied our registration */
    bool again;             /* something changed while a call was in flight */
    uint64_t told_cordoned; /* by the last heartbeat: a bit of each directory */
    uint32_t failures_n;    /* in a row */
    uint64_t answers_n;
    int64_t in_use_us; /* since when our id is another's; -1: it is not */
    bool refused_for_good;
    struct talk *life;  /* registration, then heartbeats */
    struct timer timer; /* of the next one */
    struct broker_registration_request_listener *listeners;
    int32_t listeners_n;
    struct broker_registration_request_feature *features;
    int32_t features_n;

    struct uuid *listed; /* of the request: twice as many as directories */
    struct timer unheard_timer;

    struct talk *ids;
    struct producer_id_block block, next_block; /* empty: next == end */
    int64_t ids_not_before_us;                  /* after an error */
    struct list ids_waiting;                    /* struct producer_id_op: for the next block */
    struct timer ids_timer;                     /* while any waits: until when */
};

/* ---- directories.c */
MUST_USE enum err directories_new(struct broker *b, const struct broker_args *args);
void directories_free(struct broker *b);
/* What a registration, and what a heartbeat says of them. */
void directories_register(struct broker *b, struct broker_registration_request *r);
void directories_beat(struct broker *b, struct broker_heartbeat_request *r);
/* One is to be told of as offline from now on. */
void directories_fail(struct broker *b, size_t directory, struct now now);
/* The controller has taken over what the last request said. */
void directories_heard(struct broker *b);
/* A heartbeat would say something else than the last one. */
bool directories_cordoned_changed(const struct broker *b);

/* producer_ids.c: who waits for a block has waited long enough. */
void broker_ids_late(struct timer *t);

#endif
