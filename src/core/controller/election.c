/* Who leads a partition, and what its in-sync and eligible replicas become when a broker comes or
 * goes: Kafka's PartitionChangeBuilder with KIP-966 (eligible leader replicas), as far as brokers'
 * states cause it. A partition's targets are worked out first, then only what differs is written.
 *
 *   leader   stays if valid; else the first valid one in assignment order. Valid: active, its log
 *            directory there, and in the ISR, or in the ELR when the ISR is empty.
 *   ISR      the last member leaves it only with ELR on; else the leader goes and the ISR is kept.
 *   ELR      while the ISR is below min ISR: those who left it and cannot have lost data.
 *   last     with ISR and ELR empty, the last known leader may lead again: unclean, but it is the
 *            best there is (a single node after kill -9). */
#include "core/controller/inside.h"

enum { NO_LEADER = -1, NO_LEADER_CHANGE = -2, RECOVERING = 1 };

struct replica_set {
    int32_t *v;
    int32_t n;
};

/* One partition under consideration. */
struct target {
    struct controller *c;
    const struct broker_change *change;
    const struct image_partition *p;
    int32_t min_isr;
    bool elr_on, unclean_allowed;
    struct replica_set isr, elr;
    int32_t leader;
    bool unclean;
};

static bool contains(const int32_t *v, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (v[i] == id)
            return true;
    return false;
}

static bool same(const struct replica_set *s, const int32_t *v, int32_t n)
{
    return s->n == n && (n == 0 || memcmp(s->v, v, (size_t)n * sizeof *v) == 0);
}

bool election_broker_active(const struct image *img, int32_t broker_id)
{
    const struct image_broker *b = image_broker(img, broker_id);
    return b != NULL && !b->fenced && !b->in_controlled_shutdown;
}

/* ------------------------------------------------------------------ targets */

static bool acceptable(const struct target *t, int32_t id)
{
    const struct broker_change *ch = t->change;
    return id != ch->removed && id != ch->unclean &&
           (id == ch->added || election_broker_active(&t->c->ahead, id)) &&
           image_directory_online(&t->c->ahead, t->p, id);
}

static bool valid_leader(const struct target *t, int32_t id)
{
    return (contains(t->isr.v, t->isr.n, id) ||
            (t->isr.n == 0 && contains(t->elr.v, t->elr.n, id))) &&
           acceptable(t, id);
}

static void set_isr(struct target *t)
{
    for (int32_t i = 0; i < t->p->isr_n; i++)
        if (t->p->isr[i] != t->change->removed && t->p->isr[i] != t->change->unclean)
            t->isr.v[t->isr.n++] = t->p->isr[i];
}

static void add_to_elr(struct target *t, const int32_t *v, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (v[i] != t->change->unclean && !contains(t->isr.v, t->isr.n, v[i]) &&
            !contains(t->elr.v, t->elr.n, v[i]))
            t->elr.v[t->elr.n++] = v[i];
}

static void set_elr(struct target *t)
{
    const int32_t enough = t->min_isr < t->p->replicas_n ? t->min_isr : t->p->replicas_n;
    if (!t->elr_on || t->isr.n >= enough)
        return;
    add_to_elr(t, t->p->elr, t->p->elr_n);
    add_to_elr(t, t->p->isr, t->p->isr_n);
}

static void elect(struct target *t)
{
    const struct image_partition *p = t->p;
    t->leader = p->leader;
    if (valid_leader(t, p->leader))
        return;
    for (int32_t i = 0; i < p->replicas_n; i++) {
        if (valid_leader(t, p->replicas[i])) {
            t->leader = p->replicas[i];
            return;
        }
    }
    t->unclean = true;
    if (t->elr_on && t->isr.n == 0 && t->elr.n == 0 && p->last_known_elr_n == 1 &&
        acceptable(t, p->last_known_elr[0])) {
        t->leader = p->last_known_elr[0];
        return;
    }
    for (int32_t i = 0; t->unclean_allowed && i < p->replicas_n; i++) {
        if (acceptable(t, p->replicas[i])) {
            t->leader = p->replicas[i];
            return;
        }
    }
    t->unclean = false;
    t->leader = NO_LEADER;
}

/* A new leader from outside the ISR is alone in it. */
static void settle_winner(struct target *t)
{
    if (t->leader < 0 || t->leader == t->p->leader || contains(t->isr.v, t->isr.n, t->leader))
        return;
    t->isr.v[0] = t->leader;
    t->isr.n = 1;
    int32_t kept = 0;
    for (int32_t i = 0; !t->unclean && i < t->elr.n; i++)
        if (t->elr.v[i] != t->leader)
            t->elr.v[kept++] = t->elr.v[i];
    t->elr.n = kept;
}

/* ------------------------------------------------------------------ records */

static bool shrinks(const struct target *t)
{
    for (int32_t i = 0; i < t->p->isr_n; i++)
        if (!contains(t->isr.v, t->isr.n, t->p->isr[i]))
            return true;
    return false;
}

/* last[0] holds the last known leader where one is to be remembered. */
static void set_last_known(const struct target *t, struct partition_change_record *r,
                           int32_t last[1])
{
    const struct image_partition *p = t->p;
    const bool known = p->last_known_elr_n == 1 && p->last_known_elr[0] == p->leader;
    if (!t->elr_on)
        return;
    if (r->isr.n == 0 && p->leader >= 0 && !known) {
        last[0] = p->leader;
        r->last_known_elr.v = last;
        r->last_known_elr.n = 1;
    } else if (t->leader >= 0 && p->last_known_elr_n > 0) {
        r->last_known_elr.v = last;
        r->last_known_elr.n = 0;
    }
}

/* False when nothing changes. */
static bool fill(const struct target *t, struct partition_change_record *r, int32_t last[1])
{
    const struct image_partition *p = t->p;
    if (t->leader != p->leader)
        r->leader = t->leader;
    if (t->unclean && t->leader >= 0 && p->leader_recovery_state != RECOVERING)
        r->leader_recovery_state = RECOVERING;
    if ((t->isr.n > 0 || t->elr_on) && !same(&t->isr, p->isr, p->isr_n)) {
        r->isr.v = t->isr.v;
        r->isr.n = t->isr.n;
        if (r->leader == NO_LEADER_CHANGE && shrinks(t) &&
            image_metadata_version(&t->c->ahead) < METADATA_VERSION_NO_SHRINK_BUMP)
            r->leader = p->leader;
    }
    if (!same(&t->elr, p->elr, p->elr_n)) {
        r->eligible_leader_replicas.v = t->elr.v;
        r->eligible_leader_replicas.n = t->elr.n;
    }
    set_last_known(t, r, last);
    return r->leader != NO_LEADER_CHANGE || r->isr.n >= 0 || r->eligible_leader_replicas.n >= 0 ||
           r->last_known_elr.n >= 0;
}

static enum err change_partition(struct target *t, struct uuid topic_id, int32_t index,
                                 struct record_list *rl)
{
    struct partition_change_record r;
    int32_t last[1];
    const size_t room = (size_t)(t->p->isr_n + t->p->elr_n + 1);
    int32_t *sets = arena_array(&t->c->scratch, 2 * room, sizeof *sets);
    if (sets == NULL)
        return ERR_NOMEM;
    t->isr = (struct replica_set){sets, 0};
    t->elr = (struct replica_set){sets + room, 0};
    t->unclean = false;
    set_isr(t);
    set_elr(t);
    elect(t);
    settle_winner(t);
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = topic_id;
    r.partition_id = index;
    if (!fill(t, &r, last))
        return ERR_NONE;
    return record_list_add(rl, &msg_partition_change_record,
                           record_version_partition(image_metadata_version(&t->c->ahead)), &r);
}

/* ------------------------------------------------------------------ which partitions */

static bool in_directory(const struct image_partition *p, int32_t broker, const struct uuid *dir)
{
    for (int32_t i = 0; p->directories != NULL && i < p->replicas_n; i++)
        if (p->replicas[i] == broker)
            return uuid_eq(p->directories[i], *dir);
    return false;
}

static bool concerned(const struct image_partition *p, const struct broker_change *ch)
{
    if (ch->removed >= 0 && contains(p->isr, p->isr_n, ch->removed))
        return ch->dir == NULL || in_directory(p, ch->removed, ch->dir);
    if (ch->unclean >= 0 &&
        (contains(p->isr, p->isr_n, ch->unclean) || contains(p->elr, p->elr_n, ch->unclean)))
        return true;
    return ch->added >= 0 && p->leader < 0;
}

static enum err change_topic(struct target *t, const struct image_topic *topic,
                             struct record_list *rl)
{
    bool known = false;
    for (int32_t i = 0; i < topic->partitions_n; i++) {
        t->p = &topic->partitions[i];
        if (t->p->replicas_n == 0 || !concerned(t->p, t->change))
            continue;
        if (!known) {
            t->unclean_allowed = topic_unclean_allowed(t->c, topic);
            t->min_isr = topic_min_isr(t->c, topic);
            known = true;
        }
        enum err e = change_partition(t, topic->id, i, rl);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

enum err election_broker_change(struct controller *c, const struct broker_change *change,
                                struct record_list *rl)
{
    const struct image *img = &c->ahead;
    struct target t = {
        .c = c,
        .change = change,
        .elr_on = image_feature_level(img, "eligible.leader.replicas.version") > 0,
    };
    const struct map_entry *e = NULL;
    while ((e = map_next(&img->topics_by_id, e)) != NULL) {
        enum err err = change_topic(&t, map_value(e), rl);
        if (err != ERR_NONE)
            return err;
    }
    return ERR_NONE;
}

bool election_has_leaderships(const struct image *img, int32_t broker_id)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&img->topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        for (int32_t i = 0; i < t->partitions_n; i++)
            if (t->partitions[i].replicas_n > 0 && t->partitions[i].leader == broker_id)
                return true;
    }
    return false;
}
