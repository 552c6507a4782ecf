/* Simulated clients: each has one connection and one request in flight, encodes and decodes real
 * frames, and tells the model what it was promised. A request without an answer (the connection
 * ended) promised nothing. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "fleet.h"
#include "support/node/model.h"

enum {
    TOPICS = 3,
    PARTITIONS_PER_TOPIC = 2, /* as created */
    PARTITIONS_MAX = 4,
    TOPIC_LIVES_MAX = 16,
};

struct sim_topic {
    char name[16];
    struct uuid id;             /* zero: not known to exist */
    int32_t partitions_n;       /* as promised */
    struct model_number config; /* of one key, see admin.c */
    /* Lives whose deletion was asked for; nobody may use them any more. */
    struct uuid gone[TOPIC_LIVES_MAX];
    size_t gone_n;
};

/* A group and what it has committed: that of the committer, and that of the members, each of whom
 * commits for a partition of its own. */
struct sim_group {
    const char *name;
    struct model_number offsets[TOPICS][PARTITIONS_PER_TOPIC];
    int32_t epoch; /* of a fleet: no coordinator of a later one has answered yet */
};
enum { GROUP_SIMPLE, GROUP_OF_MEMBERS, GROUPS };

/* What operators may do. */
struct sim_operations {
    bool unclean;      /* allow unclean elections, and ask for them */
    bool min_isr;      /* change min.insync.replicas */
    bool deletion;     /* of topics */
    bool fewer_voters; /* take away some that live, too */
};

/* What all clients of a run know of the cluster. */
struct cluster {
    struct model model;
    struct sim_topic topics[TOPICS];
    struct sim_group groups[GROUPS];
    struct rng rng;
    struct fleet *fleet; /* NULL: of one node. Else only acks=all is a promise */
    bool calm;           /* members neither come nor go */
    struct sim_operations operations;
};

enum client_kind {
    CLIENT_PRODUCER,
    CLIENT_CONSUMER,
    CLIENT_ADMIN,
    CLIENT_OPERATOR,
    CLIENT_COMMITTER,
    CLIENT_MEMBER,
};

enum { MEMBER_ID_MAX = 64, MEMBERS_MAX = 64 };

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
    int32_t next_sequence[TOPICS][PARTITIONS_MAX];
    struct uuid sequence_topic[TOPICS]; /* sequences count per incarnation of a topic */
    struct buf batch;                   /* in flight, or to be sent again */
    bool retry;                         /* idempotent: the batch was not acknowledged */
    /* consumer */
    int64_t position[TOPICS][PARTITIONS_MAX];
    struct uuid position_topic[TOPICS];
    int32_t rack;   /* 0: none */
    bool settled;   /* at a replica, for one partition */
    size_t replica; /* its world */
    int8_t isolation_level;
    struct model_told end; /* what had been told when it asked */
    /* administrator, committer, member */
    int64_t asked; /* the number in the request */
    int group;
    bool coordinated;   /* its coordinator was found */
    bool not_ready;     /* it has said so */
    size_t coordinator; /* of a fleet: which world that is */
    int32_t epoch;      /* of the coordinator in question, or an earlier one */
    /* member */
    char member[MEMBER_ID_MAX];
    int32_t generation; /* -1: it has to join */
    bool synced;
    bool rests;                           /* has heard since that the generation goes on */
    char led[MEMBERS_MAX][MEMBER_ID_MAX]; /* whom it has to assign to */
    int32_t led_n;
};

void cluster_init(struct cluster *cl, uint64_t seed);
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
bool verify_in_topic(struct cluster *cl, size_t conn, int32_t topic, int32_t partition);

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

/* A topic is known to exist, with at least so many partitions. */
void sim_topic_found(struct sim_topic *t, struct uuid id, int32_t partitions_n);
/* Its deletion is about to be asked for. */
void sim_topic_leaves(struct sim_topic *t);

/* Asks for what stands from offset on. */
void consumer_fetch(struct client *c, struct world *w, struct cluster *cl, int64_t offset);
/* The next offset to read, or -1 when the partition gave an error. */
int64_t consumer_fetched(struct client *c, struct cluster *cl, const struct fetch_response *resp,
                         int64_t position);
enum { LIST_OFFSETS_EARLIEST = -2 };
void consumer_ask(struct client *c, struct world *w, struct cluster *cl, int64_t timestamp);
/* Of LIST_OFFSETS_EARLIEST; -1: it was not told. */
int64_t consumer_start_told(struct client *c, struct cluster *cl,
                            const struct list_offsets_response *resp);

/* X_begin sends the next request, X_handle takes its answer, X_verify asks for all at the end. */
void consumer_begin(struct client *c, struct world *w, struct cluster *cl);
void consumer_handle(struct client *c, struct cluster *cl, const void *answer);
void admin_init(struct cluster *cl);
void admin_begin(struct client *c, struct world *w, struct cluster *cl);
void admin_handle(struct client *c, struct cluster *cl, const void *answer);
bool admin_verify(struct client *c, struct world *w, struct cluster *cl);
void operator_begin(struct client *c, struct world *w, struct cluster *cl);
/* False: there is nothing to change. */
bool operator_change_voters(struct client *c, struct world *w, struct cluster *cl);
void operator_handle(struct client *c, struct cluster *cl, const void *answer);
void offsets_init(struct cluster *cl);
/* A topic that may be deleted takes what is committed for it along. */
void offsets_topic_deletion_asked(struct cluster *cl, int32_t topic);
void committer_begin(struct client *c, struct world *w, struct cluster *cl);
void committer_handle(struct client *c, struct cluster *cl, const void *answer);
bool offsets_verify(struct client *c, struct world *w, struct cluster *cl);
bool offsets_verify_fleet(struct client *c, struct cluster *cl);
void member_begin(struct client *c, struct world *w, struct cluster *cl);
void member_handle(struct client *c, struct cluster *cl, const void *answer);
/* A commit of what is in question, by a member of this generation or by none (-1). */
void client_commit(struct client *c, struct world *w, struct cluster *cl);
void client_committed(struct client *c, struct cluster *cl,
                      const struct offset_commit_response *resp);
/* What is committed for what is in question. False: not answered yet. */
void client_fetch_offset(struct client *c, struct world *w, struct cluster *cl);
bool client_offset_fetched(struct client *c, struct cluster *cl,
                           const struct offset_fetch_response *resp);
/* The coordinator is not ready, or elsewhere: any request may be told so. */
bool client_not_ready(struct client *c, int16_t error);
/* Asks for the coordinator, which makes it be. */
void client_find_coordinator(struct client *c, struct world *w, struct cluster *cl);
void client_found(struct client *c, const struct find_coordinator_response *resp);
/* All members of a group have what they are to have, and none asks for more. */
bool members_rest(const struct client *clients, size_t n);

#endif
