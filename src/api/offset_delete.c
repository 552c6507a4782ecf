/* OffsetDelete (KIP-496). Unlike a commit it asks the group even when no topic is left. */
#include "api/api.h"
#include "wire/error.h"

struct offset_delete_state {
    struct groups_offset_delete_op op;
    struct request *r;
};

/* ------------------------------------------------------------------ before the group */

static void check_parts(struct api *api, const struct request *r,
                        const struct offset_delete_request_offset_delete_request_topic *in,
                        struct commit_part *parts)
{
    struct image_topic *t = image_topic_named(api->image, in->name);
    int16_t error = K_NONE;
    if (!api_authorized(api, r, ACL_READ, ACL_TOPIC, in->name))
        error = K_TOPIC_AUTHORIZATION_FAILED;
    else if (t == NULL)
        error = K_UNKNOWN_TOPIC_OR_PARTITION;
    for (int32_t i = 0; i < in->partitions.n; i++) {
        const int32_t index = in->partitions.v[i].partition_index;
        parts[i] = (struct commit_part){.topic = in->name, .index = index, .error = error};
        if (error == K_NONE && image_partition(t, index) == NULL)
            parts[i].error = K_UNKNOWN_TOPIC_OR_PARTITION;
        parts[i].refused = parts[i].error != K_NONE;
    }
}

static struct commit_part *make_parts(struct api *api, struct request *r, int32_t *n)
{
    const struct offset_delete_request *req = r->message;
    *n = 0;
    for (int32_t i = 0; i < req->topics.n; i++)
        *n += req->topics.v[i].partitions.n;
    struct commit_part *parts = arena_array(&r->arena, (size_t)*n, sizeof *parts);
    struct commit_part *at = parts;
    for (int32_t i = 0; parts != NULL && i < req->topics.n; i++) {
        check_parts(api, r, &req->topics.v[i], at);
        at += req->topics.v[i].partitions.n;
    }
    return parts;
}

/* ------------------------------------------------------------------ the answer */

static bool any_refused(const struct commit_part *parts, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (parts[i].refused)
            return true;
    return false;
}

static bool fill_topic(struct arena *a, const struct commit_part *parts,
                       const struct offset_delete_request_offset_delete_request_topic *in,
                       struct offset_delete_response_offset_delete_response_topic *out)
{
    out->name = in->name;
    out->partitions.v = wire_array(&wire_offset_delete_response_offset_delete_response_partition, a,
                                   (size_t)in->partitions.n);
    if (out->partitions.v == NULL)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < in->partitions.n; i++)
            if (parts[i].refused == (pass == 0))
                out->partitions.v[out->partitions.n++] =
                    (struct offset_delete_response_offset_delete_response_partition){
                        parts[i].index, parts[i].error};
    return true;
}

/* As in a commit's answer: what was refused comes first. */
static bool fill(const struct offset_delete_state *st, struct offset_delete_response *resp)
{
    struct request *r = st->r;
    const struct offset_delete_request *req = r->message;
    resp->topics.v = wire_array(&wire_offset_delete_response_offset_delete_response_topic,
                                &r->arena, (size_t)req->topics.n);
    if (resp->topics.v == NULL)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        const struct commit_part *parts = st->op.parts;
        for (int32_t i = 0; i < req->topics.n; i++) {
            const int32_t n = req->topics.v[i].partitions.n;
            if (n > 0 && any_refused(parts, n) == (pass == 0) &&
                !fill_topic(&r->arena, parts, &req->topics.v[i], &resp->topics.v[resp->topics.n++]))
                return false;
            parts += n;
        }
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
    if (st == NULL || (st->op.parts = make_parts(api, r, &st->op.parts_n)) == NULL) {
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
