/* What brokers and controllers ask the active controller (KIP-497, KIP-631, KIP-730, KIP-858,
 * KIP-919). */
#include "api/api.h"
#include "wire/error.h"

struct node_state {
    struct controller_op op;
    union {
        struct broker_registration_response registration;
        struct broker_heartbeat_response heartbeat;
        struct allocate_producer_ids_response producer_ids;
        struct alter_partition_response alter_partition;
        struct controller_registration_response controller;
        struct assign_replicas_to_dirs_response directories;
    } response;
    struct request *r;
};

static struct node_state *state_new(struct request *r,
                                    void (*done)(struct controller_op *, int16_t))
{
    struct node_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return NULL;
    }
    st->r = r;
    st->op.done = done;
    return st;
}

static void registration_done(struct controller_op *op, int16_t error)
{
    struct node_state *st = CONTAINER_OF(op, struct node_state, op);
    if (error != K_NONE)
        st->response.registration.error_code = error;
    request_answer(st->r, &msg_broker_registration_response, &st->response.registration);
}

void api_broker_registration_start(struct api *api, struct request *r, struct now now)
{
    struct node_state *st = state_new(r, registration_done);
    if (st == NULL)
        return;
    wire_default(&wire_broker_registration_response, &st->response.registration);
    controller_register_broker(api->controller, &st->op, r->message, &st->response.registration,
                               now);
}

static void heartbeat_done(struct controller_op *op, int16_t error)
{
    struct node_state *st = CONTAINER_OF(op, struct node_state, op);
    if (error != K_NONE)
        st->response.heartbeat.error_code = error;
    request_answer(st->r, &msg_broker_heartbeat_response, &st->response.heartbeat);
}

void api_broker_heartbeat_start(struct api *api, struct request *r, struct now now)
{
    struct node_state *st = state_new(r, heartbeat_done);
    if (st == NULL)
        return;
    const struct broker_heartbeat_request *req = r->message;
    if (r->listener >= 0)
        request_mark(r, api_broker_mark(req->broker_id));
    wire_default(&wire_broker_heartbeat_response, &st->response.heartbeat);
    controller_heartbeat(api->controller, &st->op, r->message, &st->response.heartbeat, now);
}

static void producer_ids_done(struct controller_op *op, int16_t error)
{
    struct node_state *st = CONTAINER_OF(op, struct node_state, op);
    if (error != K_NONE)
        st->response.producer_ids.error_code = error;
    request_answer(st->r, &msg_allocate_producer_ids_response, &st->response.producer_ids);
}

void api_allocate_producer_ids_start(struct api *api, struct request *r, struct now now)
{
    struct node_state *st = state_new(r, producer_ids_done);
    if (st == NULL)
        return;
    wire_default(&wire_allocate_producer_ids_response, &st->response.producer_ids);
    controller_allocate_producer_ids(api->controller, &st->op, r->message,
                                     &st->response.producer_ids, now);
}

static void alter_partition_done(struct controller_op *op, int16_t error)
{
    struct node_state *st = CONTAINER_OF(op, struct node_state, op);
    if (error != K_NONE)
        st->response.alter_partition.error_code = error;
    request_answer(st->r, &msg_alter_partition_response, &st->response.alter_partition);
}

void api_alter_partition_start(struct api *api, struct request *r, struct now now)
{
    struct node_state *st = state_new(r, alter_partition_done);
    if (st == NULL)
        return;
    wire_default(&wire_alter_partition_response, &st->response.alter_partition);
    controller_alter_partition(api->controller, &st->op, r->message, r->api_version, &r->arena,
                               &st->response.alter_partition, now);
}

static void controller_registration_done(struct controller_op *op, int16_t error)
{
    struct node_state *st = CONTAINER_OF(op, struct node_state, op);
    if (error != K_NONE) {
        st->response.controller.error_code = error;
        st->response.controller.error_message = str_of(kafka_error_name(error));
    }
    request_answer(st->r, &msg_controller_registration_response, &st->response.controller);
}

void api_controller_registration_start(struct api *api, struct request *r, struct now now)
{
    struct node_state *st = state_new(r, controller_registration_done);
    if (st == NULL)
        return;
    wire_default(&wire_controller_registration_response, &st->response.controller);
    controller_register_controller(api->controller, &st->op, r->message, now);
}

static void directories_done(struct controller_op *op, int16_t error)
{
    struct node_state *st = CONTAINER_OF(op, struct node_state, op);
    if (error != K_NONE)
        st->response.directories.error_code = error;
    request_answer(st->r, &msg_assign_replicas_to_dirs_response, &st->response.directories);
}

void api_assign_replicas_to_dirs_start(struct api *api, struct request *r, struct now now)
{
    struct node_state *st = state_new(r, directories_done);
    if (st == NULL)
        return;
    wire_default(&wire_assign_replicas_to_dirs_response, &st->response.directories);
    controller_assign_replicas_to_dirs(api->controller, &st->op, r->message, &r->arena,
                                       &st->response.directories, now);
}
