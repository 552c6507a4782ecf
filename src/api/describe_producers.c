/* DescribeProducers (KIP-664): every partition as it is named, also twice. */
#include "api/api.h"
#include "core/metadata/topic_name.h"
#include "wire/error.h"

static int16_t check_topic(struct api *api, const struct request *r, struct str topic,
                           struct str *message)
{
    if (!topic_name_valid(topic)) {
        *message = STR_LIT("This is no topic's name");
        return K_INVALID_TOPIC_EXCEPTION;
    }
    if (!api_authorized(api, r, ACL_READ, ACL_TOPIC, topic)) {
        *message = STR_LIT("The producers of this topic may not be read");
        return K_TOPIC_AUTHORIZATION_FAILED;
    }
    if (image_topic_named(api->image, topic) == NULL) {
        *message = STR_LIT("There is no such topic");
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    }
    return K_NONE;
}

static bool fill_topic(struct api *api, struct request *r,
                       const struct describe_producers_request_topic_request *in,
                       struct describe_producers_response_topic_response *out)
{
    struct str message = STR_NULL;
    const int16_t error = check_topic(api, r, in->name, &message);
    out->name = in->name;
    out->partitions.v = wire_array(&wire_describe_producers_response_partition_response, &r->arena,
                                   (size_t)in->partition_indexes.n);
    if (out->partitions.v == NULL)
        return false;
    out->partitions.n = in->partition_indexes.n;
    for (int32_t i = 0; i < in->partition_indexes.n; i++) {
        struct describe_producers_response_partition_response *p = &out->partitions.v[i];
        p->partition_index = in->partition_indexes.v[i];
        p->error_code = error;
        p->error_message = message;
        if (error == K_NONE &&
            replicas_describe_producers(api->replicas, in->name, p->partition_index, &r->arena,
                                        p) != ERR_NONE)
            return false;
    }
    return true;
}

static bool fill(struct api *api, struct request *r, struct describe_producers_response *resp)
{
    const struct describe_producers_request *req = r->message;
    resp->topics.v = wire_array(&wire_describe_producers_response_topic_response, &r->arena,
                                (size_t)req->topics.n);
    if (resp->topics.v == NULL)
        return false;
    resp->topics.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++)
        if (!fill_topic(api, r, &req->topics.v[i], &resp->topics.v[i]))
            return false;
    return true;
}

void api_describe_producers_start(struct api *api, struct request *r, struct now now)
{
    (void)now;
    struct describe_producers_response resp;
    wire_default(&wire_describe_producers_response, &resp);
    if (fill(api, r, &resp))
        request_answer(r, &msg_describe_producers_response, &resp);
    else
        request_close(r, "out of memory");
}
