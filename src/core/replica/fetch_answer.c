/* The answer of a fetch, from what the last look found. Small record sets are read into the
 * request's arena (they are in the page cache: the log saw to it), large ones are slices of their
 * files. An incremental answer (KIP-227) holds only parts with something new. */
#include "base/limits.h"
#include "core/metadata/kafka_error.h"
#include "core/replica/inside.h"

/* ------------------------------------------------------------------ one part */

static enum err take_records(const struct log_span *span, struct arena *a, struct wire_records *out)
{
    if (span->n < LIMIT_ANSWER_COPY_BYTES) {
        uint8_t *copy = arena_alloc(a, span->n);
        enum err e = copy == NULL ? ERR_NOMEM : log_span_read(span, copy, span->n);
        if (e == ERR_NONE)
            *out = (struct wire_records){.p = copy, .n = (int32_t)span->n};
        return e;
    }
    struct slice *slice = arena_alloc(a, sizeof *slice);
    if (slice == NULL)
        return ERR_NOMEM;
    *slice = (struct slice){file_ref(span->f), span->generation, span->position, span->n};
    *out = (struct wire_records){.n = (int32_t)span->n, .slices = slice, .slices_n = 1};
    return ERR_NONE;
}

static enum err take_aborted(const struct fetch_state *st, const struct fetch_part *part,
                             struct fetch_response_partition_data *out)
{
    struct log_aborted *v;
    int32_t n;
    enum err e = log_aborted_in(part->found.p->log, part->fetch_offset, &part->found.span,
                                st->op->arena, &v, &n);
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

static void fail_part(struct fetch_found *f, int16_t error)
{
    f->error = error;
    f->high_watermark = f->last_stable = f->log_start = -1;
    f->span.n = 0;
}

static void take_part(const struct fetch_state *st, struct fetch_part *part,
                      struct fetch_response_partition_data *out)
{
    struct fetch_found *f = &part->found;
    enum err e = ERR_NONE;
    if (f->error != K_NONE || f->diverging)
        return;
    /* the aborted first: nothing can fail once a slice is held */
    if (st->read_committed) {
        out->aborted_transactions.n = 0;
        if (f->span.n > 0)
            e = take_aborted(st, part, out);
    }
    if (e == ERR_NONE && f->span.n > 0)
        e = take_records(&f->span, st->op->arena, &out->records);
    if (e != ERR_NONE) {
        out->aborted_transactions.n = -1;
        fail_part(f, kafka_error_of(e));
    }
}

/* KIP-951: where the client may go instead. */
static void name_leader(const struct fetch_state *st, const struct fetch_part *part,
                        struct fetch_response_partition_data *out)
{
    const int16_t error = part->found.error;
    if (st->op->version < 16 ||
        (error != K_NOT_LEADER_OR_FOLLOWER && error != K_FENCED_LEADER_EPOCH))
        return;
    struct image_topic *t = image_topic_by_id(st->rs->image, part->topic_id);
    const struct image_partition *ip = t == NULL ? NULL : image_partition(t, part->index);
    if (ip == NULL)
        return;
    out->current_leader.leader_id = ip->leader;
    out->current_leader.leader_epoch = ip->leader_epoch;
}

static void fill_part(const struct fetch_state *st, struct fetch_part *part,
                      struct fetch_response_partition_data *out)
{
    struct fetch_found *f = &part->found;
    out->partition_index = part->index;
    out->aborted_transactions.n = f->refused ? 0 : -1; /* Kafka's own difference */
    out->records = (struct wire_records){.n = 0};
    take_part(st, part, out);
    if (st->replica_id >= 0 && f->span.n > 0 && (f->p->throttled & THROTTLED_LEADER) != 0)
        throttle_record(&st->rs->leader_throttle, (int64_t)f->span.n, st->rs->now.mono_us);
    if (f->error == K_KAFKA_STORAGE_ERROR && st->op->version <= 5)
        f->error = K_NOT_LEADER_OR_FOLLOWER; /* older clients do not know it */
    out->error_code = f->error;
    out->high_watermark = f->high_watermark;
    out->last_stable_offset = f->last_stable;
    out->log_start_offset = f->log_start;
    if (f->error == K_NONE)
        out->preferred_read_replica = f->preferred;
    if (f->diverging && f->error == K_NONE) {
        out->diverging_epoch.epoch = f->diverging_epoch;
        out->diverging_epoch.end_offset = f->diverging_end;
    }
    name_leader(st, part, out);
}

/* ------------------------------------------------------------------ which, in which order */

struct chosen {
    struct fetch_part **v;
    size_t n;
};

static bool has_news(const struct fetch_part *part)
{
    const struct fetch_found *f = &part->found;
    return f->error != K_NONE || f->diverging || f->preferred >= 0 || f->span.n > 0 ||
           f->high_watermark != part->told_high_watermark || f->log_start != part->told_log_start;
}

static void choose(const struct fetch_state *st, bool refused, struct chosen *out)
{
    struct list *l, *tmp;
    if (st->session == NULL) {
        for (int32_t i = 0; i < st->n; i++)
            if (st->v[i].found.refused == refused)
                out->v[out->n++] = &st->v[i];
        return;
    }
    LIST_EACH(l, tmp, &st->set->hot)
    {
        struct fetch_part *part = LIST_ENTRY(l, struct fetch_part, hot);
        if (part->found.refused == refused && has_news(part))
            out->v[out->n++] = part;
    }
}

static size_t most(const struct fetch_state *st)
{
    size_t n = 0;
    struct list *l, *tmp;
    if (st->session == NULL)
        return (size_t)st->n;
    LIST_EACH(l, tmp, &st->set->hot)
    n++;
    return n;
}

static bool same_topic(const struct fetch_part *a, const struct fetch_part *b)
{
    return a->set->by_id ? uuid_eq(a->topic_id, b->topic_id) : str_eq(a->topic, b->topic);
}

/* How many from the ith on are of its topic. */
static size_t run_of(const struct chosen *c, size_t i)
{
    size_t n = 1;
    while (i + n < c->n && same_topic(c->v[i], c->v[i + n]))
        n++;
    return n;
}

/* ------------------------------------------------------------------ what a session remembers */

static void remember(const struct fetch_state *st, struct fetch_part *part)
{
    const struct fetch_found *f = &part->found;
    /* a follower that has to truncate listens to nothing else */
    part->told_high_watermark = f->diverging ? -1 : f->high_watermark;
    part->told_log_start = f->diverging ? -1 : f->log_start;
    if (fetch_part_quiet(st, part)) {
        list_remove(&part->hot);
        fetch_part_watch(part, f->p);
    } else if (f->span.n > 0) { /* the others come first next time, as in Kafka */
        list_remove(&part->hot);
        list_append(&part->set->hot, &part->hot);
    }
}

/* ------------------------------------------------------------------ all */

/* When memory runs out the answer ends there: the client asks again for what it did not get. */
static void fill_topics(const struct fetch_state *st, const struct chosen *c)
{
    struct fetch_response *resp = st->op->response;
    size_t topics_n = 0;
    for (size_t i = 0; i < c->n; i += run_of(c, i))
        topics_n++;
    resp->responses.v =
        wire_array(&wire_fetch_response_fetchable_topic_response, st->op->arena, topics_n);
    if (resp->responses.v == NULL)
        return;
    for (size_t i = 0, n; i < c->n; i += n) {
        struct fetch_response_fetchable_topic_response *t = &resp->responses.v[resp->responses.n];
        n = run_of(c, i);
        if (!c->v[i]->set->by_id)
            t->topic = c->v[i]->topic;
        t->topic_id = c->v[i]->topic_id;
        t->partitions.v = wire_array(&wire_fetch_response_partition_data, st->op->arena, n);
        if (t->partitions.v == NULL)
            return;
        resp->responses.n++;
        for (size_t k = 0; k < n; k++) {
            fill_part(st, c->v[i + k], &t->partitions.v[t->partitions.n++]);
            remember(st, c->v[i + k]);
        }
    }
}

void fetch_answer(struct fetch_state *st)
{
    struct fetch_response *resp = st->op->response;
    struct chosen c = {arena_array(st->op->arena, most(st), sizeof(struct fetch_part *)), 0};
    resp->error_code = st->odd_isolation ? K_UNKNOWN_SERVER_ERROR : st->error;
    if (st->error != K_NONE || c.v == NULL || (st->odd_isolation && st->set->by_id))
        return;
    choose(st, false, &c);
    choose(st, true, &c);
    fill_topics(st, &c);
    resp->session_id = st->session != NULL ? st->session->id
                       : st->create        ? fetch_sessions_create(&st->rs->sessions, st)
                                           : 0;
}
