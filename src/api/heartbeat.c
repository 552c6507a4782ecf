/* Heartbeat (KIP-345) of a member of a classic group. */
#include "api/api.h"
#include "wire/error.h"

void api_heartbeat_start(struct api *api, struct request *r, struct now now)
{
    const struct heartbeat_request *req = r->message;
    struct heartbeat_response resp;
    wire_default(&wire_heartbeat_response, &resp);
    resp.error_code = api_authorized(api, r, ACL_READ, ACL_GROUP, req->group_id)
                          ? groups_heartbeat(api->groups, req, now)
                          : K_GROUP_AUTHORIZATION_FAILED;
    request_answer(r, &msg_heartbeat_response, &resp);
}
