/* DeleteGroups (KIP-229): each group is judged alone; a name that comes twice is answered once, and
 * what may not be deleted comes last. */
#include "api/api.h"
#include "wire/error.h"

struct deleted_group {
    struct groups_delete_op op;
    struct delete_groups_state *st;
    bool begun; /* else op.error stands */
};

struct delete_groups_state {
    struct request *r;
    struct deleted_group *v;
    int32_t n, waiting_n;
};

static void answer(struct delete_groups_state *st)
{
    struct delete_groups_response resp;
    wire_default(&wire_delete_groups_response, &resp);
    resp.results.v = wire_array(&wire_delete_groups_response_deletable_group_result, &st->r->arena,
                                (size_t)st->n);
    if (resp.results.v == NULL) {
        request_close(st->r, "out of memory");
        return;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < st->n; i++)
            if (st->v[i].begun == (pass == 0)) {
                resp.results.v[resp.results.n].group_id = st->v[i].op.group;
                resp.results.v[resp.results.n++].error_code = st->v[i].op.error;
            }
    request_answer(st->r, &msg_delete_groups_response, &resp);
}

static void group_done(struct group_op *op)
{
    struct delete_groups_state *st = CONTAINER_OF(op, struct deleted_group, op.op)->st;
    if (--st->waiting_n == 0)
        answer(st);
}

/* Marks by a map: a request may name thousands. */
static enum err prepare(struct api *api, struct delete_groups_state *st)
{
    const struct delete_groups_request *req = st->r->message;
    struct map seen;
    enum err e = ERR_NONE;
    st->v = arena_array(&st->r->arena, (size_t)req->groups_names.n, sizeof *st->v);
    if (st->v == NULL)
        return ERR_NOMEM;
    map_init(&seen, api->image->seed);
    for (int32_t i = 0; i < req->groups_names.n && e == ERR_NONE; i++) {
        const struct str name = req->groups_names.v[i];
        struct deleted_group *g = &st->v[st->n];
        if (map_get_str(&seen, name) != NULL)
            continue;
        e = map_put(&seen, name.p, (size_t)name.n, g);
        g->st = st;
        g->op.op.done = group_done;
        g->op.group = name;
        g->op.error = K_GROUP_AUTHORIZATION_FAILED;
        g->begun = api_authorized(api, st->r, ACL_DELETE, ACL_GROUP, name);
        st->waiting_n += g->begun;
        st->n++;
    }
    map_close(&seen);
    return e;
}

void api_delete_groups_start(struct api *api, struct request *r, struct now now)
{
    struct delete_groups_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st != NULL)
        st->r = r;
    if (st == NULL || prepare(api, st) != ERR_NONE) {
        request_close(r, "out of memory");
        return;
    }
    r->handler_state = st;
    if (st->waiting_n == 0) {
        answer(st);
        return;
    }
    for (int32_t i = 0; i < st->n; i++)
        if (st->v[i].begun)
            groups_delete(api->groups, &st->v[i].op, now);
}

void api_delete_groups_cancel(struct request *r)
{
    struct delete_groups_state *st = r->handler_state;
    for (int32_t i = 0; i < st->n; i++)
        if (st->v[i].begun)
            groups_delete_cancel(&st->v[i].op);
}
