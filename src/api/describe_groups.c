/* DescribeGroups (KIP-430, KIP-1043): classic groups and their members. Groups that the principal
 * may not describe come first. */
#include "api/api.h"
#include "wire/error.h"

struct describing {
    struct api *api;
    struct request *r;
    const struct describe_groups_request *req;
    struct describe_groups_response resp;
};

static bool allowed(const struct describing *d, struct str group)
{
    return api_authorized(d->api, d->r, ACL_DESCRIBE, ACL_GROUP, group);
}

static void refuse(struct describing *d, struct str group)
{
    struct describe_groups_response_described_group *out = &d->resp.groups.v[d->resp.groups.n++];
    out->group_id = group;
    out->error_code = K_GROUP_AUTHORIZATION_FAILED;
}

static enum err describe(struct describing *d, struct str group)
{
    struct describe_groups_response_described_group *out = &d->resp.groups.v[d->resp.groups.n++];
    enum err e = groups_describe(d->api->groups, group, d->r->api_version, &d->r->arena, out);
    if (e == ERR_NONE && out->error_code == K_NONE && d->req->include_authorized_operations)
        out->authorized_operations = api_authorized_operations(d->api, d->r, ACL_GROUP, group);
    return e;
}

void api_describe_groups_start(struct api *api, struct request *r, struct now now)
{
    struct describing d = {.api = api, .r = r, .req = r->message};
    (void)now;
    const size_t n = (size_t)d.req->groups.n;
    wire_default(&wire_describe_groups_response, &d.resp);
    d.resp.groups.v = wire_array(&wire_describe_groups_response_described_group, &r->arena, n);
    enum err e = d.resp.groups.v == NULL ? ERR_NOMEM : ERR_NONE;
    for (size_t i = 0; i < n && e == ERR_NONE; i++)
        if (!allowed(&d, d.req->groups.v[i]))
            refuse(&d, d.req->groups.v[i]);
    for (size_t i = 0; i < n && e == ERR_NONE; i++)
        if (allowed(&d, d.req->groups.v[i]))
            e = describe(&d, d.req->groups.v[i]);
    if (e != ERR_NONE)
        request_close(r, "out of memory");
    else
        request_answer(r, &msg_describe_groups_response, &d.resp);
}
