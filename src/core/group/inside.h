/* The inside of the group coordinator, but for the membership of classic groups (classic.h).
 *
 * A shard is one partition of __consumer_offsets that this broker leads. Everything in it that
 * records change has versions: the latest one, which new requests build on, and older ones down to
 * the committed one, which plain readers see. A write is one batch on its way: it knows the versions
 * that it made, commits them when the high watermark has passed it, takes them back when its append
 * failed. What is above a failed write in the log was cut with it, so it is taken back too, newest
 * first. */
#ifndef GROUP_INSIDE_H
#define GROUP_INSIDE_H

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

struct shard {
    struct groups *gs;
    int32_t index;
    enum shard_state state;
    int32_t epoch;        /* leader epoch of the partition, and so the coordinator's; -1 */
    struct map groups;    /* id -> struct group */
    struct list order;    /* struct group.link, in order of creation */
    struct map topics;    /* key of a group's topic -> struct topic_offsets */
    struct map producers; /* producer id -> struct producer_offsets */
    struct list writes;   /* struct write.link, oldest first */
    int64_t end;          /* behind the newest write */
};

struct groups {
    struct env *env;
    struct timers *timers;
    struct budget *budget;
    const struct config *config;
    const struct image *image;
    struct replicas *replicas;
    int32_t node_id;
    uint64_t seed;
    struct now now;
    struct shard *shards;
    int32_t shards_n; /* 0: not started */
    struct list ready; /* struct group_op.ready */
    struct list fresh; /* struct group_wait.fresh */
};

/* ------------------------------------------------------------------ groups */

enum group_kind { GROUP_NONE, GROUP_CLASSIC, GROUP_CONSUMER, GROUP_SHARE, GROUP_STREAMS };

/* One existence of a group's id: a deleted group that is made again has another. */
struct life {
    struct life *older;
    struct group *group;
    struct write *write; /* NULL: committed */
    enum group_kind kind; /* GROUP_NONE: deleted */
    bool recorded;        /* by a record of its own; a simple group has none but its offsets */
    struct classic *classic; /* GROUP_CLASSIC, but while loading */
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

/* The shard of a group. K_NONE; 14 while it loads; 16 when it is not ours or failed; 15 while what
 * could not be written is about to be taken back. */
int16_t groups_shard(struct groups *gs, struct str group, struct shard **out);
/* The group as of the latest change; NULL: there is none. */
struct group *shard_group(const struct shard *sh, struct str id);
/* A new, empty classic group of that id, with its record. Kafka's error for the client. */
int16_t group_create_classic(struct shard *sh, struct str id, struct group **out);

/* Completes op at the next settle. */
void groups_op_ready(struct groups *gs, struct group_op *op);

#endif
