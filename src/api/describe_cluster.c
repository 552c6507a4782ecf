/* DescribeCluster (KIP-700, KIP-919, KIP-1073) on a broker's listener. */
#include <stdio.h>

#include "api/api.h"
#include "wire/error.h"

enum { ENDPOINT_BROKER = 1, ENDPOINT_CONTROLLER = 2 };

static bool fill_brokers(struct api *api, const struct request *r, bool fenced_too,
                         struct describe_cluster_response *resp, struct arena *a)
{
    resp->brokers.v = wire_array(&wire_describe_cluster_response_describe_cluster_broker, a,
                                 api->image->brokers.n);
    if (resp->brokers.v == NULL)
        return false;
    struct map_entry *e = NULL;
    while ((e = map_next(&api->image->brokers, e)) != NULL) {
        const struct image_broker *b = map_value(e);
        struct describe_cluster_response_describe_cluster_broker *out =
            &resp->brokers.v[resp->brokers.n];
        if ((b->fenced && !fenced_too) || !api_broker_endpoint(api, r, b, &out->host, &out->port))
            continue;
        out->broker_id = b->id;
        out->rack = api_text(b->rack);
        out->is_fenced = b->fenced;
        resp->brokers.n++;
    }
    return true;
}

static void refuse(struct request *r, struct describe_cluster_response *resp, int8_t type)
{
    static const char mismatch[] = "The request was sent to an endpoint of type BROKER, but we "
                                   "wanted an endpoint of type CONTROLLER";
    char *text = arena_alloc(&r->arena, sizeof mismatch);
    if (text == NULL) {
        request_close(r, "out of memory");
        return;
    }
    if (type == ENDPOINT_CONTROLLER) {
        resp->error_code = K_MISMATCHED_ENDPOINT_TYPE;
        memcpy(text, mismatch, sizeof mismatch);
    } else {
        resp->error_code = K_UNSUPPORTED_ENDPOINT_TYPE;
        snprintf(text, sizeof mismatch, "Unsupported endpoint type %d", type);
    }
    resp->error_message = str_of(text);
    resp->cluster_id = STR_LIT("");
    request_answer(r, &msg_describe_cluster_response, resp);
}

void api_describe_cluster_start(struct api *api, struct request *r, struct now now)
{
    (void)now;
    const struct describe_cluster_request *req = r->message;
    struct describe_cluster_response resp;
    wire_default(&wire_describe_cluster_response, &resp);
    if (req->endpoint_type != ENDPOINT_BROKER) {
        refuse(r, &resp, req->endpoint_type);
        return;
    }
    resp.cluster_id = str_of(api->cluster_id);
    resp.controller_id = api_controller_id(api, r);
    if (!fill_brokers(api, r, req->include_fenced_brokers, &resp, &r->arena)) {
        request_close(r, "out of memory");
        return;
    }
    if (req->include_cluster_authorized_operations)
        resp.cluster_authorized_operations =
            api_authorized_operations(api, r, ACL_CLUSTER, ACL_CLUSTER_NAME);
    request_answer(r, &msg_describe_cluster_response, &resp);
}
