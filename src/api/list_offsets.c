/* ListOffsets (KIP-79, KIP-207, KIP-734, KIP-405): the replica manager answers, searches by time
 * run as jobs. */
#include "api/api.h"

struct list_offsets_state {
    struct list_offsets_op op;
    struct api_topic_check check;
    struct list_offsets_response response;
    struct request *r;
};

static void list_offsets_done(struct list_offsets_op *op)
{
    struct list_offsets_state *st = CONTAINER_OF(op, struct list_offsets_state, op);
    request_answer(st->r, &msg_list_offsets_response, &st->response);
}

void api_list_offsets_start(struct api *api, struct request *r, struct now now)
{
    struct list_offsets_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_list_offsets_response, &st->response);
    st->r = r;
    st->check = (struct api_topic_check){api, r, ACL_DESCRIBE};
    st->op = (struct list_offsets_op){
        .arena = &r->arena,
        .request = r->message,
        .version = r->api_version,
        .allowed = api_topic_allowed,
        .allowed_ctx = &st->check,
        .response = &st->response,
        .done = list_offsets_done,
    };
    if (replicas_list_offsets(api->replicas, &st->op, now) != ERR_NONE)
        request_close(r, "out of memory");
}
