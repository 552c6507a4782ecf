/* DeleteRecords (KIP-107): the replica manager answers when the log starts have risen. */
#include "api/api.h"

struct delete_records_state {
    struct delete_records_op op;
    struct api_topic_check check;
    struct delete_records_response response;
    struct request *r;
};

static void delete_records_done(struct delete_records_op *op)
{
    struct delete_records_state *st = CONTAINER_OF(op, struct delete_records_state, op);
    request_answer(st->r, &msg_delete_records_response, &st->response);
}

void api_delete_records_start(struct api *api, struct request *r, struct now now)
{
    struct delete_records_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_delete_records_response, &st->response);
    st->r = r;
    st->check = (struct api_topic_check){api, r, ACL_DELETE};
    st->op = (struct delete_records_op){
        .arena = &r->arena,
        .request = r->message,
        .allowed = api_topic_allowed,
        .allowed_ctx = &st->check,
        .response = &st->response,
        .done = delete_records_done,
    };
    r->handler_state = st;
    if (replicas_delete_records(api->replicas, &st->op, now) != ERR_NONE)
        request_close(r, "out of memory");
}

void api_delete_records_cancel(struct request *r)
{
    struct delete_records_state *st = r->handler_state;
    replicas_delete_records_cancel(&st->op);
}
