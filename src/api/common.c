/* What several handlers need. */
#include "api/api.h"

struct str api_text(const char *s)
{
    return s == NULL ? STR_NULL : str_of(s);
}

bool api_authorized(struct api *api, const struct request *r, enum acl_operation op,
                    enum acl_resource_type type, struct str name)
{
    return authorize(&api->authorizer, r->principal, op, type, name);
}

bool api_topic_allowed(void *ctx, struct str topic)
{
    const struct api_topic_check *check = ctx;
    return api_authorized(check->api, check->r, check->op, ACL_TOPIC, topic);
}

bool api_broker_endpoint(struct api *api, const struct request *r, const struct image_broker *b,
                         struct str *host, int32_t *port)
{
    const struct api_endpoint *own = r->listener >= 0 && (size_t)r->listener < api->endpoints_n
                                         ? &api->endpoints[r->listener]
                                         : NULL;
    if (own == NULL)
        return false;
    if (b->id == api->node_id) {
        *host = str_of(own->host);
        *port = own->port;
        return true;
    }
    const struct image_endpoint *e = image_endpoint(b, str_of(own->listener));
    if (e == NULL)
        return false;
    *host = str_of(e->host);
    *port = e->port;
    return true;
}

const struct image_broker *api_live_broker(struct api *api, const struct request *r, int32_t id,
                                           struct str *host, int32_t *port)
{
    const struct image_broker *b = image_broker(api->image, id);
    return b != NULL && !b->fenced && api_broker_endpoint(api, r, b, host, port) ? b : NULL;
}

bool api_replica_offline(struct api *api, const struct request *r, const struct image_partition *p,
                         int32_t broker_id)
{
    const struct image_broker *b = image_broker(api->image, broker_id);
    if (b == NULL || b->fenced || !image_broker_has_directory(b, p))
        return true;
    if (broker_id == api->node_id)
        return replicas_offline(api->replicas);
    return image_endpoint(b, str_of(api->endpoints[r->listener].listener)) == NULL;
}

int32_t api_controller_id(struct api *api, const struct request *r)
{
    struct str host;
    int32_t port;
    struct map_entry *e = NULL;
    if (api_live_broker(api, r, api->node_id, &host, &port) != NULL)
        return api->node_id;
    while ((e = map_next(&api->image->brokers, e)) != NULL) {
        const int32_t id = ((const struct image_broker *)map_value(e))->id;
        if (api_live_broker(api, r, id, &host, &port) != NULL)
            return id;
    }
    return -1;
}

bool api_copy_ids(struct arena *a, const int32_t *from, int32_t n, int32_t **v, int32_t *out_n)
{
    *v = arena_array(a, (size_t)n, sizeof **v);
    if (*v == NULL)
        return false;
    if (n > 0)
        memcpy(*v, from, (size_t)n * sizeof **v);
    *out_n = n;
    return true;
}

int32_t api_authorized_operations(struct api *api, const struct request *r,
                                  enum acl_resource_type type, struct str name)
{
    static const enum acl_operation cluster[] = {
        ACL_CREATE,           ACL_ALTER,         ACL_DESCRIBE,         ACL_CLUSTER_ACTION,
        ACL_DESCRIBE_CONFIGS, ACL_ALTER_CONFIGS, ACL_IDEMPOTENT_WRITE,
    };
    static const enum acl_operation topic[] = {
        ACL_READ,  ACL_WRITE,    ACL_CREATE,           ACL_DELETE,
        ACL_ALTER, ACL_DESCRIBE, ACL_DESCRIBE_CONFIGS, ACL_ALTER_CONFIGS,
    };
    static const enum acl_operation group[] = {
        ACL_READ, ACL_DELETE, ACL_DESCRIBE, ACL_DESCRIBE_CONFIGS, ACL_ALTER_CONFIGS,
    };
    const enum acl_operation *ops = type == ACL_TOPIC ? topic : type == ACL_GROUP ? group : cluster;
    const size_t n = type == ACL_TOPIC   ? ARRAY_N(topic)
                     : type == ACL_GROUP ? ARRAY_N(group)
                                         : ARRAY_N(cluster);
    int32_t bits = 0;
    for (size_t i = 0; i < n; i++)
        if (api_authorized(api, r, ops[i], type, name))
            bits |= 1 << ops[i];
    return bits;
}
