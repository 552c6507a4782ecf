/* Committed offsets of a group: topic, partition, versions. */
#ifndef GROUP_OFFSETS_H
#define GROUP_OFFSETS_H

#include "core/group/inside.h"

/* What a commit says. */
struct committed {
    int64_t offset;
    int32_t leader_epoch; /* -1: none */
    struct str metadata;
    int64_t commit_ms;
    int64_t expire_ms;    /* -1: by the group's retention */
    struct uuid topic_id; /* zero: not known */
};

struct version {
    struct version *older;
    struct offset *of;
    struct write *write; /* NULL: committed */
    int64_t log_offset;  /* of its record */
    bool deleted;
    struct list dropped; /* struct pending.in_offset: what a deletion dropped */
    struct committed value;
    char metadata[];
};

/* One partition. */
struct offset {
    struct topic_offsets *topic;
    int32_t partition;
    struct version *latest; /* NULL: none, or pending only */
    struct list pending;    /* struct pending.in_offset */
};

struct topic_offsets {
    struct group *group;
    struct list link;  /* in group.topics */
    struct offset **v; /* by partition */
    size_t n, cap;
    int32_t name_n;
    char name[];
};

/* Committed by a transaction that has not ended. */
struct pending {
    struct list in_offset;
    struct list in_producer;
    struct producer_offsets *producer;
    struct version *value; /* in no offset yet */
};

struct producer_offsets {
    struct shard *shard;
    int64_t producer_id;
    struct list pending; /* struct pending.in_producer */
    size_t pending_n;    /* those that a deletion holds counted too */
};

struct str topic_name(const struct topic_offsets *t);
/* NULL: none. */
struct topic_offsets *group_topic(const struct group *g, struct str topic);
struct offset *topic_offset(const struct topic_offsets *t, int32_t partition);
struct offset *group_offset(const struct group *g, struct str topic, int32_t partition);
/* ERR_NOMEM; ERR_CORRUPT: no topic has such a name. What is made and left empty is to be tidied. */
MUST_USE enum err group_offset_make(struct group *g, struct str topic, int32_t partition,
                                    struct offset **out);
/* Frees an offset that holds nothing, and its topic and group if these hold nothing then. */
void offset_tidy(struct offset *o);

/* The latest version, or the latest that is committed; NULL: none, or deleted. */
const struct version *offset_latest(const struct offset *o);
const struct version *offset_committed(const struct offset *o);

/* A version on top; w NULL: instead of what there is. ERR_NOMEM. */
MUST_USE enum err offset_set(struct offset *o, struct write *w, const struct committed *value,
                             struct version **out);
/* The same for a deletion, which drops what is pending too. With w NULL tidies o. */
MUST_USE enum err offset_delete(struct offset *o, struct write *w, struct version **out);
void version_commit(struct version *v);
/* Only of the latest version. */
void version_undo(struct version *v);

/* What a transaction commits: pending until its end. ERR_NOMEM. */
MUST_USE enum err offset_pend(struct offset *o, int64_t producer_id, const struct committed *value,
                              int64_t log_offset);
/* The producer's transaction ended: what is pending becomes committed where no later record is
 * (loading only), or goes. */
void producer_end(struct shard *sh, int64_t producer_id, bool commit);

/* Frees all of a group's; how many there were. The group stays. */
size_t group_drop_offsets(struct group *g);

#endif
