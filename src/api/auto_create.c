#include "api/auto_create.h"

#include "wire/error.h"

enum { WAIT_MS = 5000 }; /* for a controller; Kafka does not wait at all */

/* ------------------------------------------------------------------ answers of another node */

/* Of each topic of create, found by its name: a controller answers in any order. */
static bool take_in_order(struct api_creation *c, const struct create_topics_response *resp)
{
    const int32_t n = c->create.topics.n;
    struct create_topics_response_creatable_topic_result *v = wire_array(
        &wire_create_topics_response_creatable_topic_result, &c->forward.r->arena, (size_t)n);
    struct map by_name;
    enum err e = v == NULL ? ERR_NOMEM : ERR_NONE;
    map_init(&by_name, c->forward.api->image->seed);
    for (int32_t i = 0; i < resp->topics.n && e == ERR_NONE; i++)
        e = map_put(&by_name, resp->topics.v[i].name.p, (size_t)resp->topics.v[i].name.n,
                    &resp->topics.v[i]);
    for (int32_t i = 0; i < n && e == ERR_NONE; i++) {
        const struct create_topics_response_creatable_topic_result *result =
            map_get_str(&by_name, c->create.topics.v[i].name);
        v[i].name = c->create.topics.v[i].name;
        v[i].error_code = result != NULL ? result->error_code : K_UNKNOWN_SERVER_ERROR;
    }
    map_close(&by_name);
    if (e != ERR_NONE)
        return false;
    c->created.topics.v = v;
    c->created.topics.n = n;
    return true;
}

static void envelope_done(struct api_forward *f, int16_t error, struct bytes answer)
{
    struct api_creation *c = CONTAINER_OF(f, struct api_creation, forward);
    struct create_topics_response resp;
    if (error == K_NONE &&
        (api_forward_read(f, &msg_create_topics_response, msg_create_topics_request.max_version,
                          answer, &resp) != ERR_NONE ||
         !take_in_order(c, &resp)))
        error = K_UNKNOWN_SERVER_ERROR;
    c->done(c, error);
}

static void plain_done(struct channel_call *call, enum err e, const void *response)
{
    struct api_forward *f = CONTAINER_OF(call, struct api_forward, call);
    struct api_creation *c = CONTAINER_OF(f, struct api_creation, forward);
    f->r->handler_state = NULL;
    if (e == ERR_NONE && !take_in_order(c, response))
        e = ERR_NOMEM;
    c->done(c, e == ERR_NONE      ? K_NONE
               : e == ERR_TIMEOUT ? K_REQUEST_TIMED_OUT
                                  : K_UNKNOWN_SERVER_ERROR);
}

static int16_t plain_error(const void *response)
{
    const struct create_topics_response *resp = response;
    return resp->topics.n > 0 ? resp->topics.v[0].error_code : K_NONE;
}

/* ------------------------------------------------------------------ asking another node */

/* CreateTopics with the header of the client's own request. */
static bool client_frame(const struct api_creation *c, struct bytes *frame)
{
    struct request *r = c->forward.r;
    const int16_t version = msg_create_topics_request.max_version;
    const struct request_header header = {.request_api_key = API_CREATE_TOPICS,
                                          .request_api_version = version,
                                          .correlation_id = r->correlation_id,
                                          .client_id = r->client_id};
    struct buf b;
    uint8_t *copy = NULL;
    buf_init(&b);
    if (wire_encode(&msg_request_header, wire_request_header_version(API_CREATE_TOPICS, version),
                    &header, &b) == ERR_NONE &&
        wire_encode(&msg_create_topics_request, version, &c->create, &b) == ERR_NONE)
        copy = arena_memdup(&r->arena, b.p, b.n);
    *frame = (struct bytes){copy, (int32_t)b.n};
    buf_close(&b);
    return copy != NULL;
}

static bool ask_for_client(struct api_creation *c)
{
    struct bytes frame;
    c->forward.done = envelope_done;
    return client_frame(c, &frame) && api_forward_frame(&c->forward, frame, WAIT_MS);
}

static void ask_for_us(struct api_creation *c)
{
    struct request *r = c->forward.r;
    c->forward.call = (struct channel_call){
        .api_key = API_CREATE_TOPICS,
        .request = &c->create,
        .deadline_us = r->arrival.mono_us + (int64_t)WAIT_MS * 1000,
        .error = plain_error,
        .done = plain_done,
    };
    r->handler_state = &c->forward;
    channel_call(c->forward.api->forwarding, &c->forward.call, r->arrival);
}

static bool ask_elsewhere(struct api_creation *c)
{
    c->create.timeout_ms = WAIT_MS;
    if (c->for_client)
        return ask_for_client(c);
    ask_for_us(c);
    return true;
}

/* ------------------------------------------------------------------ the controller here */

static void op_done(struct controller_op *op, int16_t error)
{
    struct api_creation *c = CONTAINER_OF(op, struct api_creation, forward.op);
    if (error == K_NOT_CONTROLLER && api_must_forward(c->forward.api, c->forward.r) &&
        ask_elsewhere(c))
        return;
    if (error != K_NONE)
        c->created.topics.n = 0;
    c->done(c, error);
}

bool api_create(struct api *api, struct request *r, struct api_creation *c, struct now now)
{
    const struct create_topics_request wanted = c->create;
    wire_default(&wire_create_topics_request, &c->create);
    wire_default(&wire_create_topics_response, &c->created);
    c->create.topics = wanted.topics;
    c->forward = (struct api_forward){.op.done = op_done, .api = api, .r = r};
    if (api_must_forward(api, r))
        return ask_elsewhere(c);
    controller_create_topics(api->controller, &c->forward.op, &c->create,
                             msg_create_topics_request.max_version, &r->arena, &c->created, now);
    return true;
}
