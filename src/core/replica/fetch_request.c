/* A fetcher's Fetch: full, with every partition that is fetched, or of a session, with those of
 * which something changed. */
#include "core/replica/fetcher.h"
#include "core/replica/inside.h"

enum { DISK_WAIT_MS = 5 }; /* a directory made, a file synced */

/* Bytes cannot be asked for while what the log has is not written, or not promised: the offset that
 * is asked for promises all before it. */
static bool log_ready(const struct partition *p)
{
    return !log_dirty(p->log) && log_promised_end(p->log) >= log_end_offset(p->log);
}

/* Its log tells when there is news (follow_log_moved). */
static bool ready(struct follow *fw)
{
    struct log *log = fw->p->log;
    if (log_ready(fw->p))
        return true;
    if (log_promised_end(log) < log_end_offset(log))
        log_flush(log, log_end_offset(log));
    follow_set_state(fw, FOLLOW_WAITING);
    return false;
}

static void fill_partition(struct follow *fw, struct fetch_request_fetch_partition *out)
{
    const struct partition *p = fw->p;
    const struct epoch_cache *epochs = log_epochs(p->log);
    out->partition = p->index;
    out->current_leader_epoch = p->leader_epoch;
    out->fetch_offset = follow_offset(fw);
    out->last_fetched_epoch = epochs->n > 0 ? epochs->v[epochs->n - 1].epoch : -1;
    out->log_start_offset = log_start_offset(p->log);
    out->partition_max_bytes = p->rs->fetching.partition_max_bytes;
    list_remove(&fw->link);
    fw->asked = true;
    fw->in_session = true;
    fw->asked_offset = out->fetch_offset;
}

/* ------------------------------------------------------------------ topics */

struct chosen {
    struct follow **v;
    size_t n;
};

/* Those that have something to say; their logs are ready. */
static enum err choose(struct fetcher *f, bool full, struct chosen *out)
{
    struct list *from = full ? &f->parts : &f->changed;
    struct list *l, *tmp;
    size_t n = 0;
    LIST_EACH(l, tmp, from)
    n++;
    out->n = 0;
    out->v = arena_array(&f->arena, n, sizeof(struct follow *));
    if (out->v == NULL)
        return ERR_NOMEM;
    LIST_EACH(l, tmp, from)
    {
        struct follow *fw =
            full ? LIST_ENTRY(l, struct follow, all) : LIST_ENTRY(l, struct follow, link);
        if (fw->state == FOLLOW_FETCHING && ready(fw))
            out->v[out->n++] = fw;
    }
    return ERR_NONE;
}

static size_t run_of(const struct chosen *c, size_t i)
{
    size_t n = 1;
    while (i + n < c->n && uuid_eq(c->v[i]->p->topic_id, c->v[i + n]->p->topic_id))
        n++;
    return n;
}

static enum err fill_topics(struct fetcher *f, const struct chosen *c)
{
    struct fetch_request *req = &f->request.fetch;
    size_t topics_n = 0;
    for (size_t i = 0; i < c->n; i += run_of(c, i))
        topics_n++;
    req->topics.v = wire_array(&wire_fetch_request_fetch_topic, &f->arena, topics_n);
    if (req->topics.v == NULL)
        return ERR_NOMEM;
    for (size_t i = 0, n; i < c->n; i += n) {
        struct fetch_request_fetch_topic *t = &req->topics.v[req->topics.n];
        n = run_of(c, i);
        t->topic_id = c->v[i]->p->topic_id;
        t->partitions.v = wire_array(&wire_fetch_request_fetch_partition, &f->arena, n);
        if (t->partitions.v == NULL)
            return ERR_NOMEM;
        req->topics.n++;
        for (size_t k = 0; k < n; k++)
            fill_partition(c->v[i + k], &t->partitions.v[t->partitions.n++]);
    }
    return ERR_NONE;
}

/* One that is fetched again is not forgotten: a server adds first, then forgets. */
static bool still_forgotten(const struct fetcher *f, const struct forgotten *fg)
{
    const struct partition *p = replicas_find(f->rs, fg->topic_id, fg->index);
    return p == NULL || p->follow == NULL || p->follow->fetcher != f || !p->follow->in_session;
}

static enum err fill_forgotten(struct fetcher *f)
{
    struct fetch_request *req = &f->request.fetch;
    req->forgotten_topics_data.v =
        wire_array(&wire_fetch_request_forgotten_topic, &f->arena, f->forgotten_n);
    int32_t *indexes = arena_array(&f->arena, f->forgotten_n, sizeof *indexes);
    if (req->forgotten_topics_data.v == NULL || indexes == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < f->forgotten_n; i++) {
        if (!still_forgotten(f, &f->forgotten[i]))
            continue;
        struct fetch_request_forgotten_topic *t =
            &req->forgotten_topics_data.v[req->forgotten_topics_data.n++];
        t->topic_id = f->forgotten[i].topic_id;
        indexes[i] = f->forgotten[i].index;
        t->partitions.v = &indexes[i];
        t->partitions.n = 1;
    }
    return ERR_NONE;
}

/* ------------------------------------------------------------------ the request */

/* What there is memory for, of which a growing buffer needs twice as much. */
static int32_t most_bytes(const struct replicas *rs)
{
    const int64_t asked = rs->fetching.response_max_bytes;
    if (rs->answers == NULL || (uint64_t)asked <= rs->answers->limit_bytes / 4)
        return (int32_t)asked;
    return (int32_t)(rs->answers->limit_bytes / 4);
}

/* What waits for our own disk, or for the end of a pause, is asked for again by the next request:
 * this one is not to wait long at the leader. */
static int32_t wait_ms(const struct fetcher *f)
{
    const struct replicas *rs = f->rs;
    int64_t ms = rs->fetching.wait_max_ms;
    if (f->waiting_n > 0 && ms > DISK_WAIT_MS)
        ms = DISK_WAIT_MS;
    if (timer_armed(&f->delay) && f->delay.at_us - rs->now.mono_us < ms * 1000)
        ms = (f->delay.at_us - rs->now.mono_us + 999) / 1000;
    return ms > 0 ? (int32_t)ms : 0;
}

static void fill_head(struct fetcher *f, int16_t version)
{
    const struct replicas *rs = f->rs;
    struct fetch_request *req = &f->request.fetch;
    wire_default(&wire_fetch_request, req);
    if (version >= 15) {
        req->replica_state.replica_id = rs->node_id;
        req->replica_state.replica_epoch =
            rs->broker_epoch == NULL ? -1 : rs->broker_epoch(rs->events.ctx);
    } else {
        req->replica_id = rs->node_id;
    }
    req->max_wait_ms = wait_ms(f);
    req->min_bytes = rs->fetching.min_bytes;
    req->max_bytes = most_bytes(rs);
    req->session_id = f->session_id;
    req->session_epoch = f->session_epoch;
}

/* A full request begins a session: nothing is in it yet. */
static void leave_session(struct fetcher *f)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &f->parts)
    LIST_ENTRY(l, struct follow, all)->in_session = false;
    f->forgotten_n = 0;
}

/* Those that may not take any more now are left out for a while, and out of the session, whose
 * leader would go on sending them. */
static void leave_out_throttled(struct fetcher *f)
{
    struct replicas *rs = f->rs;
    struct list *l, *tmp;
    if (list_empty(&f->throttled) || !throttle_exceeded(&rs->follower_throttle, rs->now.mono_us))
        return;
    LIST_EACH(l, tmp, &f->throttled)
    {
        struct follow *fw = LIST_ENTRY(l, struct follow, throttled);
        if (fw->state == FOLLOW_FETCHING && fw->behind)
            follow_delay(fw);
    }
}

enum err fetcher_make_fetch(struct fetcher *f, int16_t version, bool *any)
{
    struct chosen chosen;
    leave_out_throttled(f);
    *any = f->fetching_n > 0;
    if (!*any) /* what is to be forgotten waits for the next one */
        return ERR_NONE;
    if (f->full_next)
        f->session_epoch = 0;
    f->full_next = false;
    const bool full = f->session_epoch == 0;
    if (full)
        leave_session(f);
    enum err e = choose(f, full, &chosen);
    if (e == ERR_NONE && !full && f->full_next) /* no memory to forget something */
        e = ERR_NOMEM;
    fill_head(f, version);
    if (e == ERR_NONE)
        e = fill_topics(f, &chosen);
    if (e == ERR_NONE && !full)
        e = fill_forgotten(f);
    f->forgotten_n = 0;
    if (e != ERR_NONE)
        f->session_epoch = 0;
    *any = f->fetching_n > 0;
    return e;
}
