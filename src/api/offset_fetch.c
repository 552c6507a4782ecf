/* OffsetFetch (KIP-88, KIP-447, KIP-709, KIP-848): one group to version 7, several from 8 on; by
 * topic id from 10 on. What is refused before the group is looked at comes last. */
#include "api/api.h"
#include "wire/error.h"

enum { VERSION_TOP_ERROR = 2, VERSION_GROUPS = 8, VERSION_IDS = 10 };

struct fetched_group {
    struct groups_fetch_op op;
    struct offset_fetch_state *st;
    const struct offset_fetch_request_offset_fetch_request_group *in;
    bool begun; /* the group was asked; else op.error stands */
};

struct offset_fetch_state {
    struct api *api;
    struct request *r;
    struct fetched_group *groups;
    int32_t groups_n, waiting_n;
};

/* ------------------------------------------------------------------ what is asked */

/* Before version 8 the one group stands on top. */
static bool take_groups(struct request *r,
                        struct offset_fetch_request_offset_fetch_request_group **v, int32_t *n)
{
    const struct offset_fetch_request *req = r->message;
    *v = req->groups.v;
    *n = req->groups.n;
    if (r->api_version >= VERSION_GROUPS)
        return true;
    struct offset_fetch_request_offset_fetch_request_group *g =
        wire_array(&wire_offset_fetch_request_offset_fetch_request_group, &r->arena, 1);
    const size_t topics_n = req->topics.n < 0 ? 0 : (size_t)req->topics.n;
    if (g == NULL ||
        (g->topics.v = wire_array(&wire_offset_fetch_request_offset_fetch_request_topics, &r->arena,
                                  topics_n)) == NULL)
        return false;
    g->group_id = req->group_id;
    g->topics.n = req->topics.n;
    for (size_t i = 0; i < topics_n; i++) {
        g->topics.v[i].name = req->topics.v[i].name;
        g->topics.v[i].partition_indexes.v = req->topics.v[i].partition_indexes.v;
        g->topics.v[i].partition_indexes.n = req->topics.v[i].partition_indexes.n;
    }
    *v = g;
    *n = 1;
    return true;
}

static void add_parts(struct api *api, const struct request *r,
                      const struct offset_fetch_request_offset_fetch_request_topics *in,
                      struct fetched_part **at)
{
    const bool by_id = r->api_version >= VERSION_IDS;
    const struct image_topic *t = by_id ? image_topic_by_id(api->image, in->topic_id) : NULL;
    const struct str name = t != NULL ? str_of(t->name) : in->name;
    int16_t error = K_NONE;
    if (by_id && t == NULL)
        error = K_UNKNOWN_TOPIC_ID;
    else if (!api_authorized(api, r, ACL_DESCRIBE, ACL_TOPIC, name))
        error = K_TOPIC_AUTHORIZATION_FAILED;
    for (int32_t i = 0; i < in->partition_indexes.n; i++)
        *(*at)++ = (struct fetched_part){
            .topic = name,
            .topic_id = in->topic_id,
            .index = in->partition_indexes.v[i],
            .offset = -1,
            .leader_epoch = -1,
            .metadata = STR_LIT(""),
            .error = error,
        };
}

static bool make_parts(struct offset_fetch_state *st, struct fetched_group *g)
{
    const struct offset_fetch_request_offset_fetch_request_group *in = g->in;
    size_t n = 0;
    g->op.all = in->topics.n < 0;
    for (int32_t i = 0; i < in->topics.n; i++)
        n += (size_t)in->topics.v[i].partition_indexes.n;
    struct fetched_part *at = arena_array(&st->r->arena, n, sizeof *at);
    if (at == NULL)
        return false;
    g->op.parts = at;
    g->op.parts_n = (int32_t)n;
    for (int32_t i = 0; i < in->topics.n; i++)
        add_parts(st->api, st->r, &in->topics.v[i], &at);
    return true;
}

/* ------------------------------------------------------------------ the answer */

static void put_part(const struct fetched_part *p,
                     struct offset_fetch_response_offset_fetch_response_partitions *out)
{
    out->partition_index = p->index;
    out->committed_offset = p->offset;
    out->committed_leader_epoch = p->leader_epoch;
    out->metadata = p->metadata;
    out->error_code = p->error;
}

static bool put_topic(struct arena *a, const struct fetched_part *parts, int32_t n,
                      struct offset_fetch_response_offset_fetch_response_topics *out)
{
    out->partitions.v =
        wire_array(&wire_offset_fetch_response_offset_fetch_response_partitions, a, (size_t)n);
    if (out->partitions.v == NULL)
        return false;
    out->partitions.n = n;
    for (int32_t i = 0; i < n; i++)
        put_part(&parts[i], &out->partitions.v[i]);
    return true;
}

static bool was_refused(const struct fetched_part *p)
{
    return p->error == K_UNKNOWN_TOPIC_ID || p->error == K_TOPIC_AUTHORIZATION_FAILED;
}

static bool put_asked(const struct fetched_group *g, struct arena *a,
                      struct offset_fetch_response_offset_fetch_response_group *out)
{
    const struct offset_fetch_request_offset_fetch_request_group *in = g->in;
    out->topics.v = wire_array(&wire_offset_fetch_response_offset_fetch_response_topics, a,
                               (size_t)in->topics.n);
    if (out->topics.v == NULL)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        const struct fetched_part *parts = g->op.parts;
        for (int32_t i = 0; i < in->topics.n; i++) {
            const int32_t n = in->topics.v[i].partition_indexes.n;
            struct offset_fetch_response_offset_fetch_response_topics *t =
                &out->topics.v[out->topics.n];
            if ((n > 0 && was_refused(parts)) == (pass == 1)) {
                t->name = in->topics.v[i].name;
                t->topic_id = in->topics.v[i].topic_id;
                if (!put_topic(a, parts, n, t))
                    return false;
                out->topics.n++;
            }
            parts += n;
        }
    }
    return true;
}

/* Offsets that were committed to an earlier topic of the name are not told by id. */
static bool is_told(const struct request *r, const struct image_topic *t,
                    const struct fetched_part *p)
{
    if (r->api_version < VERSION_IDS)
        return true;
    return t != NULL && (uuid_is_zero(p->topic_id) || uuid_eq(p->topic_id, t->id));
}

/* One topic of all, parts [0, n); may leave none of it. */
static bool put_topic_of_all(const struct offset_fetch_state *st, struct fetched_part *parts,
                             int32_t n,
                             struct offset_fetch_response_offset_fetch_response_group *out)
{
    const struct image_topic *t = image_topic_named(st->api->image, parts->topic);
    struct offset_fetch_response_offset_fetch_response_topics *to = &out->topics.v[out->topics.n];
    int32_t told_n = 0;
    if (!api_authorized(st->api, st->r, ACL_DESCRIBE, ACL_TOPIC, parts->topic))
        return true;
    for (int32_t i = 0; i < n; i++)
        if (is_told(st->r, t, &parts[i]))
            parts[told_n++] = parts[i];
    if (told_n == 0)
        return true;
    to->name = parts->topic;
    if (t != NULL)
        to->topic_id = t->id;
    if (!put_topic(&st->r->arena, parts, told_n, to))
        return false;
    out->topics.n++;
    return true;
}

/* The parts come topic by topic, and those of a topic share its name. */
static bool put_all(const struct fetched_group *g, struct arena *a,
                    struct offset_fetch_response_offset_fetch_response_group *out)
{
    int32_t topics_n = 0;
    for (int32_t i = 0; i < g->op.parts_n; i++)
        topics_n += i == 0 || g->op.parts[i].topic.p != g->op.parts[i - 1].topic.p;
    out->topics.v =
        wire_array(&wire_offset_fetch_response_offset_fetch_response_topics, a, (size_t)topics_n);
    if (out->topics.v == NULL)
        return false;
    for (int32_t i = 0, n; i < g->op.parts_n; i += n) {
        n = 1;
        while (i + n < g->op.parts_n && g->op.parts[i + n].topic.p == g->op.parts[i].topic.p)
            n++;
        if (!put_topic_of_all(g->st, &g->op.parts[i], n, out))
            return false;
    }
    return true;
}

static bool put_group(const struct fetched_group *g, struct arena *a,
                      struct offset_fetch_response_offset_fetch_response_group *out)
{
    out->group_id = g->in->group_id;
    out->error_code = g->op.error;
    if (g->op.error != K_NONE)
        return true;
    return g->op.all ? put_all(g, a, out) : put_asked(g, a, out);
}

/* Version 1 has no place for a group's error but its partitions. */
static bool put_error_on_parts(const struct fetched_group *g, struct arena *a,
                               struct offset_fetch_response_offset_fetch_response_group *out)
{
    for (int32_t i = 0; i < g->op.parts_n; i++)
        g->op.parts[i] = (struct fetched_part){.index = g->op.parts[i].index,
                                               .offset = -1,
                                               .leader_epoch = -1,
                                               .metadata = STR_LIT(""),
                                               .error = g->op.error};
    return put_asked(g, a, out);
}

/* One group as it stood before version 8. */
static bool put_on_top(const struct fetched_group *g, struct request *r,
                       struct offset_fetch_response *resp)
{
    struct offset_fetch_response_offset_fetch_response_group group;
    wire_default(&wire_offset_fetch_response_offset_fetch_response_group, &group);
    const bool on_parts = g->op.error != K_NONE && r->api_version < VERSION_TOP_ERROR;
    if (!(on_parts ? put_error_on_parts(g, &r->arena, &group) : put_group(g, &r->arena, &group)))
        return false;
    resp->error_code = on_parts ? K_NONE : group.error_code;
    resp->topics.v = wire_array(&wire_offset_fetch_response_offset_fetch_response_topic, &r->arena,
                                (size_t)group.topics.n);
    if (resp->topics.v == NULL)
        return false;
    resp->topics.n = group.topics.n;
    for (int32_t i = 0; i < group.topics.n; i++) {
        const struct offset_fetch_response_offset_fetch_response_topics *in = &group.topics.v[i];
        struct offset_fetch_response_offset_fetch_response_topic *out = &resp->topics.v[i];
        out->name = in->name;
        out->partitions.v = wire_array(&wire_offset_fetch_response_offset_fetch_response_partition,
                                       &r->arena, (size_t)in->partitions.n);
        if (out->partitions.v == NULL)
            return false;
        out->partitions.n = in->partitions.n;
        for (int32_t k = 0; k < in->partitions.n; k++)
            out->partitions.v[k] = (struct offset_fetch_response_offset_fetch_response_partition){
                .partition_index = in->partitions.v[k].partition_index,
                .committed_offset = in->partitions.v[k].committed_offset,
                .committed_leader_epoch = in->partitions.v[k].committed_leader_epoch,
                .metadata = in->partitions.v[k].metadata,
                .error_code = in->partitions.v[k].error_code,
            };
    }
    return true;
}

static bool put_groups(const struct offset_fetch_state *st, struct offset_fetch_response *resp)
{
    struct arena *a = &st->r->arena;
    resp->groups.v = wire_array(&wire_offset_fetch_response_offset_fetch_response_group, a,
                                (size_t)st->groups_n);
    if (resp->groups.v == NULL)
        return false;
    resp->groups.n = st->groups_n;
    for (int32_t i = 0; i < st->groups_n; i++)
        if (!put_group(&st->groups[i], a, &resp->groups.v[i]))
            return false;
    return true;
}

static void answer(struct offset_fetch_state *st)
{
    struct offset_fetch_response resp;
    wire_default(&wire_offset_fetch_response, &resp);
    if (st->r->api_version >= VERSION_GROUPS ? put_groups(st, &resp)
                                             : put_on_top(&st->groups[0], st->r, &resp))
        request_answer(st->r, &msg_offset_fetch_response, &resp);
    else
        request_close(st->r, "out of memory");
}

/* ------------------------------------------------------------------ the request */

static void group_done(struct group_op *op)
{
    struct offset_fetch_state *st = CONTAINER_OF(op, struct fetched_group, op.op)->st;
    if (--st->waiting_n == 0)
        answer(st);
}

static bool prepare_group(struct offset_fetch_state *st, struct fetched_group *g)
{
    const struct offset_fetch_request *req = st->r->message;
    g->st = st;
    g->op.op.done = group_done;
    g->op.arena = &st->r->arena;
    g->op.group = g->in->group_id;
    g->op.member = g->in->member_id;
    g->op.member_epoch = g->in->member_epoch;
    g->op.require_stable = req->require_stable;
    g->op.by_id = st->r->api_version >= VERSION_IDS;
    g->begun = api_authorized(st->api, st->r, ACL_DESCRIBE, ACL_GROUP, g->in->group_id);
    if (!g->begun)
        g->op.error = K_GROUP_AUTHORIZATION_FAILED;
    return make_parts(st, g);
}

static bool prepare(struct offset_fetch_state *st)
{
    struct offset_fetch_request_offset_fetch_request_group *in;
    if (!take_groups(st->r, &in, &st->groups_n))
        return false;
    st->groups = arena_array(&st->r->arena, (size_t)st->groups_n, sizeof *st->groups);
    for (int32_t i = 0; st->groups != NULL && i < st->groups_n; i++) {
        st->groups[i].in = &in[i];
        if (!prepare_group(st, &st->groups[i]))
            return false;
        st->waiting_n += st->groups[i].begun;
    }
    return st->groups != NULL;
}

void api_offset_fetch_start(struct api *api, struct request *r, struct now now)
{
    struct offset_fetch_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st != NULL) {
        st->api = api;
        st->r = r;
    }
    if (st == NULL || !prepare(st)) {
        request_close(r, "out of memory");
        return;
    }
    r->handler_state = st;
    if (st->waiting_n == 0) {
        answer(st);
        return;
    }
    for (int32_t i = 0; i < st->groups_n; i++)
        if (st->groups[i].begun)
            groups_fetch(api->groups, &st->groups[i].op, now);
}

void api_offset_fetch_cancel(struct request *r)
{
    struct offset_fetch_state *st = r->handler_state;
    for (int32_t i = 0; i < st->groups_n; i++)
        if (st->groups[i].begun)
            groups_fetch_cancel(&st->groups[i].op);
}
