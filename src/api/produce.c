/* Produce (KIP-98, KIP-516, KIP-890): the checks of the whole request, then the replica manager.
 * Transactions are not served: a batch of one was never added to a transaction here. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/endian.h"
#include "core/replica/mentions.h"
#include "wire/error.h"

struct produce_state {
    struct produce_op op;
    const bool *repeated; /* of each entry of the request: not in op.parts, a later one counts */
    struct request *r;
    struct api *api;
};

static const struct produce_request *request_of(const struct request *r)
{
    return r->message;
}

/* ------------------------------------------------------------------ the answer */

static bool fill_errors(const struct produce_part *part,
                        struct produce_response_partition_produce_response *out, struct arena *a)
{
    if (part->record_errors_n == 0)
        return true;
    const struct wire_struct *s = &wire_produce_response_batch_index_and_error_message;
    out->record_errors.v = wire_array(s, a, (size_t)part->record_errors_n);
    if (out->record_errors.v == NULL)
        return false;
    out->record_errors.n = part->record_errors_n;
    for (int32_t i = 0; i < part->record_errors_n; i++) {
        out->record_errors.v[i].batch_index = part->record_errors[i].batch_index;
        out->record_errors.v[i].batch_index_error_message =
            api_text(part->record_errors[i].message);
    }
    return true;
}

static bool fill_partition(const struct produce_part *part, int16_t version,
                           struct produce_response_partition_produce_response *out, struct arena *a)
{
    out->index = part->index;
    out->error_code = part->error;
    out->base_offset = part->base_offset;
    out->log_append_time_ms = part->log_append_time_ms;
    out->log_start_offset = part->log_start_offset;
    out->error_message = api_text(part->error_message);
    if (version >= 10) {
        out->current_leader.leader_id = part->current_leader;
        out->current_leader.leader_epoch = part->current_leader_epoch;
    }
    return fill_errors(part, out, a);
}

/* Takes the entries' parts off *part. */
static bool fill_topic(const struct produce_request_topic_produce_data *in, const bool *repeated,
                       const struct produce_part **part, int16_t version,
                       struct produce_response_topic_produce_response *out, struct arena *a)
{
    out->name = in->name;
    out->topic_id = in->topic_id;
    out->partition_responses.v = wire_array(&wire_produce_response_partition_produce_response, a,
                                            (size_t)in->partition_data.n);
    if (out->partition_responses.v == NULL)
        return false;
    for (int32_t i = 0; i < in->partition_data.n; i++)
        if (!repeated[i] &&
            !fill_partition((*part)++, version,
                            &out->partition_responses.v[out->partition_responses.n++], a))
            return false;
    return true;
}

static bool fill_response(struct produce_state *st, struct produce_response *resp)
{
    const struct produce_request *req = request_of(st->r);
    struct arena *a = &st->r->arena;
    const struct produce_part *part = st->op.parts;
    const bool *repeated = st->repeated;
    wire_default(&wire_produce_response, resp);
    resp->responses.v =
        wire_array(&wire_produce_response_topic_produce_response, a, (size_t)req->topic_data.n);
    if (resp->responses.v == NULL)
        return false;
    for (int32_t i = 0; i < req->topic_data.n; i++) {
        const struct produce_request_topic_produce_data *in = &req->topic_data.v[i];
        struct produce_response_topic_produce_response *out = &resp->responses.v[resp->responses.n];
        if (!fill_topic(in, repeated, &part, st->r->api_version, out, a))
            return false;
        resp->responses.n += out->partition_responses.n > 0;
        repeated += in->partition_data.n;
    }
    return true;
}

static bool is_named(const struct produce_response *resp, int32_t id)
{
    for (int32_t i = 0; i < resp->node_endpoints.n; i++)
        if (resp->node_endpoints.v[i].node_id == id)
            return true;
    return false;
}

static bool name_leader(struct produce_state *st, int32_t id, struct produce_response *resp)
{
    struct produce_response_node_endpoint to;
    wire_default(&wire_produce_response_node_endpoint, &to);
    const struct image_broker *b = api_live_broker(st->api, st->r, id, &to.host, &to.port);
    if (b == NULL || is_named(resp, id))
        return true;
    if (resp->node_endpoints.v == NULL)
        resp->node_endpoints.v = wire_array(&wire_produce_response_node_endpoint, &st->r->arena,
                                            st->api->image->brokers.n);
    if (resp->node_endpoints.v == NULL)
        return false;
    to.node_id = id;
    to.rack = api_text(b->rack);
    resp->node_endpoints.v[resp->node_endpoints.n++] = to;
    return true;
}

/* KIP-951: where the leaders are that the answer names. False: out of memory. */
static bool name_leaders(struct produce_state *st, struct produce_response *resp)
{
    for (int32_t i = 0; i < st->op.parts_n && st->r->api_version >= 10; i++)
        if (st->op.parts[i].current_leader >= 0 &&
            !name_leader(st, st->op.parts[i].current_leader, resp))
            return false;
    return true;
}

static void answer(struct produce_state *st)
{
    struct request *r = st->r;
    struct produce_response resp;
    if (request_of(r)->acks == 0) { /* nobody listens; an error can only be shown by closing */
        for (int32_t i = 0; i < st->op.parts_n; i++) {
            if (st->op.parts[i].error != K_NONE) {
                request_close(r, kafka_error_name(st->op.parts[i].error));
                return;
            }
        }
        request_drop(r);
        return;
    }
    if (!fill_response(st, &resp) || !name_leaders(st, &resp)) {
        request_close(r, "out of memory");
        return;
    }
    request_answer(r, &msg_produce_response, &resp);
}

static void produce_done(struct produce_op *op)
{
    answer(CONTAINER_OF(op, struct produce_state, op));
}

/* ------------------------------------------------------------------ the request */

static void fail_all(struct produce_op *op, int16_t error, const char *message)
{
    for (int32_t i = 0; i < op->parts_n; i++) {
        op->parts[i].error = error;
        op->parts[i].error_message = message;
    }
}

/* Versions before zstd look at the codec first. */
static int16_t codec_error(const struct batch *first, int16_t version)
{
    if (version >= 7 || first->size_bytes == 0 || first->magic != 2)
        return K_NONE;
    if (batch_codec(first) >= CODEC_MAX)
        return K_UNKNOWN_SERVER_ERROR;
    return batch_codec(first) == CODEC_ZSTD ? K_UNSUPPORTED_COMPRESSION_TYPE : K_NONE;
}

static void init_part(struct produce_state *st, const struct produce_request_topic_produce_data *t,
                      const struct produce_request_partition_produce_data *p,
                      struct produce_part *part)
{
    const struct image *img = st->api->image;
    const bool by_id = st->r->api_version >= 13;
    const struct image_topic *topic =
        by_id ? image_topic_by_id(img, t->topic_id) : image_topic_named(img, t->name);
    *part = (struct produce_part){
        .topic = by_id && topic != NULL ? str_of(topic->name) : t->name,
        .topic_id = topic != NULL ? topic->id : t->topic_id,
        .index = p->index,
        .records = {p->records.p, p->records.n},
        .base_offset = -1,
        .log_append_time_ms = -1,
        .log_start_offset = -1,
        .current_leader = -1,
        .current_leader_epoch = -1,
    };
    batch_prepare(part->records, &part->facts);
    if (topic == NULL && by_id)
        part->error = K_UNKNOWN_TOPIC_ID;
    else if (!api_authorized(st->api, st->r, ACL_WRITE, ACL_TOPIC, part->topic))
        part->error = K_TOPIC_AUTHORIZATION_FAILED;
    else if (topic == NULL)
        part->error = K_UNKNOWN_TOPIC_OR_PARTITION;
    else
        part->error = codec_error(&part->facts.first, st->r->api_version);
}

static const char *malformed_text(const struct produce_part *part, struct arena *a)
{
    enum { TEXT_N = 96, LEGACY_OVERHEAD = 14 };
    char *text = arena_alloc(a, TEXT_N);
    const int32_t length = (int32_t)be32(part->records.p + 8);
    if (text == NULL)
        return NULL;
    if (length < LEGACY_OVERHEAD)
        snprintf(text, TEXT_N, "Record size %d is less than the minimum record overhead (%d)",
                 length, LEGACY_OVERHEAD);
    else
        snprintf(text, TEXT_N, "Invalid magic found in record: %d",
                 (int8_t)part->records.p[BATCH_MIN - 1]);
    return text;
}

/* Rows 1 and 2 of the produce checks: the request as a whole. Kafka looks for a transactional
 * batch, and what cannot be a batch before the first of those refuses everything. True when
 * refused. */
static bool refuse_request(struct produce_state *st)
{
    const struct produce_request *req = request_of(st->r);
    struct produce_op *op = &st->op;
    bool transactional = false;
    for (int32_t i = 0; i < op->parts_n && !transactional; i++) {
        if (op->parts[i].facts.malformed) {
            fail_all(op, K_CORRUPT_MESSAGE, malformed_text(&op->parts[i], op->arena));
            return true;
        }
        transactional = op->parts[i].facts.transactional;
    }
    if (!transactional)
        return false;
    if (req->transactional_id.n < 0 ||
        !api_authorized(st->api, st->r, ACL_WRITE, ACL_TRANSACTIONAL_ID, req->transactional_id)) {
        fail_all(op, K_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NULL);
        return true;
    }
    return false;
}

/* A batch that is transactional without a producer's id is as good as any other (Kafka). */
static void refuse_transactional(struct produce_state *st)
{
    const int16_t error = st->r->api_version >= 11 ? K_TRANSACTION_ABORTABLE : K_INVALID_TXN_STATE;
    for (int32_t i = 0; i < st->op.parts_n; i++) {
        struct produce_part *part = &st->op.parts[i];
        if (part->error == K_NONE && part->facts.transactional &&
            part->facts.first.producer_id >= 0) {
            part->error = error;
            part->error_message = "Partition was not added to the transaction";
        }
    }
}

/* Of a partition named twice the later entry counts and is answered, as in Kafka: the others leave
 * the parts. */
static enum err drop_repeated(struct produce_state *st)
{
    struct produce_op *op = &st->op;
    const size_t n = (size_t)op->parts_n;
    bool *repeated = arena_zalloc(op->arena, n + 1);
    struct mention *mentions = arena_array(op->arena, n, sizeof *mentions);
    if (repeated == NULL || mentions == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        mentions[i] = (struct mention){.topic = op->parts[i].topic,
                                       .topic_id = op->parts[i].topic_id,
                                       .index = op->parts[i].index};
    enum err e = mentions_find(mentions, n, op->arena);
    if (e != ERR_NONE)
        return e;
    op->parts_n = 0;
    for (size_t i = 0; i < n; i++) {
        repeated[i] = mentions[i].last != i;
        if (!repeated[i])
            op->parts[op->parts_n++] = op->parts[i];
    }
    st->repeated = repeated;
    return ERR_NONE;
}

static struct produce_state *state_new(struct api *api, struct request *r)
{
    const struct produce_request *req = request_of(r);
    size_t n = 0;
    for (int32_t i = 0; i < req->topic_data.n; i++)
        n += (size_t)req->topic_data.v[i].partition_data.n;
    struct produce_state *st = arena_zalloc(&r->arena, sizeof *st);
    struct produce_part *parts = arena_array(&r->arena, n, sizeof *parts);
    if (st == NULL || parts == NULL)
        return NULL;
    st->api = api;
    st->r = r;
    st->op = (struct produce_op){
        .arena = &r->arena,
        .acks = req->acks,
        .timeout_ms = req->timeout_ms,
        .internal_allowed = str_eq(r->client_id, STR_LIT("__admin_client")),
        .parts = parts,
        .done = produce_done,
    };
    for (int32_t i = 0; i < req->topic_data.n; i++) {
        const struct produce_request_topic_produce_data *t = &req->topic_data.v[i];
        for (int32_t k = 0; k < t->partition_data.n; k++)
            init_part(st, t, &t->partition_data.v[k], &parts[st->op.parts_n++]);
    }
    r->handler_state = st;
    return st;
}

void api_produce_start(struct api *api, struct request *r, struct now now)
{
    struct produce_state *st = state_new(api, r);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    const bool refused = refuse_request(st);
    if (drop_repeated(st) != ERR_NONE) {
        request_close(r, "out of memory");
        return;
    }
    if (refused || st->op.parts_n == 0) {
        answer(st);
        return;
    }
    refuse_transactional(st);
    replicas_produce(api->replicas, &st->op, now);
    request_staged(r);
}

void api_produce_cancel(struct request *r)
{
    struct produce_state *st = r->handler_state;
    replicas_produce_cancel(&st->op);
}
