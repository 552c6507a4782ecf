/* Metadata (KIP-4, KIP-204, KIP-430, KIP-516): answered from the committed image. Unknown topics
 * are created when the broker and the request allow it, and the answer waits for that: a client
 * that asks once gets a topic it can use at once, where Kafka answers UNKNOWN_TOPIC_OR_PARTITION
 * first. */
#include "api/auto_create.h"
#include "api/internal_topic.h"
#include "core/metadata/topic_name.h"
#include "wire/error.h"

struct metadata_state {
    struct api_creation creation; /* in the order of the request */
    int32_t created_next;         /* the first of what was created that is not answered yet */
};

static const struct metadata_request *request_of(const struct request *r)
{
    return r->message;
}

/* Kafka's MetadataRequest: no list means all; in v0 an empty one too. */
static bool wants_all(const struct request *r)
{
    const struct metadata_request *req = request_of(r);
    return req->topics.n < 0 || (r->api_version == 0 && req->topics.n == 0);
}

/* v10 and v11 have the fields of topic ids, but Kafka refuses requests that use them. */
static bool uses_ids_too_early(const struct request *r)
{
    const struct metadata_request *req = request_of(r);
    if (r->api_version < 10 || r->api_version > 11)
        return false;
    for (int32_t i = 0; i < req->topics.n; i++)
        if (req->topics.v[i].name.n < 0 || !uuid_is_zero(req->topics.v[i].topic_id))
            return true;
    return false;
}

/* A topic named twice is created and answered once. Marks by a map: a request may name thousands.
 */
static enum err drop_repeats(const struct api *api, struct metadata_request *req)
{
    struct map seen;
    enum err e = ERR_NONE;
    int32_t n = 0;
    map_init(&seen, api->image->seed);
    for (int32_t i = 0; i < req->topics.n && e == ERR_NONE; i++) {
        const struct metadata_request_metadata_request_topic *t = &req->topics.v[i];
        const bool by_id = !uuid_is_zero(t->topic_id);
        const void *key = by_id ? (const void *)t->topic_id.b : t->name.p;
        const size_t key_n = by_id ? sizeof t->topic_id.b : (size_t)(t->name.n < 0 ? 0 : t->name.n);
        if (map_get(&seen, key, key_n) != NULL)
            continue;
        e = map_put(&seen, key, key_n, req);
        req->topics.v[n++] = *t;
    }
    map_close(&seen);
    if (req->topics.n > 0)
        req->topics.n = n;
    return e;
}

/* ------------------------------------------------------------------ the answer */

/* From version 6 on a leader that is not on the client's listener is told of as that (KAFKA-6863).
 */
static int16_t leader_error(struct api *api, const struct request *r,
                            const struct image_partition *p)
{
    struct str host;
    int32_t port;
    if (p->leader < 0)
        return K_LEADER_NOT_AVAILABLE;
    if (!api_replica_offline(api, r, p, p->leader))
        return K_NONE;
    const struct image_broker *b = image_broker(api->image, p->leader);
    return r->api_version >= 6 && b != NULL && !b->fenced &&
                   !api_broker_endpoint(api, r, b, &host, &port)
               ? K_LISTENER_NOT_FOUND
               : K_LEADER_NOT_AVAILABLE;
}

static bool fill_partition(struct api *api, struct request *r, const struct image_partition *p,
                           int32_t index, struct metadata_response_metadata_response_partition *out)
{
    struct arena *a = &r->arena;
    out->partition_index = index;
    out->leader_id = p->leader;
    out->leader_epoch = p->leader_epoch;
    out->error_code = leader_error(api, r, p);
    if (out->error_code != K_NONE)
        out->leader_id = -1;
    out->offline_replicas.v = arena_array(a, (size_t)p->replicas_n, sizeof(int32_t));
    if (out->offline_replicas.v == NULL)
        return false;
    for (int32_t i = 0; i < p->replicas_n; i++)
        if (api_replica_offline(api, r, p, p->replicas[i]))
            out->offline_replicas.v[out->offline_replicas.n++] = p->replicas[i];
    return api_copy_ids(a, p->replicas, p->replicas_n, &out->replica_nodes.v,
                        &out->replica_nodes.n) &&
           api_copy_ids(a, p->isr, p->isr_n, &out->isr_nodes.v, &out->isr_nodes.n);
}

static bool fill_topic(struct api *api, struct request *r, const struct image_topic *t,
                       struct metadata_response_metadata_response_topic *out)
{
    struct arena *a = &r->arena;
    out->name = str_of(t->name);
    out->topic_id = t->id;
    out->is_internal = topic_is_internal(out->name);
    out->partitions.v =
        wire_array(&wire_metadata_response_metadata_response_partition, a, (size_t)t->partitions_n);
    if (out->partitions.v == NULL)
        return false;
    out->partitions.n = t->partitions_n;
    for (int32_t i = 0; i < t->partitions_n; i++)
        if (!fill_partition(api, r, &t->partitions[i], i, &out->partitions.v[i]))
            return false;
    if (request_of(r)->include_topic_authorized_operations)
        out->topic_authorized_operations = api_authorized_operations(api, r, ACL_TOPIC, out->name);
    return true;
}

static bool fill_all(struct api *api, struct request *r, struct metadata_response *resp)
{
    const struct image *img = api->image;
    resp->topics.v = wire_array(&wire_metadata_response_metadata_response_topic, &r->arena,
                                img->topics_by_name.n);
    if (resp->topics.v == NULL)
        return false;
    struct map_entry *e = NULL;
    while ((e = map_next(&img->topics_by_name, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        if (!api_authorized(api, r, ACL_DESCRIBE, ACL_TOPIC, str_of(t->name)))
            continue;
        if (!fill_topic(api, r, t, &resp->topics.v[resp->topics.n++]))
            return false;
    }
    return true;
}

/* The error of a name that no topic has. What was created is walked along with the request: asked
 * once for each of its names, in turn. */
static int16_t missing_error(struct metadata_state *st, struct str name)
{
    const struct create_topics_response *created = st == NULL ? NULL : &st->creation.created;
    if (created == NULL || st->created_next == created->topics.n ||
        !str_eq(created->topics.v[st->created_next].name, name))
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    /* Kafka gives clients of Metadata only errors they know there. */
    const int16_t error = created->topics.v[st->created_next++].error_code;
    if (error == K_TOPIC_ALREADY_EXISTS || error == K_NONE)
        return K_LEADER_NOT_AVAILABLE;
    return error == K_INVALID_REPLICATION_FACTOR || error == K_INVALID_TOPIC_EXCEPTION
               ? error
               : K_UNKNOWN_TOPIC_OR_PARTITION;
}

static bool fill_named(struct api *api, struct request *r, struct metadata_state *st,
                       const struct metadata_request_metadata_request_topic *in,
                       struct metadata_response_metadata_response_topic *out)
{
    const bool by_id = !uuid_is_zero(in->topic_id);
    const struct image_topic *t = by_id ? image_topic_by_id(api->image, in->topic_id)
                                        : image_topic_named(api->image, in->name);
    const int16_t missing = by_id ? K_UNKNOWN_TOPIC_ID : missing_error(st, in->name);
    out->name = by_id ? STR_NULL : in->name;
    out->topic_id = in->topic_id;
    if (!by_id && !api_authorized(api, r, ACL_DESCRIBE, ACL_TOPIC, in->name)) {
        out->error_code = K_TOPIC_AUTHORIZATION_FAILED;
        return true;
    }
    if (t != NULL)
        return fill_topic(api, r, t, out);
    out->error_code = missing;
    if (by_id)
        return true;
    out->is_internal = topic_is_internal(in->name);
    if (!topic_name_valid(in->name))
        out->error_code = K_INVALID_TOPIC_EXCEPTION;
    if (request_of(r)->include_topic_authorized_operations)
        out->topic_authorized_operations = api_authorized_operations(api, r, ACL_TOPIC, in->name);
    return true;
}

static bool fill_list(struct api *api, struct request *r, struct metadata_state *st,
                      struct metadata_response *resp)
{
    const struct metadata_request *req = request_of(r);
    resp->topics.v = wire_array(&wire_metadata_response_metadata_response_topic, &r->arena,
                                (size_t)req->topics.n);
    if (resp->topics.v == NULL)
        return false;
    resp->topics.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++)
        if (!fill_named(api, r, st, &req->topics.v[i], &resp->topics.v[i]))
            return false;
    return true;
}

static bool fill_brokers(struct api *api, struct request *r, struct metadata_response *resp)
{
    const struct map *brokers = &api->image->brokers;
    resp->brokers.v =
        wire_array(&wire_metadata_response_metadata_response_broker, &r->arena, brokers->n);
    if (resp->brokers.v == NULL)
        return false;
    struct map_entry *e = NULL;
    while ((e = map_next(brokers, e)) != NULL) {
        const struct image_broker *b = map_value(e);
        struct metadata_response_metadata_response_broker *out = &resp->brokers.v[resp->brokers.n];
        if (b->fenced || !api_broker_endpoint(api, r, b, &out->host, &out->port))
            continue;
        out->node_id = b->id;
        out->rack = api_text(b->rack);
        resp->brokers.n++;
    }
    return true;
}

static void answer(struct api *api, struct request *r, struct metadata_state *st)
{
    struct metadata_response resp;
    wire_default(&wire_metadata_response, &resp);
    resp.cluster_id = str_of(api->cluster_id);
    resp.controller_id = api_controller_id(api, r);
    if (!fill_brokers(api, r, &resp) ||
        !(wants_all(r) ? fill_all(api, r, &resp) : fill_list(api, r, st, &resp))) {
        request_close(r, "out of memory");
        return;
    }
    if (request_of(r)->include_cluster_authorized_operations)
        resp.cluster_authorized_operations =
            api_authorized_operations(api, r, ACL_CLUSTER, ACL_CLUSTER_NAME);
    request_answer(r, &msg_metadata_response, &resp);
}

/* Kafka's error answer holds nothing but the topics, each with the error. */
static void answer_invalid(struct request *r)
{
    const struct metadata_request *req = request_of(r);
    struct metadata_response resp;
    wire_default(&wire_metadata_response, &resp);
    resp.topics.v = wire_array(&wire_metadata_response_metadata_response_topic, &r->arena,
                               (size_t)req->topics.n);
    if (resp.topics.v == NULL) {
        request_close(r, "out of memory");
        return;
    }
    resp.topics.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct metadata_request_metadata_request_topic *in = &req->topics.v[i];
        resp.topics.v[i].name = in->name.n < 0 ? STR_LIT("") : in->name;
        resp.topics.v[i].topic_id = in->topic_id;
        resp.topics.v[i].error_code = K_INVALID_REQUEST;
    }
    request_answer(r, &msg_metadata_response, &resp);
}

/* ------------------------------------------------------------------ auto-creation */

static void created(struct api_creation *c, int16_t error)
{
    struct metadata_state *st = CONTAINER_OF(c, struct metadata_state, creation);
    (void)error; /* the topics say what there is now */
    answer(c->forward.api, c->forward.r, st);
}

static bool to_create(struct api *api, const struct request *r, struct str name)
{
    return name.n >= 0 && topic_name_valid(name) && image_topic_named(api->image, name) == NULL &&
           (api_authorized(api, r, ACL_CREATE, ACL_CLUSTER, ACL_CLUSTER_NAME) ||
            api_authorized(api, r, ACL_CREATE, ACL_TOPIC, name));
}

/* True when an answer waits for the creation of what is missing. */
static bool create_missing(struct api *api, struct request *r, struct now now)
{
    const struct metadata_request *req = request_of(r);
    if (wants_all(r) || !req->allow_auto_topic_creation ||
        !config_bool(api->config, "auto.create.topics.enable"))
        return false;
    struct metadata_state *st = arena_zalloc(&r->arena, sizeof *st);
    struct create_topics_request_creatable_topic *v =
        wire_array(&wire_create_topics_request_creatable_topic, &r->arena, (size_t)req->topics.n);
    if (st == NULL || v == NULL)
        return false; /* answered without them */
    int32_t n = 0;
    for (int32_t i = 0; i < req->topics.n; i++) {
        if (!uuid_is_zero(req->topics.v[i].topic_id) || !to_create(api, r, req->topics.v[i].name))
            continue;
        if (api_topic_to_create(api, req->topics.v[i].name, &r->arena, &v[n++]) != ERR_NONE)
            return false;
    }
    if (n == 0)
        return false;
    st->creation.create.topics.v = v;
    st->creation.create.topics.n = n;
    st->creation.for_client = true;
    st->creation.done = created;
    return api_create(api, r, &st->creation, now); /* else answered without them */
}

void api_metadata_start(struct api *api, struct request *r, struct now now)
{
    if (uses_ids_too_early(r)) {
        answer_invalid(r);
        return;
    }
    if (drop_repeats(api, r->message) != ERR_NONE) {
        request_close(r, "out of memory");
        return;
    }
    if (!create_missing(api, r, now))
        answer(api, r, NULL);
}
