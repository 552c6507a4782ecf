/* ElectLeaders (KIP-183, KIP-460): the preferred replica of partitions, or any active one of those
 * that have no leader. */
#include "core/controller/partition_change.h"

enum election_type { ELECT_PREFERRED = 0, ELECT_UNCLEAN = 1 };

struct elections {
    struct controller *c;
    const struct elect_leaders_request *req;
    struct arena *arena; /* of the response */
    struct record_list records;
    struct partition_set seen; /* elected by this request */
};

static bool unclean(const struct elections *el)
{
    return el->req->election_type == ELECT_UNCLEAN;
}

static bool needed(const struct elections *el, const struct image_topic *t, int32_t index)
{
    const struct image_partition *p = &t->partitions[index];
    return (unclean(el) ? p->leader < 0 : p->leader != p->replicas[0]) &&
           !partition_set_has(&el->seen, t->id, index);
}

static enum err elect(struct elections *el, const struct image_topic *t, int32_t index,
                      const struct topic_rules *rules, int16_t *error)
{
    struct partition_change pc;
    partition_change_open(&pc, el->c, t, index, rules);
    pc.election = unclean(el) ? ELECTION_UNCLEAN : ELECTION_PREFERRED;
    enum err e = partition_change_add(&pc, &el->records);
    if (e != ERR_NONE)
        return e;
    if (pc.partition_epoch == pc.p->partition_epoch) {
        *error = unclean(el) ? K_ELIGIBLE_LEADERS_NOT_AVAILABLE : K_PREFERRED_LEADER_NOT_AVAILABLE;
        return ERR_NONE;
    }
    return partition_set_add(&el->seen, t->id, index);
}

static void explain(const struct elections *el, struct elect_leaders_response_partition_result *out,
                    const char *unknown)
{
    if (out->error_code == K_UNKNOWN_TOPIC_OR_PARTITION)
        out->error_message = str_of(unknown);
    else if (out->error_code == K_ELECTION_NOT_NEEDED)
        out->error_message = str_of(unclean(el) ? "The partition has a leader"
                                                : "The preferred replica leads already");
    else if (out->error_code == K_PREFERRED_LEADER_NOT_AVAILABLE)
        out->error_message = STR_LIT("The preferred replica is not active, or not in sync");
    else if (out->error_code == K_ELIGIBLE_LEADERS_NOT_AVAILABLE)
        out->error_message = STR_LIT("No replica is active");
}

static enum err take_partition(struct elections *el, struct image_topic *t, int32_t index,
                               const struct topic_rules *rules,
                               struct elect_leaders_response_partition_result *out)
{
    enum err e = ERR_NONE;
    out->partition_id = index;
    out->error_message = STR_NULL;
    if (t == NULL || image_partition(t, index) == NULL)
        out->error_code = K_UNKNOWN_TOPIC_OR_PARTITION;
    else if (!needed(el, t, index))
        out->error_code = K_ELECTION_NOT_NEEDED;
    else
        e = elect(el, t, index, rules, &out->error_code);
    explain(el, out, t == NULL ? "There is no such topic" : "There is no such partition");
    return e;
}

/* ------------------------------------------------------------------ topics */

static bool open_result(struct elections *el,
                        struct elect_leaders_response_replica_election_result *out, struct str name,
                        size_t n)
{
    out->topic = name;
    out->partition_result.v =
        wire_array(&wire_elect_leaders_response_partition_result, el->arena, n);
    return out->partition_result.v != NULL;
}

static enum err take_named(struct elections *el,
                           const struct elect_leaders_request_topic_partitions *in,
                           struct elect_leaders_response_replica_election_result *out)
{
    struct image_topic *t = image_topic_named(&el->c->ahead, in->topic);
    struct topic_rules rules = {0};
    enum err e = ERR_NONE;
    if (t != NULL)
        rules = topic_rules_of(el->c, t);
    if (!open_result(el, out, in->topic, (size_t)in->partitions.n))
        return ERR_NOMEM;
    out->partition_result.n = in->partitions.n;
    for (int32_t i = 0; e == ERR_NONE && i < in->partitions.n; i++)
        e = take_partition(el, t, in->partitions.v[i], &rules, &out->partition_result.v[i]);
    return e;
}

/* Of all partitions only those are told that an election was needed for. */
static enum err take_whole(struct elections *el, struct image_topic *t,
                           struct elect_leaders_response_replica_election_result *out)
{
    const char *name = arena_strdup(el->arena, str_of(t->name));
    size_t n = 0;
    enum err e = ERR_NONE;
    for (int32_t i = 0; i < t->partitions_n; i++)
        n += t->partitions[i].replicas_n > 0 && needed(el, t, i);
    if (name == NULL || !open_result(el, out, str_of(name), n))
        return ERR_NOMEM;
    if (n == 0)
        return ERR_NONE;
    const struct topic_rules rules = topic_rules_of(el->c, t);
    for (int32_t i = 0; e == ERR_NONE && i < t->partitions_n; i++)
        if (t->partitions[i].replicas_n > 0 && needed(el, t, i))
            e = take_partition(el, t, i, &rules,
                               &out->partition_result.v[out->partition_result.n++]);
    return e;
}

static enum err take_topics(struct elections *el, struct elect_leaders_response *resp)
{
    const struct map_entry *it = NULL;
    const bool named = el->req->topic_partitions.n >= 0;
    const size_t n = named ? (size_t)el->req->topic_partitions.n : el->c->ahead.topics_by_id.n;
    enum err e = ERR_NONE;
    resp->replica_election_results.v =
        wire_array(&wire_elect_leaders_response_replica_election_result, el->arena, n);
    if (resp->replica_election_results.v == NULL)
        return ERR_NOMEM;
    struct elect_leaders_response_replica_election_result *out = resp->replica_election_results.v;
    for (int32_t i = 0; named && e == ERR_NONE && i < (int32_t)n; i++)
        e = take_named(el, &el->req->topic_partitions.v[i], out++);
    while (!named && e == ERR_NONE && (it = map_next(&el->c->ahead.topics_by_id, it)) != NULL)
        e = take_whole(el, map_value(it), out++);
    if (e == ERR_NONE)
        resp->replica_election_results.n = (int32_t)n;
    return e;
}

/* ------------------------------------------------------------------ the request */

static int16_t run(struct elections *el, struct elect_leaders_response *resp, struct now now)
{
    if (el->req->topic_partitions.n == 0)
        return K_NONE;
    if (el->req->timeout_ms <= 0)
        return K_REQUEST_TIMED_OUT;
    if (el->req->election_type != ELECT_PREFERRED && el->req->election_type != ELECT_UNCLEAN)
        return K_INVALID_REQUEST;
    enum err e = take_topics(el, resp);
    if (e == ERR_NONE && el->records.n > CONTROLLER_MAX_RECORDS)
        e = ERR_TOO_LARGE;
    if (e == ERR_NONE)
        e = controller_append(el->c, &el->records, false, now);
    if (e != ERR_NONE)
        resp->replica_election_results.n = 0;
    return e == ERR_NONE ? K_NONE : controller_error_of(e);
}

void controller_elect_leaders(struct controller *c, struct controller_op *op,
                              const struct elect_leaders_request *req, struct arena *arena,
                              struct elect_leaders_response *resp, struct now now)
{
    if (!controller_begin(c, op))
        return;
    struct elections el = {.c = c, .req = req, .arena = arena};
    record_list_init(&el.records);
    partition_set_init(&el.seen, c->ahead.seed);
    const int16_t error = run(&el, resp, now);
    record_list_close(&el.records);
    partition_set_close(&el.seen);
    controller_finish(c, op, error);
}
