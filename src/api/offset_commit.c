/* OffsetCommit (KIP-211, KIP-320, KIP-345, KIP-848): topics and partitions are looked at before the
 * group is. */
#include "api/api.h"
#include "api/refused_first.h"
#include "wire/error.h"

struct offset_commit_state {
    struct groups_commit_op op;
    struct answer_entry *entries;
    struct request *r;
};

enum { VERSION_IDS = 10 };

/* ------------------------------------------------------------------ before the group */

static int16_t check_topic(struct api *api, const struct request *r, bool by_id, struct str name,
                           const struct image_topic *t)
{
    if (by_id && t == NULL)
        return K_UNKNOWN_TOPIC_ID;
    if (!api_authorized(api, r, ACL_READ, ACL_TOPIC, name))
        return K_TOPIC_AUTHORIZATION_FAILED;
    return t == NULL ? K_UNKNOWN_TOPIC_OR_PARTITION : K_NONE;
}

static void check_parts(struct api *api, const struct request *r,
                        const struct offset_commit_request_offset_commit_request_topic *in,
                        struct answer_entry *entry, struct commit_part *parts)
{
    const bool by_id = r->api_version >= VERSION_IDS;
    struct image_topic *t = by_id ? image_topic_by_id(api->image, in->topic_id)
                                  : image_topic_named(api->image, in->name);
    const struct str name = by_id && t != NULL ? str_of(t->name) : in->name;
    const int16_t error = check_topic(api, r, by_id, name, t);
    *entry = (struct answer_entry){in->name, in->topic_id, in->partitions.n, error != K_NONE};
    for (int32_t i = 0; i < in->partitions.n; i++) {
        const struct offset_commit_request_offset_commit_request_partition *p =
            &in->partitions.v[i];
        parts[i] = (struct commit_part){
            .topic = name,
            .topic_id = t == NULL ? in->topic_id : t->id,
            .index = p->partition_index,
            .offset = p->committed_offset,
            .leader_epoch = p->committed_leader_epoch,
            .metadata = p->committed_metadata,
            .error = error,
        };
        if (error == K_NONE && image_partition(t, p->partition_index) == NULL)
            parts[i].error = K_UNKNOWN_TOPIC_OR_PARTITION;
        parts[i].refused = parts[i].error != K_NONE;
    }
}

static bool make_parts(struct api *api, struct request *r, struct offset_commit_state *st)
{
    const struct offset_commit_request *req = r->message;
    size_t n = 0;
    for (int32_t i = 0; i < req->topics.n; i++)
        n += (size_t)req->topics.v[i].partitions.n;
    st->entries = arena_array(&r->arena, (size_t)req->topics.n, sizeof *st->entries);
    st->op.parts = arena_array(&r->arena, n, sizeof *st->op.parts);
    if (st->entries == NULL || st->op.parts == NULL)
        return false;
    for (int32_t i = 0; i < req->topics.n; i++) {
        check_parts(api, r, &req->topics.v[i], &st->entries[i], st->op.parts + st->op.parts_n);
        st->op.parts_n += req->topics.v[i].partitions.n;
    }
    return true;
}

/* ------------------------------------------------------------------ the answer */

static bool fill_topics(const struct answer_order *order, const struct offset_commit_request *req,
                        struct arena *a, struct offset_commit_response *resp)
{
    resp->topics.v = wire_array(&wire_offset_commit_response_offset_commit_response_topic, a,
                                (size_t)order->topics_n);
    if (resp->topics.v == NULL)
        return false;
    for (int32_t i = 0; i < order->topics_n; i++) {
        const struct offset_commit_request_offset_commit_request_topic *in =
            &req->topics.v[order->topics[i].entry];
        struct offset_commit_response_offset_commit_response_topic *to =
            &resp->topics.v[resp->topics.n++];
        to->name = in->name;
        to->topic_id = in->topic_id;
        to->partitions.v = wire_array(&wire_offset_commit_response_offset_commit_response_partition,
                                      a, (size_t)order->topics[i].parts_n);
        if (to->partitions.v == NULL)
            return false;
    }
    return true;
}

static bool fill(struct offset_commit_state *st, struct offset_commit_response *resp)
{
    const struct offset_commit_request *req = st->r->message;
    struct arena *a = &st->r->arena;
    struct answer_order order;
    if (!refused_first(st->entries, req->topics.n, st->op.parts, a, &order) ||
        !fill_topics(&order, req, a, resp))
        return false;
    for (int32_t i = 0; i < order.parts_n; i++) {
        const struct commit_part *part = &st->op.parts[order.parts[i].part];
        struct offset_commit_response_offset_commit_response_topic *to =
            &resp->topics.v[order.parts[i].topic];
        to->partitions.v[to->partitions.n++] =
            (struct offset_commit_response_offset_commit_response_partition){part->index,
                                                                             part->error};
    }
    return true;
}

static void answer(struct offset_commit_state *st)
{
    struct offset_commit_response resp;
    wire_default(&wire_offset_commit_response, &resp);
    if (fill(st, &resp))
        request_answer(st->r, &msg_offset_commit_response, &resp);
    else
        request_close(st->r, "out of memory");
}

static void commit_done(struct group_op *op)
{
    answer(CONTAINER_OF(op, struct offset_commit_state, op.op));
}

/* ------------------------------------------------------------------ the request */

/* Without the right to read the group every partition is told so, whatever it is. */
static void refuse_all(struct offset_commit_state *st, int16_t error)
{
    const struct offset_commit_request *req = st->r->message;
    for (int32_t i = 0; i < req->topics.n; i++)
        st->entries[i].refused = false; /* none comes first */
    for (int32_t i = 0; i < st->op.parts_n; i++) {
        st->op.parts[i].error = error;
        st->op.parts[i].refused = false;
    }
}

void api_offset_commit_start(struct api *api, struct request *r, struct now now)
{
    const struct offset_commit_request *req = r->message;
    struct offset_commit_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL || !make_parts(api, r, st)) {
        request_close(r, "out of memory");
        return;
    }
    st->r = r;
    st->op.op.done = commit_done;
    st->op.version = r->api_version;
    st->op.group = req->group_id;
    st->op.member = req->member_id;
    st->op.instance = req->group_instance_id;
    st->op.generation = req->generation_id_or_member_epoch;
    st->op.retention_ms = req->retention_time_ms;
    r->handler_state = st;
    if (api_authorized(api, r, ACL_READ, ACL_GROUP, req->group_id)) {
        groups_commit(api->groups, &st->op, now);
    } else {
        refuse_all(st, K_GROUP_AUTHORIZATION_FAILED);
        answer(st);
    }
}

void api_offset_commit_cancel(struct request *r)
{
    struct offset_commit_state *st = r->handler_state;
    groups_commit_cancel(&st->op);
}
