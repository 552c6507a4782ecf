/* The metadata image: cluster state as the records of the metadata log give it. A value: apply,
 * reset. Every node holds the committed one; the active controller a second, ahead by what is not
 * committed. Iteration is in order of creation (names where Kafka sorts: the caller sorts). */
#ifndef METADATA_IMAGE_H
#define METADATA_IMAGE_H

#include "base/map.h"
#include "core/metadata/delta.h"
#include "wire/messages.h"

struct image_endpoint {
    char *name; /* listener */
    char *host;
    uint16_t port;
    int16_t security_protocol;
};

/* Levels of a feature that a broker supports. */
struct image_range {
    char *name;
    int16_t min, max;
};

struct image_broker {
    int32_t id;
    int64_t epoch;
    struct uuid incarnation_id;
    struct image_endpoint *endpoints;
    int32_t endpoints_n;
    char *rack; /* or NULL */
    bool fenced;
    bool in_controlled_shutdown;
    struct uuid *log_dirs;
    int32_t log_dirs_n;
    struct uuid *cordoned_log_dirs;
    int32_t cordoned_log_dirs_n; /* -1: never told */
    struct image_range *features;
    int32_t features_n;
};

/* A registered controller (KIP-919). */
struct image_controller {
    int32_t id;
    struct uuid incarnation_id;
    bool zk_migration_ready;
    struct image_endpoint *endpoints;
    int32_t endpoints_n;
    struct image_range *features;
    int32_t features_n;
};

struct image_partition {
    int32_t *replicas, *isr, *elr, *last_known_elr, *removing, *adding;
    int32_t replicas_n, isr_n, elr_n, last_known_elr_n, removing_n, adding_n;
    struct uuid *directories; /* replicas_n, or NULL */
    int32_t leader;           /* -1: none */
    int32_t leader_epoch, partition_epoch;
    int8_t leader_recovery_state;
};

struct image_topic {
    char *name;
    struct uuid id;
    struct image_partition *partitions; /* indexed 0..; one without replicas is not there (yet) */
    int32_t partitions_n, partitions_cap;
};

#define IMAGE_PARTITIONS_MAX 1000000 /* of a topic; an index beyond it is ERR_CORRUPT */

struct image_feature {
    char *name;
    int16_t level;
};

/* Kafka's ConfigResource types. */
enum config_resource {
    CONFIG_RESOURCE_TOPIC = 2,
    CONFIG_RESOURCE_BROKER = 4,
    CONFIG_RESOURCE_BROKER_LOGGER = 8, /* never in an image */
    CONFIG_RESOURCE_CLIENT_METRICS = 16,
    CONFIG_RESOURCE_GROUP = 32,
};

/* Configuration of one resource: key -> value strings (map of char *). */
struct image_config {
    int8_t resource_type;
    char *name; /* "" for the cluster-wide broker default */
    struct map values;
};

/* A record of an area that Dohle does not use yet: quotas, ACLs, SCRAM, tokens. */
struct image_kept {
    int16_t type;
    int32_t n;
    uint8_t framed[];
};

struct image {
    uint64_t seed;             /* of maps */
    struct map brokers;        /* int32 -> image_broker */
    struct map controllers;    /* int32 -> image_controller */
    struct map topics_by_name; /* -> image_topic */
    struct map topics_by_id;
    struct map configs; /* type byte + name -> image_config */
    struct map kept;    /* type byte + its key -> image_kept */
    struct image_feature *features;
    int32_t features_n;
    int64_t next_producer_id; /* -1: no block was given out yet */
    int64_t next_offset;      /* of the record after the last applied */
    int32_t epoch;            /* of the last applied */
    bool in_transaction;      /* BeginTransaction seen; applied only by the loader's rules */
    uint64_t partitions_n;    /* in all topics */
};

void image_init(struct image *img, uint64_t seed);
void image_close(struct image *img);
/* Empties it; the seed stays. */
void image_reset(struct image *img);
/* out (initialised, empty) becomes equal to img. ERR_NOMEM: out is to be closed. */
MUST_USE enum err image_copy(const struct image *img, struct image *out);

/* Applies one decoded metadata record (type: its api key, see records.h). Records of areas that
 * Dohle does not use yet (ACLs, quotas, SCRAM, tokens) are kept whole so that snapshots hold them.
 * What changed is added to d unless it is NULL. ERR_NOMEM, ERR_UNSUPPORTED (unknown record type),
 * ERR_CORRUPT (names what does not exist). */
MUST_USE enum err image_apply(struct image *img, int16_t type, int16_t version, const void *record,
                              struct bytes framed, struct image_delta *d);

struct image_broker *image_broker(const struct image *img, int32_t id);
struct image_controller *image_controller(const struct image *img, int32_t id);
struct image_topic *image_topic_named(const struct image *img, struct str name);
struct image_topic *image_topic_by_id(const struct image *img, struct uuid id);
struct image_partition *image_partition(struct image_topic *t, int32_t index); /* or NULL */
/* NULL when nothing is set. This and the next also, for a name over 255 bytes, when out of memory.
 */
const struct image_config *image_config(const struct image *img, int8_t type, struct str resource);
/* NULL when not set. */
const char *image_config_value(const struct image *img, int8_t type, struct str resource,
                               struct str key);
int16_t image_feature_level(const struct image *img, const char *name); /* 0 when absent */
int16_t image_metadata_version(const struct image *img);                /* 0 when absent */
/* Kafka's reserved ids (DirectoryId), by their last byte; none below 100 is a directory. */
#define IMAGE_DIRECTORY_UNASSIGNED 1 /* the broker is to choose */
#define IMAGE_DIRECTORY_LOST 2
bool image_directory_reserved(struct uuid id);
/* Where a broker's new replica goes: its only directory, else it chooses itself (KIP-858). */
struct uuid image_default_directory(const struct image *img, int32_t broker_id);
/* Where a broker's replica is, as the records tell: zero when they do not (Kafka: MIGRATING). */
struct uuid image_replica_directory(const struct image_partition *p, int32_t broker_id);
/* Log directory of a replica on a broker: false when the broker has lost it (KIP-858). */
bool image_directory_online(const struct image *img, const struct image_partition *p,
                            int32_t broker_id);
bool image_broker_has_directory(const struct image_broker *b, const struct image_partition *p);
bool image_broker_owns(const struct image_broker *b, struct uuid dir);
/* Can a replica be there? Not in one that is LOST; one of a broker that names none can be in any.
 */
bool image_broker_serves(const struct image_broker *b, struct uuid dir);

/* The endpoint of a broker on a listener; NULL. */
const struct image_endpoint *image_endpoint(const struct image_broker *b, struct str listener);

/* Every record of a snapshot of this image, framed, in Kafka's order (quorum.md 5). */
typedef enum err (*image_record_fn)(void *ctx, struct bytes framed);
MUST_USE enum err image_snapshot(const struct image *img, image_record_fn fn, void *ctx);

#endif
