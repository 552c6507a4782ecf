/* DescribeTopicPartitions (KIP-966): topics by name, a page of partitions at a time. A page ends in
 * the middle of a topic where its limit is reached; the cursor says where the next one begins.
 * (Kafka answers UNKNOWN_SERVER_ERROR for all when one name is empty; here that topic's name is
 * invalid as others are.) */
#include <stdlib.h>

#include "api/api.h"
#include "core/metadata/topic_name.h"
#include "wire/error.h"

struct names {
    struct str *v;
    int32_t n;
};

struct page {
    struct api *api;
    struct request *r;
    const struct describe_topic_partitions_request *req;
    struct describe_topic_partitions_response resp;
    struct names asked, denied; /* from the cursor on, in order; denied: not to be told of */
    int32_t room;               /* for partitions */
};

/* ------------------------------------------------------------------ which topics */

static bool behind_cursor(const struct page *pg, struct str name)
{
    return pg->req->cursor == NULL || str_cmp(name, pg->req->cursor->topic_name) >= 0;
}

static bool names_open(struct page *pg, size_t n)
{
    pg->asked.v = arena_array(&pg->r->arena, n, sizeof *pg->asked.v);
    pg->denied.v = arena_array(&pg->r->arena, n, sizeof *pg->denied.v);
    return pg->asked.v != NULL && pg->denied.v != NULL;
}

static int compare(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Sorted, each once. */
static void names_sort(struct names *names)
{
    int32_t n = 0;
    if (names->n > 0)
        qsort(names->v, (size_t)names->n, sizeof *names->v, compare);
    for (int32_t i = 0; i < names->n; i++)
        if (n == 0 || !str_eq(names->v[n - 1], names->v[i]))
            names->v[n++] = names->v[i];
    names->n = n;
}

static bool all_names(struct page *pg)
{
    const struct map *topics = &pg->api->image->topics_by_name;
    if (!names_open(pg, topics->n))
        return false;
    struct map_entry *e = NULL;
    while ((e = map_next(topics, e)) != NULL) {
        const struct str name = str_of(((const struct image_topic *)map_value(e))->name);
        if (behind_cursor(pg, name) &&
            api_authorized(pg->api, pg->r, ACL_DESCRIBE, ACL_TOPIC, name))
            pg->asked.v[pg->asked.n++] = name;
    }
    names_sort(&pg->asked);
    return true;
}

/* Takes the names that the principal may not see over to denied. */
static void split_denied(struct page *pg)
{
    int32_t n = 0;
    for (int32_t i = 0; i < pg->asked.n; i++) {
        const struct str name = pg->asked.v[i];
        if (api_authorized(pg->api, pg->r, ACL_DESCRIBE, ACL_TOPIC, name))
            pg->asked.v[n++] = name;
        else
            pg->denied.v[pg->denied.n++] = name;
    }
    pg->asked.n = n;
}

/* *error: the cursor is at none of the topics. */
static bool listed_names(struct page *pg, int16_t *error)
{
    const struct describe_topic_partitions_request *req = pg->req;
    if (!names_open(pg, (size_t)req->topics.n))
        return false;
    for (int32_t i = 0; i < req->topics.n; i++)
        if (behind_cursor(pg, req->topics.v[i].name))
            pg->asked.v[pg->asked.n++] = req->topics.v[i].name;
    names_sort(&pg->asked);
    if (req->cursor != NULL &&
        (pg->asked.n == 0 || !str_eq(pg->asked.v[0], req->cursor->topic_name)))
        *error = K_INVALID_REQUEST;
    split_denied(pg);
    return true;
}

/* ------------------------------------------------------------------ the answer */

static bool fill_partition(
    struct page *pg, const struct image_partition *p, int32_t index,
    struct describe_topic_partitions_response_describe_topic_partitions_response_partition *out)
{
    struct arena *a = &pg->r->arena;
    out->partition_index = index;
    out->leader_id =
        p->leader < 0 || api_replica_offline(pg->api, pg->r, p, p->leader) ? -1 : p->leader;
    out->leader_epoch = p->leader_epoch;
    out->offline_replicas.v = arena_array(a, (size_t)p->replicas_n, sizeof(int32_t));
    if (out->offline_replicas.v == NULL)
        return false;
    for (int32_t i = 0; i < p->replicas_n; i++)
        if (api_replica_offline(pg->api, pg->r, p, p->replicas[i]))
            out->offline_replicas.v[out->offline_replicas.n++] = p->replicas[i];
    return api_copy_ids(a, p->replicas, p->replicas_n, &out->replica_nodes.v,
                        &out->replica_nodes.n) &&
           api_copy_ids(a, p->isr, p->isr_n, &out->isr_nodes.v, &out->isr_nodes.n) &&
           api_copy_ids(a, p->elr, p->elr_n, &out->eligible_leader_replicas.v,
                        &out->eligible_leader_replicas.n) &&
           api_copy_ids(a, p->last_known_elr, p->last_known_elr_n, &out->last_known_elr.v,
                        &out->last_known_elr.n);
}

static bool set_cursor(struct page *pg, struct str name, int32_t index)
{
    pg->resp.next_cursor =
        wire_array(&wire_describe_topic_partitions_response_cursor, &pg->r->arena, 1);
    if (pg->resp.next_cursor == NULL)
        return false;
    pg->resp.next_cursor->topic_name = name;
    pg->resp.next_cursor->partition_index = index;
    return true;
}

/* As many of its partitions as there is room for. */
static bool
fill_topic(struct page *pg, const struct image_topic *t,
           struct describe_topic_partitions_response_describe_topic_partitions_response_topic *out)
{
    const struct describe_topic_partitions_request_cursor *cursor = pg->req->cursor;
    const bool at_cursor = cursor != NULL && str_eq(out->name, cursor->topic_name);
    const int32_t first = at_cursor ? cursor->partition_index : 0;
    const int32_t left = first < t->partitions_n ? t->partitions_n - first : 0;
    const int32_t n = left < pg->room ? left : pg->room;
    out->topic_id = t->id;
    out->partitions.v = wire_array(
        &wire_describe_topic_partitions_response_describe_topic_partitions_response_partition,
        &pg->r->arena, (size_t)n);
    if (out->partitions.v == NULL)
        return false;
    out->partitions.n = n;
    pg->room -= n;
    for (int32_t i = 0; i < n; i++)
        if (!fill_partition(pg, &t->partitions[first + i], first + i, &out->partitions.v[i]))
            return false;
    return n == left || set_cursor(pg, out->name, first + n);
}

static bool fill_name(struct page *pg, struct str name)
{
    const struct image_topic *t = image_topic_named(pg->api->image, name);
    struct describe_topic_partitions_response_describe_topic_partitions_response_topic *out =
        &pg->resp.topics.v[pg->resp.topics.n++];
    out->name = name;
    out->is_internal = topic_is_internal(name);
    out->topic_authorized_operations = api_authorized_operations(pg->api, pg->r, ACL_TOPIC, name);
    if (t != NULL)
        return fill_topic(pg, t, out);
    out->error_code =
        topic_name_valid(name) ? K_UNKNOWN_TOPIC_OR_PARTITION : K_INVALID_TOPIC_EXCEPTION;
    return true;
}

static bool fill(struct page *pg)
{
    const size_t n = (size_t)pg->asked.n + (size_t)pg->denied.n;
    pg->resp.topics.v = wire_array(
        &wire_describe_topic_partitions_response_describe_topic_partitions_response_topic,
        &pg->r->arena, n);
    if (pg->resp.topics.v == NULL)
        return false;
    for (int32_t i = 0; i < pg->asked.n && pg->resp.next_cursor == NULL; i++) {
        const bool ok =
            pg->room == 0 ? set_cursor(pg, pg->asked.v[i], 0) : fill_name(pg, pg->asked.v[i]);
        if (!ok)
            return false;
    }
    for (int32_t i = 0; i < pg->denied.n; i++) {
        pg->resp.topics.v[pg->resp.topics.n].name = pg->denied.v[i];
        pg->resp.topics.v[pg->resp.topics.n++].error_code = K_TOPIC_AUTHORIZATION_FAILED;
    }
    return true;
}

/* Every topic as the request names it. */
static bool refuse(struct page *pg, int16_t error)
{
    const int32_t n = pg->req->topics.n;
    pg->resp.topics.v = wire_array(
        &wire_describe_topic_partitions_response_describe_topic_partitions_response_topic,
        &pg->r->arena, (size_t)n);
    if (pg->resp.topics.v == NULL)
        return false;
    pg->resp.topics.n = n;
    for (int32_t i = 0; i < n; i++) {
        pg->resp.topics.v[i].name = pg->req->topics.v[i].name;
        pg->resp.topics.v[i].error_code = error;
    }
    return true;
}

static bool answer(struct page *pg)
{
    int16_t error = K_NONE;
    if (pg->req->cursor != NULL && pg->req->cursor->partition_index < 0)
        return refuse(pg, K_INVALID_REQUEST);
    if (!(pg->req->topics.n == 0 ? all_names(pg) : listed_names(pg, &error)))
        return false;
    return error == K_NONE ? fill(pg) : refuse(pg, error);
}

void api_describe_topic_partitions_start(struct api *api, struct request *r, struct now now)
{
    (void)now;
    struct page pg = {.api = api, .r = r, .req = r->message};
    const int64_t most = config_int(api->config, "max.request.partition.size.limit");
    const int32_t limit = pg.req->response_partition_limit;
    pg.room = limit < 1 ? 1 : limit < most ? limit : (int32_t)most;
    wire_default(&wire_describe_topic_partitions_response, &pg.resp);
    if (answer(&pg))
        request_answer(r, &msg_describe_topic_partitions_response, &pg.resp);
    else
        request_close(r, "out of memory");
}
