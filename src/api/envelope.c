/* Envelope (KIP-590), the controller's side: a client's request that another broker sends on, with
 * who sent it and from where. It runs as if the client had sent it here; the answer's bytes go into
 * the Envelope's. */
#include "api/envelope.h"

#include "base/check.h"
#include "base/endian.h"
#include "wire/error.h"

static void answer(struct request *outer, int16_t error, struct bytes data)
{
    const struct envelope_response resp = {.response_data = data, .error_code = error};
    request_answer(outer, &msg_envelope_response, &resp);
}

static void inner_ended(struct request *outer, struct bytes data, const char *reason)
{
    const int16_t *refusal = outer->handler_state;
    if (*refusal != K_NONE)
        answer(outer, *refusal, BYTES_NULL);
    else if (data.n < 0)
        request_close(outer, reason);
    else
        answer(outer, K_NONE, data);
}

void api_envelope_refuse(struct request *inner, int16_t error)
{
    int16_t *refusal = inner->outer->handler_state;
    *refusal = error;
    request_close(inner, kafka_error_name(error));
}

/* "User:alice" of Kafka's DefaultKafkaPrincipalBuilder. */
static int16_t read_principal(struct request *inner, struct bytes in)
{
    struct default_principal_data p;
    size_t used;
    const int16_t version = in.n < 2 ? -1 : (int16_t)be16(in.p);
    if (version < msg_default_principal_data.min_version ||
        version > msg_default_principal_data.max_version ||
        wire_decode_prefix(&msg_default_principal_data, version, (struct bytes){in.p + 2, in.n - 2},
                           &inner->arena, &p, &used) != ERR_NONE)
        return K_PRINCIPAL_DESERIALIZATION_FAILURE;
    const int32_t n = p.type.n + 1 + p.name.n;
    char *text = arena_alloc(&inner->arena, (size_t)n);
    if (text == NULL)
        return K_UNKNOWN_SERVER_ERROR;
    memcpy(text, p.type.p, (size_t)p.type.n);
    text[p.type.n] = ':';
    memcpy(text + p.type.n + 1, p.name.p, (size_t)p.name.n);
    inner->principal = (struct str){text, n};
    return K_NONE;
}

/* UNSUPPORTED_VERSION tells the other side that its client's bytes are at fault, not its own. */
static int16_t read_request(struct api *api, struct request *inner, const struct api_entry **entry)
{
    enum { KEY_AND_VERSION_BYTES = 4 };
    if (inner->frame.n < KEY_AND_VERSION_BYTES)
        return K_UNSUPPORTED_VERSION;
    inner->api_key = (int16_t)be16(inner->frame.p);
    inner->api_version = (int16_t)be16(inner->frame.p + 2);
    const struct wire_message *m = wire_find(WIRE_REQUEST, inner->api_key);
    if (m == NULL || inner->api_version < m->min_version || inner->api_version > m->max_version)
        return K_UNSUPPORTED_VERSION;
    *entry = api_find(api, inner);
    if (*entry == NULL || ((*entry)->scope & API_FORWARDED) == 0)
        return K_INVALID_REQUEST;
    if (inner->api_version < (*entry)->min || inner->api_version > (*entry)->max ||
        api_read_header(inner, *entry) != ERR_NONE || api_read_body(inner) != ERR_NONE)
        return K_UNSUPPORTED_VERSION;
    return K_NONE;
}

/* Kafka's order of checks, but for the body, which it parses last of all. */
static int16_t unwrap(struct api *api, struct request *inner, const struct envelope_request *req,
                      const struct api_entry **entry)
{
    int16_t error = read_principal(inner, req->request_principal);
    if (error != K_NONE)
        return error;
    inner->client_address = api_client_address(req->client_host_address, &inner->arena);
    return inner->client_address == NULL ? K_INVALID_REQUEST : read_request(api, inner, entry);
}

void api_envelope_start(struct api *api, struct request *r, struct now now)
{
    const struct envelope_request *req = r->message;
    const struct api_entry *entry = NULL;
    if (!api_authorized(api, r, ACL_CLUSTER_ACTION, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        answer(r, K_CLUSTER_AUTHORIZATION_FAILED, BYTES_NULL);
        return;
    }
    r->handler_state = arena_zalloc(&r->arena, sizeof(int16_t));
    struct request *inner =
        r->handler_state == NULL ? NULL : request_within(r, req->request_data, inner_ended);
    if (inner == NULL) {
        request_close(r, "out of memory");
        return;
    }
    const int16_t error = unwrap(api, inner, req, &entry);
    if (error != K_NONE)
        api_envelope_refuse(inner, error);
    else
        entry->start(api, inner, now);
}
