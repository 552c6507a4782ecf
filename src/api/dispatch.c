/* From a frame to its handler. accept looks at the header only: key, version, listener. An API that
 * is not served on the listener, or a version that is not served, closes the connection with one
 * log line, as Kafka 4.4 does; only ApiVersions answers every version. The body is decoded when the
 * request starts, so that queued requests cost little. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/endian.h"

/* clang-format off */
#define API_CONTROLLER API_CLIENTS | API_NODES | API_FORWARDED
const struct api_entry api_table[] = {
    {API_PRODUCE, API_CLIENTS, 3, 13, 0, &msg_produce_request, api_produce_start, api_produce_cancel},
    {API_FETCH, API_CLIENTS, 4, 18, 4, &msg_fetch_request, api_fetch_start, api_fetch_cancel},
    {API_LIST_OFFSETS, API_CLIENTS, 1, 11, 1, &msg_list_offsets_request, api_list_offsets_start, NULL},
    {API_METADATA, API_CLIENTS, 0, 13, 0, &msg_metadata_request, api_metadata_start, api_forward_cancel},
    {API_OFFSET_COMMIT, API_CLIENTS, 2, 10, 2, &msg_offset_commit_request, api_offset_commit_start, api_offset_commit_cancel},
    {API_OFFSET_FETCH, API_CLIENTS, 1, 10, 1, &msg_offset_fetch_request, api_offset_fetch_start, api_offset_fetch_cancel},
    {API_FIND_COORDINATOR, API_CLIENTS, 0, 6, 0, &msg_find_coordinator_request, api_find_coordinator_start, api_forward_cancel},
    {API_JOIN_GROUP, API_CLIENTS, 0, 9, 0, &msg_join_group_request, api_join_group_start, api_join_group_cancel},
    {API_HEARTBEAT, API_CLIENTS, 0, 4, 0, &msg_heartbeat_request, api_heartbeat_start, NULL},
    {API_LEAVE_GROUP, API_CLIENTS, 0, 5, 0, &msg_leave_group_request, api_leave_group_start, api_leave_group_cancel},
    {API_SYNC_GROUP, API_CLIENTS, 0, 5, 0, &msg_sync_group_request, api_sync_group_start, api_sync_group_cancel},
    {API_DESCRIBE_GROUPS, API_CLIENTS, 0, 6, 0, &msg_describe_groups_request, api_describe_groups_start, NULL},
    {API_LIST_GROUPS, API_CLIENTS, 0, 5, 0, &msg_list_groups_request, api_list_groups_start, NULL},
    {API_API_VERSIONS, API_CLIENTS | API_NODES, 0, 5, 0, &msg_api_versions_request, api_versions_start, NULL},
    {API_CREATE_TOPICS, API_CONTROLLER, 2, 7, 2, &msg_create_topics_request, api_create_topics_start, api_forward_cancel},
    {API_DELETE_TOPICS, API_CONTROLLER, 1, 6, 1, &msg_delete_topics_request, api_delete_topics_start, api_forward_cancel},
    {API_DELETE_RECORDS, API_CLIENTS, 0, 2, 0, &msg_delete_records_request, api_delete_records_start, api_delete_records_cancel},
    {API_INIT_PRODUCER_ID, API_CLIENTS, 0, 5, 0, &msg_init_producer_id_request, api_init_producer_id_start, api_init_producer_id_cancel},
    {API_OFFSET_FOR_LEADER_EPOCH, API_CLIENTS, 2, 4, 2, &msg_offset_for_leader_epoch_request, api_offset_for_leader_epoch_start, NULL},
    {API_DESCRIBE_CONFIGS, API_CLIENTS, 1, 4, 1, &msg_describe_configs_request, api_describe_configs_start, NULL},
    {API_ALTER_CONFIGS, API_CONTROLLER, 0, 2, 0, &msg_alter_configs_request, api_alter_configs_start, api_forward_cancel},
    {API_DESCRIBE_LOG_DIRS, API_CLIENTS, 1, 5, 1, &msg_describe_log_dirs_request, api_describe_log_dirs_start, NULL},
    {API_CREATE_PARTITIONS, API_CONTROLLER, 0, 3, 0, &msg_create_partitions_request, api_create_partitions_start, api_forward_cancel},
    {API_DELETE_GROUPS, API_CLIENTS, 0, 3, 0, &msg_delete_groups_request, api_delete_groups_start, api_delete_groups_cancel},
    {API_ELECT_LEADERS, API_CONTROLLER, 0, 2, 0, &msg_elect_leaders_request, api_elect_leaders_start, api_forward_cancel},
    {API_INCREMENTAL_ALTER_CONFIGS, API_CONTROLLER, 0, 1, 0, &msg_incremental_alter_configs_request, api_incremental_alter_configs_start, api_forward_cancel},
    {API_ALTER_PARTITION_REASSIGNMENTS, API_CONTROLLER, 0, 1, 0, &msg_alter_partition_reassignments_request, api_alter_partition_reassignments_start, api_forward_cancel},
    {API_LIST_PARTITION_REASSIGNMENTS, API_CONTROLLER, 0, 0, 0, &msg_list_partition_reassignments_request, api_list_partition_reassignments_start, api_forward_cancel},
    {API_OFFSET_DELETE, API_CLIENTS, 0, 0, 0, &msg_offset_delete_request, api_offset_delete_start, api_offset_delete_cancel},
    {API_DESCRIBE_QUORUM, API_CONTROLLER, 0, 2, 0, &msg_describe_quorum_request, api_describe_quorum_start, api_forward_cancel},
    {API_DESCRIBE_CLUSTER, API_CLIENTS, 0, 2, 0, &msg_describe_cluster_request, api_describe_cluster_start, NULL},
    {API_DESCRIBE_PRODUCERS, API_CLIENTS, 0, 0, 0, &msg_describe_producers_request, api_describe_producers_start, NULL},
    {API_UPDATE_FEATURES, API_CONTROLLER, 0, 2, 0, &msg_update_features_request, api_update_features_start, api_forward_cancel},
    {API_UNREGISTER_BROKER, API_CONTROLLER, 0, 0, 0, &msg_unregister_broker_request, api_unregister_broker_start, api_forward_cancel},
    {API_LIST_CONFIG_RESOURCES, API_CLIENTS, 0, 1, 0, &msg_list_config_resources_request, api_list_config_resources_start, NULL},
    {API_DESCRIBE_TOPIC_PARTITIONS, API_CLIENTS, 0, 0, 0, &msg_describe_topic_partitions_request, api_describe_topic_partitions_start, NULL},
    {API_BROKER_REGISTRATION, API_NODES, 0, 4, 0, &msg_broker_registration_request, api_broker_registration_start, NULL},
    {API_BROKER_HEARTBEAT, API_NODES, 0, 2, 0, &msg_broker_heartbeat_request, api_broker_heartbeat_start, NULL},
    {API_CONTROLLER_REGISTRATION, API_NODES, 0, 0, 0, &msg_controller_registration_request, api_controller_registration_start, NULL},
    {API_ASSIGN_REPLICAS_TO_DIRS, API_NODES, 0, 0, 0, &msg_assign_replicas_to_dirs_request, api_assign_replicas_to_dirs_start, NULL},
    {API_ALTER_PARTITION, API_NODES, 2, 3, 2, &msg_alter_partition_request, api_alter_partition_start, NULL},
    {API_ENVELOPE, API_NODES, 0, 0, 0, &msg_envelope_request, api_envelope_start, NULL},
    {API_FETCH, API_NODES, 13, 18, 13, &msg_fetch_request, api_metadata_fetch_start, api_metadata_fetch_cancel},
    {API_VOTE, API_NODES, 0, 2, 0, &msg_vote_request, api_vote_start, NULL},
    {API_BEGIN_QUORUM_EPOCH, API_NODES, 0, 1, 0, &msg_begin_quorum_epoch_request, api_begin_quorum_epoch_start, NULL},
    {API_END_QUORUM_EPOCH, API_NODES, 0, 1, 0, &msg_end_quorum_epoch_request, api_end_quorum_epoch_start, NULL},
    {API_FETCH_SNAPSHOT, API_NODES, 0, 1, 0, &msg_fetch_snapshot_request, api_fetch_snapshot_start, NULL},
    {API_ADD_RAFT_VOTER, API_CONTROLLER, 0, 1, 0, &msg_add_raft_voter_request, api_add_raft_voter_start, api_forward_cancel},
    {API_REMOVE_RAFT_VOTER, API_CONTROLLER, 0, 0, 0, &msg_remove_raft_voter_request, api_remove_raft_voter_start, api_forward_cancel},
    {API_UPDATE_RAFT_VOTER, API_NODES, 0, 0, 0, &msg_update_raft_voter_request, api_update_raft_voter_start, NULL},
    {API_ALLOCATE_PRODUCER_IDS, API_NODES, 0, 0, 0, &msg_allocate_producer_ids_request, api_allocate_producer_ids_start, NULL},
    {-1, 0, 0, 0, 0, NULL, NULL, NULL},
};
/* clang-format on */

enum api_scope api_scope(const struct api *api, int listener)
{
    return listener < 0 || api->endpoints[listener].controller ? API_NODES : API_CLIENTS;
}

const struct api_entry *api_find(const struct api *api, const struct request *r)
{
    const enum api_scope scope = api_scope(api, r->listener);
    for (const struct api_entry *e = api_table; e->key >= 0; e++)
        if (e->key == r->api_key && (e->scope & scope) != 0)
            return e;
    return NULL;
}

static bool refuse(struct api *api, const struct request *r, const char *why)
{
    env_log(api->env, LOG_INFO, "request_refused client=%s api=%d version=%d reason=\"%s\"",
            r->client_address, r->api_key, r->api_version, why);
    return false;
}

enum err api_read_header(struct request *r, const struct api_entry *entry)
{
    struct request_header header;
    size_t used;
    enum err e = wire_decode_prefix(&msg_request_header,
                                    wire_request_header_version(r->api_key, r->api_version),
                                    r->frame, &r->arena, &header, &used);
    if (e != ERR_NONE)
        return e;
    r->correlation_id = header.correlation_id;
    r->client_id = header.client_id;
    r->body = (struct bytes){r->frame.p + used, r->frame.n - (int32_t)used};
    r->request_message = entry->request;
    return ERR_NONE;
}

/* What a client sends behind it is not looked at, as in Kafka. */
enum err api_read_body(struct request *r)
{
    size_t used;
    r->message = arena_zalloc(&r->arena, r->request_message->body->size);
    return r->message == NULL ? ERR_NOMEM
                              : wire_decode_prefix(r->request_message, r->api_version, r->body,
                                                   &r->arena, r->message, &used);
}

static bool accept_request(void *ctx, struct request *r)
{
    struct api *api = ctx;
    r->api_key = (int16_t)be16(r->frame.p);
    r->api_version = (int16_t)be16(r->frame.p + 2);
    const struct api_entry *entry = api_find(api, r);
    if (entry == NULL)
        return refuse(api, r, "this API is not served");
    const bool served = r->api_version >= entry->min && r->api_version <= entry->max;
    if (!served && r->api_key != API_API_VERSIONS)
        return refuse(api, r, "this version is not served");
    if (!served) { /* its body is unknown: nothing but the correlation id is read */
        r->correlation_id = (int32_t)be32(r->frame.p + 4);
        return true;
    }
    if (api_read_header(r, entry) != ERR_NONE)
        return refuse(api, r, "its header is malformed");
    return true;
}

static void start_request(void *ctx, struct request *r, struct now now)
{
    struct api *api = ctx;
    const struct api_entry *entry = api_find(api, r);
    if (r->request_message == NULL) {
        api_versions_unsupported(r);
        return;
    }
    enum err e = api_read_body(r);
    if (e != ERR_NONE) {
        char reason[96];
        snprintf(reason, sizeof reason, "api=%d version=%d body error=%s", r->api_key,
                 r->api_version, err_name(e));
        request_close(r, reason);
        return;
    }
    entry->start(api, r, now);
}

static void cancel_request(void *ctx, struct request *r)
{
    const struct api_entry *entry = api_find(ctx, r);
    if (entry->cancel != NULL)
        entry->cancel(r);
}

void api_close(struct api *api)
{
    api_versions_forget(&api->versions);
}

static void connection_lost(void *ctx, int64_t mark, struct now now)
{
    const struct api *api = ctx;
    if (api->controller != NULL)
        controller_broker_lost(api->controller, (int32_t)(mark - api_broker_mark(0)), now);
}

struct rpc_handler api_handler(struct api *api)
{
    return (struct rpc_handler){.ctx = api,
                                .accept = accept_request,
                                .start = start_request,
                                .cancel = cancel_request,
                                .lost = connection_lost};
}
