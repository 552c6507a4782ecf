/* What a replica's log holds, batch by batch, kept beside it: after each turn of its node the
 * mirror takes over what came and what was cut. All mirrors of one partition share a book of the
 * batches that ever were: one (offset, epoch) is one batch with one history (replication.md 9, 5;
 * Q4). */
#ifndef SIM_MIRROR_H
#define SIM_MIRROR_H

#include "base/map.h"
#include "log/epoch_cache.h"
#include "wire/batch.h"
#include "world.h"

struct mirror_batch {
    int64_t base, next;
    int32_t epoch;
    uint64_t hash;
};

/* Of a partition, over all its replicas. */
struct mirror_book {
    struct map batches; /* (base, epoch) -> struct mirror_page */
    struct map sent; /* (producer, its epoch, sequence) -> struct mirror_sent: where it ever was */
};

/* Worse and worse. */
enum mirror_life {
    MIRROR_SAME,    /* the process that we looked at last */
    MIRROR_KILLED,  /* its page cache lives on: the log must be what it was */
    MIRROR_CRASHED, /* the same, in the middle of something that we have not looked at */
    MIRROR_POWER,   /* all that was synced must be there, in order */
    MIRROR_NEW,     /* another disk: anything may be gone */
};

struct mirror {
    struct mirror_batch *v;
    size_t n, cap;
    int64_t start, end, flushed; /* of the log, as last seen */
    enum mirror_life life;       /* since then */
    bool behind;                 /* what came then could not be read yet */
    /* The epoch cache, as last compared with the batches. */
    struct epoch_entry first, last;
    size_t epochs_n;
};

void mirror_book_init(struct mirror_book *b);
void mirror_book_close(struct mirror_book *b);
void mirror_close(struct mirror *m);

/* The node of w runs; what (for messages) is a partition's name. Looks at all that is new; a
 * violation ends the process. No batch of `kept` may be cut from the end: it is committed (24, Q8).
 * False: not all of it could be read yet. */
bool mirror_look(struct mirror *m, struct mirror_book *b, struct world *w, struct log *log,
                 const char *what, const struct mirror *kept);
void mirror_append(struct mirror *m, const struct mirror_batch *b);
uint64_t mirror_hash(const struct batch *b);
/* Index of the batch that begins at or holds offset; -1. */
ptrdiff_t mirror_find(const struct mirror *m, int64_t offset);

#endif
