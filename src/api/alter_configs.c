/* AlterConfigs (KIP-133) and IncrementalAlterConfigs (KIP-339): this broker refuses what it can
 * judge itself, the controller decides on the rest. */
#include "api/alter_configs.h"
#include "api/envelope.h"
#include "core/broker/check_configs.h"
#include "wire/error.h"

/* ------------------------------------------------------------------ the answer */

static bool answer_incremental(struct alter_configs_state *st)
{
    struct incremental_alter_configs_response resp;
    wire_default(&wire_incremental_alter_configs_response, &resp);
    resp.responses.v =
        wire_array(&wire_incremental_alter_configs_response_alter_configs_resource_response,
                   &st->forward.r->arena, (size_t)st->n);
    if (resp.responses.v == NULL)
        return false;
    resp.responses.n = st->n;
    for (int32_t i = 0; i < st->n; i++) {
        const struct config_change *c = &st->changes[i];
        resp.responses.v[i] =
            (struct incremental_alter_configs_response_alter_configs_resource_response){
                c->error, c->message, c->type, c->name};
    }
    request_answer(st->forward.r, &msg_incremental_alter_configs_response, &resp);
    return true;
}

static bool answer_alter(struct alter_configs_state *st)
{
    struct alter_configs_response resp;
    wire_default(&wire_alter_configs_response, &resp);
    resp.responses.v = wire_array(&wire_alter_configs_response_alter_configs_resource_response,
                                  &st->forward.r->arena, (size_t)st->n);
    if (resp.responses.v == NULL)
        return false;
    resp.responses.n = st->n;
    for (int32_t i = 0; i < st->n; i++) {
        const struct config_change *c = &st->changes[i];
        resp.responses.v[i] = (struct alter_configs_response_alter_configs_resource_response){
            c->error, c->message, c->type, c->name};
    }
    request_answer(st->forward.r, &msg_alter_configs_response, &resp);
    return true;
}

/* The controller has resigned. True: another one is asked. */
static bool ask_again(struct alter_configs_state *st)
{
    const struct api_forward *f = &st->forward;
    if (f->r->outer != NULL)
        api_envelope_refuse(f->r, K_NOT_CONTROLLER);
    else if (api_must_forward(f->api, f->r))
        alter_configs_forward(st);
    else
        return false;
    return true;
}

static void alter_done(struct controller_op *op, int16_t error)
{
    struct alter_configs_state *st = CONTAINER_OF(op, struct alter_configs_state, forward.op);
    if (error == K_NOT_CONTROLLER && ask_again(st))
        return;
    for (int32_t i = 0; i < st->n && error != K_NONE; i++) {
        if (st->changes[i].settled)
            continue;
        st->changes[i].error = error;
        st->changes[i].message = str_of(kafka_error_name(error));
    }
    const bool answered =
        st->forward.r->api_key == API_ALTER_CONFIGS ? answer_alter(st) : answer_incremental(st);
    if (!answered)
        request_close(st->forward.r, "out of memory");
}

/* ------------------------------------------------------------------ the request */

static void authorize_change(struct api *api, const struct request *r, struct config_change *c)
{
    enum acl_resource_type type = ACL_CLUSTER;
    int16_t error = K_CLUSTER_AUTHORIZATION_FAILED;
    struct str name = ACL_CLUSTER_NAME;
    if (c->type == CONFIG_RESOURCE_TOPIC) {
        type = ACL_TOPIC;
        error = K_TOPIC_AUTHORIZATION_FAILED;
        name = c->name;
    } else if (c->type == CONFIG_RESOURCE_GROUP) {
        type = ACL_GROUP;
        error = K_GROUP_AUTHORIZATION_FAILED;
        name = c->name;
    }
    if (api_authorized(api, r, ACL_ALTER_CONFIGS, type, name))
        return;
    c->settled = true;
    c->error = error;
}

static struct alter_configs_state *new_state(struct request *r, int32_t n)
{
    struct alter_configs_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL)
        return NULL;
    st->changes = arena_array(&r->arena, (size_t)n, sizeof *st->changes);
    if (st->changes == NULL)
        return NULL;
    st->forward.r = r;
    st->n = n;
    st->forward.op.done = alter_done;
    for (int32_t i = 0; i < n; i++)
        st->changes[i].message = STR_NULL;
    return st;
}

static bool new_ops(struct request *r, struct config_change *c, int32_t n)
{
    c->ops = arena_array(&r->arena, (size_t)n, sizeof *c->ops);
    c->ops_n = n;
    return c->ops != NULL;
}

static void alter(struct api *api, struct alter_configs_state *st, bool validate_only,
                  struct now now)
{
    struct request *r = st->forward.r;
    /* Brokers' own keys have been judged where the request came in. */
    const int32_t own_id = api_is_for_controller(api, r) ? -1 : api->node_id;
    st->forward.api = api;
    for (int32_t i = 0; i < st->n; i++)
        authorize_change(api, r, &st->changes[i]);
    if (broker_check_configs(api->config, own_id, api->image->seed, st->changes, st->n,
                             &r->arena) != ERR_NONE) {
        request_close(r, "out of memory");
        return;
    }
    if (api_must_forward(api, r)) {
        alter_configs_forward(st);
        return;
    }
    controller_alter_configs(api->controller, &st->forward.op, st->changes, st->n, validate_only,
                             &r->arena, now);
}

void api_alter_configs_start(struct api *api, struct request *r, struct now now)
{
    const struct alter_configs_request *req = r->message;
    struct alter_configs_state *st = new_state(r, req->resources.n);
    for (int32_t i = 0; st != NULL && i < st->n; i++) {
        const struct alter_configs_request_alter_configs_resource *in = &req->resources.v[i];
        struct config_change *c = &st->changes[i];
        c->type = in->resource_type;
        c->name = in->resource_name;
        c->replace = true;
        if (!new_ops(r, c, in->configs.n))
            st = NULL;
        for (int32_t k = 0; st != NULL && k < c->ops_n; k++)
            c->ops[k] = (struct config_op){in->configs.v[k].name, CONFIG_OPERATION_SET,
                                           in->configs.v[k].value};
    }
    if (st == NULL)
        request_close(r, "out of memory");
    else
        alter(api, st, req->validate_only, now);
}

void api_incremental_alter_configs_start(struct api *api, struct request *r, struct now now)
{
    const struct incremental_alter_configs_request *req = r->message;
    struct alter_configs_state *st = new_state(r, req->resources.n);
    for (int32_t i = 0; st != NULL && i < st->n; i++) {
        const struct incremental_alter_configs_request_alter_configs_resource *in =
            &req->resources.v[i];
        struct config_change *c = &st->changes[i];
        c->type = in->resource_type;
        c->name = in->resource_name;
        if (!new_ops(r, c, in->configs.n))
            st = NULL;
        for (int32_t k = 0; st != NULL && k < c->ops_n; k++)
            c->ops[k] = (struct config_op){in->configs.v[k].name, in->configs.v[k].config_operation,
                                           in->configs.v[k].value};
    }
    if (st == NULL)
        request_close(r, "out of memory");
    else
        alter(api, st, req->validate_only, now);
}
