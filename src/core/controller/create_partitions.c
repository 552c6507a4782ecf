/* CreatePartitions (KIP-195). Each topic is judged alone; what passes becomes one atomic batch. */
#include "core/controller/creation.h"

struct growth {
    struct creation creation;
    const struct create_partitions_request *req;
    struct create_partitions_response *resp;
    struct map names; /* -> its entry, or `twice` when it comes again */
    char twice;
};

/* ------------------------------------------------------------------ one topic */

static bool check_count(struct growth *g,
                        const struct create_partitions_request_create_partitions_topic *in,
                        const struct image_topic *t, struct refusal *r)
{
    struct creation *cr = &g->creation;
    if (in->count == t->partitions_n)
        return creation_refuse(cr, r, K_INVALID_PARTITIONS, "Topic %s has %d partitions already",
                               t->name, t->partitions_n);
    if (in->count < t->partitions_n)
        return creation_refuse(cr, r, K_INVALID_PARTITIONS,
                               "Topic %s has %d partitions, and cannot get fewer", t->name,
                               t->partitions_n);
    if (in->count > IMAGE_PARTITIONS_MAX)
        return creation_refuse(cr, r, K_INVALID_PARTITIONS, "A topic has at most %d partitions",
                               IMAGE_PARTITIONS_MAX);
    return true;
}

static bool assign(struct growth *g,
                   const struct create_partitions_request_create_partitions_topic *in,
                   struct new_partitions *np, struct refusal *r)
{
    struct creation *cr = &g->creation;
    if (in->assignments.n != np->n)
        return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                               "%d partitions more, but assignments for %d", np->n,
                               in->assignments.n);
    for (int32_t i = 0; i < np->n; i++)
        if (!new_partitions_assign(cr, np, i, in->assignments.v[i].broker_ids.v,
                                   in->assignments.v[i].broker_ids.n, r))
            return false;
    return true;
}

/* False: refused. */
static bool plan(struct growth *g,
                 const struct create_partitions_request_create_partitions_topic *in,
                 const struct image_topic *t, struct new_partitions *np, struct refusal *r)
{
    if (!check_count(g, in, t, r))
        return false;
    *np = (struct new_partitions){
        .first = t->partitions_n,
        .n = in->count - t->partitions_n,
        .rf = t->partitions_n > 0 ? t->partitions[0].replicas_n : 0,
    };
    if (!new_partitions_open(&g->creation, np, r))
        return false;
    return in->assignments.n >= 0 ? assign(g, in, np, r)
                                  : new_partitions_place(&g->creation, np, r);
}

static enum err grow(struct growth *g,
                     const struct create_partitions_request_create_partitions_topic *in,
                     struct create_partitions_response_create_partitions_topic_result *out)
{
    const struct image_topic *t = image_topic_named(&g->creation.c->ahead, in->name);
    struct new_partitions np;
    struct refusal r = {K_NONE, STR_NULL};
    out->name = in->name;
    if (t == NULL) {
        out->error_code = K_UNKNOWN_TOPIC_OR_PARTITION;
        return ERR_NONE;
    }
    if (plan(g, in, t, &np, &r))
        return new_partitions_add(&g->creation, t->id, &np);
    out->error_code = r.error;
    out->error_message = r.message;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ the request */

static enum err new_results(struct growth *g)
{
    g->resp->results.v = wire_array(&wire_create_partitions_response_create_partitions_topic_result,
                                    g->creation.arena, (size_t)g->req->topics.n);
    g->resp->results.n = 0;
    return g->resp->results.v == NULL ? ERR_NOMEM : ERR_NONE;
}

/* Every topic answers the same. */
static void fail_all(struct growth *g, int16_t error, const char *message)
{
    for (int32_t i = 0; i < g->req->topics.n; i++) {
        g->resp->results.v[i].name = g->req->topics.v[i].name;
        g->resp->results.v[i].error_code = error;
        g->resp->results.v[i].error_message = str_of(message);
    }
    g->resp->results.n = g->req->topics.n;
}

static enum err count_names(struct growth *g)
{
    for (int32_t i = 0; i < g->req->topics.n; i++) {
        struct create_partitions_request_create_partitions_topic *t = &g->req->topics.v[i];
        void *what = map_get_str(&g->names, t->name) == NULL ? (void *)t : &g->twice;
        enum err e = map_put(&g->names, t->name.p, (size_t)t->name.n, what);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

/* Kafka refuses the request as a whole, before it looks at its topics. */
static bool too_many(const struct growth *g)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < g->req->topics.n; i++) {
        const struct create_partitions_request_create_partitions_topic *in = &g->req->topics.v[i];
        const struct image_topic *t = image_topic_named(&g->creation.c->ahead, in->name);
        if (t != NULL && in->count > t->partitions_n && map_get_str(&g->names, in->name) == in)
            sum += in->count - t->partitions_n;
    }
    return sum > CONTROLLER_MAX_PARTITIONS;
}

/* Without any nothing is asked of the controller, which has no time then. */
static bool any_to_grow(const struct growth *g, bool (*allowed)(void *, struct str), void *ctx)
{
    for (int32_t i = 0; i < g->req->topics.n; i++) {
        const struct str name = g->req->topics.v[i].name;
        if (map_get_str(&g->names, name) != &g->twice && allowed(ctx, name))
            return true;
    }
    return false;
}

/* A topic that is named twice is answered once, where it is named first. */
static enum err grow_each(struct growth *g, bool (*allowed)(void *, struct str), void *ctx)
{
    for (int32_t i = 0; i < g->req->topics.n; i++) {
        const struct create_partitions_request_create_partitions_topic *in = &g->req->topics.v[i];
        struct create_partitions_response_create_partitions_topic_result *out =
            &g->resp->results.v[g->resp->results.n];
        const void *first = map_get_str(&g->names, in->name);
        enum err e = ERR_NONE;
        if (first == NULL)
            continue;
        out->name = in->name;
        if (first == &g->twice) {
            (void)map_remove(&g->names, in->name.p, (size_t)in->name.n);
            out->error_code = K_INVALID_REQUEST;
            out->error_message = STR_LIT("The request names this topic twice");
        } else if (!allowed(ctx, in->name)) {
            out->error_code = K_TOPIC_AUTHORIZATION_FAILED;
        } else {
            e = grow(g, in, out);
        }
        if (e != ERR_NONE)
            return e;
        g->resp->results.n++;
    }
    return ERR_NONE;
}

static enum err grow_all(struct growth *g, bool (*allowed)(void *, struct str), void *ctx,
                         struct now now)
{
    enum err e = new_results(g);
    if (e == ERR_NONE)
        e = count_names(g);
    if (e != ERR_NONE)
        return e;
    if (g->req->timeout_ms <= 0 && any_to_grow(g, allowed, ctx)) {
        fail_all(g, K_REQUEST_TIMED_OUT, NULL);
        return ERR_NONE;
    }
    if (too_many(g)) {
        fail_all(g, K_POLICY_VIOLATION, "Too many partitions in one request");
        return ERR_NONE;
    }
    e = grow_each(g, allowed, ctx);
    if (e == ERR_NONE && !g->req->validate_only)
        e = controller_append(g->creation.c, &g->creation.records, true, now);
    if (e != ERR_TOO_LARGE)
        return e;
    fail_all(g, K_POLICY_VIOLATION, "Too many records in one request");
    return ERR_NONE;
}

void controller_create_partitions(struct controller *c, struct controller_op *op,
                                  const struct create_partitions_request *req,
                                  bool (*allowed)(void *ctx, struct str topic), void *allowed_ctx,
                                  struct arena *a, struct create_partitions_response *resp,
                                  struct now now)
{
    if (!controller_begin(c, op))
        return;
    struct growth g = {.req = req, .resp = resp};
    creation_open(&g.creation, c, a, 0);
    map_init(&g.names, c->ahead.seed);
    enum err e = grow_all(&g, allowed, allowed_ctx, now);
    map_close(&g.names);
    creation_close(&g.creation);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
