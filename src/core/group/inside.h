/* The inside of the group coordinator, but for the membership of classic groups (classic.h).
 *
 * A shard is one partition of __consumer_offsets that this broker leads. What is recorded in it has
 * versions: the latest, which new requests build on, and older ones down to the committed one,
 * which plain readers see. A write is one batch on its way: it knows the versions that it made,
 * commits them when the high watermark has passed it, takes them back when its append failed. What
 * stood above a failed write in the log was cut with it, so it is taken back too, newest first. */
#ifndef GROUP_INSIDE_H
#define GROUP_INSIDE_H

#include "base/buf.h"
#include "base/map.h"
#include "core/group/classic.h"
#include "core/group/group.h"
#include "wire/error.h"

enum shard_state {
    SHARD_NONE,    /* not led by us */
    SHARD_LOADING, /* its log is read, or not all of it is committed yet */
    SHARD_ACTIVE,
    SHARD_FAILED, /* its log cannot be understood: until the next election */
};

/* Reading a shard's log. */
struct shard_load {
    enum { LOAD_READ, LOAD_COMMIT, LOAD_GROUPS } phase;
    int64_t offset;     /* the next to read; -1: from the log's start */
    uint8_t *buf;       /* one slice */
    size_t cap;         /* of buf, charged */
    struct group *next; /* the next whose membership is to be made */
    int64_t began_us, records_n;
};

struct shard {
    struct groups *gs;
    int32_t index;
    enum shard_state state;
    int32_t epoch; /* leader epoch of the partition, and so the coordinator's; -1 */
    struct uuid topic_id;
    struct map groups;    /* id -> struct group */
    struct list order;    /* struct group.link, in order of creation */
    struct map topics;    /* group's serial and topic -> struct topic_offsets */
    struct map producers; /* producer id -> struct producer_offsets */
    struct list writes;   /* struct write.link, oldest first */
    int64_t end;          /* behind the newest write; set before the first */
    struct replicas_watch watch;
    struct shard_load load;
    bool unloading;            /* what is here is of an older epoch, and goes */
    struct list dropping;      /* in groups.dropping: unloading */
    struct list loading;       /* in groups.loading: there is something to read */
    struct list sweeping;      /* in groups.sweeping: expiry or deleted topics have work */
    struct group *expire;      /* the next to be looked at by expiry; NULL: none */
    struct list gone;          /* struct gone_topic: deleted topics, oldest first */
    struct group *forget;      /* the next to be looked at for the first gone topic */
    struct write *sweep_write; /* of the last slice, while it is on its way; or NULL */
};

struct groups {
    struct env *env;
    struct timers *timers;
    struct budget *budget;
    const struct config *config;
    int64_t commit_timeout_us; /* offsets.commit.timeout.ms */
    int64_t metadata_max;      /* offset.metadata.max.bytes */
    int16_t codec;             /* offsets.topic.compression.codec */
    const struct image *image;
    struct replicas *replicas;
    int32_t node_id;
    uint64_t seed, next_serial;
    struct now now;
    struct shard *shards;
    int32_t shards_n;  /* 0: not started */
    struct list ready; /* struct group_op.ready */
    struct list fresh; /* struct group_wait.fresh */
    struct list ended; /* struct write.ended, in order of offsets in a shard */
    struct list dropping, loading, sweeping;
    struct timer work; /* always armed once started: the next slice, or the next expiry */
    bool work_due;
    int64_t expiry_us;     /* when expiry begins next */
    struct buf key, value; /* of the record at hand */
};

/* Memory that is charged: zeroed; NULL when the budget or malloc refuses. */
void *groups_alloc(struct groups *gs, size_t n);
void groups_release(struct groups *gs, void *p, size_t n);

/* ------------------------------------------------------------------ groups: life.c */

enum group_kind { GROUP_NONE, GROUP_CLASSIC, GROUP_CONSUMER, GROUP_SHARE, GROUP_STREAMS };

/* One existence of a group's id: a deleted group that is made again has another. */
struct life {
    struct groups *gs;
    struct life *older;
    struct group *group;     /* NULL: taken back */
    struct write *write;     /* NULL: committed */
    enum group_kind kind;    /* GROUP_NONE: deleted */
    bool recorded;           /* by a record of its own; a simple group has only offsets */
    struct classic *classic; /* GROUP_CLASSIC; NULL while its shard loads */
    struct bytes stored;     /* loading: the value of its record; charged */
    struct map records;      /* other kinds: the keys of its records */
    int32_t members_n;       /* other kinds, as recorded */
    int64_t members_end_us;  /* other kinds: no member can have lived on; see life_is_empty */
};

/* An id that has a life or offsets. */
struct group {
    struct shard *shard;
    struct list link;   /* in shard.order */
    struct life *life;  /* latest; NULL: none */
    struct list topics; /* struct topic_offsets.link, in order of their first offset */
    uint64_t serial;
    int32_t id_n;
    char id[];
};

struct str group_id(const struct group *g);
/* As of the latest change. */
enum group_kind group_kind(const struct group *g);
/* The latest committed life; NULL. */
const struct life *group_committed_life(const struct group *g);
/* Finds the group of an id, or makes one without a life. ERR_NOMEM. */
MUST_USE enum err group_make(struct shard *sh, struct str id, struct group **out);
/* Frees a group that has neither life nor offsets. */
void group_tidy(struct group *g);
/* Has no members. */
bool life_is_empty(const struct life *l, struct now now);

/* A life on top of what there is; w NULL: instead of it, committed. ERR_NOMEM. */
MUST_USE enum err life_begin(struct group *g, struct write *w, enum group_kind kind,
                             struct life **out);
/* The membership of a classic life. ERR_NOMEM. */
MUST_USE enum err life_make_classic(struct life *l, struct now now);
void life_commit(struct life *l);
/* Unhooks the latest life of its group: it is the caller's, the group may go. */
void life_undo(struct life *l);
/* Ops that wait in it end with error. */
void life_free(struct life *l, int16_t error);

/* ------------------------------------------------------------------ shards: groups.c */

/* The shard of a group. K_NONE; 14 while it loads; 16 when it is not ours or failed; 15 while what
 * could not be written is about to be taken back. */
int16_t groups_shard(struct groups *gs, struct str group, struct shard **out);
/* The group as of the latest change; NULL: there is none. */
struct group *shard_group(const struct shard *sh, struct str id);
/* A new, empty classic group, with its record; in place of one of another kind, which must be empty
 * and whose offsets stay. Kafka's error for the client. */
int16_t group_create_classic(struct shard *sh, struct str id, struct now now, struct group **out);
void shard_fail(struct shard *sh, enum err e, const char *what);
/* Its log may have more to read. */
void shard_wake(struct shard *sh);

/* Completes op at the next settle. */
void groups_op_ready(struct groups *gs, struct group_op *op);
/* There is work for slices: one is done in the next turn. */
void groups_work_soon(struct groups *gs);

/* unload.c: what waits for writes ends with NOT_COORDINATOR, the rest is forgotten in slices. */
void shard_unload(struct shard *sh);
void shard_unload_step(struct shard *sh); /* one slice */
void shard_unload_now(struct shard *sh);  /* all of it */

/* load.c: begins; one slice; ends. */
void load_begin(struct shard *sh, struct now now);
void load_step(struct shard *sh, struct now now);
void load_end(struct shard *sh);
/* All records are read: the membership of a classic group is made from its last one. l NULL is
 * fine. ERR_NOMEM, ERR_CORRUPT. */
MUST_USE enum err load_membership(struct life *l, struct now now);
/* replay.c: one batch. ERR_CORRUPT: it cannot be understood, or contradicts what there is. */
MUST_USE enum err replay_batch(struct shard *sh, const struct batch *b);

/* sweep.c: expiry and deleted topics, one slice. */
void sweep_begin_expiry(struct shard *sh);
void sweep_step(struct shard *sh);
void sweep_forget_topic(struct shard *sh, const struct delta_topic *t);
void sweep_forget_unknown(struct shard *sh);   /* all topics that the image does not know */
void sweep_begin_forgetting(struct shard *sh); /* loaded: what was deleted meanwhile */
void sweep_group_gone(struct group *g);        /* no cursor stands at it any more */
/* A write has ended; it may be that of a slice. */
void sweep_written(struct shard *sh, const struct write *w, bool committed);
void sweep_end(struct shard *sh);

#endif
