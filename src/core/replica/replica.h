/* The replica manager: the partitions that this broker holds, as leader (later also follower),
 * their logs, in-sync replicas and high watermarks by Kafka's general rules (replication.md), the
 * requests that wait on them, fetch sessions (KIP-227), checkpoints of the log directory. */
#ifndef REPLICA_REPLICA_H
#define REPLICA_REPLICA_H

#include "base/arena.h"
#include "base/timer.h"
#include "core/config/config.h"
#include "core/metadata/image.h"
#include "log/checkpoint.h"
#include "log/log.h"
#include "wire/messages.h"
#include "wire/validate.h"

struct channel;
struct dialing;
struct replicas;

struct replicas_events {
    void *ctx;
    /* All logs found at start are loaded (at once when there are none). */
    void (*loaded)(void *ctx);
    /* A log directory (by its place in the arguments) failed: the partitions in it answer
     * KAFKA_STORAGE_ERROR from now on, and are not fetched any more. One call for each, none for
     * those that were offline from the start. */
    void (*log_dir_failed)(void *ctx, size_t dir, enum err e, const char *what);
    /* What is committed cannot be followed any more: the same of all partitions. One call. */
    void (*failed)(void *ctx, enum err e, const char *what);
};

struct replicas_dir {
    const char *path; /* absolute */
    const char *name; /* in the configuration, whose it stays */
    struct uuid id;   /* zero: not known */
    bool offline;     /* it could not be read at the start; it may hold partitions */
};

struct replicas_args {
    struct env *env;
    struct timers *timers;
    struct budget *budget; /* state and staging */
    const struct config *config;
    const struct image *image; /* committed, the node's */
    int32_t node_id;
    uint64_t seed;
    const struct replicas_dir *dirs; /* log.dirs, in their order; copied */
    size_t dirs_n;
    struct replicas_events events;
    struct dialing *dialing;         /* to leaders; NULL: this node follows nobody */
    struct channel *alter_partition; /* to the controller; NULL: ISRs are never changed from here */
    struct channel
        *directories;       /* the same; NULL: nobody is told which directories replicas are in */
    struct budget *answers; /* of leaders */
    int64_t (*broker_epoch)(void *ctx); /* ours, ctx of events; -1 before registration */
};

MUST_USE enum err replicas_new(const struct replicas_args *args, struct replicas **out);
/* All requests must be complete and replicas_close done, or all of it abandoned. */
void replicas_free(struct replicas *rs);

/* What the node's start found in a log directory; copied as needed. */
struct replicas_found {
    char **dirs; /* names of partition directories: "t-0", ... */
    size_t dirs_n;
    const struct offset_checkpoint *high_watermarks, *recovery_points, *log_starts;
    bool clean;
};
/* found: of each log directory. Starts loading every log (jobs, bulk lane, a bounded number at a
 * time). The image is caught up: directories of topics that it does not know are renamed `-stray`
 * (Kafka), of another topic id too. */
void replicas_load(struct replicas *rs, const struct replicas_found *found, struct now now);

/* The committed image changed. Becoming leader: leader epoch start, epoch assignment, HW. Deleted
 * topics: logs closed, directories renamed -delete at once and removed file.delete.delay.ms later,
 * or by the next start. */
void replicas_apply(struct replicas *rs, const struct image_delta *d, struct now now);
/* The configuration gives topics other defaults: every partition takes its values anew, some at
 * once, the others in the settles that follow. */
void replicas_defaults_changed(struct replicas *rs, struct now now);
/* Writes every dirty log once, raises HWs, completes what became ready. True if anything moved. */
bool replicas_settle(struct replicas *rs, struct now now);

/* Controlled shutdown has begun: partitions that lose their leader, or go on without us, are not
 * fetched any more, and keep their logs. */
void replicas_begin_shutdown(struct replicas *rs);

/* Clean: flush and close all, write checkpoints; done(ctx, true) when everything went well in
 * every log directory that is online. */
void replicas_close(struct replicas *rs, void (*done)(void *ctx, bool clean), void *ctx,
                    struct now now);
/* Then: may the clean-shutdown marker of that one be written? */
bool replicas_closed_clean(const struct replicas *rs, size_t dir);
/* How many logs are still to be closed, of those and of partitions that go. */
size_t replicas_closing_n(const struct replicas *rs);
/* The node failed: who waits is answered at once, the logs are dropped where they stand. No job may
 * be under way. */
void replicas_abandon(struct replicas *rs, struct now now);

/* ------------------------------------------------------------------ operations
 *
 * Each is embedded in its owner (a request's state). done() comes exactly once, never inside the
 * call that began it. cancel hastens it. The op keeps ids and epochs, not pointers to partitions.
 */

struct produce_part {
    /* in */
    struct str topic;     /* name, for messages; from the image when the request has ids */
    struct uuid topic_id; /* zero: by name */
    int32_t index;
    struct bytes records; /* in the request's frame; may be changed in place */
    struct batch_facts facts;
    int16_t error; /* set by the caller: refused before (ACL, unknown); else K_NONE */
    /* out */
    int64_t base_offset, log_append_time_ms, log_start_offset;
    const char *error_message;
    struct record_error *record_errors;
    int32_t record_errors_n;
    int32_t current_leader, current_leader_epoch; /* with NOT_LEADER_OR_FOLLOWER; else -1 */
    /* own */
    struct list link; /* in its partition's waiters, or waits for nothing */
    struct produce_op *op;
    int64_t required_offset;
    int32_t leader_epoch;
};

struct produce_op {
    struct arena *arena;
    int16_t acks; /* or PRODUCE_COORDINATOR */
    int32_t timeout_ms;
    bool internal_allowed; /* client id __admin_client */
    struct produce_part *parts;
    int32_t parts_n;
    void (*done)(struct produce_op *op);
    /* own */
    struct timer timer;
    struct list ready, fresh;
    struct replicas *rs;
    int32_t waiting_n; /* parts whose batches are not promised yet (acks 0: written) */
    bool late;         /* cancelled, or its time is over: only bytes in the frame are waited for */
};

/* Checks, validates and stages every part (when it returns, everything is staged: the caller may
 * let the next Produce start). Frames must stay until done(). */
void replicas_produce(struct replicas *rs, struct produce_op *op, struct now now);
void replicas_produce_cancel(struct produce_op *op);

struct fetch_op {
    struct arena *arena;
    const struct fetch_request *request; /* stays until done() */
    int16_t version;
    struct str client_id;
    const void *connection; /* identity only, for sessions */
    /* refused topics (ACL): asked for each topic name; NULL: all allowed */
    bool (*allowed)(void *ctx, struct str topic);
    void *allowed_ctx;
    struct fetch_response
        *response; /* filled when done() is called; slices are counted, see below */
    void (*done)(struct fetch_op *op);
    /* own */
    void *impl;
};

/* The response's record slices hold their files: whoever sends them releases each (file_unref). */
/* ERR_NOMEM: nothing was begun, done() will not come. */
MUST_USE enum err replicas_fetch(struct replicas *rs, struct fetch_op *op, struct now now);
void replicas_fetch_cancel(struct fetch_op *op);

struct list_offsets_op {
    struct arena *arena;
    const struct list_offsets_request *request;
    int16_t version;
    bool (*allowed)(void *ctx, struct str topic);
    void *allowed_ctx;
    struct list_offsets_response *response;
    void (*done)(struct list_offsets_op *op);
};
/* ERR_NOMEM as above. */
MUST_USE enum err replicas_list_offsets(struct replicas *rs, struct list_offsets_op *op,
                                        struct now now);

struct delete_records_op {
    struct arena *arena;
    const struct delete_records_request *request; /* stays until done() */
    bool (*allowed)(void *ctx, struct str topic);
    void *allowed_ctx;
    struct delete_records_response *response; /* filled when done() is called */
    void (*done)(struct delete_records_op *op);
    /* own */
    void *impl;
};
/* Done when the log starts have risen, here on disk and at all live replicas, or the time is over.
 * ERR_NOMEM as above. */
MUST_USE enum err replicas_delete_records(struct replicas *rs, struct delete_records_op *op,
                                          struct now now);
void replicas_delete_records_cancel(struct delete_records_op *op);

/* At once; ERR_NOMEM. allowed as above. */
MUST_USE enum err
replicas_offset_for_leader_epoch(struct replicas *rs,
                                 const struct offset_for_leader_epoch_request *req, int16_t version,
                                 bool (*allowed)(void *ctx, struct str topic), void *allowed_ctx,
                                 struct arena *a, struct offset_for_leader_epoch_response *resp);

struct describe_log_dirs_op {
    struct arena *arena;
    const struct describe_log_dirs_request *request;
    struct describe_log_dirs_response *response; /* filled when done() is called */
    void (*done)(struct describe_log_dirs_op *op);
    /* own */
    struct list link;
};
/* ERR_NOMEM as above. */
MUST_USE enum err replicas_describe_log_dirs(struct replicas *rs, struct describe_log_dirs_op *op);

/* The producers that a partition here knows, whether we lead it or not. At once; ERR_NOMEM. */
MUST_USE enum err
replicas_describe_producers(struct replicas *rs, struct str topic, int32_t index, struct arena *a,
                            struct describe_producers_response_partition_response *out);

/* ------------------------------------------------------------------ coordinators
 *
 * What the coordinators of groups (and later transactions) do with the partitions of their topics
 * that this broker leads. */

struct replicas_ends {
    int32_t leader_epoch;
    int64_t start, staged_end, end, high_watermark;
};
/* K_NONE, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (its log may still be loading),
 * KAFKA_STORAGE_ERROR. */
int16_t replicas_ends(const struct replicas *rs, struct uuid topic_id, int32_t index,
                      struct replicas_ends *out);

/* Whole batches from offset on, up to the log's end; at least one, at most max_bytes. ERR_RANGE;
 * ERR_AGAIN: not in the page cache yet, the watch tells; ERR_OFFLINE. The leader must be ours. */
MUST_USE enum err replicas_read(struct replicas *rs, struct uuid topic_id, int32_t index,
                                int64_t offset, uint32_t max_bytes, struct log_span *out);

/* Told when the partition's log is there, one of its ends moved, or a cold read came in. */
struct replicas_watch {
    struct list link;
    void (*changed)(struct replicas_watch *w); /* must not call replicas */
};
/* False: no such partition here. Ends with replicas_unwatch, or with the partition. */
bool replicas_watch(struct replicas *rs, struct uuid topic_id, int32_t index,
                    struct replicas_watch *w);
void replicas_unwatch(struct replicas_watch *w);

/* A coordinator's own batch: acks 1, and done when the high watermark has passed it. In-sync
 * replicas are not counted, no deadline is kept, it cannot be cancelled. */
struct append_op {
    /* in */
    struct uuid topic_id;
    int32_t index;
    int32_t leader_epoch; /* another one: NOT_LEADER_OR_FOLLOWER */
    struct bytes batch;   /* whole, with its CRC; changed in place. One that is not smaller than
                           * LIMIT_STAGE_COPY_BYTES stays until done() */
    /* K_NONE, or what the batch met: after an error it is not in the log. In order of offsets
     * while the leader epoch lasts. */
    void (*done)(struct append_op *op, int16_t error);
    /* out */
    int64_t base_offset;
    /* own */
    struct produce_op op;
    struct produce_part part;
};
/* K_NONE: staged, done() follows, never inside the call. Else Kafka's error, and nothing follows:
 * MESSAGE_TOO_LARGE over max.message.bytes, RECORD_LIST_TOO_LARGE over segment.bytes, the errors of
 * replicas_ends and of a full disk. */
int16_t replicas_append(struct replicas *rs, struct append_op *op, struct now now);

/* For Metadata: nothing is served any more. */
bool replicas_offline(const struct replicas *rs);

#endif
