/* The broker's side of its life with the controller: registration, heartbeats, fencing, controlled
 * shutdown, blocks of producer ids. It speaks through channels, which find the controller. */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "base/timer.h"
#include "core/broker/channel.h"
#include "core/config/config.h"
#include "core/metadata/image.h"

struct broker;

enum broker_state {
    BROKER_STARTING, /* not registered yet */
    BROKER_RECOVERY, /* registered, fenced, logs loading */
    BROKER_RUNNING,  /* unfenced */
    BROKER_STOPPING, /* controlled shutdown asked for */
    BROKER_STOPPED,  /* the controller lets us go */
};

/* One of log.dirs. */
struct broker_directory {
    const char *path; /* as configured; stays */
    struct uuid id;
    bool offline; /* from the start: not registered */
};

struct broker_args {
    struct env *env;
    struct timers *timers;
    struct channel *life;       /* registration, heartbeats */
    struct channel *forwarding; /* what other requests have business there */
    const struct config *config;
    const struct image *image; /* committed */
    int32_t node_id;
    const char *cluster_id;
    const struct broker_directory *directories; /* copied */
    size_t directories_n;
    int64_t previous_broker_epoch; /* from the clean-shutdown marker; -1 */
    /* The state changed; not from inside a call. */
    void (*changed)(void *ctx, enum broker_state state);
    /* The controller will not have this broker: its id is in use (told after
     * initial.broker.registration.timeout.ms, for a former life of ours may still be thought
     * alive), its cluster is another one, ... Nothing is sent any more. */
    void (*refused)(void *ctx, int16_t error);
    /* That a log directory failed could not be told within log.dir.failure.timeout.ms: the
     * controller still believes in what is there. */
    void (*unheard)(void *ctx, const char *path);
    void *ctx;
};

MUST_USE enum err broker_new(const struct broker_args *args, struct broker **out);
/* Before the channels: calls in flight end without it. */
void broker_free(struct broker *b);
/* Registers once called (the metadata log is caught up), then heartbeats for ever, and registers
 * again when the controller knows this registration no more. ports: of the
 * listeners that the broker advertises, in config_listeners order (0: config's). */
void broker_start(struct broker *b, const uint16_t *ports, size_t ports_n, struct now now);
/* Logs are loaded: the next heartbeat asks to be unfenced. */
void broker_logs_loaded(struct broker *b, struct now now);
/* brokers: something about brokers changed in it. */
void broker_image_changed(struct broker *b, bool brokers, struct now now);
/* One of the log directories (by its place in the arguments) failed: told by the next heartbeat, at
 * once. */
void broker_directory_failed(struct broker *b, size_t directory, struct now now);
void broker_stop(struct broker *b, struct now now);
enum broker_state broker_state(const struct broker *b);
int64_t broker_epoch(const struct broker *b); /* -1 before registration */
/* How often the controller has answered us. */
uint64_t broker_answers_n(const struct broker *b);

/* A fresh producer id; false: none at hand, a block has been asked for. Asks for the next block at
 * 90 % use (transactions.md 1). */
bool broker_next_producer_id(struct broker *b, struct now now, int64_t *out);

/* Waits for the block that was asked for; id -1: none could be had. */
struct producer_id_op {
    struct list link;
    void (*done)(struct producer_id_op *op, int64_t id);
};
/* False: no block has been asked for, done() will not come. */
bool broker_wait_producer_id(struct broker *b, struct producer_id_op *op);
void broker_producer_id_cancel(struct producer_id_op *op); /* done() comes at once */

#endif
