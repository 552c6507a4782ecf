/* Recovery of one segment: everything about it that cannot be read from its .log is made anew. */
#include "log/load.h"

#include "base/check.h"

struct recovery {
    struct scan sc;
    int64_t next; /* least offset that may come */
};

/* ERR_CORRUPT: the log ends before this batch. */
static enum err check_batch(const struct loader *ld, struct recovery *r, const struct segment *seg,
                            const struct batch *b)
{
    if (!batch_follows(b, r->next) || segment_head_overflows(&seg->head, batch_last_offset(b)))
        return ERR_CORRUPT;
    if (b->leader_epoch >= 0 && b->leader_epoch < ld->last_epoch)
        return ERR_CORRUPT; /* the tail of a truncation that did not reach the disk */
    return scan_crc(&r->sc, b);
}

static enum err take_producer(struct loader *ld, struct recovery *r, struct segment *seg,
                              struct batch *b)
{
    struct aborted_txn aborted;
    uint8_t entry[TXN_ENTRY_BYTES];
    if (b->producer_id < 0)
        return ERR_NONE;
    enum err err = entry_file_reserve(&seg->index[INDEX_TXN], 1);
    if (err == ERR_NONE)
        err = log_state_replay_batch(&ld->s, &r->sc, b, &aborted);
    if (err != ERR_NONE || aborted.first_offset < 0)
        return err;
    segment_txn_encode(&aborted, entry);
    entry_file_push(&seg->index[INDEX_TXN], entry);
    return ERR_NONE;
}

static enum err tell_control(struct loader *ld, struct recovery *r, struct batch *b)
{
    if (ld->ll->control == NULL || (b->attributes & BATCH_CONTROL) == 0)
        return ERR_NONE;
    enum err err = scan_body(&r->sc, b);
    if (err == ERR_NONE)
        ld->ll->control(ld->ll, b);
    return err == ERR_TOO_LARGE ? ERR_NONE : err;
}

/* The file may be older than what is not synced: of an epoch that began here, and was cut from the
 * log and followed by others before the file was written again. What the log says is right. */
static enum err take_epoch(struct loader *ld, const struct batch *b)
{
    struct epoch_cache *c = &ld->s.epochs;
    const int32_t said = epoch_cache_floor(c, b->base_offset);
    if (said >= 0 && said != b->leader_epoch && epoch_cache_truncate_end(c, b->base_offset))
        ld->s.epochs_dirty = true;
    if (b->leader_epoch <= epoch_cache_latest(c))
        return ERR_NONE;
    ld->s.epochs_dirty = true;
    return epoch_cache_assign(c, b->leader_epoch, b->base_offset, NULL);
}

static enum err take_batch(struct loader *ld, struct recovery *r, struct segment *seg,
                           struct batch *b)
{
    enum err err = tell_control(ld, r, b);
    if (err == ERR_NONE)
        err = take_producer(ld, r, seg, b);
    if (err == ERR_NONE && b->magic == 2)
        err = take_epoch(ld, b);
    if (err == ERR_NONE)
        err = segment_reserve(seg, 1);
    if (err != ERR_NONE)
        return err;
    int64_t last = batch_last_offset(b);
    struct segment_step step =
        segment_head_add(&seg->head, &ld->ll->args.config, last, b->max_timestamp, b->size_bytes);
    segment_push(seg, &step, last);
    r->next = last + 1;
    if (b->leader_epoch > ld->last_epoch)
        ld->last_epoch = b->leader_epoch;
    return ERR_NONE;
}

/* Up to the end or the first bad byte (ERR_NONE both), or an error of reading. */
static enum err scan_all(struct loader *ld, struct recovery *r, struct segment *seg,
                         uint64_t *good_end)
{
    for (;;) {
        struct batch b;
        bool more;
        *good_end = r->sc.at;
        enum err err = scan_next(&r->sc, &b, good_end, &more);
        if (err == ERR_NONE && !more)
            return ERR_NONE;
        if (err == ERR_NONE)
            err = check_batch(ld, r, seg, &b);
        if (err == ERR_CORRUPT || err == ERR_TRUNCATED)
            return ERR_NONE;
        if (err == ERR_NONE)
            err = take_batch(ld, r, seg, &b);
        if (err != ERR_NONE)
            return err;
        ld->ll->recovered_bytes += b.size_bytes;
    }
}

static enum err write_indexes(struct loader *ld, struct segment *seg)
{
    enum err err = segment_force_time(seg);
    if (err == ERR_NONE)
        err = segment_write_indexes(seg, ld->at, 0);
    if (err == ERR_NONE && entry_file_n(&seg->index[INDEX_TXN]) == 0)
        err = segment_unlink_file(ld->at, seg->head.base_offset, SUFFIX_TXN);
    return err;
}

enum err load_recover_segment(struct loader *ld, struct segment *seg, bool *cut)
{
    uint64_t size = seg->head.size_bytes, good_end;
    int64_t base = seg->head.base_offset;
    *cut = false;
    segment_head_init(&seg->head, base, ld->ll->args.now.wall_ms, 0);
    for (int i = 0; i < INDEX_N; i++) {
        uint8_t entry_bytes = seg->index[i].entry_bytes;
        entry_file_close(&seg->index[i]);
        entry_file_init(&seg->index[i], entry_bytes, 0);
    }
    enum err err = segment_open(seg, ld->at);
    if (err != ERR_NONE)
        return load_fail(ld, err, "%s: segment %020lld cannot be opened", ld->at.dir,
                         (long long)base);
    struct recovery r = {.next = ld->s.end_offset > base ? ld->s.end_offset : base};
    scan_init(&r.sc, seg->log, 0, size, ld->buf, SCAN_BULK_BYTES);
    err = scan_all(ld, &r, seg, &good_end);
    if (err == ERR_NONE && good_end < size) {
        *cut = true;
        ld->ll->truncated_bytes += size - good_end;
        err = ld->at.fs->ops->truncate(seg->log, good_end);
        if (err == ERR_NONE)
            err = segment_sync_file(ld->d, ld->at.dir, base,
                                    SUFFIX_LOG); /* new bytes will stand where the old ones were */
    }
    if (err == ERR_NONE) {
        CHECK(seg->head.size_bytes == good_end);
        err = write_indexes(ld, seg);
    }
    if (err != ERR_NONE)
        return load_fail(ld, err, "%s: segment %020lld cannot be recovered", ld->at.dir,
                         (long long)base);
    ld->s.end_offset = r.next;
    return ERR_NONE;
}
