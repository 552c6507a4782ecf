/* DescribeLogDirs (KIP-113, KIP-827, KIP-1066): the replica manager answers. */
#include "api/api.h"
#include "wire/error.h"

struct describe_log_dirs_state {
    struct describe_log_dirs_op op;
    struct describe_log_dirs_response response;
    struct request *r;
};

static void describe_log_dirs_done(struct describe_log_dirs_op *op)
{
    struct describe_log_dirs_state *st = CONTAINER_OF(op, struct describe_log_dirs_state, op);
    request_answer(st->r, &msg_describe_log_dirs_response, &st->response);
}

void api_describe_log_dirs_start(struct api *api, struct request *r, struct now now)
{
    (void)now;
    struct describe_log_dirs_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_describe_log_dirs_response, &st->response);
    st->r = r;
    st->op = (struct describe_log_dirs_op){.arena = &r->arena,
                                           .request = r->message,
                                           .response = &st->response,
                                           .done = describe_log_dirs_done};
    if (!api_authorized(api, r, ACL_DESCRIBE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        st->response.error_code = K_CLUSTER_AUTHORIZATION_FAILED;
        request_answer(r, &msg_describe_log_dirs_response, &st->response);
        return;
    }
    if (replicas_describe_log_dirs(api->replicas, &st->op) != ERR_NONE)
        request_close(r, "out of memory");
}
