/* Simulated clients: each has one connection and one request in flight, encodes and decodes real
 * frames, and tells the model what it was promised. A request without an answer (the connection
 * ended) promised nothing. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "fleet.h"
#include "support/node/model.h"

enum { TOPICS = 3, PARTITIONS_PER_TOPIC = 2 };

struct sim_topic {
    char name[16];
    struct uuid id;             /* zero: not known to exist */
    struct model_number config; /* of one key, see admin.c */
};

/* A group and what it has committed: that of the committer, and that of the members, each of whom
 * commits for a partition of its own. */
struct sim_group {
    const char *name;
    struct model_number offsets[TOPICS][PARTITIONS_PER_TOPIC];
};
enum { GROUP_SIMPLE, GROUP_OF_MEMBERS, GROUPS };

/* What all clients of a run know of the cluster. */
struct cluster {
    struct model model;
    struct sim_topic topics[TOPICS];
    struct sim_group groups[GROUPS];
    struct rng rng;
    /* Of several nodes; NULL and 0 of one. */
    struct fleet *fleet;
    int16_t replication; /* factor of topics; only acks=all is a promise then */
};

enum client_kind {
    CLIENT_PRODUCER,
    CLIENT_CONSUMER,
    CLIENT_ADMIN,
    CLIENT_COMMITTER,
    CLIENT_MEMBER,
};

enum { MEMBER_ID_MAX = 64, MEMBERS_MAX = 16 };

struct client {
    enum client_kind kind;
    size_t conn; /* index in the world */
    size_t at;   /* which world, of a fleet */
    bool moves;  /* to another one, before the next request */
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
    /* administrator, committer, member */
    int64_t asked; /* the number in the request */
    int group;
    bool coordinated; /* its coordinator was found */
    bool deleting;    /* the group, in the request */
    /* member */
    char member[MEMBER_ID_MAX];
    int32_t generation; /* -1: it has to join */
    bool synced;
    char led[MEMBERS_MAX][MEMBER_ID_MAX]; /* whom it has to assign to */
    int32_t led_n;
};

void client_init(struct client *c, enum client_kind kind, size_t conn, struct rng *rng);
void client_close(struct client *c);
/* Takes answers, sends the next request, reconnects. */
void client_step(struct client *c, struct world *w, struct cluster *cl);
/* The same in a fleet, at the node that it is to talk to. */
void client_step_in_fleet(struct client *c, struct cluster *cl);

/* Reads every partition from its start and compares (the node is ready). False if
 * that did not end within the steps allowed. */
bool verify_all(struct world *w, struct cluster *cl, size_t conn);
/* The same in a fleet, each partition at its leader. */
bool verify_fleet(struct cluster *cl, size_t conn);

/* ------------------------------------------------------------------ for the files of clients */

void client_send(struct client *c, struct world *w, int16_t key, int16_t version, const void *body);
/* Any that is served, min and above. */
int16_t client_version(struct cluster *cl, int16_t key, int16_t min);
/* One of a topic that exists, for requests that go to w; false: there is none. */
bool client_pick_partition(struct client *c, struct world *w, struct cluster *cl);
/* The node says that somebody else is to be asked. */
void client_refused(struct client *c, int16_t error);
/* What is to be true of the partition in question. */
struct model_partition *client_model(const struct client *c, struct cluster *cl);
/* Steps until the answer is there; false: the node ended, or it did not come. */
bool client_await(struct client *c, struct world *w, struct cluster *cl, struct arena *a,
                  const void **answer);

/* X_begin sends the next request, X_handle takes its answer, X_verify asks for all at the end. */
void admin_init(struct cluster *cl);
void admin_begin(struct client *c, struct world *w, struct cluster *cl);
void admin_handle(struct client *c, struct cluster *cl, const void *answer);
bool admin_verify(struct client *c, struct world *w, struct cluster *cl);
void offsets_init(struct cluster *cl);
void committer_begin(struct client *c, struct world *w, struct cluster *cl);
void committer_handle(struct client *c, struct cluster *cl, const void *answer);
bool offsets_verify(struct client *c, struct world *w, struct cluster *cl);
void member_begin(struct client *c, struct world *w, struct cluster *cl);
void member_handle(struct client *c, struct cluster *cl, const void *answer);
/* A commit of what is in question, by a member of this generation or by none (-1). */
void client_commit(struct client *c, struct world *w, struct cluster *cl);
void client_committed(struct client *c, struct cluster *cl,
                      const struct offset_commit_response *resp);
/* The coordinator is not ready: any request may be told so. */
bool client_not_ready(int16_t error);
/* Asks for the coordinator, which makes it be. */
void client_find_coordinator(struct client *c, struct world *w, struct cluster *cl);
void client_found(struct client *c, const struct find_coordinator_response *resp);

#endif
