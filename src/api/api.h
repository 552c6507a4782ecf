/* Kafka's APIs, one file each: checks, then core. One table for dispatch, listeners, versions and
 * the ApiVersions answer. A handler starts in its turn, completes its request once by
 * request_answer, request_drop or request_close, at once or when core calls back. */
#ifndef API_API_H
#define API_API_H

#include "core/broker/broker.h"
#include "core/config/config.h"
#include "core/controller/controller.h"
#include "core/group/group.h"
#include "core/metadata/image.h"
#include "core/replica/replica.h"
#include "core/security/authorize.h"
#include "rpc/rpc.h"

/* Where a client finds this broker, for the listener it came in on. */
struct api_endpoint {
    const char *listener;
    const char *host;
    uint16_t port;
    bool controller; /* in controller.listener.names: for nodes, not for clients */
};

enum { API_VERSIONS_N = 6 }; /* versions of ApiVersions */

/* ApiVersions' answers, encoded, as long as what they tell of holds. */
struct api_versions_kept {
    int64_t image_end; /* next_offset of the image */
    int16_t kraft_version;
    uint64_t controller_turn;             /* channel_ranges_turn */
    struct buf bodies[2][API_VERSIONS_N]; /* to clients, to nodes; empty: not asked for yet */
};

/* What handlers may see of their node. Without the broker role there are no replicas, groups and
 * broker, without the controller role no controller. */
struct api {
    struct env *env;
    struct timers *timers;
    const struct config *config;
    struct authorizer authorizer;
    const struct image *image; /* committed */
    struct replicas *replicas;
    struct groups *groups;
    struct controller *controller;
    struct raft *raft;
    struct broker *broker;
    struct channel *forwarding; /* to the active controller; NULL without the broker role */
    struct rpc *rpc;
    const char *cluster_id;
    int32_t node_id;
    const struct api_endpoint *endpoints; /* by listener index */
    size_t endpoints_n;
    struct api_versions_kept versions;
};

enum api_scope {
    API_CLIENTS = 1, /* the listeners of brokers: clients, other brokers */
    API_NODES = 2,   /* the listeners of controllers, and the loopback */
    /* Clients' requests that the active controller answers, wherever it is: api/forward.h. */
    API_FORWARDED = 4,
};

struct api_entry {
    int16_t key;
    uint8_t scope;
    int16_t min, max;       /* served */
    int16_t advertised_min; /* Produce: 0, because old librdkafka looks there */
    const struct wire_message *request;
    void (*start)(struct api *api, struct request *r, struct now now);
    void (*cancel)(struct request *r); /* NULL: never waits, or only for the controller */
};

/* NULL-key-terminated (key -1). A key may have an entry for each scope: Fetch is of data on the
 * one, of the metadata log on the other. */
extern const struct api_entry api_table[];

/* What is asked on that listener; -1: the loopback. */
enum api_scope api_scope(const struct api *api, int listener);
/* The entry that r is for, by its key and where it came in; NULL: it is not served there. */
const struct api_entry *api_find(const struct api *api, const struct request *r);
/* Of r's frame, by its key and version, which the entry serves; then its body. ERR_CORRUPT, ... */
MUST_USE enum err api_read_header(struct request *r, const struct api_entry *entry);
MUST_USE enum err api_read_body(struct request *r);
/* The rpc_handler of a node; ctx is struct api. */
struct rpc_handler api_handler(struct api *api);
/* Frees what the handlers keep. */
void api_close(struct api *api);

/* Marks a connection as that of a broker's heartbeats, see request_mark. */
static inline int64_t api_broker_mark(int32_t broker_id)
{
    return (int64_t)broker_id + INT64_C(0x100000000);
}

/* ---- shared by handlers (common.c) */

/* Completes r with a top-level error only; resp is the API's response with it set. */
struct str api_text(const char *s); /* NULL: null */
/* May the principal do it? */
bool api_authorized(struct api *api, const struct request *r, enum acl_operation op,
                    enum acl_resource_type type, struct str name);
/* For core: Read, Write on a topic by the principal of a request (ctx). */
struct api_topic_check {
    struct api *api;
    const struct request *r;
    enum acl_operation op;
};
bool api_topic_allowed(void *ctx, struct str topic);
/* Where the client reaches broker b: its endpoint on the listener of r, ours with its real port. */
bool api_broker_endpoint(struct api *api, const struct request *r, const struct image_broker *b,
                         struct str *host, int32_t *port);
/* The same of a broker that clients may be sent to: not fenced, and there on the listener. NULL. */
const struct image_broker *api_live_broker(struct api *api, const struct request *r, int32_t id,
                                           struct str *host, int32_t *port);
/* Does a replica of p on that broker count as offline for r: its broker is not known, fenced, not
 * on r's listener, has lost the log directory, or is we ourselves without ours? */
bool api_replica_offline(struct api *api, const struct request *r, const struct image_partition *p,
                         int32_t broker_id);
/* The broker that clients may take for the controller, for all forward to it (KIP-590): this one
 * while it is live, else another; -1: none. */
int32_t api_controller_id(struct api *api, const struct request *r);
/* A list of broker ids into an answer; false: out of memory. */
bool api_copy_ids(struct arena *a, const int32_t *from, int32_t n, int32_t **v, int32_t *out_n);
/* The client's address as Kafka stores and tells it. False: out of memory. */
bool api_client_host(struct request *r, struct str *out);
/* The client's address as an Envelope has it: 4 or 16 bytes; out has room for 16. */
size_t api_client_bytes(const struct request *r, uint8_t *out);
/* The reverse, with port 0, in a. NULL: not so many bytes, or out of memory. */
const char *api_client_address(struct bytes address, struct arena *a);
/* Kafka's operations as a bit field, for Metadata, DescribeCluster, DescribeTopicPartitions and
 * DescribeGroups. */
int32_t api_authorized_operations(struct api *api, const struct request *r,
                                  enum acl_resource_type type, struct str name);

/* ---- handlers, one file each */
void api_forward_cancel(struct request *r);
void api_produce_start(struct api *api, struct request *r, struct now now);
void api_produce_cancel(struct request *r);
void api_fetch_start(struct api *api, struct request *r, struct now now);
void api_fetch_cancel(struct request *r);
void api_list_offsets_start(struct api *api, struct request *r, struct now now);
void api_metadata_start(struct api *api, struct request *r, struct now now);
void api_versions_start(struct api *api, struct request *r, struct now now);
/* Answers an ApiVersions of an unknown version: error 35 in a v0 body (KIP-511). */
void api_versions_unsupported(struct request *r);
void api_versions_forget(struct api_versions_kept *k);
void api_create_topics_start(struct api *api, struct request *r, struct now now);
void api_delete_topics_start(struct api *api, struct request *r, struct now now);
void api_create_partitions_start(struct api *api, struct request *r, struct now now);
void api_delete_records_start(struct api *api, struct request *r, struct now now);
void api_delete_records_cancel(struct request *r);
void api_init_producer_id_start(struct api *api, struct request *r, struct now now);
void api_init_producer_id_cancel(struct request *r);
void api_offset_for_leader_epoch_start(struct api *api, struct request *r, struct now now);
void api_describe_configs_start(struct api *api, struct request *r, struct now now);
void api_alter_configs_start(struct api *api, struct request *r, struct now now);
void api_incremental_alter_configs_start(struct api *api, struct request *r, struct now now);
void api_list_config_resources_start(struct api *api, struct request *r, struct now now);
void api_describe_topic_partitions_start(struct api *api, struct request *r, struct now now);
void api_describe_log_dirs_start(struct api *api, struct request *r, struct now now);
void api_describe_producers_start(struct api *api, struct request *r, struct now now);
void api_describe_quorum_start(struct api *api, struct request *r, struct now now);
void api_describe_cluster_start(struct api *api, struct request *r, struct now now);
void api_find_coordinator_start(struct api *api, struct request *r, struct now now);
void api_offset_commit_start(struct api *api, struct request *r, struct now now);
void api_offset_commit_cancel(struct request *r);
void api_offset_fetch_start(struct api *api, struct request *r, struct now now);
void api_offset_fetch_cancel(struct request *r);
void api_offset_delete_start(struct api *api, struct request *r, struct now now);
void api_offset_delete_cancel(struct request *r);
void api_join_group_start(struct api *api, struct request *r, struct now now);
void api_join_group_cancel(struct request *r);
void api_sync_group_start(struct api *api, struct request *r, struct now now);
void api_sync_group_cancel(struct request *r);
void api_heartbeat_start(struct api *api, struct request *r, struct now now);
void api_leave_group_start(struct api *api, struct request *r, struct now now);
void api_leave_group_cancel(struct request *r);
void api_describe_groups_start(struct api *api, struct request *r, struct now now);
void api_list_groups_start(struct api *api, struct request *r, struct now now);
void api_delete_groups_start(struct api *api, struct request *r, struct now now);
void api_delete_groups_cancel(struct request *r);
void api_elect_leaders_start(struct api *api, struct request *r, struct now now);
void api_alter_partition_reassignments_start(struct api *api, struct request *r, struct now now);
void api_list_partition_reassignments_start(struct api *api, struct request *r, struct now now);
void api_unregister_broker_start(struct api *api, struct request *r, struct now now);
void api_update_features_start(struct api *api, struct request *r, struct now now);
void api_controller_registration_start(struct api *api, struct request *r, struct now now);
void api_assign_replicas_to_dirs_start(struct api *api, struct request *r, struct now now);
void api_broker_registration_start(struct api *api, struct request *r, struct now now);
void api_broker_heartbeat_start(struct api *api, struct request *r, struct now now);
void api_envelope_start(struct api *api, struct request *r, struct now now);
void api_alter_partition_start(struct api *api, struct request *r, struct now now);
void api_allocate_producer_ids_start(struct api *api, struct request *r, struct now now);
void api_metadata_fetch_start(struct api *api, struct request *r, struct now now);
void api_metadata_fetch_cancel(struct request *r);
void api_vote_start(struct api *api, struct request *r, struct now now);
void api_begin_quorum_epoch_start(struct api *api, struct request *r, struct now now);
void api_end_quorum_epoch_start(struct api *api, struct request *r, struct now now);
void api_fetch_snapshot_start(struct api *api, struct request *r, struct now now);
void api_update_raft_voter_start(struct api *api, struct request *r, struct now now);
void api_add_raft_voter_start(struct api *api, struct request *r, struct now now);
void api_remove_raft_voter_start(struct api *api, struct request *r, struct now now);

#endif
