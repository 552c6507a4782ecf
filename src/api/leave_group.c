/* LeaveGroup (KIP-345, KIP-800): one member, or from version 3 on several. */
#include "api/api.h"
#include "wire/error.h"

struct leave_group_state {
    struct classic_leave_op op;
    struct leave_group_response response;
    struct request *r;
};

static void leave_done(struct group_op *op)
{
    struct leave_group_state *st = CONTAINER_OF(op, struct leave_group_state, op.op);
    request_answer(st->r, &msg_leave_group_response, &st->response);
}

void api_leave_group_start(struct api *api, struct request *r, struct now now)
{
    const struct leave_group_request *req = r->message;
    struct leave_group_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    r->handler_state = st;
    st->r = r;
    st->op = (struct classic_leave_op){
        .op.done = leave_done,
        .arena = &r->arena,
        .request = req,
        .version = r->api_version,
        .response = &st->response,
    };
    if (api_authorized(api, r, ACL_READ, ACL_GROUP, req->group_id)) {
        groups_leave(api->groups, &st->op, now);
        return;
    }
    classic_leave_refuse(&st->op, K_GROUP_AUTHORIZATION_FAILED);
    leave_done(&st->op.op);
}

void api_leave_group_cancel(struct request *r)
{
    struct leave_group_state *st = r->handler_state;
    classic_leave_cancel(&st->op);
}
