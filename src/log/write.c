/* Writing what is staged: one pwritev per segment in the common case. A write that fails for want
 * of room is cut off the file again and undone in memory; any other failure takes the log offline.
 */
#include <stdlib.h>

#include "log/log_impl.h"

#define INDEX_GATHER_BYTES 4096 /* index entries in memory before they are written */

enum err log_trim(struct vfs *fs, const char *dir, int64_t base_offset, uint64_t size)
{
    char path[LOG_PATH_MAX];
    struct file_stat st;
    struct file *f;
    enum err err = path_file(path, dir, base_offset, SUFFIX_LOG);
    if (err == ERR_NONE)
        err = fs->ops->stat(fs, path, &st);
    if (err != ERR_NONE || st.size_bytes <= size)
        return err;
    err = fs->ops->open(fs, path, FILE_WRITE, &f);
    if (err != ERR_NONE)
        return err;
    err = fs->ops->truncate(f, size);
    file_unref(f);
    return err;
}

/* Batches [from, to) and their pieces, all of one segment. */
struct run {
    size_t from, to, piece_from, piece_to;
    struct staged_roll *roll; /* the segment begins with them; or NULL */
};

static bool next_run(const struct stage *st, struct run *r)
{
    if (r->to == st->batches_n)
        return false;
    r->from = r->to;
    r->piece_from = r->piece_to;
    r->roll = NULL;
    r->to = st->batches_n;
    r->piece_to = st->pieces_n;
    for (size_t i = 0; i < st->rolls_n; i++) {
        struct staged_roll *roll = &st->rolls[i];
        if (roll->batch_idx == r->from) {
            r->roll = roll;
        } else if (roll->batch_idx > r->from) {
            r->to = roll->batch_idx;
            r->piece_to = roll->piece_idx;
            break;
        }
    }
    return true;
}

static enum err write_pieces(const struct log *l, const struct run *r, struct file *f, uint64_t at)
{
    const struct stage *st = l->stage;
    struct iov iov[LIMIT_STAGE_IOV];
    for (size_t i = r->piece_from; i < r->piece_to;) {
        size_t n = 0;
        uint64_t bytes = 0;
        for (; i < r->piece_to && n < LIMIT_STAGE_IOV; i++, n++) {
            const struct staged_piece *p = &st->pieces[i];
            iov[n] = (struct iov){p->p == NULL ? st->copy.p + p->copy_at : p->p, p->n};
            bytes += p->n;
        }
        enum err err = f->fs->ops->pwritev(f, iov, n, at);
        if (err != ERR_NONE)
            return err;
        at += bytes;
    }
    return ERR_NONE;
}

static uint32_t aborted_n(const struct stage *st, const struct run *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < st->producers_n; i++) {
        const struct staged_producer *p = &st->producers[i];
        if (p->batch_idx >= r->from && p->batch_idx < r->to && p->aborted.first_offset >= 0)
            n++;
    }
    return n;
}

/* The files and the memory that the run needs, so that nothing fails behind its write. */
static enum err prepare(struct log *l, struct segment *seg, const struct run *r)
{
    enum err err = ERR_NONE;
    if (l->recents == NULL) {
        l->recents = calloc(RECENT_N, sizeof *l->recents);
        if (l->recents == NULL)
            return ERR_NOMEM;
    }
    bool fresh = !seg->created;
    if (fresh)
        l->names_dirty = true;
    err = segment_open(seg, log_files(l));
    if (err == ERR_NONE && fresh && l->config.preallocate && l->config.segment_bytes > 0)
        err = seg->log->fs->ops->truncate(seg->log, (uint64_t)l->config.segment_bytes);
    if (err == ERR_NONE)
        err = segment_reserve(seg, (uint32_t)(r->to - r->from));
    if (err == ERR_NONE)
        err = entry_file_reserve(&seg->index[INDEX_TXN], aborted_n(l->stage, r));
    return err;
}

/* The run is written: the log ends behind it. */
static void commit(struct log *l, struct segment *seg, const struct run *r)
{
    struct stage *st = l->stage;
    for (size_t i = r->from; i < r->to; i++) {
        const struct staged_batch *b = &st->batches[i];
        log_recents_add(l, b, seg->head.size_bytes);
        struct segment_step step = segment_head_add(&seg->head, &l->config, b->last_offset,
                                                    b->max_timestamp, b->size_bytes);
        segment_push(seg, &step, b->last_offset);
        l->s.size_bytes += b->size_bytes;
    }
    for (size_t i = 0; i < st->producers_n; i++) {
        const struct staged_producer *p = &st->producers[i];
        if (p->batch_idx >= r->from && p->batch_idx < r->to && p->aborted.first_offset >= 0) {
            uint8_t entry[TXN_ENTRY_BYTES];
            segment_txn_encode(&p->aborted, entry);
            entry_file_push(&seg->index[INDEX_TXN], entry);
        }
    }
    l->s.end_offset = st->batches[r->to - 1].last_offset + 1;
}

static enum err write_run(struct log *l, const struct run *r, const char **what)
{
    enum err err;
    *what = "roll";
    if (r->roll != NULL) {
        err = log_begin_segment(l, &r->roll->head, &r->roll->snapshot);
        if (err != ERR_NONE)
            return err;
    }
    struct segment *seg = log_active(l);
    *what = "append";
    err = prepare(l, seg, r);
    if (err != ERR_NONE)
        return err;
    err = write_pieces(l, r, seg->log, seg->head.size_bytes);
    if (err == ERR_NONE) {
        commit(l, seg, r);
        return ERR_NONE;
    }
    if (log_err_passes(err)) {
        enum err trim = log_trim(l->env->fs, l->dir, seg->head.base_offset, seg->head.size_bytes);
        if (trim != ERR_NONE)
            return trim == ERR_NOSPC ? ERR_IO : trim;
    }
    return err;
}

/* Not needed before the segment is left: no room is no failure here. */
static enum err gather_indexes(struct log *l)
{
    enum err err = segment_write_indexes(log_active(l), log_files(l), INDEX_GATHER_BYTES);
    return log_err_passes(err) ? ERR_NONE : err;
}

enum err log_write(struct log *l, struct now now)
{
    l->now = now;
    if (l->offline)
        return ERR_OFFLINE;
    if (!log_dirty(l))
        return ERR_NONE;
    enum err err = log_make_dir(l);
    if (err == ERR_NONE && l->cut_unsynced) {
        log_sync_start(l);
        err = ERR_AGAIN;
    }
    if (err == ERR_AGAIN)
        return err;
    const char *what = "mkdir";
    struct run run = {0};
    while (err == ERR_NONE && next_run(l->stage, &run))
        err = write_run(l, &run, &what);
    if (err == ERR_NONE) {
        stage_reset(l);
        what = "index";
        err = gather_indexes(l);
    } else {
        stage_cut(l, run.from);
    }
    if (err != ERR_NONE && !log_err_passes(err)) {
        log_fail(l, err, what);
        return ERR_IO;
    }
    log_after_write(l);
    return err;
}
