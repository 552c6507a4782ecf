/* AlterPartitionReassignments (KIP-455, KIP-860): the new replicas are added, the old ones marked;
 * when the ISR says that the new ones are there the reassignment ends (partition_change.c). Without
 * replicas a reassignment is taken back. */
#include "core/controller/creation.h"
#include "core/controller/partition_change.h"

struct reassignment {
    struct controller *c;
    const struct alter_partition_reassignments_request *req;
    struct arena *arena; /* of the response */
    struct record_list records;
    struct partition_set seen; /* changed by this request */
};

/* One entry of the request. */
struct entry {
    struct reassignment *ra;
    const struct image_partition *p;
    struct partition_change pc;
    struct alter_partition_reassignments_response_reassignable_partition_response *out;
};

static enum err refuse(struct entry *e, int16_t error, const char *why)
{
    e->out->error_code = error;
    e->out->error_message = why == NULL ? STR_NULL : str_of(why);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ cancelling */

/* As before: without those that were added. If nobody else is in sync the first one shall be, which
 * is an unclean election. */
static enum err cancel(struct entry *e)
{
    struct partition_change *pc = &e->pc;
    if (e->p->adding_n == 0 && e->p->removing_n == 0)
        return refuse(e, K_NO_REASSIGNMENT_IN_PROGRESS, NULL);
    if (!replica_set_minus(pc->c, pc->replicas, pc->adding, &pc->replicas) ||
        !replica_set_minus(pc->c, pc->isr, pc->adding, &pc->isr))
        return ERR_NOMEM;
    if (pc->replicas.n == 0)
        return refuse(e, K_INVALID_REPLICA_ASSIGNMENT, "All replicas are added ones");
    if (pc->isr.n == 0 && !pc->rules.unclean_allowed)
        return refuse(e, K_INVALID_REPLICA_ASSIGNMENT,
                      "No replica of before is in sync, and unclean elections are not allowed");
    if (pc->isr.n == 0)
        pc->isr = (struct replica_set){pc->replicas.v, 1};
    pc->adding.n = pc->removing.n = 0;
    return partition_change_add(pc, &e->ra->records);
}

/* ------------------------------------------------------------------ changing */

/* Of what it will have without a further change. */
static int32_t replication_factor(const struct entry *e)
{
    const struct image_partition *p = e->p;
    int32_t n = p->replicas_n;
    for (int32_t i = 0; i < p->removing_n; i++)
        n -= replica_set_has((struct replica_set){p->replicas, p->replicas_n}, p->removing[i]);
    return n;
}

static enum err check_target(struct entry *e, struct replica_set target)
{
    struct refusal why = {K_NONE, STR_NULL};
    if (!replicas_check(e->ra->c, e->ra->arena, target.v, target.n, &why)) {
        e->out->error_code = why.error;
        e->out->error_message = why.message;
        return ERR_NONE;
    }
    if (e->ra->req->allow_replication_factor_change || target.n == replication_factor(e))
        return ERR_NONE;
    return refuse(e, K_INVALID_REPLICATION_FACTOR,
                  "The reassignment would change the number of replicas");
}

/* By id, as Kafka. */
static void sort(struct replica_set s)
{
    struct replica_set sorted = {s.v, 0};
    for (int32_t i = 0; i < s.n; i++)
        replica_set_insert(&sorted, s.v[i]);
}

/* The target first, then those that are to go. What Kafka leaves of an earlier reassignment when
 * the new one adds (removes) none we leave too. */
static enum err change(struct entry *e, struct replica_set target)
{
    struct partition_change *pc = &e->pc;
    struct replica_set removing, adding, all;
    enum err err = check_target(e, target);
    if (err != ERR_NONE || e->out->error_code != K_NONE)
        return err;
    if (!replica_set_minus(pc->c, pc->replicas, target, &removing) ||
        !replica_set_minus(pc->c, target, pc->replicas, &adding))
        return ERR_NOMEM;
    sort(removing);
    sort(adding);
    all.n = target.n + removing.n;
    all.v = arena_array(&pc->c->scratch, (size_t)all.n, sizeof *all.v);
    if (all.v == NULL)
        return ERR_NOMEM;
    memcpy(all.v, target.v, (size_t)target.n * sizeof *all.v);
    if (removing.n > 0)
        memcpy(all.v + target.n, removing.v, (size_t)removing.n * sizeof *all.v);
    pc->replicas = all;
    if (removing.n > 0)
        pc->removing = removing;
    if (adding.n > 0)
        pc->adding = adding;
    pc->election = ELECTION_ONLINE;
    return partition_change_add(pc, &e->ra->records);
}

/* ------------------------------------------------------------------ the request */

static enum err
take_partition(struct reassignment *ra, struct image_topic *t,
               const struct alter_partition_reassignments_request_reassignable_partition *in,
               struct alter_partition_reassignments_response_reassignable_partition_response *out)
{
    struct entry e = {.ra = ra, .out = out};
    out->partition_index = in->partition_index;
    out->error_message = STR_NULL;
    if (t == NULL)
        return refuse(&e, K_UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic");
    e.p = image_partition(t, in->partition_index);
    if (e.p == NULL)
        return refuse(&e, K_UNKNOWN_TOPIC_OR_PARTITION, "There is no such partition");
    if (partition_set_has(&ra->seen, t->id, in->partition_index))
        return refuse(&e, K_INVALID_REQUEST, "The request names this partition twice");
    const struct topic_rules rules = topic_rules_of(ra->c, t);
    partition_change_open(&e.pc, ra->c, t, in->partition_index, &rules);
    enum err err = in->replicas.n < 0
                       ? cancel(&e)
                       : change(&e, (struct replica_set){in->replicas.v, in->replicas.n});
    if (err != ERR_NONE || out->error_code != K_NONE)
        return err;
    return partition_set_add(&ra->seen, t->id, in->partition_index);
}

static enum err
take_topic(struct reassignment *ra,
           const struct alter_partition_reassignments_request_reassignable_topic *in,
           struct alter_partition_reassignments_response_reassignable_topic_response *out)
{
    struct image_topic *t = image_topic_named(&ra->c->ahead, in->name);
    enum err e = ERR_NONE;
    out->name = in->name;
    out->partitions.v =
        wire_array(&wire_alter_partition_reassignments_response_reassignable_partition_response,
                   ra->arena, (size_t)in->partitions.n);
    if (out->partitions.v == NULL)
        return ERR_NOMEM;
    out->partitions.n = in->partitions.n;
    for (int32_t i = 0; e == ERR_NONE && i < in->partitions.n; i++)
        e = take_partition(ra, t, &in->partitions.v[i], &out->partitions.v[i]);
    return e;
}

static enum err take_all(struct reassignment *ra,
                         struct alter_partition_reassignments_response *resp, struct now now)
{
    const int32_t n = ra->req->topics.n;
    enum err e = ERR_NONE;
    resp->error_message = STR_NULL;
    resp->allow_replication_factor_change = ra->req->allow_replication_factor_change;
    resp->responses.v =
        wire_array(&wire_alter_partition_reassignments_response_reassignable_topic_response,
                   ra->arena, (size_t)n);
    if (resp->responses.v == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; e == ERR_NONE && i < n; i++)
        e = take_topic(ra, &ra->req->topics.v[i], &resp->responses.v[i]);
    if (e == ERR_NONE)
        e = controller_append(ra->c, &ra->records, true, now);
    if (e == ERR_NONE)
        resp->responses.n = n;
    return e;
}

void controller_alter_reassignments(struct controller *c, struct controller_op *op,
                                    const struct alter_partition_reassignments_request *req,
                                    struct arena *arena,
                                    struct alter_partition_reassignments_response *resp,
                                    struct now now)
{
    if (!controller_begin(c, op))
        return;
    if (req->topics.n == 0 || req->timeout_ms <= 0) {
        controller_finish(c, op, req->topics.n == 0 ? K_NONE : K_REQUEST_TIMED_OUT);
        return;
    }
    struct reassignment ra = {.c = c, .req = req, .arena = arena};
    record_list_init(&ra.records);
    partition_set_init(&ra.seen, c->ahead.seed);
    enum err e = take_all(&ra, resp, now);
    record_list_close(&ra.records);
    partition_set_close(&ra.seen);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
