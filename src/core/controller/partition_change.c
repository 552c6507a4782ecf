/* The order is Kafka's, and matters: the end of a reassignment decides who can be in sync, that who
 * is eligible, and both who can lead.
 *
 *   leader   stays if valid; else the first valid one in assignment order. Valid: active, its log
 *            directory there, and in the ISR, or in the ELR when the ISR is empty.
 *   ISR      the last member leaves it only with ELR on; else the leader goes and the ISR is kept.
 *   ELR      while the ISR is below min ISR: those who left it and cannot have lost data. Kafka
 *            keeps there also who is no replica any more, and would let it lead when it is one
 *            again, with an empty log; we do not.
 *   last     with ISR and ELR empty, the last known leader may lead again: unclean, but it is the
 *            best there is (a single node after kill -9). */
#include "core/controller/partition_change.h"

#include "base/check.h"

/* ------------------------------------------------------------------ sets */

bool replica_set_has(struct replica_set s, int32_t id)
{
    for (int32_t i = 0; i < s.n; i++)
        if (s.v[i] == id)
            return true;
    return false;
}

bool replica_set_equal(struct replica_set a, struct replica_set b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, (size_t)a.n * sizeof *a.v) == 0);
}

bool replica_set_covers(struct replica_set s, struct replica_set part)
{
    for (int32_t i = 0; i < part.n; i++)
        if (!replica_set_has(s, part.v[i]))
            return false;
    return true;
}

bool replica_set_minus(struct controller *c, struct replica_set a, struct replica_set b,
                       struct replica_set *out)
{
    struct replica_set left = {arena_array(&c->scratch, (size_t)a.n, sizeof *left.v), 0};
    if (left.v == NULL)
        return false;
    for (int32_t i = 0; i < a.n; i++)
        if (!replica_set_has(b, a.v[i]))
            left.v[left.n++] = a.v[i];
    *out = left;
    return true;
}

void replica_set_insert(struct replica_set *s, int32_t id)
{
    int32_t at = s->n++;
    for (; at > 0 && s->v[at - 1] > id; at--)
        s->v[at] = s->v[at - 1];
    s->v[at] = id;
}

bool replica_set_copy(struct arena *a, struct replica_set s, int32_t **v, int32_t *n)
{
    *v = arena_array(a, (size_t)s.n, sizeof **v);
    if (*v == NULL)
        return false;
    if (s.n > 0)
        memcpy(*v, s.v, (size_t)s.n * sizeof **v);
    *n = s.n;
    return true;
}

/* ------------------------------------------------------------------ targets */

struct topic_rules topic_rules_of(const struct controller *c, const struct image_topic *t)
{
    const int32_t min_isr = topic_min_isr(c, t);
    const int32_t most = t->partitions_n > 0 ? t->partitions[0].replicas_n : 0;
    return (struct topic_rules){
        .elr_on = image_feature_level(&c->ahead, "eligible.leader.replicas.version") > 0,
        .unclean_allowed = topic_unclean_allowed(c, t),
        .min_isr = min_isr < most ? min_isr : most,
    };
}

void partition_change_open(struct partition_change *pc, struct controller *c,
                           const struct image_topic *t, int32_t index,
                           const struct topic_rules *rules)
{
    const struct image_partition *p = &t->partitions[index];
    CHECK(p->replicas_n > 0);
    *pc = (struct partition_change){
        .c = c,
        .topic = t,
        .index = index,
        .p = p,
        .rules = *rules,
        .election = rules->unclean_allowed ? ELECTION_UNCLEAN : ELECTION_ONLINE,
        .brokers = {CONTROLLER_NO_BROKER, CONTROLLER_NO_BROKER, CONTROLLER_NO_BROKER, NULL},
        .replicas = {p->replicas, p->replicas_n},
        .isr = {p->isr, p->isr_n},
        .removing = {p->removing, p->removing_n},
        .adding = {p->adding, p->adding_n},
        .recovery = p->leader_recovery_state,
        .moved = CONTROLLER_NO_BROKER,
        .elr = {p->elr, p->elr_n},
        .leader = p->leader,
        .leader_epoch = p->leader_epoch,
        .partition_epoch = p->partition_epoch,
    };
}

/* Complete: somebody in sync stays, all that are added are in sync, and where replicas become more
 * so are all that stay. */
static bool finish_reassignment(struct partition_change *pc)
{
    struct replica_set isr, replicas;
    if (pc->removing.n == 0 && pc->adding.n == 0)
        return true;
    if (!replica_set_minus(pc->c, pc->isr, pc->removing, &isr) ||
        !replica_set_minus(pc->c, pc->replicas, pc->removing, &replicas))
        return false;
    if (isr.n == 0 || replicas.n == 0 || !replica_set_covers(isr, pc->adding))
        return true;
    if (pc->adding.n < pc->removing.n && !replica_set_covers(isr, replicas))
        return true;
    pc->isr = isr;
    pc->replicas = replicas;
    pc->removing.n = pc->adding.n = 0;
    return true;
}

/* In Kafka's order, which is that of the ids. */
static void add_eligible(struct partition_change *pc, const int32_t *v, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (v[i] != pc->brokers.unclean && replica_set_has(pc->replicas, v[i]) &&
            !replica_set_has(pc->isr, v[i]) && !replica_set_has(pc->elr, v[i]))
            replica_set_insert(&pc->elr, v[i]);
}

static bool set_elr(struct partition_change *pc)
{
    const struct image_partition *p = pc->p;
    pc->elr.n = 0;
    if (!pc->rules.elr_on || pc->isr.n >= pc->rules.min_isr)
        return true;
    pc->elr.v = arena_array(&pc->c->scratch, (size_t)p->elr_n + (size_t)p->isr_n, sizeof(int32_t));
    if (pc->elr.v == NULL)
        return false;
    add_eligible(pc, p->elr, p->elr_n);
    add_eligible(pc, p->isr, p->isr_n);
    return true;
}

/* ------------------------------------------------------------------ election */

static bool active(const struct partition_change *pc, int32_t id)
{
    const struct broker_change *b = &pc->brokers;
    return id != b->removed && id != b->unclean &&
           (id == b->added || election_broker_active(&pc->c->ahead, id));
}

static bool acceptable(const struct partition_change *pc, int32_t id)
{
    return active(pc, id) && image_directory_online(&pc->c->ahead, pc->p, id);
}

/* One that is in sync leads as soon as we are told in which directory it is; Kafka waits for the
 * next change of the partition, or of a broker. */
static bool directory_there(const struct partition_change *pc, int32_t id)
{
    const struct image *img = &pc->c->ahead;
    return id == pc->moved ? image_broker_serves(image_broker(img, id), pc->directory)
                           : image_directory_online(img, pc->p, id);
}

static bool valid_leader(const struct partition_change *pc, int32_t id)
{
    return (replica_set_has(pc->isr, id) || (pc->isr.n == 0 && replica_set_has(pc->elr, id))) &&
           active(pc, id) && directory_there(pc, id);
}

static int32_t elect_clean(const struct partition_change *pc)
{
    const int32_t preferred = pc->replicas.v[0];
    if (pc->election == ELECTION_PREFERRED && valid_leader(pc, preferred))
        return preferred;
    if (valid_leader(pc, pc->p->leader))
        return pc->p->leader;
    for (int32_t i = 0; i < pc->replicas.n; i++)
        if (valid_leader(pc, pc->replicas.v[i]))
            return pc->replicas.v[i];
    return NO_LEADER;
}

static int32_t elect_unclean(const struct partition_change *pc)
{
    const struct image_partition *p = pc->p;
    if (pc->rules.elr_on && pc->isr.n == 0 && pc->elr.n == 0 && p->last_known_elr_n == 1 &&
        acceptable(pc, p->last_known_elr[0]))
        return p->last_known_elr[0];
    for (int32_t i = 0; pc->election == ELECTION_UNCLEAN && i < pc->replicas.n; i++)
        if (acceptable(pc, pc->replicas.v[i]))
            return pc->replicas.v[i];
    return NO_LEADER;
}

/* A new leader from outside the ISR is alone in it. */
static bool settle_winner(struct partition_change *pc)
{
    struct replica_set winner = {&pc->leader, 1};
    if (replica_set_has(pc->isr, pc->leader))
        return true;
    pc->isr.v = arena_array(&pc->c->scratch, 1, sizeof(int32_t));
    if (pc->isr.v == NULL)
        return false;
    pc->isr.v[0] = pc->leader;
    pc->isr.n = 1;
    if (!pc->unclean)
        return replica_set_minus(pc->c, pc->elr, winner, &pc->elr);
    pc->elr.n = 0;
    pc->recovery = RECOVERING;
    return true;
}

static bool elect(struct partition_change *pc)
{
    pc->leader = elect_clean(pc);
    if (pc->leader == NO_LEADER) {
        pc->leader = elect_unclean(pc);
        pc->unclean = pc->leader != NO_LEADER;
    }
    return pc->leader == NO_LEADER || pc->leader == pc->p->leader || settle_winner(pc);
}

/* ------------------------------------------------------------------ the record */

/* Who is removed must stop fetching, and before 3.6 who left the ISR had to notice. */
static bool bumps_leader_epoch(const struct partition_change *pc,
                               const struct partition_change_record *r)
{
    const struct image_partition *p = pc->p;
    if (!replica_set_covers(pc->replicas, (struct replica_set){p->replicas, p->replicas_n}))
        return true;
    return image_metadata_version(&pc->c->ahead) < METADATA_VERSION_NO_SHRINK_BUMP &&
           r->isr.n >= 0 && !replica_set_covers(pc->isr, (struct replica_set){p->isr, p->isr_n});
}

/* last[0] holds the last known leader where one is to be remembered. */
static void set_last_known(const struct partition_change *pc, struct partition_change_record *r,
                           int32_t last[1])
{
    const struct image_partition *p = pc->p;
    const bool known = p->last_known_elr_n == 1 && p->last_known_elr[0] == p->leader;
    if (!pc->rules.elr_on)
        return;
    if (r->isr.n == 0 && p->leader >= 0 && !known) {
        last[0] = p->leader;
        r->last_known_elr.v = last;
        r->last_known_elr.n = 1;
    } else if (pc->leader >= 0 && p->last_known_elr_n > 0) {
        r->last_known_elr.v = last;
        r->last_known_elr.n = 0;
    }
}

static struct uuid directory_of(const struct partition_change *pc, int32_t id)
{
    const struct image_partition *p = pc->p;
    if (id == pc->moved)
        return pc->directory;
    return replica_set_has((struct replica_set){p->replicas, p->replicas_n}, id)
               ? image_replica_directory(p, id)
               : image_default_directory(&pc->c->ahead, id);
}

static bool set_directories(const struct partition_change *pc, struct partition_change_record *r)
{
    const struct image_partition *p = pc->p;
    const int32_t n = pc->replicas.n;
    if (image_metadata_version(&pc->c->ahead) < METADATA_VERSION_DIRECTORIES)
        return true;
    struct uuid *dirs = arena_array(&pc->c->scratch, (size_t)n, sizeof *dirs);
    bool differs = n != p->replicas_n;
    if (dirs == NULL)
        return false;
    for (int32_t i = 0; i < n; i++) {
        dirs[i] = directory_of(pc, pc->replicas.v[i]);
        differs = differs || (p->directories == NULL ? !uuid_is_zero(dirs[i])
                                                     : !uuid_eq(p->directories[i], dirs[i]));
    }
    if (differs) {
        r->directories.v = dirs;
        r->directories.n = n;
    }
    return true;
}

static bool differs(struct replica_set target, int32_t *v, int32_t n)
{
    return !replica_set_equal(target, (struct replica_set){v, n});
}

static bool set_assignment(const struct partition_change *pc, struct partition_change_record *r)
{
    const struct image_partition *p = pc->p;
    if (differs(pc->replicas, p->replicas, p->replicas_n)) {
        r->replicas.v = pc->replicas.v;
        r->replicas.n = pc->replicas.n;
    }
    if (differs(pc->removing, p->removing, p->removing_n)) {
        r->removing_replicas.v = pc->removing.v;
        r->removing_replicas.n = pc->removing.n;
    }
    if (differs(pc->adding, p->adding, p->adding_n)) {
        r->adding_replicas.v = pc->adding.v;
        r->adding_replicas.n = pc->adding.n;
    }
    return set_directories(pc, r);
}

static bool fill(struct partition_change *pc, struct partition_change_record *r, int32_t last[1])
{
    const struct image_partition *p = pc->p;
    if (pc->leader != p->leader)
        r->leader = pc->leader;
    if ((pc->isr.n > 0 || pc->rules.elr_on) && differs(pc->isr, p->isr, p->isr_n)) {
        r->isr.v = pc->isr.v;
        r->isr.n = pc->isr.n;
    }
    if (r->leader == NO_LEADER_CHANGE && bumps_leader_epoch(pc, r))
        r->leader = p->leader;
    if (differs(pc->elr, p->elr, p->elr_n)) {
        r->eligible_leader_replicas.v = pc->elr.v;
        r->eligible_leader_replicas.n = pc->elr.n;
    }
    set_last_known(pc, r, last);
    if (pc->recovery != p->leader_recovery_state)
        r->leader_recovery_state = pc->recovery;
    return set_assignment(pc, r);
}

static bool says_something(const struct partition_change_record *r)
{
    return r->leader != NO_LEADER_CHANGE || r->isr.n >= 0 || r->replicas.n >= 0 ||
           r->removing_replicas.n >= 0 || r->adding_replicas.n >= 0 ||
           r->leader_recovery_state >= 0 || r->directories.n >= 0 ||
           r->eligible_leader_replicas.n >= 0 || r->last_known_elr.n >= 0;
}

enum err partition_change_add(struct partition_change *pc, struct record_list *rl)
{
    struct partition_change_record r;
    int32_t last[1];
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = pc->topic->id;
    r.partition_id = pc->index;
    if (!finish_reassignment(pc) || !set_elr(pc) || !elect(pc) || !fill(pc, &r, last))
        return ERR_NOMEM;
    if (!says_something(&r))
        return ERR_NONE;
    pc->partition_epoch++;
    pc->leader_epoch += r.leader != NO_LEADER_CHANGE;
    return record_list_add(rl, &msg_partition_change_record,
                           record_version_partition(image_metadata_version(&pc->c->ahead)), &r);
}
