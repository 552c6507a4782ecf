/* The parts of the controller; shared by the files of core/controller only. */
#ifndef CONTROLLER_INSIDE_H
#define CONTROLLER_INSIDE_H

#include "core/controller/controller.h"
#include "core/controller/partition_index.h"
#include "core/metadata/records.h"

enum {
    CONTROLLER_MAX_RECORDS = 10000,       /* of a batch and of an atomic operation, as Kafka */
    CONTROLLER_MAX_BATCH_BYTES = 4 << 20, /* of records that may be split; raft's limit is 8 MiB */
    CONTROLLER_MAX_PARTITIONS = 10000,    /* of one CreateTopics, as Kafka */
    CONTROLLER_PRODUCER_ID_BLOCK = 1000,  /* as Kafka */
    CONTROLLER_CLAIM_RETRY_US = 100 * 1000,
    CONTROLLER_NO_BROKER = -1,
};

enum controller_state {
    CONTROLLER_STANDBY,
    CONTROLLER_CLAIMING, /* leads, but `ahead` is to be made from what is committed */
    CONTROLLER_ACTIVE,
};

/* A registered broker as the active controller hears of it. */
struct session {
    struct timer timer;  /* broker.session.timeout.ms after the last word */
    struct list expired; /* in controller.expired once it has fired */
    struct controller *controller;
    int32_t broker_id;
    bool heard;              /* since we are active; else the session is only assumed */
    uint64_t beats;          /* heard, ever */
    int64_t register_offset; /* of its RegisterBroker record, or less */
    int64_t metadata_offset; /* last applied, as it says; -1: unknown */
    int64_t shutdown_offset; /* of the record that began its controlled shutdown; -1 */
};

struct controller {
    struct env *env;
    struct timers *timers;
    struct raft *raft;
    struct config *config; /* with what the image ahead says of our broker's keys */
    const struct image *committed;
    const char *cluster_id;
    int32_t node_id;
    enum controller_state state;
    struct timer claim_timer; /* while claiming: wakes a turn to try again */
    int32_t epoch;
    struct image ahead;    /* while active: with what is not committed */
    bool config_stale;     /* of our broker's keys, after a record of them */
    struct map collisions; /* topic names with '.' as '_' -> the name (owned) */
    struct partition_index index;
    struct map sessions; /* broker id -> struct session */
    struct list expired;
    struct dialing *dialing;
    struct list probes;                          /* of brokers that seem gone */
    struct timer preferred_timer, unclean_timer; /* the next look of balance.c */
    bool preferred_due, unclean_due;
    int64_t committed_offset; /* exclusive */
    int64_t appended_offset;  /* last offset that we appended; -1 */
    struct list pending;      /* operations by offset */
    struct list ready;
    struct arena scratch; /* of one operation's records */
    struct arena replay;  /* of one record */
};

/* ------------------------------------------------------------------ controller.c */

/* The offset that the next record appended will have. */
int64_t controller_next_offset(const struct controller *c);
/* Appends and replays; not atomic lists are split into batches. ERR_TOO_LARGE, ERR_BUSY (not leader
 * any more), ERR_NOMEM, ERR_NOSPC, ...: nothing of an atomic list was appended. */
MUST_USE enum err controller_append(struct controller *c, const struct record_list *rl, bool atomic,
                                    struct now now);
/* The op completes when all that was appended so far is committed. */
void controller_finish(struct controller *c, struct controller_op *op, int16_t error);
/* What the client is told when an append failed. */
int16_t controller_error_of(enum err e);
/* False: the op completes with NOT_CONTROLLER. */
bool controller_begin(struct controller *c, struct controller_op *op);

/* ------------------------------------------------------------------ bootstrap.c */

/* What a claim appends: the features of a fresh cluster, or the end of an unfinished transaction.
 */
MUST_USE enum err controller_activation_records(struct controller *c, struct record_list *rl);

/* ------------------------------------------------------------------ election.c */

/* Why leaders and in-sync replicas change; CONTROLLER_NO_BROKER where there is none. */
struct broker_change {
    int32_t removed; /* leaves the ISRs it is in */
    int32_t unclean; /* leaves ISRs and ELRs: it may have lost data */
    int32_t added;   /* counts as active already; partitions without a leader are looked at */
    const struct uuid *dir; /* with removed: only partitions in that log directory; or NULL */
};
/* Adds the PartitionChangeRecords of every partition concerned. */
MUST_USE enum err election_broker_change(struct controller *c, const struct broker_change *change,
                                         struct record_list *rl);
/* Unfenced and not in controlled shutdown. */
bool election_broker_active(const struct image *img, int32_t broker_id);

/* ------------------------------------------------------------------ probe.c */

/* On becoming active: looks at every unfenced broker, as nobody here has heard of it yet. */
void probes_open(struct controller *c, struct now now);
void probes_close(struct controller *c);
/* True if anything moved. */
bool probes_settle(struct controller *c, struct now now);

/* ------------------------------------------------------------------ balance.c */

/* While active. ERR_NOMEM. */
MUST_USE enum err balance_open(struct controller *c, struct now now);
void balance_close(struct controller *c);
/* Preferred and unclean elections that are due. True if any happened. */
bool balance_settle(struct controller *c, struct now now);

/* ------------------------------------------------------------------ sessions.c */

struct session *session_find(const struct controller *c, int32_t broker_id);
/* Makes or renews the session of a broker. NULL: out of memory. */
struct session *session_touch(struct controller *c, int32_t broker_id, struct now now);
/* On becoming active: a full session for each unfenced broker. ERR_NOMEM. */
MUST_USE enum err sessions_open(struct controller *c, struct now now);
void sessions_close(struct controller *c);
/* Its broker is fenced at the next settle. */
void session_expire(struct session *s);
/* It was told to go: its next life need not wait for the session's end. */
void session_leave(struct session *s);
/* Of a broker that is no more. */
void session_forget(struct controller *c, int32_t broker_id);
/* Fences brokers whose sessions have ended. True if any. */
bool sessions_settle(struct controller *c, struct now now);
/* Smallest metadata offset of the active brokers; INT64_MAX when there is none. */
int64_t sessions_lowest_active_offset(const struct controller *c);

/* ------------------------------------------------------------------ heartbeat.c */

/* Adds BrokerRegistrationChange{fenced}. fenced: 1 fences, -1 unfences. */
MUST_USE enum err brokers_add_fenced(struct record_list *rl, const struct image_broker *b,
                                     int8_t fenced);

/* ------------------------------------------------------------------ topic_values.c */

/* Values that a topic sets itself, by the key's place in config_keys(CONFIG_TOPIC); n < 0: not. */
struct topic_values {
    struct str v[64];
};

/* unclean.leader.election.enable and min.insync.replicas in effect. */
bool topic_unclean_allowed(const struct controller *c, const struct image_topic *t);
int32_t topic_min_isr(const struct controller *c, const struct image_topic *t);
/* Checks the values that a topic is to be created with. K_INVALID_CONFIG with a message (in a). */
int16_t topic_values_check(const struct controller *c,
                           const struct create_topics_request_creatable_topic *in, struct arena *a,
                           struct topic_values *out, struct str *message);
/* All topic keys with effective values and their sources. ERR_NOMEM. */
MUST_USE enum err topic_values_describe(const struct controller *c, const struct topic_values *own,
                                        struct arena *a,
                                        struct create_topics_response_creatable_topic_result *out);

/* ------------------------------------------------------------------ placement.c */

/* Brokers in the order in which partitions go round them. */
struct placement {
    const struct image_broker **order; /* unfenced ones first */
    int32_t usable_n, unfenced_n;
    int32_t *rack; /* of each, as a number */
    int32_t racks_n;
    int32_t *chosen;       /* places in order; scratch of one partition */
    uint64_t start, shift; /* random */
};

/* All its log directories are: it takes no new replicas (KIP-1066). */
bool placement_cordoned(const struct image_broker *b);
/* ERR_NOMEM. */
MUST_USE enum err placement_open(struct controller *c, struct placement *p);
/* Replicas of one partition, the leader first; rf <= usable_n. */
void placement_partition(const struct placement *p, int32_t index, int32_t rf, int32_t *replicas);

#endif
