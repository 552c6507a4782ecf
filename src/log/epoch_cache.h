/* Leader epochs of a log: sorted (epoch, start offset), strictly rising in both (Kafka's
 * LeaderEpochFileCache; KIP-101, KIP-279). */
#ifndef LOG_EPOCH_CACHE_H
#define LOG_EPOCH_CACHE_H

#include "base/err.h"
#include "base/types.h"

struct epoch_entry {
    int32_t epoch;
    int64_t start_offset;
};

struct epoch_cache {
    struct epoch_entry *v;
    size_t n, cap;
};

void epoch_cache_init(struct epoch_cache *c);
void epoch_cache_close(struct epoch_cache *c);
/* A copy with room for one more entry. */
MUST_USE enum err epoch_cache_copy(const struct epoch_cache *c, struct epoch_cache *out);
/* No-op if the last entry has epoch e and start <= s; otherwise drops tail entries with epoch >= e
 * or start >= s and adds. *changed may be NULL. */
MUST_USE enum err epoch_cache_assign(struct epoch_cache *c, int32_t epoch, int64_t start,
                                     bool *changed);
/* Drops start >= x. */
bool epoch_cache_truncate_end(struct epoch_cache *c, int64_t x);
/* Drops start <= x, re-inserts the last dropped epoch at x. */
bool epoch_cache_truncate_start(struct epoch_cache *c, int64_t x);
/* -1 when empty. */
int32_t epoch_cache_latest(const struct epoch_cache *c);
/* Epoch of the record at offset: the largest start <= offset; -1 when none. */
int32_t epoch_cache_floor(const struct epoch_cache *c, int64_t offset);
/* See replication rules: (-1,-1) for q = -1, above all or empty; (q, end) for the latest; (q, first
 * start) below the first; else (largest cached <= q, start of smallest cached > q). */
void epoch_cache_end_offset(const struct epoch_cache *c, int32_t q, int64_t log_end, int32_t *epoch,
                            int64_t *offset);

#endif
