/* JoinGroup (KIP-62, KIP-345, KIP-394, KIP-814): the group coordinator's; a Join waits there for
 * the next generation. */
#include "api/api.h"
#include "wire/error.h"

struct join_group_state {
    struct groups_join_op op;
    struct join_group_response response;
    struct request *r;
};

static void join_done(struct group_op *op)
{
    struct join_group_state *st = CONTAINER_OF(op, struct join_group_state, op.join.op);
    request_answer(st->r, &msg_join_group_response, &st->response);
}

void api_join_group_start(struct api *api, struct request *r, struct now now)
{
    const struct join_group_request *req = r->message;
    struct join_group_state *st = arena_zalloc(&r->arena, sizeof *st);
    struct str host;
    if (st == NULL || !api_client_host(r, &host)) {
        request_close(r, "out of memory");
        return;
    }
    r->handler_state = st;
    st->r = r;
    st->op.join = (struct classic_join_op){
        .op.done = join_done,
        .arena = &r->arena,
        .request = req,
        .version = r->api_version,
        .client_id = r->client_id,
        .client_host = host,
        .response = &st->response,
    };
    if (api_authorized(api, r, ACL_READ, ACL_GROUP, req->group_id)) {
        groups_join(api->groups, &st->op, now);
        request_release_frame(r); /* it may wait for minutes; what is needed is copied */
        return;
    }
    classic_join_refuse(&st->op.join, K_GROUP_AUTHORIZATION_FAILED, STR_LIT(""));
    join_done(&st->op.join.op);
}

void api_join_group_cancel(struct request *r)
{
    struct join_group_state *st = r->handler_state;
    groups_join_cancel(&st->op);
}
