/* The controller: decides on metadata as leader of the quorum. Requests are validated against the
 * image that is ahead (uncommitted), turned into records, appended, replayed at once, and answered
 * when committed (Kafka's QuorumController). A sole voter runs the same code. */
#ifndef CONTROLLER_CONTROLLER_H
#define CONTROLLER_CONTROLLER_H

#include "base/timer.h"
#include "core/config/config.h"
#include "core/metadata/config_change.h"
#include "core/metadata/image.h"
#include "quorum/raft.h"
#include "rpc/dialing.h"
#include "wire/error.h"

struct controller;

struct controller_args {
    struct env *env;
    struct timers *timers;
    struct budget *budget;
    struct raft *raft;
    const struct config *config;   /* the static one; stays until controller_free */
    const struct image *committed; /* the node's */
    const char *cluster_id;
    int32_t node_id;         /* a broker of this id lives in our process */
    struct dialing *dialing; /* to look after brokers that seem gone; NULL: nobody looks */
    uint64_t seed;
};

/* An operation in flight, embedded in its owner. done() comes once, never inside the call that
 * began it; error is K_NONE when the response holds everything, else the top-level error. */
struct controller_op {
    struct list link;
    int64_t offset; /* done when committed past it; -1: at the next settle */
    int32_t epoch;
    int16_t error;
    void (*done)(struct controller_op *op, int16_t error);
};

MUST_USE enum err controller_new(const struct controller_args *args, struct controller **out);
void controller_free(struct controller *c);

/* raft's events, passed on by the node. */
void controller_claim(struct controller *c, int32_t epoch, struct now now);
void controller_resign(struct controller *c);
/* After the committed image took over records up to `offset` (exclusive). */
void controller_committed(struct controller *c, int64_t offset, struct now now);
/* Ready completions, expired sessions. True if anything moved. */
bool controller_settle(struct controller *c, struct now now);
/* The connection that the broker's heartbeats came by has ended: we look whether it is there still,
 * see probe.c. */
void controller_broker_lost(struct controller *c, int32_t broker_id, struct now now);
bool controller_is_active(const struct controller *c);

/* Every request: K_NOT_CONTROLLER when not active. resp and its arrays live in a. */
void controller_create_topics(struct controller *c, struct controller_op *op,
                              const struct create_topics_request *req, int16_t version,
                              struct arena *a, struct create_topics_response *resp, struct now now);
void controller_delete_topics(struct controller *c, struct controller_op *op,
                              const struct delete_topics_request *req, int16_t version,
                              struct arena *a, struct delete_topics_response *resp, struct now now);
/* Of those that are not settled (the broker has checked them); each gets its error and a message in
 * a. changes and what they name stay until done(). */
void controller_alter_configs(struct controller *c, struct controller_op *op,
                              struct config_change *changes, int32_t n, bool validate_only,
                              struct arena *a, struct now now);
/* allowed: may the principal alter the topic? */
void controller_create_partitions(struct controller *c, struct controller_op *op,
                                  const struct create_partitions_request *req,
                                  bool (*allowed)(void *ctx, struct str topic), void *allowed_ctx,
                                  struct arena *a, struct create_partitions_response *resp,
                                  struct now now);
void controller_register_broker(struct controller *c, struct controller_op *op,
                                const struct broker_registration_request *req,
                                struct broker_registration_response *resp, struct now now);
void controller_heartbeat(struct controller *c, struct controller_op *op,
                          const struct broker_heartbeat_request *req,
                          struct broker_heartbeat_response *resp, struct now now);
void controller_alter_partition(struct controller *c, struct controller_op *op,
                                const struct alter_partition_request *req, int16_t version,
                                struct arena *a, struct alter_partition_response *resp,
                                struct now now);
void controller_elect_leaders(struct controller *c, struct controller_op *op,
                              const struct elect_leaders_request *req, struct arena *a,
                              struct elect_leaders_response *resp, struct now now);
void controller_alter_reassignments(struct controller *c, struct controller_op *op,
                                    const struct alter_partition_reassignments_request *req,
                                    struct arena *a,
                                    struct alter_partition_reassignments_response *resp,
                                    struct now now);
void controller_list_reassignments(struct controller *c, struct controller_op *op,
                                   const struct list_partition_reassignments_request *req,
                                   struct arena *a,
                                   struct list_partition_reassignments_response *resp,
                                   struct now now);
/* The answer holds nothing but the error, of this and of controller_register_controller. */
void controller_unregister_broker(struct controller *c, struct controller_op *op,
                                  const struct unregister_broker_request *req, struct now now);
void controller_register_controller(struct controller *c, struct controller_op *op,
                                    const struct controller_registration_request *req,
                                    struct now now);
/* resp gets the reason of a refusal; it is a constant. */
void controller_update_features(struct controller *c, struct controller_op *op,
                                const struct update_features_request *req,
                                struct update_features_response *resp, struct now now);
void controller_assign_replicas_to_dirs(struct controller *c, struct controller_op *op,
                                        const struct assign_replicas_to_dirs_request *req,
                                        struct arena *a,
                                        struct assign_replicas_to_dirs_response *resp,
                                        struct now now);
void controller_allocate_producer_ids(struct controller *c, struct controller_op *op,
                                      const struct allocate_producer_ids_request *req,
                                      struct allocate_producer_ids_response *resp, struct now now);

#endif
