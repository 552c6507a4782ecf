/* Consumers: each reads partitions from where it was on, sometimes all over again; one with a rack
 * goes to the replica that the leader names. Nothing is served that is not committed (16), and what
 * was told to be the end is never told to be less (26). */
#include <stdio.h>

#include "base/check.h"
#include "client.h"
#include "ghost.h"
#include "wire/batch.h"
#include "wire/error.h"

enum { LATEST = -1, READ_COMMITTED = 1, VERSION_EPOCH = 4 };

/* ------------------------------------------------------------------ Fetch */

void consumer_fetch(struct client *c, struct world *w, struct cluster *cl, int64_t offset)
{
    char rack[16];
    struct fetch_request_fetch_partition part;
    wire_default(&wire_fetch_request_fetch_partition, &part);
    part.partition = c->partition;
    part.fetch_offset = offset;
    part.partition_max_bytes = 1 + (int32_t)rng_below(&cl->rng, 100000);
    struct fetch_request_fetch_topic topic = {.topic_id = c->topic_id};
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    struct fetch_request req;
    wire_default(&wire_fetch_request, &req);
    req.max_wait_ms = (int32_t)rng_below(&cl->rng, 100);
    req.min_bytes = (int32_t)rng_below(&cl->rng, 2);
    req.isolation_level = (int8_t)rng_below(&cl->rng, 2);
    req.topics.v = &topic;
    req.topics.n = 1;
    if (c->rack > 0) {
        snprintf(rack, sizeof rack, "rack%d", c->rack);
        req.rack_id = str_of(rack);
    }
    c->isolation_level = req.isolation_level;
    client_send(c, w, API_FETCH, client_version(cl, API_FETCH, 13), &req);
}

/* 16: everything served is below the high watermark, here and in truth. */
static void check_served(const struct client *c, const struct fetch_response_partition_data *p)
{
    struct bytes in = {p->records.p, p->records.n};
    struct batch b;
    if (p->last_stable_offset > p->high_watermark)
        violation("partition %d is served with LSO %lld, HW %lld (16)", c->partition,
                  (long long)p->last_stable_offset, (long long)p->high_watermark);
    while (in.n > 0 && batch_parse(in, &b) == ERR_NONE) {
        if (c->isolation_level == READ_COMMITTED && batch_last_offset(&b) >= p->last_stable_offset)
            violation("partition %d: offset %lld was served at an LSO of %lld (16)", c->partition,
                      (long long)batch_last_offset(&b), (long long)p->last_stable_offset);
        ghost_check_served(c->topic_id, c->partition, &b);
        in.p += b.size_bytes;
        in.n -= (int32_t)b.size_bytes;
    }
}

int64_t consumer_fetched(struct client *c, struct cluster *cl, const struct fetch_response *resp,
                         int64_t position)
{
    if (resp->error_code != K_NONE || resp->responses.n != 1)
        return -1;
    const struct fetch_response_partition_data *p = &resp->responses.v[0].partitions.v[0];
    client_refused(c, p->error_code);
    if (p->error_code != K_NONE)
        return -1;
    check_served(c, p);
    return model_fetched(&cl->model, client_model(c, cl), p, position);
}

/* ------------------------------------------------------------------ ListOffsets */

void consumer_ask(struct client *c, struct world *w, struct cluster *cl, int64_t timestamp)
{
    struct list_offsets_request_list_offsets_partition part;
    wire_default(&wire_list_offsets_request_list_offsets_partition, &part);
    part.partition_index = c->partition;
    part.timestamp = c->asked = timestamp;
    struct list_offsets_request_list_offsets_topic topic = {.name =
                                                                str_of(cl->topics[c->topic].name)};
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    struct list_offsets_request req;
    wire_default(&wire_list_offsets_request, &req);
    req.replica_id = -1;
    req.topics.v = &topic;
    req.topics.n = 1;
    c->end = client_model(c, cl)->end;
    client_send(c, w, API_LIST_OFFSETS, client_version(cl, API_LIST_OFFSETS, 1), &req);
}

/* It is asked by name: of a topic that was deleted another may have been meant. */
static bool is_meant(const struct client *c, const struct cluster *cl)
{
    return cl->topics[c->topic].gone_n == 0;
}

static const struct list_offsets_response_list_offsets_partition_response *
answer_of(struct client *c, const struct list_offsets_response *resp)
{
    const struct list_offsets_response_list_offsets_partition_response *p =
        &resp->topics.v[0].partitions.v[0];
    client_refused(c, p->error_code);
    return p->error_code == K_NONE ? p : NULL;
}

int64_t consumer_start_told(struct client *c, struct cluster *cl,
                            const struct list_offsets_response *resp)
{
    const struct list_offsets_response_list_offsets_partition_response *p = answer_of(c, resp);
    if (p == NULL)
        return -1;
    if (is_meant(c, cl))
        model_start(client_model(c, cl), p->offset);
    return p->offset;
}

static void end_told(struct client *c, struct cluster *cl, const struct list_offsets_response *resp)
{
    const struct list_offsets_response_list_offsets_partition_response *p = answer_of(c, resp);
    if (p != NULL && c->version >= VERSION_EPOCH && is_meant(c, cl))
        model_end_told(client_model(c, cl), &c->end,
                       (struct model_told){p->leader_epoch, p->offset});
}

/* ------------------------------------------------------------------ a consumer */

void consumer_begin(struct client *c, struct world *w, struct cluster *cl)
{
    if (!c->settled && !client_pick_partition(c, w, cl))
        return;
    if (!uuid_eq(c->position_topic[c->topic], c->topic_id)) {
        c->position_topic[c->topic] = c->topic_id;
        memset(c->position[c->topic], 0, sizeof c->position[c->topic]);
    }
    const int64_t position = c->position[c->topic][c->partition];
    if (!c->settled && position < 0)
        consumer_ask(c, w, cl, LIST_OFFSETS_EARLIEST);
    else if (!c->settled && rng_percent(&cl->rng, 5))
        consumer_ask(c, w, cl, LATEST);
    else
        consumer_fetch(c, w, cl, position);
}

/* It stays at that replica for a while, or goes back to the leader. */
static void settle(struct client *c, struct cluster *cl, int32_t preferred)
{
    c->settled = preferred >= 0;
    c->moves = true;
    if (c->settled) {
        c->replica = (size_t)preferred - 1;
        CHECK(c->replica < cl->fleet->n);
    }
}

static void consumed(struct client *c, struct cluster *cl, const struct fetch_response *resp)
{
    int64_t *position = &c->position[c->topic][c->partition];
    const int64_t next = consumer_fetched(c, cl, resp, *position);
    *position = !rng_percent(&cl->rng, 5) ? next : -1; /* sometimes all over again */
    if (c->settled && (*position < 0 || rng_percent(&cl->rng, 10)))
        settle(c, cl, -1);
    else if (next >= 0 && *position >= 0 &&
             resp->responses.v[0].partitions.v[0].preferred_read_replica >= 0)
        settle(c, cl, resp->responses.v[0].partitions.v[0].preferred_read_replica);
}

void consumer_handle(struct client *c, struct cluster *cl, const void *answer)
{
    if (c->api_key == API_FETCH)
        consumed(c, cl, answer);
    else if (c->asked == LIST_OFFSETS_EARLIEST)
        c->position[c->topic][c->partition] = consumer_start_told(c, cl, answer);
    else
        end_told(c, cl, answer);
}
