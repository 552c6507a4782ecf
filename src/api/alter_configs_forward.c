/* The part of a request that this broker cannot do travels as a request of its own, with the header
 * of the whole; its answers are found again by resource, for a controller gives them in any order.
 */
#include "api/alter_configs.h"

#include "wire/error.h"

/* ------------------------------------------------------------------ the rest of the request */

static enum err rest_of_alter(const struct alter_configs_state *st, struct buf *out)
{
    struct request *r = st->forward.r;
    struct alter_configs_request req = *(const struct alter_configs_request *)r->message;
    struct alter_configs_request_alter_configs_resource *v =
        arena_array(&r->arena, (size_t)st->n, sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    const struct alter_configs_request_alter_configs_resource *all = req.resources.v;
    req.resources.v = v;
    req.resources.n = 0;
    for (int32_t i = 0; i < st->n; i++)
        if (!st->changes[i].settled)
            v[req.resources.n++] = all[i];
    return wire_encode(&msg_alter_configs_request, r->api_version, &req, out);
}

static enum err rest_of_incremental(const struct alter_configs_state *st, struct buf *out)
{
    struct request *r = st->forward.r;
    struct incremental_alter_configs_request req =
        *(const struct incremental_alter_configs_request *)r->message;
    struct incremental_alter_configs_request_alter_configs_resource *v =
        arena_array(&r->arena, (size_t)st->n, sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    const struct incremental_alter_configs_request_alter_configs_resource *all = req.resources.v;
    req.resources.v = v;
    req.resources.n = 0;
    for (int32_t i = 0; i < st->n; i++)
        if (!st->changes[i].settled)
            v[req.resources.n++] = all[i];
    return wire_encode(&msg_incremental_alter_configs_request, r->api_version, &req, out);
}

/* Its frame, in the request's arena; false: out of memory. */
static bool rest_of(const struct alter_configs_state *st, struct bytes *frame)
{
    struct request *r = st->forward.r;
    struct buf b;
    buf_init(&b);
    enum err e = buf_append(&b, r->frame.p, (size_t)(r->frame.n - r->body.n));
    if (e == ERR_NONE)
        e = r->api_key == API_ALTER_CONFIGS ? rest_of_alter(st, &b) : rest_of_incremental(st, &b);
    uint8_t *copy = e == ERR_NONE ? arena_memdup(&r->arena, b.p, b.n) : NULL;
    *frame = (struct bytes){copy, (int32_t)b.n};
    buf_close(&b);
    return copy != NULL;
}

/* ------------------------------------------------------------------ its answers */

static enum err resource_key(struct buf *key, int8_t type, struct str name)
{
    key->n = 0;
    enum err e = buf_append(key, &type, sizeof type);
    return e == ERR_NONE && name.n > 0 ? buf_append(key, name.p, (size_t)name.n) : e;
}

/* What waits for an answer, by resource. */
struct waiting {
    struct map by_resource;
    struct buf key;
};

static enum err waiting_open(struct waiting *w, const struct alter_configs_state *st, uint64_t seed)
{
    enum err e = ERR_NONE;
    map_init(&w->by_resource, seed);
    buf_init(&w->key);
    for (int32_t i = 0; i < st->n && e == ERR_NONE; i++) {
        struct config_change *c = &st->changes[i];
        if (c->settled)
            continue;
        e = resource_key(&w->key, c->type, c->name);
        if (e == ERR_NONE)
            e = map_put(&w->by_resource, w->key.p, w->key.n, c);
    }
    return e;
}

static void waiting_close(struct waiting *w)
{
    map_close(&w->by_resource);
    buf_close(&w->key);
}

static enum err take(struct waiting *w, int8_t type, struct str name, int16_t error,
                     struct str message)
{
    enum err e = resource_key(&w->key, type, name);
    struct config_change *c = e == ERR_NONE ? map_get(&w->by_resource, w->key.p, w->key.n) : NULL;
    if (c == NULL)
        return e;
    c->settled = true;
    c->error = error;
    c->message = message;
    return ERR_NONE;
}

static enum err take_alter(struct waiting *w, const struct api_forward *f, struct bytes answer)
{
    struct alter_configs_response resp;
    enum err e = api_forward_read(f, &msg_alter_configs_response, f->r->api_version, answer, &resp);
    for (int32_t i = 0; e == ERR_NONE && i < resp.responses.n; i++)
        e = take(w, resp.responses.v[i].resource_type, resp.responses.v[i].resource_name,
                 resp.responses.v[i].error_code, resp.responses.v[i].error_message);
    return e;
}

static enum err take_incremental(struct waiting *w, const struct api_forward *f,
                                 struct bytes answer)
{
    struct incremental_alter_configs_response resp;
    enum err e = api_forward_read(f, &msg_incremental_alter_configs_response, f->r->api_version,
                                  answer, &resp);
    for (int32_t i = 0; e == ERR_NONE && i < resp.responses.n; i++)
        e = take(w, resp.responses.v[i].resource_type, resp.responses.v[i].resource_name,
                 resp.responses.v[i].error_code, resp.responses.v[i].error_message);
    return e;
}

/* Whoever is not in it stays as it is. */
static enum err take_answers(struct alter_configs_state *st, struct bytes answer)
{
    const struct api_forward *f = &st->forward;
    struct waiting w;
    enum err e = waiting_open(&w, st, f->api->image->seed);
    if (e == ERR_NONE)
        e = f->r->api_key == API_ALTER_CONFIGS ? take_alter(&w, f, answer)
                                               : take_incremental(&w, f, answer);
    waiting_close(&w);
    return e;
}

static void forward_done(struct api_forward *f, int16_t error, struct bytes answer)
{
    struct alter_configs_state *st = CONTAINER_OF(f, struct alter_configs_state, forward);
    if (error == K_NONE && take_answers(st, answer) != ERR_NONE)
        error = K_UNKNOWN_SERVER_ERROR;
    f->op.done(&f->op, error != K_NONE ? error : K_UNKNOWN_SERVER_ERROR); /* of what is left */
}

void alter_configs_forward(struct alter_configs_state *st)
{
    struct bytes frame;
    int32_t left = 0;
    for (int32_t i = 0; i < st->n; i++)
        left += !st->changes[i].settled;
    if (left == 0) {
        st->forward.op.done(&st->forward.op, K_NONE);
        return;
    }
    st->forward.done = forward_done;
    if (!rest_of(st, &frame) || !api_forward_frame(&st->forward, frame, -1))
        request_close(st->forward.r, "out of memory");
}
