/* A Kafka client for one command: brokers, calls to them, the cluster's metadata. What goes wrong
 * for good is told to the user by the function that returns CLI_FAILED, once, with what to do.
 *
 * Calls are started and waited for in batches; what waits turns the loop: bytes move, deadlines
 * pass, done() functions run, all inside client_turn. A broker's answer is input: names, numbers
 * and sizes in it may be anything. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "cli/cli.h"
#include "rpc/peer.h"
#include "wire/messages.h"

#define CLIENT_BROKERS_DEFAULT "127.0.0.1:9092"
#define CLIENT_TIMEOUT_DEFAULT_S 30
#define CLIENT_RETRY_MS 100 /* pause before what may succeed later is asked again */

struct client;
struct broker;
struct loop;

struct client_options {
    const char *brokers; /* "HOST[:PORT],..."; NULL: $DOHLE_BROKERS or the default */
    int64_t timeout_ms;  /* for each thing that is asked, retries included */
};

/* CLI_USAGE: brokers is not a list of them. command is for that message. */
int client_open(const struct client_options *o, const char *command, struct client **out);
/* Harmless when NULL. */
void client_close(struct client *c);

/* Waits once, until something happens or deadline_us, and lets it happen. */
void client_turn(struct client *c, int64_t deadline_us);
struct now client_now(const struct client *c);
/* When what is asked now must be over. */
int64_t client_deadline_us(const struct client *c);
int32_t client_timeout_ms(const struct client *c);
struct loop *client_loop(struct client *c);
/* For what commands hold of answers and records. */
struct budget *client_memory(struct client *c);

/* ------------------------------------------------------------------ calls */

/* One call and its answer. */
struct answer {
    struct peer_call call;
    struct broker *broker;
    struct arena arena;
    bool open; /* asked, not done */
    enum err err;
    const void *response; /* lives until answer_close; NULL after an error */
};

/* Harmless when only zeroed, or twice. Not while it is open. */
void answer_close(struct answer *a);
/* Starts a call of at most max_version (-1: ours); request stays until it is done. */
void client_ask(struct client *c, struct broker *b, struct answer *a, enum api_key api,
                int16_t max_version, const void *request);
/* The same for what the other side may hold back: it has until deadline_us. */
void client_ask_until(struct client *c, struct broker *b, struct answer *a, enum api_key api,
                      int16_t max_version, const void *request, int64_t deadline_us);
/* Until all of them are done. */
void client_wait(struct client *c, const struct answer *v, size_t n);
/* Ends a call that is not needed any more. */
void client_cancel(struct client *c, struct answer *a);
/* Asks one broker and waits. CLI_FAILED: told. */
int client_call(struct client *c, struct broker *b, struct answer *a, enum api_key api,
                int16_t max_version, const void *request);
/* The same with any broker that answers. */
int client_call_any(struct client *c, struct answer *a, enum api_key api, int16_t max_version,
                    const void *request);
/* Waits a little for what may succeed later; false, at once, when that is after deadline_us. */
bool client_pause(struct client *c, int64_t deadline_us);

/* A call with a done() of its own, which comes in a turn. */
void client_start_call(struct client *c, struct broker *b, struct peer_call *call);
/* Ends it; done() clears *open. */
void client_stop_call(struct client *c, struct peer_call *call, const bool *open);
/* fire() comes in a turn. False: out of memory. */
bool client_start_timer(struct client *c, struct timer *t, int64_t at_us);
void client_stop_timer(struct client *c, struct timer *t);
/* From now on things may take two seconds at most. */
void client_hurry(struct client *c);

/* ------------------------------------------------------------------ errors */

/* Tells why a call failed. CLI_FAILED. */
int client_tell(const struct answer *a);
/* Tells that `what` met an error of Kafka's; message: the broker's own words, or null. CLI_FAILED.
 */
int client_tell_kafka(const char *what, int16_t code, struct str message);
/* What an error means to a user. */
const char *client_error_text(int16_t code);
/* CLI_FAILED. */
int client_out_of_memory(void);
/* Failures that the caller will try again are not told. */
void client_be_quiet(struct client *c, bool quiet);
/* For a command under way: metadata and coordinators are asked for again, within the timeout, when
 * no broker answers. Not while it is quiet. */
void client_be_patient(struct client *c);

/* ------------------------------------------------------------------ brokers and topics */

int32_t broker_id(const struct broker *b);       /* -1: only its address is known */
const char *broker_name(const struct broker *b); /* "HOST:PORT" */
/* NULL: no such broker in the last metadata. */
struct broker *client_broker(struct client *c, int32_t id);
/* The coordinator of a group. CLI_FAILED: told. */
int client_coordinator(struct client *c, struct str group, struct broker **out);

struct topic_partition {
    int32_t index, leader, leader_epoch; /* leader -1: none */
    int16_t error;
    const int32_t *replicas, *isr, *offline;
    int32_t replicas_n, isr_n, offline_n;
};

struct topic {
    struct str name;
    struct uuid id; /* zero: the broker is too old to tell */
    int16_t error;
    bool internal;
    struct topic_partition *partitions; /* by index, each once */
    int32_t partitions_n;
};

struct metadata_broker {
    int32_t id, port;
    struct str host, rack;
};

/* The cluster as a broker told it, made safe: what cannot be is left out. */
struct metadata {
    struct answer answer;
    struct str cluster_id;
    int32_t controller_id;
    struct metadata_broker *brokers; /* by id, each once */
    size_t brokers_n;
    struct topic *topics; /* by name, each once */
    size_t topics_n;
};

enum metadata_scope { METADATA_BROKERS, METADATA_ALL_TOPICS, METADATA_TOPICS };

struct metadata_args {
    enum metadata_scope scope;
    const struct str *topics; /* of METADATA_TOPICS */
    size_t n;
    bool create; /* as the cluster's auto.create.topics.enable allows */
};

/* Learns the brokers too. A topic that is not there has an error. CLI_FAILED: told. */
int client_metadata(struct client *c, const struct metadata_args *args, struct metadata *out);
/* Harmless when only zeroed, or twice. */
void metadata_close(struct metadata *m);
/* NULL: not in it. */
const struct topic *metadata_topic(const struct metadata *m, struct str name);
/* Where to send what the controller decides: its broker or any. Asks for metadata. */
int client_controller(struct client *c, struct broker **out);

#endif
