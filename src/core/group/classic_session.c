/* Sessions: members show that they are alive by heartbeats, commits and the phases' requests. A
 * session's deadline is a field; its timer is moved when it fires before the deadline, so that a
 * heartbeat touches nothing else. */
#include "core/group/classic_impl.h"

/* ------------------------------------------------------------------ deadlines */

void classic_session_reset(struct classic_member *m, int64_t timeout_ms)
{
    m->deadline_us = classic_after_ms(m->group, timeout_ms);
    if (m->session.at_us > m->deadline_us)
        classic_rearm(m->group, &m->session, m->deadline_us);
}

/* A new member's session ends also while it is parked: its client could not be told the id yet, may
 * be gone, and comes again as another member. */
static bool excused(const struct classic_member *m)
{
    return !m->fresh && (m->joining || m->syncing);
}

void classic_session_fire(struct timer *t)
{
    struct classic_member *m = CONTAINER_OF(t, struct classic_member, session);
    struct classic *g = m->group;
    classic_keep_armed(g, t);
    g->now = classic_timer_now(g);
    if (m->deadline_us > g->now.mono_us) {
        classic_rearm(g, t, m->deadline_us);
        return;
    }
    m->deadline_us = CLASSIC_NEVER;
    if (excused(m))
        return;
    env_log(g->args.env, LOG_INFO, "group_member_expired group=%.*s member=%.*s", (int)g->id.n,
            g->id.p, (int)m->id.n, m->id.p);
    classic_member_remove(m);
    if (g->state == CLASSIC_PREPARING)
        classic_complete_if_all_joined(g);
    else
        classic_rebalance(g, "session expired");
}

void classic_pending_fire(struct timer *t)
{
    struct classic_pending *p = CONTAINER_OF(t, struct classic_pending, timer);
    struct classic *g = p->group;
    g->now = classic_timer_now(g);
    classic_pending_remove(p);
    classic_complete_if_all_joined(g);
}

/* ------------------------------------------------------------------ requests */

int16_t classic_heartbeat(struct classic *g, struct str member, struct str instance,
                          int32_t generation, struct now now)
{
    g->now = now;
    if (g->state == CLASSIC_DEAD)
        return K_COORDINATOR_NOT_AVAILABLE;
    const int16_t error = classic_validate(g, member, instance);
    if (error != K_NONE)
        return error;
    if (generation != g->generation)
        return K_ILLEGAL_GENERATION;
    struct classic_member *m = classic_member(g, member);
    classic_session_reset(m, m->session_timeout_ms);
    return g->state == CLASSIC_PREPARING ? K_REBALANCE_IN_PROGRESS : K_NONE;
}

static int16_t check_commit(const struct classic *g, struct str member, struct str instance,
                            int32_t generation, bool txn)
{
    if (g->state == CLASSIC_DEAD)
        return K_COORDINATOR_NOT_AVAILABLE;
    if (generation < 0 && g->state == CLASSIC_EMPTY)
        return K_NONE;
    if (generation < 0 && member.n <= 0 && instance.n < 0)
        return txn ? K_NONE : K_UNKNOWN_MEMBER_ID;
    const int16_t error = classic_validate(g, member, instance);
    if (error != K_NONE)
        return error;
    if (generation != g->generation)
        return K_ILLEGAL_GENERATION;
    return !txn && g->state == CLASSIC_COMPLETING ? K_REBALANCE_IN_PROGRESS : K_NONE;
}

int16_t classic_check_commit(struct classic *g, struct str member, struct str instance,
                             int32_t generation, bool txn, struct now now)
{
    g->now = now;
    const int16_t error = check_commit(g, member, instance, generation, txn);
    if (error != K_NONE || txn)
        return error;
    struct classic_member *m = classic_member(g, member);
    if (m != NULL && (g->state == CLASSIC_STABLE || g->state == CLASSIC_PREPARING))
        classic_session_reset(m, m->session_timeout_ms);
    return K_NONE;
}
