/* Simulated clients: each has one connection and one request in flight, encodes and decodes real
 * frames, and tells the model what it was promised. A request without an answer (the connection
 * ended) promised nothing. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "support/node/model.h"
#include "world.h"

enum { TOPICS = 3, PARTITIONS_PER_TOPIC = 2 };

struct sim_topic {
    char name[16];
    struct uuid id; /* zero: not known to exist */
};

/* What all clients of a run know of the cluster. */
struct cluster {
    struct model model;
    struct sim_topic topics[TOPICS];
    struct rng rng;
};

enum client_kind { CLIENT_PRODUCER, CLIENT_CONSUMER, CLIENT_ADMIN };

struct client {
    enum client_kind kind;
    size_t conn; /* index in the world */
    uint32_t id;
    int16_t acks;
    bool idempotent;
    enum batch_codec codec;
    /* in flight */
    bool waiting;
    int16_t api_key, version;
    int32_t correlation_id;
    struct uuid topic_id;
    int32_t topic, partition;
    uint32_t first_sequence; /* of the records in the request, our own count */
    int32_t records_n;
    int64_t sent_us;
    /* producer */
    uint32_t next_value;
    int64_t producer_id; /* -1: none yet */
    int32_t next_sequence[TOPICS][PARTITIONS_PER_TOPIC];
    struct uuid sequence_topic[TOPICS]; /* sequences count per incarnation of a topic */
    struct buf batch;                   /* in flight, or to be sent again */
    bool retry;                         /* idempotent: the batch was not acknowledged */
    /* consumer */
    int64_t position[TOPICS][PARTITIONS_PER_TOPIC];
    struct uuid position_topic[TOPICS];
};

void client_init(struct client *c, enum client_kind kind, size_t conn, struct rng *rng);
void client_close(struct client *c);
/* Takes answers, sends the next request, reconnects. */
void client_step(struct client *c, struct world *w, struct cluster *cl);

/* Reads every partition from its start and compares (the node is ready). False if
 * that did not end within the steps allowed. */
bool verify_all(struct world *w, struct cluster *cl, size_t conn);

#endif
