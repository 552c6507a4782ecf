/* A Fetch from its arrival to its answer. It is looked at when its turn settles; one that cannot
 * leave yet waits on its set (fetch.h) until something there changes, or its deadline, and looks
 * again. An answer is made and given in one go: what a look found does not outlive it. */
#include "core/replica/inside.h"
#include "core/replica/mentions.h"
#include "wire/error.h"

/* ------------------------------------------------------------------ waking */

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

void replicas_fetch_cancel(struct fetch_op *op)
{
    make_due(op->impl);
}

/* ------------------------------------------------------------------ waiting */

/* A follower has one fetch under way, and adds a partition with the next one: what it has from us
 * since a moment ago does not wait for the end of the fetch before, and nor do its producers.
 * Whether it has heard of that already we do not know, so for a while its fetches wait for moments
 * only. */
enum { JOINING_US = 250 * 1000, JOINING_WAIT_US = 10 * 1000 };

static int64_t wait_us(const struct fetch_state *st)
{
    const int64_t us = (int64_t)st->op->request->max_wait_ms * 1000;
    const bool joining = st->replica_id >= 0 && st->arrived_us < st->rs->led_us + JOINING_US;
    return joining && us > JOINING_WAIT_US ? JOINING_WAIT_US : us;
}

void fetch_began_leading(struct replicas *rs, struct now now)
{
    rs->led_us = now.mono_us;
    rs->led_untold = true;
}

static void hasten_followers(struct replicas *rs)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &rs->parked_followers)
    make_due(LIST_ENTRY(l, struct fetch_state, parked));
    rs->led_untold = false;
}

/* Parts with bytes, but too few, are hot and watch all the same: more may come. */
static void wait_on_set(struct fetch_state *st)
{
    struct list *l, *tmp;
    if (list_empty(&st->waiting))
        list_append(&st->set->fetches, &st->waiting);
    if (st->replica_id >= 0 && list_empty(&st->parked))
        list_append(&st->rs->parked_followers, &st->parked);
    LIST_EACH(l, tmp, &st->set->hot)
    {
        struct fetch_part *part = LIST_ENTRY(l, struct fetch_part, hot);
        if (part->found.p != NULL)
            fetch_part_watch(part, part->found.p);
    }
    if (timer_armed(&st->timer) || st->due)
        return;
    if (timer_arm(st->rs->timers, &st->timer, st->arrived_us + wait_us(st)) != ERR_NONE)
        make_due(st);
}

static void leave(struct fetch_state *st)
{
    struct fetch_sessions *sessions = &st->rs->sessions;
    struct session *ss = st->session;
    timer_cancel(st->rs->timers, &st->timer);
    list_remove(&st->waiting);
    list_remove(&st->parked);
    for (int32_t i = 0; i < st->n; i++)
        fetch_part_leave(&st->v[i]);
    st->op->done(st->op); /* st is gone */
    if (ss != NULL)
        fetch_session_unref(sessions, ss);
}

static void attempt(struct fetch_state *st)
{
    if (!fetch_look(st)) {
        wait_on_set(st);
        return;
    }
    fetch_answer(st);
    leave(st);
}

bool fetch_settle(struct replicas *rs)
{
    struct list *l, woken;
    if (rs->led_untold)
        hasten_followers(rs);
    /* Those woken by now; a look can wake again only what waits for another turn. */
    list_init(&woken);
    while ((l = list_pop(&rs->woken_fetch)) != NULL)
        list_append(&woken, l);
    const bool moved = !list_empty(&woken);
    while ((l = list_pop(&woken)) != NULL)
        attempt(LIST_ENTRY(l, struct fetch_state, woken));
    return moved;
}

/* ------------------------------------------------------------------ beginning */

/* A partition named twice is asked for once: where it was named first, as it was named last. */
static enum err ask_without_session(struct fetch_state *st)
{
    const struct fetch_request *req = st->op->request;
    struct arena *a = st->op->arena;
    size_t n = 0, all_n = 0;
    for (int32_t i = 0; i < req->topics.n; i++)
        n += (size_t)req->topics.v[i].partitions.n;
    struct mention *all = arena_array(a, n, sizeof *all);
    const struct fetch_request_fetch_partition **asked = arena_array(a, n, sizeof(void *));
    st->v = arena_array(a, n, sizeof *st->v);
    if (st->v == NULL || all == NULL || asked == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct fetch_request_fetch_topic *t = &req->topics.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++) {
            asked[all_n] = &t->partitions.v[k];
            all[all_n++] = (struct mention){
                .topic = t->topic, .topic_id = t->topic_id, .index = t->partitions.v[k].partition};
        }
    }
    enum err e = mentions_find(all, n, a);
    for (size_t i = 0; i < n && e == ERR_NONE; i++) {
        if (all[i].first != i)
            continue;
        struct fetch_part *part = &st->v[st->n++];
        fetch_part_init(part, &st->own);
        part->topic = all[i].topic;
        part->topic_id = all[i].topic_id;
        fetch_part_ask(part, asked[all[i].last]);
        fetch_part_heat(part);
    }
    return e;
}

static void init_state(struct fetch_state *st, struct replicas *rs, struct fetch_op *op)
{
    const struct fetch_request *req = op->request;
    st->rs = rs;
    st->op = op;
    fetch_set_init(&st->own, rs, op->version >= 13);
    st->set = &st->own;
    st->replica_id = op->version >= 15 ? req->replica_state.replica_id : req->replica_id;
    st->replica_epoch = op->version >= 15 ? req->replica_state.replica_epoch : -1;
    st->read_committed = req->isolation_level == 1 && st->replica_id < 0;
    st->any_replica = op->version >= 11 && st->replica_id < 0;
    st->odd_isolation = req->isolation_level < 0 || req->isolation_level > 1;
    st->max_bytes = req->max_bytes < rs->fetch_max_bytes ? req->max_bytes : rs->fetch_max_bytes;
    st->min_bytes = req->min_bytes < st->max_bytes ? req->min_bytes : st->max_bytes;
    st->arrived_us = rs->now.mono_us;
    st->timer.fire = fetch_late;
    list_init(&st->woken);
    list_init(&st->waiting);
    list_init(&st->parked);
}

enum err replicas_fetch(struct replicas *rs, struct fetch_op *op, struct now now)
{
    rs->now = now;
    struct fetch_state *st = arena_zalloc(op->arena, sizeof *st);
    if (st == NULL)
        return ERR_NOMEM;
    init_state(st, rs, op);
    enum err e = fetch_sessions_begin(&rs->sessions, st);
    if (e == ERR_NONE && st->error == K_NONE && st->session == NULL)
        e = ask_without_session(st);
    if (e != ERR_NONE)
        return e;
    st->due = op->request->max_wait_ms <= 0 || (st->session == NULL && st->n == 0);
    op->impl = st;
    list_append(&rs->woken_fetch, &st->woken); /* looked at when this turn settles */
    return ERR_NONE;
}
