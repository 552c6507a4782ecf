/* FindCoordinator (KIP-98, KIP-699): who leads the partition that a group belongs to. Where the
 * topic is missing it is created, and the answer waits for that, as Metadata's does: a client that
 * asks once can go on at once, where Kafka answers COORDINATOR_NOT_AVAILABLE first. Transactions
 * and share groups have no coordinators here: their types are refused like unknown ones. */
#include <stdio.h>

#include "api/auto_create.h"
#include "api/internal_topic.h"
#include "wire/error.h"

enum { KEY_GROUP = 0, KEY_TRANSACTION = 1, KEY_SHARE = 2 };
enum { VERSION_KEYS = 4 };

struct coordinator {
    int16_t error;
    struct str message; /* "" */
    int32_t node_id;
    struct str host;
    int32_t port;
};

static int16_t check_key(struct api *api, const struct request *r, int8_t type, struct str key)
{
    if (type == KEY_GROUP)
        return api_authorized(api, r, ACL_DESCRIBE, ACL_GROUP, key) ? K_NONE
                                                                    : K_GROUP_AUTHORIZATION_FAILED;
    if (type == KEY_TRANSACTION && !api_authorized(api, r, ACL_DESCRIBE, ACL_TRANSACTIONAL_ID, key))
        return K_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    return K_INVALID_REQUEST;
}

static bool find_leader(struct api *api, const struct request *r, struct str group,
                        struct coordinator *out)
{
    struct image_topic *t = image_topic_named(api->image, STR_LIT(API_OFFSETS_TOPIC));
    const struct image_partition *p =
        t == NULL ? NULL : image_partition(t, groups_partition(api->groups, group));
    const struct image_broker *b =
        p == NULL ? NULL : api_live_broker(api, r, p->leader, &out->host, &out->port);
    if (b == NULL)
        return false;
    out->node_id = b->id;
    return true;
}

static struct coordinator find(struct api *api, const struct request *r, int8_t type,
                               struct str key)
{
    struct coordinator c = {.node_id = -1, .host = STR_LIT(""), .port = -1};
    c.error = check_key(api, r, type, key);
    c.message = c.error == K_INVALID_REQUEST && type != KEY_SHARE
                    ? STR_LIT("This type of coordinator is not served")
                    : STR_LIT(""); /* Kafka knows share groups, and no text about them */
    if (c.error == K_NONE && !find_leader(api, r, key, &c))
        c.error = K_COORDINATOR_NOT_AVAILABLE;
    return c;
}

/* ------------------------------------------------------------------ the answer */

static bool fill_keys(struct api *api, struct request *r, struct find_coordinator_response *resp)
{
    const struct find_coordinator_request *req = r->message;
    resp->coordinators.v = wire_array(&wire_find_coordinator_response_coordinator, &r->arena,
                                      (size_t)req->coordinator_keys.n);
    if (resp->coordinators.v == NULL)
        return false;
    resp->coordinators.n = req->coordinator_keys.n;
    for (int32_t i = 0; i < req->coordinator_keys.n; i++) {
        const struct str key = req->coordinator_keys.v[i];
        const struct coordinator c = find(api, r, req->key_type, key);
        resp->coordinators.v[i] = (struct find_coordinator_response_coordinator){
            .key = key,
            .node_id = c.node_id,
            .host = c.host,
            .port = c.port,
            .error_code = c.error,
            .error_message = c.message,
        };
    }
    return true;
}

static void fill_one(struct api *api, struct request *r, struct find_coordinator_response *resp)
{
    const struct find_coordinator_request *req = r->message;
    const struct coordinator c = find(api, r, req->key_type, req->key);
    resp->error_code = c.error;
    resp->error_message = c.message.n > 0 ? c.message : str_of(kafka_error_name(c.error));
    resp->node_id = c.node_id;
    resp->host = c.host;
    resp->port = c.port;
}

static void answer(struct api *api, struct request *r)
{
    struct find_coordinator_response resp;
    wire_default(&wire_find_coordinator_response, &resp);
    if (r->api_version < VERSION_KEYS)
        fill_one(api, r, &resp);
    else if (!fill_keys(api, r, &resp)) {
        request_close(r, "out of memory");
        return;
    }
    request_answer(r, &msg_find_coordinator_response, &resp);
}

/* ------------------------------------------------------------------ creation */

static void created(struct api_creation *c, int16_t error)
{
    if (error == K_NONE && c->created.topics.n == 1)
        error = c->created.topics.v[0].error_code;
    if (error != K_NONE && error != K_TOPIC_ALREADY_EXISTS)
        env_log(c->forward.api->env, LOG_WARN, "offsets_topic_not_created error=%s",
                kafka_error_name(error));
    answer(c->forward.api, c->forward.r);
}

/* True when somebody who may asks for a group while there is nowhere to keep one. */
static bool must_create(struct api *api, const struct request *r)
{
    const struct find_coordinator_request *req = r->message;
    if (req->key_type != KEY_GROUP ||
        image_topic_named(api->image, STR_LIT(API_OFFSETS_TOPIC)) != NULL)
        return false;
    if (r->api_version < VERSION_KEYS)
        return check_key(api, r, req->key_type, req->key) == K_NONE;
    for (int32_t i = 0; i < req->coordinator_keys.n; i++)
        if (check_key(api, r, req->key_type, req->coordinator_keys.v[i]) == K_NONE)
            return true;
    return false;
}

static bool create(struct api *api, struct request *r, struct now now)
{
    struct api_creation *c = arena_zalloc(&r->arena, sizeof *c);
    struct create_topics_request_creatable_topic *topic =
        wire_array(&wire_create_topics_request_creatable_topic, &r->arena, 1);
    if (c == NULL || topic == NULL ||
        api_topic_to_create(api, STR_LIT(API_OFFSETS_TOPIC), &r->arena, topic) != ERR_NONE)
        return false;
    c->create.topics.v = topic;
    c->create.topics.n = 1;
    c->done = created;
    return api_create(api, r, c, now);
}

void api_find_coordinator_start(struct api *api, struct request *r, struct now now)
{
    if (!must_create(api, r))
        answer(api, r);
    else if (!create(api, r, now))
        request_close(r, "out of memory");
}
