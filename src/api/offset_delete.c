/* OffsetDelete (KIP-496). Unlike a commit it asks the group even when no topic is left. */
#include "api/api.h"
#include "api/refused_first.h"
#include "wire/error.h"

struct offset_delete_state {
    struct groups_offset_delete_op op;
    struct answer_entry *entries;
    struct request *r;
};

/* ------------------------------------------------------------------ before the group */

static void check_parts(struct api *api, const struct request *r,
                        const struct offset_delete_request_offset_delete_request_topic *in,
                        struct answer_entry *entry, struct commit_part *parts)
{
    struct image_topic *t = image_topic_named(api->image, in->name);
    int16_t error = K_NONE;
    if (!api_authorized(api, r, ACL_READ, ACL_TOPIC, in->name))
        error = K_TOPIC_AUTHORIZATION_FAILED;
    else if (t == NULL)
        error = K_UNKNOWN_TOPIC_OR_PARTITION;
    *entry = (struct answer_entry){
        .name = in->name, .parts_n = in->partitions.n, .refused = error != K_NONE};
    for (int32_t i = 0; i < in->partitions.n; i++) {
        const int32_t index = in->partitions.v[i].partition_index;
        parts[i] = (struct commit_part){.topic = in->name, .index = index, .error = error};
        if (error == K_NONE && image_partition(t, index) == NULL)
            parts[i].error = K_UNKNOWN_TOPIC_OR_PARTITION;
        parts[i].refused = parts[i].error != K_NONE;
    }
}

static bool make_parts(struct api *api, struct request *r, struct offset_delete_state *st)
{
    const struct offset_delete_request *req = r->message;
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

static bool fill_topics(const struct answer_order *order, const struct offset_delete_request *req,
                        struct arena *a, struct offset_delete_response *resp)
{
    resp->topics.v = wire_array(&wire_offset_delete_response_offset_delete_response_topic, a,
                                (size_t)order->topics_n);
    if (resp->topics.v == NULL)
        return false;
    for (int32_t i = 0; i < order->topics_n; i++) {
        const struct offset_delete_request_offset_delete_request_topic *in =
            &req->topics.v[order->topics[i].entry];
        struct offset_delete_response_offset_delete_response_topic *to =
            &resp->topics.v[resp->topics.n++];
        to->name = in->name;
        to->partitions.v = wire_array(&wire_offset_delete_response_offset_delete_response_partition,
                                      a, (size_t)order->topics[i].parts_n);
        if (to->partitions.v == NULL)
            return false;
    }
    return true;
}

static bool fill(struct offset_delete_state *st, struct offset_delete_response *resp)
{
    const struct offset_delete_request *req = st->r->message;
    struct arena *a = &st->r->arena;
    struct answer_order order;
    if (!refused_first(st->entries, req->topics.n, st->op.parts, a, &order) ||
        !fill_topics(&order, req, a, resp))
        return false;
    for (int32_t i = 0; i < order.parts_n; i++) {
        const struct commit_part *part = &st->op.parts[order.parts[i].part];
        struct offset_delete_response_offset_delete_response_topic *to =
            &resp->topics.v[order.parts[i].topic];
        to->partitions.v[to->partitions.n++] =
            (struct offset_delete_response_offset_delete_response_partition){part->index,
                                                                             part->error};
    }
    return true;
}

static void answer(struct offset_delete_state *st)
{
    struct offset_delete_response resp;
    wire_default(&wire_offset_delete_response, &resp);
    resp.error_code = st->op.error;
    if (st->op.error != K_NONE || fill(st, &resp))
        request_answer(st->r, &msg_offset_delete_response, &resp);
    else
        request_close(st->r, "out of memory");
}

static void delete_done(struct group_op *op)
{
    answer(CONTAINER_OF(op, struct offset_delete_state, op.op));
}

/* ------------------------------------------------------------------ the request */

void api_offset_delete_start(struct api *api, struct request *r, struct now now)
{
    const struct offset_delete_request *req = r->message;
    struct offset_delete_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL || !make_parts(api, r, st)) {
        request_close(r, "out of memory");
        return;
    }
    st->r = r;
    st->op.op.done = delete_done;
    st->op.group = req->group_id;
    r->handler_state = st;
    if (api_authorized(api, r, ACL_DELETE, ACL_GROUP, req->group_id)) {
        groups_offset_delete(api->groups, &st->op, now);
    } else {
        st->op.error = K_GROUP_AUTHORIZATION_FAILED;
        answer(st);
    }
}

void api_offset_delete_cancel(struct request *r)
{
    struct offset_delete_state *st = r->handler_state;
    groups_offset_delete_cancel(&st->op);
}
