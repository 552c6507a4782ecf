/* What must be true of the records, kept apart from the node: every acknowledged record at its
 * offset, once, in order, never changed; what was read once is read again. */
#ifndef SUPPORT_NODE_MODEL_H
#define SUPPORT_NODE_MODEL_H

#include "wire/messages.h"

enum { MODEL_PARTITIONS = 256, MODEL_PRODUCERS = 64, MODEL_KEY_BYTES = 8 };

/* The value of a record: which producer wrote it as its how-manieth. */
struct model_value {
    uint32_t producer, sequence;
};

/* As the key of its record. */
void model_key(uint8_t out[MODEL_KEY_BYTES], struct model_value v);

struct model_slot {
    struct model_value value;
    bool known; /* acknowledged, or read below the high watermark */
    bool acked;
};

/* The end of a partition, and the epoch of the leader that told it; -1: none yet. */
struct model_told {
    int32_t epoch;
    int64_t offset;
};

struct model_partition {
    struct uuid topic_id;
    int32_t index;
    struct model_slot *slots; /* by offset */
    size_t n, cap;
    int64_t deleted_to, delete_asked; /* log starts that were answered, and the largest asked for */
    struct model_told end;            /* the latest that was told */
    bool lossy; /* an unclean election: what was known may be gone, or another record */
};

/* A number that clients change, one at a time and upwards (a committed offset, a topic's
 * configuration): what may be told of it. */
struct model_number {
    int64_t least; /* what was answered holds */
    int64_t most;  /* what was asked for and not answered may have happened */
    bool may_go;   /* its deletion too, at any time */
};

struct model {
    struct model_partition partitions[MODEL_PARTITIONS];
    size_t partitions_n;
    int64_t *producer_ids; /* all that were given out */
    size_t producer_ids_n, producer_ids_cap;
    uint64_t acked, checked;
};

struct model_partition *model_partition(struct model *m, struct uuid topic_id, int32_t index);
/* The broker said: this value is at this offset for good. */
void model_acked(struct model *m, struct model_partition *p, int64_t offset, struct model_value v);
/* A reader got this value from this offset, below the high watermark. */
void model_read(struct model *m, struct model_partition *p, int64_t offset, struct model_value v);
/* What a Fetch from position on gave of a partition: checked, and each record read. The offset
 * behind it. */
int64_t model_fetched(struct model *m, struct model_partition *p,
                      const struct fetch_response_partition_data *data, int64_t position);
/* The broker gave out a producer id: nobody had it before. */
void model_producer_id(struct model *m, int64_t id);
/* Somebody asked to delete below offset (-1: the high watermark); it may happen at any time. */
void model_delete_asked(struct model_partition *p, int64_t offset);
/* The broker said: it begins at offset or behind it, for good. */
void model_deleted(struct model_partition *p, int64_t offset);
/* The broker says where it begins. */
void model_start(const struct model_partition *p, int64_t offset);
/* A leader told its end to one who asked when `asked` was known: it never falls (26). */
void model_end_told(struct model_partition *p, const struct model_told *asked,
                    struct model_told told);
/* A full read, each record of it given to model_read, found the log to begin and to end here:
 * nothing known may be beyond, no offset missing between, and each producer's records stand once
 * and in order. */
void model_end(const struct model_partition *p, int64_t start, int64_t end);
/* Somebody asked for it, and was answered that it is so. */
void model_number_asked(struct model_number *n, int64_t value);
void model_number_set(struct model_number *n, int64_t value);
/* The same for its deletion: it is as it was at first. */
void model_number_deletion_asked(struct model_number *n, int64_t first);
void model_number_deleted(struct model_number *n, int64_t first);
/* The broker says what it is. From then on it is no less. */
void model_number_told(struct model *m, struct model_number *n, int64_t value, const char *what);
void model_close(struct model *m);

/* Prints the violation with where it is ("seed 7") and ends the process with 1. */
__attribute__((format(printf, 1, 2))) _Noreturn void violation(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void violation_where(const char *fmt, ...);
const char *violation_place(void); /* what violation_where said */

#endif
