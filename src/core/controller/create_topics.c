/* CreateTopics (KIP-4, KIP-464, KIP-525). Each topic is judged alone; one that is refused leaves
 * nothing behind, those that pass become one atomic batch. */
#include "core/controller/collisions.h"
#include "core/controller/creation.h"
#include "core/metadata/random_uuid.h"

/* ------------------------------------------------------------------ records */

static enum err add_configs(struct creation *cr, struct str name, const struct plan *p)
{
    size_t n;
    const struct config_key *keys = config_keys(CONFIG_TOPIC, &n);
    bool min_isr = false;
    for (size_t i = 0; i < n; i++) {
        if (p->values.v[i].n < 0)
            continue;
        const struct config_record r = {CONFIG_RESOURCE_TOPIC, name, str_of(keys[i].name),
                                        p->values.v[i]};
        enum err e = record_list_add(&cr->records, &msg_config_record, 0, &r);
        if (e != ERR_NONE)
            return e;
        min_isr |= strcmp(keys[i].name, "min.insync.replicas") == 0;
    }
    if (!min_isr || image_feature_level(&cr->c->ahead, "eligible.leader.replicas.version") == 0)
        return ERR_NONE;
    const struct clear_elr_record clear = {name}; /* as at every change of min ISR */
    return record_list_add(&cr->records, &msg_clear_elr_record, 0, &clear);
}

static enum err add_topic(struct creation *cr, struct str name, struct uuid id,
                          const struct plan *p)
{
    const struct topic_record r = {name, id};
    enum err e = record_list_add(&cr->records, &msg_topic_record, 0, &r);
    if (e == ERR_NONE)
        e = add_configs(cr, name, p);
    return e == ERR_NONE ? new_partitions_add(cr, id, &p->partitions) : e;
}

/* The name collides with later ones of the request. */
static enum err remember(struct creation *cr, struct str name)
{
    char unified[COLLISION_MAX];
    if (!collisions_unify(name, unified))
        return ERR_NONE;
    char *copy = arena_strdup(&cr->c->scratch, name);
    return copy == NULL ? ERR_NOMEM : map_put(&cr->unified, unified, (size_t)name.n, copy);
}

/* ------------------------------------------------------------------ one topic */

static enum err create(struct creation *cr, const struct create_topics_request_creatable_topic *in,
                       struct create_topics_response_creatable_topic_result *out)
{
    struct plan p;
    struct refusal refusal;
    out->name = in->name;
    if (!creation_plan(cr, in, &p, &refusal)) {
        out->error_code = refusal.error;
        out->error_message = refusal.message;
        return ERR_NONE;
    }
    const struct uuid id = uuid_random(cr->c->env);
    enum err e = add_topic(cr, in->name, id, &p);
    if (e == ERR_NONE)
        e = remember(cr, in->name);
    if (e == ERR_NONE && cr->version >= 5)
        e = topic_values_describe(cr->c, &p.values, cr->arena, out);
    if (e != ERR_NONE)
        return e; /* of the whole request: nothing is appended */
    out->error_message = STR_NULL;
    out->topic_id = id;
    out->num_partitions = p.partitions.n;
    out->replication_factor = (int16_t)p.partitions.rf;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ the request */

/* Every topic answers the same. */
static enum err fail_all(const struct create_topics_request *req, struct arena *a, int16_t error,
                         const char *message, struct create_topics_response *resp)
{
    resp->topics.v =
        wire_array(&wire_create_topics_response_creatable_topic_result, a, (size_t)req->topics.n);
    if (resp->topics.v == NULL)
        return ERR_NOMEM;
    resp->topics.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++) {
        resp->topics.v[i].name = req->topics.v[i].name;
        resp->topics.v[i].error_code = error;
        resp->topics.v[i].error_message = str_of(message);
    }
    return ERR_NONE;
}

/* name -> its first topic, or `twice` when it comes again. */
static enum err count_names(const struct create_topics_request *req, struct map *names, void *twice)
{
    for (int32_t i = 0; i < req->topics.n; i++) {
        struct create_topics_request_creatable_topic *t = &req->topics.v[i];
        void *what = map_get_str(names, t->name) == NULL ? (void *)t : twice;
        enum err e = map_put(names, t->name.p, (size_t)t->name.n, what);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

static enum err create_each(struct creation *cr, const struct create_topics_request *req,
                            struct map *names, const void *twice,
                            struct create_topics_response *resp)
{
    resp->topics.v = wire_array(&wire_create_topics_response_creatable_topic_result, cr->arena,
                                (size_t)req->topics.n);
    if (resp->topics.v == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < req->topics.n; i++) {
        if (map_get_str(names, req->topics.v[i].name) == twice)
            continue;
        enum err e = create(cr, &req->topics.v[i], &resp->topics.v[resp->topics.n]);
        if (e != ERR_NONE)
            return e;
        resp->topics.n++;
    }
    const struct map_entry *e = NULL;
    while ((e = map_next(names, e)) != NULL) {
        if (map_value(e) != twice)
            continue;
        struct create_topics_response_creatable_topic_result *out =
            &resp->topics.v[resp->topics.n++];
        size_t n;
        const char *name = map_key(e, &n);
        char *copy = arena_strdup(cr->arena, (struct str){name, (int32_t)n});
        if (copy == NULL)
            return ERR_NOMEM;
        out->name = str_of(copy);
        out->error_code = K_INVALID_REQUEST;
        out->error_message = STR_LIT("The request names this topic twice");
    }
    return ERR_NONE;
}

static bool too_many(const struct controller *c, const struct create_topics_request *req)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const int64_t n = creation_partitions(c, &req->topics.v[i]);
        sum += n > 0 ? n : 0; /* else it is refused */
    }
    return sum > CONTROLLER_MAX_PARTITIONS;
}

static enum err create_all(struct creation *cr, const struct create_topics_request *req,
                           struct create_topics_response *resp, struct now now)
{
    struct map names;
    char twice;
    if (too_many(cr->c, req))
        return fail_all(req, cr->arena, K_POLICY_VIOLATION, "Too many partitions in one request",
                        resp);
    map_init(&names, cr->c->ahead.seed);
    enum err e = count_names(req, &names, &twice);
    if (e == ERR_NONE)
        e = create_each(cr, req, &names, &twice, resp);
    map_close(&names);
    if (e == ERR_NONE && cr->records.n > CONTROLLER_MAX_RECORDS)
        e = ERR_TOO_LARGE;
    else if (e == ERR_NONE && !req->validate_only)
        e = controller_append(cr->c, &cr->records, true, now);
    if (e == ERR_TOO_LARGE)
        return fail_all(req, cr->arena, K_POLICY_VIOLATION, "Too many records in one request",
                        resp);
    return e;
}

void controller_create_topics(struct controller *c, struct controller_op *op,
                              const struct create_topics_request *req, int16_t version,
                              struct arena *a, struct create_topics_response *resp, struct now now)
{
    if (!controller_begin(c, op))
        return;
    struct creation cr;
    creation_open(&cr, c, a, version);
    enum err e = create_all(&cr, req, resp, now);
    creation_close(&cr);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
