/* A write: one batch on its way into a shard's log, and what in memory hangs on it.
 *
 *     write_new; what it changes, by write_offset and so on; write_end: appended, or taken back */
#ifndef GROUP_WRITE_H
#define GROUP_WRITE_H

#include "core/group/offsets.h"

enum undo_kind {
    UNDO_OFFSET, /* struct version */
    UNDO_LIFE,   /* struct life */
    UNDO_STORE,  /* struct life, whose classic waits for the end of its store */
};

struct undo {
    enum undo_kind kind;
    int32_t record; /* its place in the batch */
    void *what;
};

struct write {
    struct shard *shard; /* NULL: only its memory is needed still */
    struct list link;    /* in shard.writes */
    struct list ended;   /* in groups.ended */
    struct groups *gs;
    struct append_op append;
    int16_t error; /* of the append */
    bool appending;
    struct batch_builder *bb;
    uint64_t charged_bytes;
    int32_t records_n;
    struct undo *undo;
    size_t undo_n, undo_cap;
    struct list waits; /* struct group_wait.link */
};

/* ERR_NOMEM. */
MUST_USE enum err write_new(struct shard *sh, struct write **out);

/* Each adds one record and changes memory, or leaves it as it was. ERR_NOMEM, ERR_TOO_LARGE. */
MUST_USE enum err write_offset(struct write *w, struct group *g, struct str topic,
                               int32_t partition, const struct committed *value);
MUST_USE enum err write_offset_deletion(struct write *w, struct offset *o);
/* The record of a classic group as it is. */
MUST_USE enum err write_classic(struct write *w, struct life *l);
/* A simple group: no record. */
MUST_USE enum err write_simple_group(struct write *w, struct group *g);
/* A classic group with the record of an empty one. */
MUST_USE enum err write_new_group(struct write *w, struct group *g);
/* All records of the group's life; its offsets are the caller's. */
MUST_USE enum err write_group_deletion(struct write *w, struct group *g);

/* e: what went wrong before. K_NONE: it is appended. Else all is taken back, w is gone, and this is
 * Kafka's error for the client. Nothing is appended without records: then w is gone, with K_NONE,
 * and *out is NULL. */
int16_t write_end(struct write *w, enum err e, struct write **out);
/* Tells wait when w has ended. */
void write_await(struct write *w, struct group_wait *wait, struct group_op *op,
                 void (*ended)(struct group_wait *w, int16_t error));
void group_wait_init(struct groups *gs, struct group_wait *wait);
void group_wait_cancel(struct group_wait *wait);
/* Those that outlived their turn get their deadline. */
void group_wait_arm_fresh(struct groups *gs);

/* An append has ended: commits or takes back. */
void write_finish(struct write *w);
/* The shard forgets everything: what waits for w ends with error. */
void write_abandon(struct write *w, int16_t error);

/* The answer to an error of an append (groups.md 1). */
int16_t group_append_error(int16_t error);

#endif
