/* What the controller does by itself, from time to time: preferred replicas get their partitions
 * back (KIP-183's automatic part, auto.leader.rebalance.enable), and partitions without a leader
 * get an unclean one where their topic allows it.
 *
 * Kafka looks every leader.imbalance.check.interval.seconds and moves all that it can; its older
 * leader.imbalance.per.broker.percentage is no key of 4.x. A change of a topic's configuration does
 * not wait for the next sweep. At most 1,000 partitions change in a turn, as in a step of Kafka. */
#include "core/controller/partition_change.h"

enum { STEP_RECORDS = 1000 };
#define US_PER_S ((int64_t)1000 * 1000)
#define UNCLEAN_SWEEP_US (5 * 60 * US_PER_S)

static void preferred_due(struct timer *t)
{
    CONTAINER_OF(t, struct controller, preferred_timer)->preferred_due = true;
}

static void unclean_due(struct timer *t)
{
    CONTAINER_OF(t, struct controller, unclean_timer)->unclean_due = true;
}

static int64_t preferred_interval_us(const struct controller *c)
{
    const int64_t most = INT64_MAX / 2 / US_PER_S; /* for ever, and no overflow */
    const int64_t s = config_int(c->config, "leader.imbalance.check.interval.seconds");
    return (s < most ? s : most) * US_PER_S;
}

static enum err arm_preferred(struct controller *c, struct now now)
{
    if (!config_bool(c->config, "auto.leader.rebalance.enable"))
        return ERR_NONE;
    return timer_arm(c->timers, &c->preferred_timer, now.mono_us + preferred_interval_us(c));
}

enum err balance_open(struct controller *c, struct now now)
{
    c->preferred_timer.fire = preferred_due;
    c->unclean_timer.fire = unclean_due;
    enum err e = arm_preferred(c, now);
    return e != ERR_NONE ? e
                         : timer_arm(c->timers, &c->unclean_timer, now.mono_us + UNCLEAN_SWEEP_US);
}

void balance_close(struct controller *c)
{
    timer_cancel(c->timers, &c->preferred_timer);
    timer_cancel(c->timers, &c->unclean_timer);
    c->preferred_due = c->unclean_due = false;
}

/* Elections of this kind in the partitions of set, until there are enough records. *more: those
 * that are left may need one too. */
static enum err elect(struct controller *c, const struct partition_set *set, enum election kind,
                      struct record_list *rl, bool *more)
{
    struct partition_at at = {0};
    const struct image_topic *t = NULL;
    struct topic_rules rules = {0};
    while (partition_set_next(set, &at)) {
        struct partition_change pc;
        if (t == NULL || !uuid_eq(t->id, at.topic_id)) {
            t = image_topic_by_id(&c->ahead, at.topic_id);
            rules = topic_rules_of(c, t);
        }
        if (kind == ELECTION_UNCLEAN && !rules.unclean_allowed)
            continue;
        partition_change_open(&pc, c, t, at.index, &rules);
        pc.election = kind;
        enum err e = partition_change_add(&pc, rl);
        if (e != ERR_NONE)
            return e;
        *more = rl->n >= STEP_RECORDS;
        if (*more)
            break;
    }
    return ERR_NONE;
}

/* True if anything was elected. What failed is tried again at the next interval. */
static bool step(struct controller *c, const struct partition_set *set, enum election kind,
                 bool *due, struct now now)
{
    struct record_list rl;
    record_list_init(&rl);
    arena_reset(&c->scratch);
    *due = false;
    enum err e = elect(c, set, kind, &rl, due);
    if (e == ERR_NONE)
        e = controller_append(c, &rl, false, now);
    const size_t n = e == ERR_NONE ? rl.n : 0;
    record_list_close(&rl);
    if (e != ERR_NONE)
        *due = false;
    else if (n == 0)
        return false;
    env_log(c->env, e == ERR_NONE ? LOG_INFO : LOG_WARN, "leaders_%s epoch=%d records=%zu error=%s",
            kind == ELECTION_PREFERRED ? "balanced" : "elected_unclean", c->epoch, n, err_name(e));
    return n > 0;
}

bool balance_settle(struct controller *c, struct now now)
{
    bool moved = false;
    if (c->preferred_due) {
        moved |= step(c, &c->index.not_preferred, ELECTION_PREFERRED, &c->preferred_due, now);
        if (!c->preferred_due && c->state == CONTROLLER_ACTIVE && arm_preferred(c, now) != ERR_NONE)
            c->preferred_due = true;
    }
    if (c->state == CONTROLLER_ACTIVE && c->unclean_due) {
        moved |= step(c, &c->index.leaderless, ELECTION_UNCLEAN, &c->unclean_due, now);
        if (!c->unclean_due && c->state == CONTROLLER_ACTIVE &&
            timer_arm(c->timers, &c->unclean_timer, now.mono_us + UNCLEAN_SWEEP_US) != ERR_NONE)
            c->unclean_due = true;
    }
    return moved;
}
