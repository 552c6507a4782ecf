/* The question that every handler asks before it acts: may this principal do that? Operations and
 * resource types are Kafka's, with its codes (AclOperation, ResourceType). */
#ifndef SECURITY_AUTHORIZE_H
#define SECURITY_AUTHORIZE_H

#include "core/config/config.h"

enum acl_operation {
    ACL_ALL = 2,
    ACL_READ = 3,
    ACL_WRITE = 4,
    ACL_CREATE = 5,
    ACL_DELETE = 6,
    ACL_ALTER = 7,
    ACL_DESCRIBE = 8,
    ACL_CLUSTER_ACTION = 9,
    ACL_DESCRIBE_CONFIGS = 10,
    ACL_ALTER_CONFIGS = 11,
    ACL_IDEMPOTENT_WRITE = 12,
    ACL_CREATE_TOKENS = 13,
    ACL_DESCRIBE_TOKENS = 14,
    ACL_TWO_PHASE_COMMIT = 15,
};

enum acl_resource_type {
    ACL_TOPIC = 2,
    ACL_GROUP = 3,
    ACL_CLUSTER = 4, /* its one name: ACL_CLUSTER_NAME */
    ACL_TRANSACTIONAL_ID = 5,
    ACL_DELEGATION_TOKEN = 6,
    ACL_USER = 7,
};

#define ACL_CLUSTER_NAME STR_LIT("kafka-cluster")

/* What authorizer.class.name asks for; that key never changes while a broker runs. Without it
 * everything is allowed; with one, which Dohle cannot run, nothing is. */
struct authorizer {
    bool denies_all;
};

void authorizer_init(struct authorizer *a, const struct config *config);
/* principal: "User:ANONYMOUS" on every listener without authentication. */
bool authorize(const struct authorizer *a, struct str principal, enum acl_operation op,
               enum acl_resource_type type, struct str resource);

#endif
