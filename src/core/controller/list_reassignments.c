/* ListPartitionReassignments (KIP-455). Kafka tells what is committed; so do we: the answer waits
 * for what it has read. */
#include "core/controller/partition_change.h"

struct listing {
    struct controller *c;
    struct arena *arena;
    struct list_partition_reassignments_response *resp;
};

static bool tell(struct listing *l, int32_t index, const struct image_partition *p,
                 struct list_partition_reassignments_response_ongoing_partition_reassignment *out)
{
    out->partition_index = index;
    const struct replica_set replicas = {p->replicas, p->replicas_n};
    const struct replica_set adding = {p->adding, p->adding_n};
    const struct replica_set removing = {p->removing, p->removing_n};
    return replica_set_copy(l->arena, replicas, &out->replicas.v, &out->replicas.n) &&
           replica_set_copy(l->arena, adding, &out->adding_replicas.v, &out->adding_replicas.n) &&
           replica_set_copy(l->arena, removing, &out->removing_replicas.v,
                            &out->removing_replicas.n);
}

/* A topic without any is not mentioned. */
static struct list_partition_reassignments_response_ongoing_topic_reassignment *
open_topic(struct listing *l, const struct image_topic *t, int32_t n)
{
    struct list_partition_reassignments_response_ongoing_topic_reassignment *out =
        &l->resp->topics.v[l->resp->topics.n];
    const char *name = arena_strdup(l->arena, str_of(t->name));
    out->partitions.v =
        wire_array(&wire_list_partition_reassignments_response_ongoing_partition_reassignment,
                   l->arena, (size_t)n);
    if (name == NULL || out->partitions.v == NULL)
        return NULL;
    out->name = str_of(name);
    return out;
}

static bool take_topic(struct listing *l, struct image_topic *t, const int32_t *v, int32_t n)
{
    int32_t under_way = 0;
    for (int32_t i = 0; i < n; i++)
        under_way += partition_set_has(&l->c->index.reassigning, t->id, v[i]);
    if (under_way == 0)
        return true;
    struct list_partition_reassignments_response_ongoing_topic_reassignment *out =
        open_topic(l, t, under_way);
    if (out == NULL)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (partition_set_has(&l->c->index.reassigning, t->id, v[i]) &&
            !tell(l, v[i], &t->partitions[v[i]], &out->partitions.v[out->partitions.n++]))
            return false;
    l->resp->topics.n++;
    return true;
}

static bool take_named(struct listing *l, const struct list_partition_reassignments_request *req)
{
    for (int32_t i = 0; i < req->topics.n; i++) {
        struct image_topic *t = image_topic_named(&l->c->ahead, req->topics.v[i].name);
        if (t != NULL && !take_topic(l, t, req->topics.v[i].partition_indexes.v,
                                     req->topics.v[i].partition_indexes.n))
            return false;
    }
    return true;
}

/* The set goes topic by topic. */
static bool take_all(struct listing *l)
{
    struct partition_at at = {0};
    struct list_partition_reassignments_response_ongoing_topic_reassignment *out = NULL;
    const struct map_entry *of = NULL;
    while (partition_set_next(&l->c->index.reassigning, &at)) {
        struct image_topic *t = image_topic_by_id(&l->c->ahead, at.topic_id);
        if (at.topic != of) {
            of = at.topic;
            out = open_topic(l, t, partition_set_of(&l->c->index.reassigning, at.topic_id));
            if (out == NULL)
                return false;
            l->resp->topics.n++;
        }
        if (!tell(l, at.index, &t->partitions[at.index], &out->partitions.v[out->partitions.n++]))
            return false;
    }
    return true;
}

void controller_list_reassignments(struct controller *c, struct controller_op *op,
                                   const struct list_partition_reassignments_request *req,
                                   struct arena *arena,
                                   struct list_partition_reassignments_response *resp,
                                   struct now now)
{
    (void)now;
    if (!controller_begin(c, op))
        return;
    resp->error_message = STR_NULL;
    struct listing l = {.c = c, .arena = arena, .resp = resp};
    const bool named = req->topics.n >= 0;
    const size_t room = named ? (size_t)req->topics.n : c->index.reassigning.topics.n;
    resp->topics.v = wire_array(
        &wire_list_partition_reassignments_response_ongoing_topic_reassignment, arena, room);
    const bool ok = resp->topics.v != NULL && (named ? take_named(&l, req) : take_all(&l));
    if (!ok)
        resp->topics.n = 0;
    controller_finish(c, op, ok ? K_NONE : controller_error_of(ERR_NOMEM));
}
