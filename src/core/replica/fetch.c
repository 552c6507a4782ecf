/* Fetch at the leader (log.md 5, replication.md 7). Two passes: look finds where each part's bytes
 * are and whether the answer can leave; answer takes them. Between the two nothing happens, so what
 * look saw still holds. A fetch that cannot leave waits at its partitions until bytes, an error or
 * its deadline come, and looks again from the start. */
#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "core/metadata/kafka_error.h"
#include "core/replica/inside.h"

/* What look found for one part. */
struct fetch_found {
    struct partition *p; /* valid in the pass only */
    int16_t error;
    bool refused; /* before anything was read: comes last in the answer */
    bool diverging;
    int32_t diverging_epoch;
    int64_t diverging_end;
    int64_t high_watermark, last_stable, log_start;
    struct log_span span;
};

struct fetch_wait {
    struct list link; /* in its partition */
    struct fetch_state *st;
};

struct fetch_state {
    struct replicas *rs;
    struct fetch_op *op;
    struct session_context ctx;
    struct fetch_found *found;
    struct fetch_wait *waits;
    int32_t replica_id;
    bool read_committed;
    int64_t max_bytes, min_bytes;
    struct timer timer;
    struct list woken; /* in woken_fetch or ready_fetch */
    bool cold;         /* waits for the page cache: the answer is not late before it is there */
    bool due;          /* the deadline passed, or it was cancelled */
};

/* ------------------------------------------------------------------ waking */

void fetch_wake(struct partition *p)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->fetch_waits)
    {
        struct fetch_state *st = LIST_ENTRY(l, struct fetch_wait, link)->st;
        if (list_empty(&st->woken))
            list_append(&p->rs->woken_fetch, &st->woken);
    }
}

void fetch_detach(struct partition *p)
{
    while (list_pop(&p->fetch_waits) != NULL)
        ;
}

static void stop_waiting(struct fetch_state *st)
{
    for (int32_t i = 0; i < st->ctx.n; i++)
        list_remove(&st->waits[i].link);
    timer_cancel(st->rs->timers, &st->timer);
}

static void make_due(struct fetch_state *st)
{
    st->due = true;
    if (list_empty(&st->woken))
        list_append(&st->rs->woken_fetch, &st->woken);
}

static void fetch_late(struct timer *t)
{
    make_due(CONTAINER_OF(t, struct fetch_state, timer));
}

/* ------------------------------------------------------------------ looking */

static int16_t find_part(struct fetch_state *st, struct fetch_part *part, struct partition **out)
{
    const bool by_id = st->op->version >= 13;
    const struct image *img = st->rs->image;
    const struct image_topic *t =
        by_id ? image_topic_by_id(img, part->topic_id) : image_topic_named(img, part->topic);
    if (t == NULL)
        return by_id ? K_UNKNOWN_TOPIC_ID : K_UNKNOWN_TOPIC_OR_PARTITION;
    if (st->op->allowed != NULL && !st->op->allowed(st->op->allowed_ctx, str_of(t->name)))
        return K_TOPIC_AUTHORIZATION_FAILED;
    if (part->index < 0 || part->index >= t->partitions_n)
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    *out = replicas_find(st->rs, t->id, part->index);
    return *out == NULL ? K_NOT_LEADER_OR_FOLLOWER : K_NONE;
}

/* A replica that is not in the assignment, and every replica while followers are not served. */
static int16_t check_replica(const struct fetch_state *st, const struct partition *p,
                             const struct fetch_part *part)
{
    if (st->replica_id < 0 || partition_follower(p, st->replica_id) != NULL)
        return K_NONE;
    return part->current_leader_epoch >= 0 ? K_UNKNOWN_LEADER_EPOCH : K_NOT_LEADER_OR_FOLLOWER;
}

/* KIP-320: does the reader's last epoch end where it says? */
static int16_t check_divergence(const struct partition *p, const struct fetch_part *part,
                                struct fetch_found *f)
{
    int32_t epoch;
    int64_t end;
    if (part->last_fetched_epoch < 0)
        return K_NONE;
    log_end_offset_for_epoch(p->log, part->last_fetched_epoch, &epoch, &end);
    if (epoch < 0 || end < 0 || part->fetch_offset < log_start_offset(p->log))
        return K_OFFSET_OUT_OF_RANGE;
    f->diverging = epoch < part->last_fetched_epoch || end < part->fetch_offset;
    f->diverging_epoch = epoch;
    f->diverging_end = end;
    return K_NONE;
}

static int16_t read_part(struct fetch_state *st, const struct fetch_part *part,
                         struct fetch_found *f, int64_t left, bool min_one)
{
    struct partition *p = f->p;
    const int64_t limit = st->replica_id >= 0  ? log_end_offset(p->log)
                          : st->read_committed ? f->last_stable
                                               : f->high_watermark;
    int64_t max = part->max_bytes < left ? part->max_bytes : left;
    if (max < 0)
        max = 0;
    enum err e = log_read(p->log, part->fetch_offset, limit, (uint32_t)max, min_one, &f->span);
    if (e == ERR_RANGE)
        return K_OFFSET_OUT_OF_RANGE;
    if (e == ERR_AGAIN) {
        st->cold = true;
        f->span.n = 0;
        return K_NONE;
    }
    return e == ERR_NONE ? K_NONE : kafka_error_of(e);
}

static void look_part(struct fetch_state *st, struct fetch_part *part, struct fetch_found *f,
                      int64_t left, bool min_one)
{
    *f = (struct fetch_found){.high_watermark = -1, .last_stable = -1, .log_start = -1};
    f->error = find_part(st, part, &f->p);
    f->refused = f->error != K_NONE;
    if (f->error == K_NONE)
        f->error = partition_check_epoch(f->p, part->current_leader_epoch);
    if (f->error == K_NONE)
        f->error = check_replica(st, f->p, part);
    if (f->error == K_NONE)
        f->error = check_divergence(f->p, part, f);
    if (f->error != K_NONE)
        return;
    f->high_watermark = f->p->high_watermark;
    f->last_stable = partition_limit(f->p, true);
    f->log_start = log_start_offset(f->p->log);
    if (!f->diverging)
        f->error = read_part(st, part, f, left, min_one);
    if (f->error != K_NONE) { /* Kafka tells nothing of the log with an error */
        f->high_watermark = f->last_stable = f->log_start = -1;
        f->span.n = 0;
    }
}

/* True if the answer can leave. */
static bool look(struct fetch_state *st)
{
    int64_t bytes = 0;
    bool leaves = st->due;
    st->cold = false;
    for (int32_t i = 0; i < st->ctx.n; i++) {
        struct fetch_found *f = &st->found[i];
        look_part(st, &st->ctx.v[i], f, st->max_bytes - bytes, bytes == 0);
        bytes += f->span.n;
        leaves |= f->error != K_NONE || f->diverging;
    }
    return (leaves || bytes >= st->min_bytes || st->ctx.n == 0) && !(st->cold && bytes == 0);
}

/* ------------------------------------------------------------------ answering */

static enum err take_records(const struct log_span *span, struct arena *a, struct wire_records *out)
{
    out->n = (int32_t)span->n;
    if (span->n < LIMIT_ANSWER_COPY_BYTES) {
        uint8_t *copy = arena_alloc(a, span->n);
        out->p = copy;
        return copy == NULL ? ERR_NOMEM : log_span_read(span, copy, span->n);
    }
    out->slices = arena_alloc(a, sizeof *out->slices);
    if (out->slices == NULL)
        return ERR_NOMEM;
    *out->slices = (struct slice){file_ref(span->f), span->generation, span->position, span->n};
    out->slices_n = 1;
    return ERR_NONE;
}

static enum err take_aborted(const struct fetch_state *st, const struct fetch_part *part,
                             const struct fetch_found *f, struct fetch_response_partition_data *out)
{
    struct log_aborted *v;
    int32_t n;
    if (!st->read_committed || f->error != K_NONE)
        return ERR_NONE;
    enum err e = log_aborted_in(f->p->log, part->fetch_offset, &f->span, st->op->arena, &v, &n);
    if (e != ERR_NONE)
        return e;
    out->aborted_transactions.v =
        wire_array(&wire_fetch_response_aborted_transaction, st->op->arena, (size_t)n);
    if (out->aborted_transactions.v == NULL)
        return ERR_NOMEM;
    out->aborted_transactions.n = n;
    for (int32_t i = 0; i < n; i++)
        out->aborted_transactions.v[i] =
            (struct fetch_response_aborted_transaction){v[i].producer_id, v[i].first_offset};
    return ERR_NONE;
}

static void name_leader(const struct fetch_state *st, const struct fetch_found *f,
                        struct fetch_response_partition_data *out)
{
    if (st->op->version < 12 || f->p == NULL)
        return;
    if (f->error == K_NOT_LEADER_OR_FOLLOWER || f->error == K_FENCED_LEADER_EPOCH) {
        out->current_leader.leader_id = f->p->leader;
        out->current_leader.leader_epoch = f->p->leader_epoch;
    }
}

static void fill_part(struct fetch_state *st, const struct fetch_part *part, struct fetch_found *f,
                      struct fetch_response_partition_data *out)
{
    out->partition_index = part->index;
    out->aborted_transactions.n = -1;
    enum err e = ERR_NONE;
    if (f->error == K_NONE && !f->diverging && f->span.n > 0)
        e = take_records(&f->span, st->op->arena, &out->records);
    if (e == ERR_NONE && f->error == K_NONE)
        e = take_aborted(st, part, f, out);
    if (e != ERR_NONE) {
        f->error = kafka_error_of(e);
        f->high_watermark = f->last_stable = f->log_start = -1;
    }
    if (f->error == K_KAFKA_STORAGE_ERROR && st->op->version <= 5)
        f->error = K_NOT_LEADER_OR_FOLLOWER; /* older clients do not know it */
    out->error_code = f->error;
    out->high_watermark = f->high_watermark;
    out->last_stable_offset = f->last_stable;
    out->log_start_offset = f->log_start;
    if (f->diverging && f->error == K_NONE) {
        out->diverging_epoch.epoch = f->diverging_epoch;
        out->diverging_epoch.end_offset = f->diverging_end;
    }
    name_leader(st, f, out);
}

/* Has an incremental answer anything to say of it? */
static bool has_news(const struct fetch_part *part, const struct fetch_found *f)
{
    return f->error != K_NONE || f->diverging || f->span.n > 0 ||
           f->high_watermark != part->told_high_watermark || f->log_start != part->told_log_start;
}

static bool same_topic(const struct fetch_state *st,
                       const struct fetch_response_fetchable_topic_response *t,
                       const struct fetch_part *part)
{
    return st->op->version >= 13 ? uuid_eq(t->topic_id, part->topic_id)
                                 : str_eq(t->topic, part->topic);
}

/* Adds a part to the answer, in the topic that was added last or a new one. */
static void add_part(struct fetch_state *st, int32_t i, int32_t left)
{
    struct fetch_response *resp = st->op->response;
    const struct fetch_part *part = &st->ctx.v[i];
    struct fetch_found *f = &st->found[i];
    if (st->ctx.incremental && !has_news(part, f))
        return;
    struct fetch_response_fetchable_topic_response *t =
        resp->responses.n > 0 ? &resp->responses.v[resp->responses.n - 1] : NULL;
    if (t == NULL || !same_topic(st, t, part)) {
        struct fetch_response_partition_data *v =
            wire_array(&wire_fetch_response_partition_data, st->op->arena, (size_t)left);
        if (v == NULL)
            return; /* the client asks again for what it did not get */
        t = &resp->responses.v[resp->responses.n++];
        t->topic = part->topic;
        t->topic_id = part->topic_id;
        t->partitions.v = v;
    }
    fill_part(st, part, f, &t->partitions.v[t->partitions.n++]);
    fetch_sessions_told(&st->rs->sessions, st->ctx.session_id, part,
                        f->error == K_NONE ? f->high_watermark : -1, f->log_start);
}

static void answer(struct fetch_state *st)
{
    struct fetch_response *resp = st->op->response;
    resp->error_code = st->ctx.error;
    resp->responses.v =
        wire_array(&wire_fetch_response_fetchable_topic_response, st->op->arena, (size_t)st->ctx.n);
    if (st->ctx.error != K_NONE || resp->responses.v == NULL)
        return;
    if (st->ctx.create)
        st->ctx.session_id = fetch_sessions_create(&st->rs->sessions, st->ctx.v, st->ctx.n,
                                                   st->op->version >= 13, st->rs->now);
    resp->session_id = st->ctx.session_id;
    for (int32_t i = 0; i < st->ctx.n; i++)
        if (!st->found[i].refused)
            add_part(st, i, st->ctx.n - i);
    for (int32_t i = 0; i < st->ctx.n; i++)
        if (st->found[i].refused)
            add_part(st, i, st->ctx.n - i);
}

/* ------------------------------------------------------------------ waiting */

static void wait_at_partitions(struct fetch_state *st)
{
    for (int32_t i = 0; i < st->ctx.n; i++) {
        struct fetch_wait *w = &st->waits[i];
        list_remove(&w->link);
        if (st->found[i].p != NULL)
            list_append(&st->found[i].p->fetch_waits, &w->link);
    }
}

static void attempt(struct fetch_state *st)
{
    if (look(st)) {
        stop_waiting(st);
        answer(st);
        list_append(&st->rs->ready_fetch, &st->woken);
        return;
    }
    wait_at_partitions(st);
    if (!timer_armed(&st->timer) && !st->due &&
        timer_arm(st->rs->timers, &st->timer,
                  st->rs->now.mono_us + (int64_t)st->op->request->max_wait_ms * 1000) != ERR_NONE)
        make_due(st);
}

bool fetch_settle(struct replicas *rs)
{
    struct list *l, woken;
    bool moved = false;
    /* Those woken now: looking may wake again only by what another turn brings. */
    list_init(&woken);
    while ((l = list_pop(&rs->woken_fetch)) != NULL)
        list_append(&woken, l);
    while ((l = list_pop(&woken)) != NULL) {
        attempt(LIST_ENTRY(l, struct fetch_state, woken));
        moved = true;
    }
    while ((l = list_pop(&rs->ready_fetch)) != NULL) {
        struct fetch_state *st = LIST_ENTRY(l, struct fetch_state, woken);
        st->op->done(st->op);
        moved = true;
    }
    return moved;
}

/* ------------------------------------------------------------------ the operation */

static int64_t response_limit(const struct replicas *rs, const struct fetch_request *req)
{
    const int64_t own = config_int(rs->config, "fetch.max.bytes");
    return req->max_bytes < own ? req->max_bytes : own;
}

static enum err begin(struct replicas *rs, struct fetch_op *op, struct fetch_state *st)
{
    const struct fetch_request *req = op->request;
    st->rs = rs;
    st->op = op;
    st->replica_id = op->version >= 15 ? req->replica_state.replica_id : req->replica_id;
    st->read_committed = req->isolation_level == 1 && st->replica_id < 0;
    st->max_bytes = response_limit(rs, req);
    st->min_bytes = req->min_bytes < st->max_bytes ? req->min_bytes : st->max_bytes;
    st->due = req->max_wait_ms <= 0;
    st->timer.fire = fetch_late;
    list_init(&st->woken);
    enum err e =
        fetch_sessions_begin(&rs->sessions, req, op->version, op->arena, rs->now, &st->ctx);
    if (e != ERR_NONE)
        return e;
    st->found = arena_array(op->arena, (size_t)st->ctx.n, sizeof *st->found);
    st->waits = arena_array(op->arena, (size_t)st->ctx.n, sizeof *st->waits);
    if (st->found == NULL || st->waits == NULL) {
        st->ctx.n = 0;
        return ERR_NOMEM;
    }
    for (int32_t i = 0; i < st->ctx.n; i++) {
        st->waits[i].st = st;
        list_init(&st->waits[i].link);
    }
    return ERR_NONE;
}

enum err replicas_fetch(struct replicas *rs, struct fetch_op *op, struct now now)
{
    rs->now = now;
    struct fetch_state *st = arena_zalloc(op->arena, sizeof *st);
    enum err e = st == NULL ? ERR_NOMEM : begin(rs, op, st);
    if (e != ERR_NONE)
        return e;
    op->impl = st;
    if (st->ctx.error != K_NONE)
        st->due = true;
    list_append(&rs->woken_fetch, &st->woken); /* looked at when this turn settles */
    return ERR_NONE;
}

void replicas_fetch_cancel(struct fetch_op *op)
{
    make_due(op->impl);
}
