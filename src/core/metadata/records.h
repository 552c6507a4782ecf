/* Metadata records as the metadata log holds them: frame version 1 (varint), record type (varint),
 * version (varint), body (Kafka's MetadataRecordSerde). */
#ifndef METADATA_RECORDS_H
#define METADATA_RECORDS_H

#include "base/buf.h"
#include "wire/codec.h"

enum record_type {
    RECORD_REGISTER_BROKER = 0,
    RECORD_UNREGISTER_BROKER = 1,
    RECORD_TOPIC = 2,
    RECORD_PARTITION = 3,
    RECORD_CONFIG = 4,
    RECORD_PARTITION_CHANGE = 5,
    RECORD_FENCE_BROKER = 7,
    RECORD_UNFENCE_BROKER = 8,
    RECORD_REMOVE_TOPIC = 9,
    RECORD_DELEGATION_TOKEN = 10,
    RECORD_USER_SCRAM_CREDENTIAL = 11,
    RECORD_FEATURE_LEVEL = 12,
    RECORD_CLIENT_QUOTA = 14,
    RECORD_PRODUCER_IDS = 15,
    RECORD_BROKER_REGISTRATION_CHANGE = 17,
    RECORD_ACCESS_CONTROL_ENTRY = 18,
    RECORD_REMOVE_ACCESS_CONTROL_ENTRY = 19,
    RECORD_NO_OP = 20,
    RECORD_ZK_MIGRATION_STATE = 21,
    RECORD_REMOVE_USER_SCRAM_CREDENTIAL = 22,
    RECORD_BEGIN_TRANSACTION = 23,
    RECORD_END_TRANSACTION = 24,
    RECORD_ABORT_TRANSACTION = 25,
    RECORD_REMOVE_DELEGATION_TOKEN = 26,
    RECORD_REGISTER_CONTROLLER = 27,
    RECORD_CLEAR_ELR = 28,
    RECORD_UNREGISTER_CONTROLLER = 29,
};

/* A list of framed records for raft_append. */
struct record_list {
    struct buf bytes;
    uint32_t *ends; /* end of each in bytes */
    size_t n, cap;
};

void record_list_init(struct record_list *rl);
void record_list_close(struct record_list *rl);
/* Appends record (a struct of m) at version. */
MUST_USE enum err record_list_add(struct record_list *rl, const struct wire_message *m,
                                  int16_t version, const void *record);
/* Appends a record that is framed already. */
MUST_USE enum err record_list_add_framed(struct record_list *rl, struct bytes framed);
/* Forgets all but the first n. */
void record_list_cut(struct record_list *rl, size_t n);
/* Lives until the next addition. */
struct bytes record_list_get(const struct record_list *rl, size_t i);

/* Opens a frame: type, version and the decoded struct (in a). ERR_UNSUPPORTED: unknown type or
 * version. */
MUST_USE enum err record_decode(struct bytes framed, struct arena *a, int16_t *type,
                                int16_t *version, void **record);

/* Type and version alone. */
MUST_USE enum err record_peek(struct bytes framed, int16_t *type, int16_t *version);

/* The version in which Kafka writes a record at a metadata.version (its MetadataVersion). */
int16_t record_version_register_broker(int16_t metadata_version);
int16_t record_version_partition(int16_t metadata_version); /* PartitionChangeRecord too */
/* Lowest version that holds what the record says. */
struct broker_registration_change_record;
int16_t record_version_registration_change(const struct broker_registration_change_record *r);

/* First metadata.version with... */
#define METADATA_VERSION_NO_SHRINK_BUMP 12 /* 3.6-IV0: an ISR shrink leaves the leader epoch */
#define METADATA_VERSION_TRANSACTIONS 13   /* 3.6-IV1: Begin-, EndTransactionRecord */
#define METADATA_VERSION_CONTROLLERS 15    /* 3.7-IV0: controllers register (KIP-919) */
#define METADATA_VERSION_DIRECTORIES 17    /* 3.7-IV2: log directories of replicas (KIP-858) */
#define METADATA_VERSION_ELR 23            /* 4.0-IV1: eligible leader replicas (KIP-966) */
#define METADATA_VERSION_CORDONED 30       /* cordoned log directories (KIP-1066) */

#endif
