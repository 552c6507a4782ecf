/* OffsetForLeaderEpoch (KIP-101, KIP-320). */
#include "api/api.h"

void api_offset_for_leader_epoch_start(struct api *api, struct request *r, struct now now)
{
    (void)now;
    struct api_topic_check check = {api, r, ACL_DESCRIBE};
    struct offset_for_leader_epoch_response resp;
    wire_default(&wire_offset_for_leader_epoch_response, &resp);
    enum err e = replicas_offset_for_leader_epoch(api->replicas, r->message, r->api_version,
                                                  api_topic_allowed, &check, &r->arena, &resp);
    if (e != ERR_NONE) {
        request_close(r, err_name(e));
        return;
    }
    request_answer(r, &msg_offset_for_leader_epoch_response, &resp);
}
