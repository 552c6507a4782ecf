#include "api/forward.h"

#include "api/envelope.h"
#include "base/endian.h"
#include "wire/error.h"

enum { FORWARD_MAX_MS = 60 * 1000 }; /* as Kafka's channel */

bool api_is_for_controller(const struct api *api, const struct request *r)
{
    return r->outer != NULL || api_scope(api, r->listener) == API_NODES;
}

bool api_must_forward(const struct api *api, const struct request *r)
{
    return api->forwarding != NULL && !api_is_for_controller(api, r) &&
           (api->controller == NULL || !controller_is_active(api->controller));
}

/* ------------------------------------------------------------------ the answer */

/* As Kafka: the client learns nothing of what is wrong between the nodes. */
static int16_t client_error(enum err e, const struct envelope_response *resp)
{
    if (e == ERR_TIMEOUT || e == ERR_CANCELLED)
        return K_REQUEST_TIMED_OUT;
    if (e == ERR_UNSUPPORTED)
        return K_UNSUPPORTED_VERSION;
    if (e != ERR_NONE)
        return K_UNKNOWN_SERVER_ERROR;
    return resp->error_code == K_NONE || resp->error_code == K_UNSUPPORTED_VERSION
               ? resp->error_code
               : K_UNKNOWN_SERVER_ERROR;
}

/* Whose answer it is stands in its first four bytes. */
static bool is_answer_to(const struct request *r, struct bytes answer)
{
    return answer.n >= 4 && (int32_t)be32(answer.p) == r->correlation_id;
}

static void envelope_done(struct channel_call *call, enum err e, const void *response)
{
    struct api_forward *f = CONTAINER_OF(call, struct api_forward, call);
    const struct envelope_response *resp = response;
    struct bytes answer = resp != NULL ? resp->response_data : BYTES_NULL;
    int16_t error = client_error(e, resp);
    f->r->handler_state = NULL;
    if (error == K_NONE && !is_answer_to(f->r, answer))
        error = K_UNKNOWN_SERVER_ERROR;
    if (error == K_UNSUPPORTED_VERSION)
        request_close(f->r, "the controller does not serve this version");
    else
        f->done(f, error, answer);
}

static int16_t envelope_error(const void *response)
{
    return ((const struct envelope_response *)response)->error_code;
}

enum err api_forward_read(const struct api_forward *f, const struct wire_message *m,
                          int16_t version, struct bytes answer, void *response)
{
    struct response_header header;
    size_t used;
    enum err e =
        wire_decode_prefix(&msg_response_header, wire_response_header_version(m->api_key, version),
                           answer, &f->r->arena, &header, &used);
    if (e != ERR_NONE)
        return e;
    return wire_decode(m, version, (struct bytes){answer.p + used, answer.n - (int32_t)used},
                       &f->r->arena, response);
}

/* ------------------------------------------------------------------ the way */

/* "User:alice" as Kafka's brokers send it to each other. */
static bool write_principal(struct request *r, struct bytes *out)
{
    const char *colon = memchr(r->principal.p, ':', (size_t)r->principal.n);
    const int32_t type_n = colon == NULL ? 0 : (int32_t)(colon - r->principal.p);
    const int16_t version = msg_default_principal_data.max_version;
    const struct default_principal_data p = {
        .type = {r->principal.p, type_n},
        .name = {r->principal.p + type_n + 1, r->principal.n - type_n - 1},
    };
    struct buf b;
    uint8_t head[2];
    put_be16(head, (uint16_t)version);
    buf_init(&b);
    uint8_t *copy = NULL;
    if (buf_append(&b, head, sizeof head) == ERR_NONE &&
        wire_encode(&msg_default_principal_data, version, &p, &b) == ERR_NONE)
        copy = arena_memdup(&r->arena, b.p, b.n);
    *out = (struct bytes){copy, (int32_t)b.n};
    buf_close(&b);
    return copy != NULL;
}

static bool write_address(struct request *r, struct bytes *out)
{
    enum { ADDRESS_BYTES = 16 };
    uint8_t *p = arena_alloc(&r->arena, ADDRESS_BYTES);
    *out = (struct bytes){p, p == NULL ? 0 : (int32_t)api_client_bytes(r, p)};
    return p != NULL;
}

bool api_forward_frame(struct api_forward *f, struct bytes frame, int64_t timeout_ms)
{
    struct request *r = f->r;
    const int64_t most_ms =
        timeout_ms > 0 && timeout_ms < FORWARD_MAX_MS ? timeout_ms : FORWARD_MAX_MS;
    wire_default(&wire_envelope_request, &f->envelope);
    f->envelope.request_data = frame;
    if (!write_principal(r, &f->envelope.request_principal) ||
        !write_address(r, &f->envelope.client_host_address))
        return false;
    f->call = (struct channel_call){
        .api_key = API_ENVELOPE,
        .request = &f->envelope,
        .deadline_us = r->arrival.mono_us + most_ms * 1000,
        .error = envelope_error,
        .done = envelope_done,
    };
    r->handler_state = f;
    channel_call(f->api->forwarding, &f->call, r->arrival);
    return true;
}

void api_forward_cancel(struct request *r)
{
    struct api_forward *f = r->handler_state;
    if (f != NULL)
        channel_cancel(&f->call);
}

/* ------------------------------------------------------------------ whole requests */

static void op_done(struct api_forward *f, int16_t error, struct bytes answer)
{
    if (error == K_NONE)
        request_answer_whole(f->r, answer);
    else
        f->op.done(&f->op, error);
}

static void send_whole(struct api_forward *f)
{
    if (!api_forward_frame(f, f->r->frame, f->timeout_ms))
        request_close(f->r, "out of memory");
}

bool api_forward(struct api *api, struct request *r, struct api_forward *f,
                 void (*done)(struct controller_op *op, int16_t error), int64_t timeout_ms)
{
    *f = (struct api_forward){
        .op.done = done, .api = api, .r = r, .timeout_ms = timeout_ms, .done = op_done};
    if (!api_must_forward(api, r))
        return false;
    send_whole(f);
    return true;
}

bool api_forward_again(struct api_forward *f, int16_t error)
{
    if (error != K_NOT_CONTROLLER)
        return false;
    if (f->r->outer != NULL)
        api_envelope_refuse(f->r, error);
    else if (api_must_forward(f->api, f->r))
        send_whole(f);
    else
        return false;
    return true;
}

static void refuse_done(struct api_forward *f, int16_t error, struct bytes answer)
{
    if (error == K_NONE)
        request_answer_whole(f->r, answer);
    else
        f->refuse(f->r, error);
}

bool api_forward_to_leader(struct api *api, struct request *r, int64_t timeout_ms,
                           void (*refuse)(struct request *r, int16_t error))
{
    if (api->raft != NULL && raft_state(api->raft) == RAFT_LEADER)
        return false;
    if (r->outer != NULL) {
        api_envelope_refuse(r, K_NOT_CONTROLLER);
        return true;
    }
    if (!api_must_forward(api, r))
        return false;
    struct api_forward *f = arena_zalloc(&r->arena, sizeof *f);
    if (f == NULL) {
        request_close(r, "out of memory");
        return true;
    }
    *f = (struct api_forward){
        .api = api, .r = r, .refuse = refuse, .timeout_ms = timeout_ms, .done = refuse_done};
    send_whole(f);
    return true;
}
