/* Stores under way: what has to be done when the group's record is committed, or could not be. */
#include "core/group/classic_impl.h"

#include "base/check.h"

/* ------------------------------------------------------------------ the end */

/* If the record is lost the generation before becomes active again after a restart, and its members
 * time out: so this is a warning only, as in Kafka. */
static void empty_not_stored(const struct classic *g, int16_t error)
{
    env_log(g->args.env, LOG_WARN, "group_empty_not_stored group=%.*s generation=%d error=%d",
            (int)g->id.n, g->id.p, g->generation, error);
}

static void end(struct classic_store *s, int16_t error)
{
    struct classic *g = s->group;
    struct classic_leave_op *leave = s->leave;
    switch (s->kind) {
    case CLASSIC_STORE_SYNC:
        classic_synced(g, s, error);
        break;
    case CLASSIC_STORE_REPLACED:
        classic_replaced(g, s, error);
        break;
    case CLASSIC_STORE_EMPTY:
        if (error != K_NONE)
            empty_not_stored(g, error);
        s->leave = NULL;
        if (leave != NULL)
            classic_left(leave, error);
        break;
    }
}

/* It took too long: as if it had failed. Its turn in the order of stores is still to come, and
 * finds nothing left to do. */
static void late(struct timer *t)
{
    struct classic_store *s = CONTAINER_OF(t, struct classic_store, timer);
    s->group->now = classic_timer_now(s->group);
    end(s, K_COORDINATOR_NOT_AVAILABLE);
}

void classic_stored(struct classic *g, int16_t error, struct now now)
{
    CHECK(!list_empty(&g->stores));
    struct classic_store *s = LIST_ENTRY(g->stores.next, struct classic_store, link);
    g->now = now;
    end(s, error);
    classic_store_free(g, s);
}

/* ------------------------------------------------------------------ the beginning */

struct classic_store *classic_store_new(struct classic *g, enum classic_store_kind kind)
{
    const int64_t wait_ms = config_int(g->args.config, "offsets.commit.timeout.ms");
    struct classic_store *s = classic_alloc(g, sizeof *s);
    if (s == NULL)
        return NULL;
    s->group = g;
    s->kind = kind;
    s->timer.fire = late;
    if (timer_arm(g->args.timers, &s->timer, classic_after_ms(g, wait_ms)) != ERR_NONE) {
        classic_release(g, s, sizeof *s);
        return NULL;
    }
    s->generation = g->generation;
    s->old_id = s->old_leader = STR_NULL;
    list_init(&s->link);
    return s;
}

int16_t classic_store_begin(struct classic *g, struct classic_store *s)
{
    const int16_t error = g->args.events.store(g->args.events.ctx, g, g->now);
    if (error == K_NONE)
        list_append(&g->stores, &s->link);
    return error;
}

void classic_store_free(struct classic *g, struct classic_store *s)
{
    classic_replace_drop(g, s);
    classic_drop(g, &s->old_leader);
    timer_cancel(g->args.timers, &s->timer);
    list_remove(&s->link);
    classic_release(g, s, sizeof *s);
}

void classic_store_empty(struct classic *g)
{
    struct classic_store *s = classic_store_new(g, CLASSIC_STORE_EMPTY);
    g->empty_refused = s == NULL ? CLASSIC_NO_MEMORY : classic_store_begin(g, s);
    if (g->empty_refused == K_NONE)
        return;
    empty_not_stored(g, g->empty_refused);
    if (s != NULL)
        classic_store_free(g, s);
}

void classic_stores_drop(struct classic *g, int16_t error)
{
    while (!list_empty(&g->stores)) {
        struct classic_store *s = LIST_ENTRY(g->stores.next, struct classic_store, link);
        if (s->leave != NULL)
            classic_left(s->leave, error);
        classic_store_free(g, s);
    }
}
