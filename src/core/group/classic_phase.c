/* The join phase: members are called together (PreparingRebalance) until all are parked in Join or
 * the time is over; then a generation begins. The sync phase after it: members that do not ask for
 * their assignment in time are removed, also when the group is Stable already. One timer serves
 * both, as one follows the other. */
#include "core/group/classic_impl.h"

#include "base/check.h"

static void phase_in(struct classic *g, int64_t ms)
{
    classic_rearm(g, &g->phase, classic_after_ms(g, ms));
}

enum err classic_phase_arm(struct classic *g)
{
    return timer_armed(&g->phase) ? ERR_NONE : timer_arm(g->args.timers, &g->phase, CLASSIC_NEVER);
}

static bool all_joined(const struct classic *g)
{
    return g->joining_n == g->members_n && g->pending_n == 0;
}

/* ------------------------------------------------------------------ its end */

static void drop_absent(struct classic *g)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        if (!m->joining && m->instance.n < 0)
            classic_member_remove(m);
    }
}

/* A leader that did not come loses its place to one that did. False: nobody came. */
static bool find_leader(struct classic *g)
{
    struct list *l, *tmp;
    if (g->leader->joining)
        return true;
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        if (m->joining) {
            g->leader = m;
            return true;
        }
    }
    return false;
}

static void become_empty(struct classic *g)
{
    classic_choose(g, NULL);
    timer_cancel(g->args.timers, &g->phase);
    classic_enter(g, CLASSIC_EMPTY);
    env_log(g->args.env, LOG_INFO, "group_empty group=%.*s generation=%d", (int)g->id.n, g->id.p,
            g->generation);
    classic_store_empty(g);
}

static void begin_generation(struct classic *g)
{
    struct list *l, *tmp;
    classic_choose(g, classic_vote(g));
    classic_enter(g, CLASSIC_COMPLETING);
    env_log(g->args.env, LOG_INFO, "group_generation group=%.*s generation=%d members=%zu",
            (int)g->id.n, g->id.p, g->generation, g->members_n);
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        const struct classic_joined joined = {.leader = g->leader->id, .members = g->leader == m};
        classic_answer_join(m, &joined);
        classic_session_reset(m, m->session_timeout_ms);
        m->fresh = false;
        m->sync_due = true;
    }
    g->sync_due_n = g->members_n;
    phase_in(g, classic_rebalance_timeout_ms(g));
}

static void complete(struct classic *g)
{
    drop_absent(g);
    if (g->members_n > 0 && !find_leader(g)) {
        env_log(g->args.env, LOG_WARN, "group_nobody_joined group=%.*s members=%zu", (int)g->id.n,
                g->id.p, g->members_n);
        phase_in(g, classic_rebalance_timeout_ms(g));
        return;
    }
    g->generation = (int32_t)((uint32_t)g->generation + 1); /* around, as Kafka's */
    if (g->members_n == 0)
        become_empty(g);
    else
        begin_generation(g);
}

void classic_complete_if_all_joined(struct classic *g)
{
    if (g->state == CLASSIC_PREPARING && all_joined(g))
        complete(g);
}

void classic_maybe_complete(struct classic *g)
{
    if (!g->initial)
        classic_complete_if_all_joined(g);
}

/* ------------------------------------------------------------------ its beginning */

static void leave_sync_phase(struct classic *g)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &g->members)
    {
        LIST_ENTRY(l, struct classic_member, link)->sync_due = false;
    }
    g->sync_due_n = 0;
}

static int64_t longer_than(int64_t ms, int64_t by)
{
    return ms > by ? ms - by : 0;
}

/* Out of Empty: more members are waited for. */
static void wait_for_more(struct classic *g)
{
    const int64_t delay_ms = config_int(g->args.config, "group.initial.rebalance.delay.ms");
    g->initial_wait_ms = delay_ms;
    g->initial_rest_ms = longer_than(classic_rebalance_timeout_ms(g), delay_ms);
    g->member_added = false;
    phase_in(g, delay_ms);
}

static void prepare(struct classic *g, const char *reason)
{
    env_log(g->args.env, LOG_INFO,
            "group_rebalance group=%.*s generation=%d state=%s reason=\"%s\"", (int)g->id.n,
            g->id.p, g->generation, classic_state_name(g->state), reason);
    if (g->state == CLASSIC_COMPLETING)
        classic_reset_assignments(g, K_REBALANCE_IN_PROGRESS);
    leave_sync_phase(g);
    classic_replace_forget_all(g);
    g->initial = g->state == CLASSIC_EMPTY;
    classic_enter(g, CLASSIC_PREPARING);
    if (g->initial)
        wait_for_more(g);
    else if (all_joined(g))
        complete(g);
    else
        phase_in(g, classic_rebalance_timeout_ms(g));
}

void classic_rebalance(struct classic *g, const char *reason)
{
    switch (g->state) {
    case CLASSIC_EMPTY:
    case CLASSIC_COMPLETING:
    case CLASSIC_STABLE:
        prepare(g, reason);
        break;
    case CLASSIC_PREPARING:
        classic_maybe_complete(g);
        break;
    case CLASSIC_DEAD:
        break;
    }
}

/* ------------------------------------------------------------------ time */

static void initial_wait_over(struct classic *g)
{
    const int64_t rest_ms = g->initial_rest_ms;
    if (!g->member_added || rest_ms == 0) {
        complete(g);
        return;
    }
    const int64_t delay_ms = config_int(g->args.config, "group.initial.rebalance.delay.ms");
    g->member_added = false;
    g->initial_rest_ms = longer_than(rest_ms, g->initial_wait_ms);
    g->initial_wait_ms = delay_ms < rest_ms ? delay_ms : rest_ms;
    phase_in(g, g->initial_wait_ms);
}

static void sync_phase_over(struct classic *g)
{
    struct list *l, *tmp;
    CHECK(g->sync_due_n > 0);
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        if (m->sync_due)
            classic_member_remove(m);
    }
    classic_rebalance(g, "members did not sync");
}

void classic_phase_fire(struct timer *t)
{
    struct classic *g = CONTAINER_OF(t, struct classic, phase);
    classic_keep_armed(g, t);
    g->now = classic_timer_now(g);
    switch (g->state) {
    case CLASSIC_PREPARING:
        if (g->initial)
            initial_wait_over(g);
        else
            complete(g);
        break;
    case CLASSIC_COMPLETING:
    case CLASSIC_STABLE:
        sync_phase_over(g);
        break;
    case CLASSIC_EMPTY:
    case CLASSIC_DEAD:
        break;
    }
}
