/* OffsetCommit (KIP-211, KIP-320, KIP-345, KIP-848): topics and partitions are looked at before the
 * group is; what is refused there comes first in its topic's answer, as in Kafka. */
#include "api/api.h"
#include "core/replica/mentions.h"
#include "wire/error.h"

struct offset_commit_state {
    struct groups_commit_op op;
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
                        struct commit_part *parts)
{
    const bool by_id = r->api_version >= VERSION_IDS;
    struct image_topic *t = by_id ? image_topic_by_id(api->image, in->topic_id)
                                  : image_topic_named(api->image, in->name);
    const struct str name = by_id && t != NULL ? str_of(t->name) : in->name;
    const int16_t error = check_topic(api, r, by_id, name, t);
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

static struct commit_part *make_parts(struct api *api, struct request *r, int32_t *n)
{
    const struct offset_commit_request *req = r->message;
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

/* Where in the answer an entry of the request goes; by the first entry that goes there. */
struct place {
    int32_t partitions; /* of all that go there */
    struct offset_commit_response_offset_commit_response_topic *out;
};

static bool any_refused(const struct commit_part *parts, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (parts[i].refused)
            return true;
    return false;
}

/* Entries of one topic are merged once something is refused, in whichever, as in Kafka; first of an
 * entry is the one whose place it shares. NULL: out of memory. */
static struct mention *find_places(const struct offset_commit_state *st, struct arena *a)
{
    const struct offset_commit_request *req = st->r->message;
    const size_t n = (size_t)req->topics.n;
    struct mention *m = arena_array(a, n, sizeof *m);
    if (m == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        m[i] = (struct mention){
            .topic = req->topics.v[i].name, .topic_id = req->topics.v[i].topic_id, .first = i};
    if (any_refused(st->op.parts, st->op.parts_n) && mentions_find(m, n, a) != ERR_NONE)
        return NULL;
    return m;
}

static bool add_parts(struct arena *a, const struct commit_part *parts,
                      const struct offset_commit_request_offset_commit_request_topic *in,
                      bool refused, struct place *place, struct offset_commit_response *resp)
{
    for (int32_t i = 0; i < in->partitions.n; i++) {
        if (parts[i].refused != refused)
            continue;
        if (place->out == NULL) {
            place->out = &resp->topics.v[resp->topics.n++];
            place->out->name = in->name;
            place->out->topic_id = in->topic_id;
            place->out->partitions.v =
                wire_array(&wire_offset_commit_response_offset_commit_response_partition, a,
                           (size_t)place->partitions);
            if (place->out->partitions.v == NULL)
                return false;
        }
        place->out->partitions.v[place->out->partitions.n++] =
            (struct offset_commit_response_offset_commit_response_partition){parts[i].index,
                                                                             parts[i].error};
    }
    return true;
}

/* Topics of which something was refused come first, in a topic what was refused. */
static bool fill(struct offset_commit_state *st, struct offset_commit_response *resp)
{
    struct arena *a = &st->r->arena;
    const struct offset_commit_request *req = st->r->message;
    const size_t n = (size_t)req->topics.n;
    const struct mention *m = find_places(st, a);
    struct place *places = arena_array(a, n, sizeof *places);
    resp->topics.v = wire_array(&wire_offset_commit_response_offset_commit_response_topic, a, n);
    if (m == NULL || places == NULL || resp->topics.v == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        places[m[i].first].partitions += req->topics.v[i].partitions.n;
    for (int pass = 0; pass < 2; pass++) {
        const struct commit_part *parts = st->op.parts;
        for (size_t i = 0; i < n; i++) {
            if (!add_parts(a, parts, &req->topics.v[i], pass == 0, &places[m[i].first], resp))
                return false;
            parts += req->topics.v[i].partitions.n;
        }
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
static void refuse_all(struct groups_commit_op *op, int16_t error)
{
    for (int32_t i = 0; i < op->parts_n; i++) {
        op->parts[i].error = error;
        op->parts[i].refused = false;
    }
}

void api_offset_commit_start(struct api *api, struct request *r, struct now now)
{
    const struct offset_commit_request *req = r->message;
    struct offset_commit_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL || (st->op.parts = make_parts(api, r, &st->op.parts_n)) == NULL) {
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
        refuse_all(&st->op, K_GROUP_AUTHORIZATION_FAILED);
        answer(st);
    }
}

void api_offset_commit_cancel(struct request *r)
{
    struct offset_commit_state *st = r->handler_state;
    groups_commit_cancel(&st->op);
}
