/* SyncGroup (KIP-345, KIP-559): the group coordinator's; a Sync waits there for the leader's
 * assignments. */
#include "api/api.h"
#include "wire/error.h"

enum { VERSION_PROTOCOL_REQUIRED = 5 };

struct sync_group_state {
    struct classic_sync_op op;
    struct sync_group_response response;
    struct request *r;
};

static void sync_done(struct group_op *op)
{
    struct sync_group_state *st = CONTAINER_OF(op, struct sync_group_state, op.op);
    request_answer(st->r, &msg_sync_group_response, &st->response);
}

static int16_t check(struct api *api, const struct request *r)
{
    const struct sync_group_request *req = r->message;
    if (r->api_version >= VERSION_PROTOCOL_REQUIRED &&
        (req->protocol_type.n < 0 || req->protocol_name.n < 0))
        return K_INCONSISTENT_GROUP_PROTOCOL;
    return api_authorized(api, r, ACL_READ, ACL_GROUP, req->group_id)
               ? K_NONE
               : K_GROUP_AUTHORIZATION_FAILED;
}

void api_sync_group_start(struct api *api, struct request *r, struct now now)
{
    struct sync_group_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    r->handler_state = st;
    st->r = r;
    st->op = (struct classic_sync_op){
        .op.done = sync_done,
        .arena = &r->arena,
        .request = r->message,
        .response = &st->response,
    };
    const int16_t error = check(api, r);
    if (error == K_NONE) {
        groups_sync(api->groups, &st->op, now);
        request_release_frame(r); /* it may wait for minutes; what is needed is copied */
        return;
    }
    classic_sync_refuse(&st->op, error);
    sync_done(&st->op.op);
}

void api_sync_group_cancel(struct request *r)
{
    struct sync_group_state *st = r->handler_state;
    classic_sync_cancel(&st->op);
}
