/* The parts of a node; shared by the files of node/ only. */
#ifndef NODE_INSIDE_H
#define NODE_INSIDE_H

#include "core/broker/controller_registration.h"
#include "core/metadata/loader.h"
#include "node/format.h"
#include "node/node.h"

/* Kinds of talk with the controller: none waits behind another. */
enum node_channel {
    CHANNEL_LIFE,            /* registration, heartbeats */
    CHANNEL_ALTER_PARTITION, /* of the replicas */
    CHANNEL_DIRECTORIES,     /* which log directories they are in */
    CHANNEL_FORWARDING,      /* all else */
    CHANNEL_REGISTRATION,    /* of a controller */
    NODE_CHANNELS,
};

enum { NODE_PORTS_MAX = 64 };

enum node_phase {
    PHASE_DIRECTORY, /* worker reads or formats the log directory */
    PHASE_METADATA,  /* metadata log loads, the quorum has a leader, the image catches up */
    PHASE_REGISTER,  /* logs load, the broker registers */
    PHASE_SERVE,
    PHASE_FENCE, /* stopping: the controller moves our leaderships */
    PHASE_DRAIN, /* the quorum gets another leader, requests end */
    PHASE_CLOSE_LOGS,
    PHASE_MARK, /* checkpoints are written, now the clean-shutdown marker */
    PHASE_END,
};

/* One of log.dirs, or where the metadata log is when that is none of them. */
struct node_log_dir {
    const char *configured; /* its name in the configuration */
    char *path;             /* absolute */
    bool locked;
    bool mark; /* the clean-shutdown marker is to be written */
    enum err mark_err;
    /* ERR_NONE: online. Only the failure of the metadata log's, or of the last one, ends a start.
     */
    enum err offline;
    char why[600];
    struct uuid fresh_id;
    /* what the worker found */
    bool formatted, fresh; /* it has meta.properties; since just now */
    bool foreign;          /* it has something that a fresh one does not have */
    struct meta_properties meta;
    bool clean;
    int64_t clean_broker_epoch;
    struct offset_checkpoint high_watermarks, recovery_points, log_starts;
    char **dirs;
    size_t dirs_n, dirs_cap;
};

/* The log directories, and how a worker reads them. */
struct node_directory {
    struct job job;
    struct node *node;
    struct node_log_dir *all; /* log.dirs, in their order; another one of the metadata log behind */
    size_t all_n, log_dirs_n;
    struct node_log_dir *metadata; /* one of them */
    /* in: -1 and "" when not configured */
    int32_t node_id;
    char cluster_id[128];
    struct uuid fresh_cluster_id;
    enum node_format_kind kind; /* of formatting the metadata log's, when all are empty */
    struct raft_endpoint endpoint;
    char metadata_dir[4200]; /* the metadata log's own */
    struct now now;
    /* out */
    enum err err;
    bool bad_config;
    char message[1300];
    struct meta_properties meta; /* of the metadata log's directory */
};

struct node_mark {
    struct job job;
};

struct node {
    struct env *env;
    struct dialing *dialing;
    const struct config *static_config;
    bool is_broker, is_controller;
    struct config *config; /* with what the image says of our keys, over the static one */
    struct timers timers;
    struct now now;
    enum node_phase phase;
    enum node_state state;
    bool bad_config;
    char message[512];
    struct api_endpoint *endpoints;
    size_t endpoints_n;
    struct budget memory, frames, small, answers, state_memory;
    struct node_directory directory;
    struct raft_load raft_load;
    struct voter_set static_voters;
    struct config_address *bootstrap_hosts; /* controller.quorum.bootstrap.servers */
    struct raft_endpoint *bootstrap;
    size_t bootstrap_n;
    struct raft *raft;
    struct image image;
    struct loader *loader;
    struct controller *controller;
    struct replicas *replicas;
    struct groups *groups;
    struct broker *broker;
    struct controller_registration *registration; /* NULL: nobody else asks this controller */
    struct channel *channels[NODE_CHANNELS];      /* to the active controller */
    struct rpc *rpc;
    struct api api;
    struct node_mark mark;
    struct timer wait_timer; /* of a start that waits: tells once what for */
    struct timer stop_timer;
    struct {
        enum node_phase phase;
        size_t logs_n;         /* still to be closed */
    } stop_seen;               /* when the timer was set */
    struct timer answer_timer; /* while fencing */
    struct timer tell_timer;   /* and then, until the others know */
    bool telling;
    uint64_t answers_seen_n; /* when it was set */
    int64_t broker_epoch_at_stop;
    int64_t started_us;
};

/* start.c */
void node_start_directory(struct node *n);
bool node_settle_start(struct node *n); /* begins to register when it can */
/* log_dirs.c: makes and locks them. Errors as node_new's. */
enum err node_open_log_dirs(struct node *n, char *message, size_t message_n);
void node_close_log_dirs(struct node *n);
/* Of the broker before this start; -1: not all that it had is there as it left it. */
int64_t node_previous_broker_epoch(const struct node *n);
/* Of log.dirs, from the last one on that can be read. */
void node_log_dir_failed(struct node *n, size_t i, enum err e, const char *what);
size_t node_log_dirs_online_n(const struct node *n);
/* directory.c, on a worker */
enum err node_directory_read(struct node_directory *nd, struct disk *d);
void node_become_ready(struct node *n);
/* Of the endpoints, as brokers and controllers register them; room for NODE_PORTS_MAX. */
void node_ports(const struct node *n, uint16_t *ports);
/* parts.c: by the roles of the node, once its raft is open. */
enum err node_make_parts(struct node *n);
/* metadata.c */
struct raft_events node_raft_events(struct node *n);
/* Every publication: first the image (done), then the configuration, then who acts on them. */
void node_publish(void *ctx, const struct image_delta *d);
/* stop.c: what the phase of a stopping node waits for is looked at once per settle. */
bool node_settle_stop(struct node *n);
/* No promise can be kept any more: stop as by kill -9, with one line. */
__attribute__((format(printf, 3, 4))) void node_fail(struct node *n, bool bad_config,
                                                     const char *fmt, ...);

#endif
