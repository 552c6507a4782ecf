/* Configuration as one table: names, types, defaults, validators (Kafka 4.4's; our own keys begin
 * "dohle."). Values come from defaults, a properties file, --set, and over these what the metadata
 * log says of dynamic keys; topics override by their own keys. Text in, checked values out; nothing
 * here reads files or the environment. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/types.h"
#include "log/log.h"
#include "quorum/voters.h"
#include "wire/validate.h"

enum config_type {
    CONFIG_BOOLEAN,
    CONFIG_STRING,
    CONFIG_SHORT,
    CONFIG_INT,
    CONFIG_LONG,
    CONFIG_DOUBLE,
    CONFIG_LIST,
    CONFIG_CLASS,
    CONFIG_PASSWORD,
};

enum config_scope { CONFIG_BROKER, CONFIG_TOPIC, CONFIG_GROUP, CONFIG_CLIENT_METRICS };

enum config_source { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_SET };

struct config_key {
    const char *name;
    enum config_scope scope;
    enum config_type type;
    const char *def;            /* text; NULL: null, or required */
    const char *valid;          /* for messages: "[1,...]"; "" when anything of the type is */
    const char *broker_synonym; /* topic and group keys: the broker key that gives their default */
    double min, max;            /* numbers */
};

/* The table, NULL when the name is not Kafka's or ours. */
const struct config_key *config_find(enum config_scope scope, struct str name);
const struct config_key *config_keys(enum config_scope scope, size_t *n);

/* ERR_INVALID: *message names key, value and what is valid. */
MUST_USE enum err config_check(const struct config_key *key, struct str value, char *message,
                               size_t message_n);
/* A broker key must be valid as the default of its topic key too. */
MUST_USE enum err config_check_broker(const struct config_key *key, struct str value, char *message,
                                      size_t message_n);
/* A checked value as DescribeConfigs shows it: blanks gone, numbers and lists as Java prints what
 * it read. In a, or static; NULL: out of memory. */
const char *config_print(const struct config_key *key, const char *text, struct arena *a);
/* The next element of a comma-separated list that is not empty, without blanks around it; false at
 * the end. */
bool config_next_item(struct str *list, struct str *item);
/* Without the blanks around it, by Java's rule. */
struct str config_trim(struct str s);
/* Decimal with an optional sign, blanks around it; false if it is none or too large. */
bool config_parse_int(struct str s, int64_t *out);

/* The broker's configuration. */
struct config;

MUST_USE enum err config_new(struct config **out);
void config_free(struct config *c);
/* A whole properties file (Java's rules: comments, escapes, continuation lines, = : or space).
 * ERR_INVALID names line, key, value and what is valid. warn is called for unknown keys. */
MUST_USE enum err config_parse_properties(struct config *c, struct str text, const char *file,
                                          void (*warn)(void *ctx, struct str key), void *ctx,
                                          char *message, size_t message_n);
/* One key; a later value replaces an earlier one. Unknown keys are told by warn (it may be NULL)
 * and are no error. */
MUST_USE enum err config_set(struct config *c, struct str key, struct str value,
                             enum config_source source, void (*warn)(void *ctx, struct str key),
                             void *ctx, char *message, size_t message_n);
/* Checks what concerns several keys (ids, roles, voters, listeners, log.dirs, broker keys that are
 * the defaults of topic keys) and what is not served yet. ERR_INVALID with a message. Fills what
 * config_listeners and config_log_dirs give; node.id becomes what broker.id or a sole voter say
 * when it is not set itself. May be called again after more config_set. */
MUST_USE enum err config_finish(struct config *c, char *message, size_t message_n);

/* Values; the key must be in the broker table with that type (CHECK). Text: NULL is null. */
const char *config_text(const struct config *c, const char *key);
int64_t config_int(const struct config *c, const char *key);
bool config_bool(const struct config *c, const char *key);
/* The text that the file, --set or the default gives a key, whatever lies over it. */
const char *config_static_text(const struct config *c, const char *key);
enum config_source config_source(const struct config *c, const char *key);

struct listener {
    char name[64];             /* PLAINTEXT, CONTROLLER, ... upper case */
    char host[256];            /* "" binds all; without brackets */
    uint16_t port;             /* 0: any */
    char advertised_host[256]; /* a host that binds all addresses advertises 127.0.0.1 (::1) */
    uint16_t advertised_port;  /* 0: the real one, known after bind */
    bool controller;           /* in controller.listener.names */
    int16_t security_protocol; /* 0 PLAINTEXT; others are refused in config_finish */
};
/* After config_finish. */
const struct listener *config_listeners(const struct config *c, size_t *n);
/* ---- roles, after config_finish; without process.roles a node has both */

bool config_is_broker(const struct config *c);
bool config_is_controller(const struct config *c);
/* There are other nodes: it has one role only, other voters or bootstrap servers. */
bool config_in_cluster(const struct config *c);
/* controller.quorum.voters; n == 0 when not set. ERR_INVALID is told by config_finish. */
MUST_USE enum err config_voters(const struct config *c, struct voter_set *out);

struct config_address {
    char host[256]; /* without brackets */
    uint16_t port;
};
/* host:port, [v6]:port, :port */
bool config_parse_address(struct str s, struct config_address *out);

/* The listener that brokers reach each other on (inter.broker.listener.name, else the name of
 * security.inter.broker.protocol): upper case. A node without others need not have it. After
 * config_finish. */
const char *config_inter_broker_listener(const struct config *c);
/* The first of controller.listener.names, on which controllers are spoken to: upper case; "" when
 * none is named. After config_finish. */
const char *config_controller_listener(const struct config *c);
/* log.dirs, else log.dir: one at least, none twice. After config_finish. */
enum { LOG_DIRS_MAX = 64 };
const char *const *config_log_dirs(const struct config *c, size_t *n);
/* metadata.log.dir, which need not be one of them; else the first. After config_finish. */
const char *config_metadata_log_dir(const struct config *c);

/* ---- dynamic values (KIP-226) */

/* Where the values of a resource come from (the metadata image); NULL when not set. */
typedef const char *(*config_value_fn)(void *ctx, const char *key);

enum config_level { CONFIG_OF_BROKER, CONFIG_OF_CLUSTER, CONFIG_LEVELS }; /* the first wins */

enum config_dynamic {
    CONFIG_READ_ONLY,
    CONFIG_DYNAMIC_BROKER, /* for each broker, not for the cluster */
    CONFIG_DYNAMIC,
};
enum config_dynamic config_dynamic(const struct config_key *key);
/* As config_find for what a broker resource may hold: also keys that no file may set, and keys of
 * one listener ("listener.name.x.max.connections"), which are as the key without it. */
const struct config_key *config_find_dynamic(struct str name);

/* A layer of dynamic values over a static configuration, which stays the owner's and outlives it.
 * Empty at first; everything that reads values takes either. */
MUST_USE enum err config_over(const struct config *base, struct config **out);
/* Takes over the values of every dynamic key at a level; those that config_check_broker would
 * refuse count as not set. *topics becomes true when a default of topics changed. ERR_NOMEM: some
 * are taken over. */
MUST_USE enum err config_take_dynamic(struct config *c, enum config_level level, config_value_fn fn,
                                      void *ctx, bool *topics);

/* One place that gives a key a value, as DescribeConfigs tells it; the numbers are Kafka's
 * (ConfigSource). Of broker keys: CONFIG_FROM_BROKER to CONFIG_FROM_DEFAULT. */
enum config_from {
    CONFIG_FROM_TOPIC = 1,
    CONFIG_FROM_BROKER = 2,
    CONFIG_FROM_CLUSTER = 3,
    CONFIG_FROM_STATIC = 4,
    CONFIG_FROM_DEFAULT = 5,
    CONFIG_FROM_CLIENT_METRICS = 7,
    CONFIG_FROM_GROUP = 8,
};
struct config_origin {
    const char *key; /* itself, or the coarser one that stands in: log.roll.hours */
    const char *text;
    enum config_from from;
};
enum { CONFIG_ORIGINS_MAX = 8 };
/* All of them, the one that counts first. Texts as they were set. */
size_t config_origins(const struct config *c, const char *key,
                      struct config_origin out[CONFIG_ORIGINS_MAX]);

/* Does a value of cordoned.log.dirs name that one of log.dirs ("*": all)? */
bool config_cordons(struct str list, const char *log_dir);
/* Its first entry that is none of log.dirs; null when there is none. */
struct str config_cordons_stranger(const struct config *c, struct str list);

/* ---- groups */

/* As config_check, and within the range that the broker's configuration allows groups. */
MUST_USE enum err config_check_group(const struct config *c, const struct config_key *key,
                                     struct str value, char *message, size_t message_n);

/* ---- topics */

/* Everything of a topic that broker code acts upon. */
struct topic_config {
    struct validate_config validate;
    int32_t min_insync_replicas;
    bool compact, delete_; /* cleanup.policy */
    int64_t file_delete_delay_ms;
    struct log_config log;
};
void topic_config_resolve(const struct config *c, config_value_fn fn, void *ctx,
                          struct topic_config *out);
/* The effective text of a topic, group or client metrics key, as it was set: own, else the broker
 * synonym's, else the default. */
const char *config_value(const struct config *c, const struct config_key *key, config_value_fn fn,
                         void *ctx);
/* Of a topic key; numbers and booleans must be of that type (CHECK). */
const char *topic_config_text(const struct config *c, const char *key, config_value_fn fn,
                              void *ctx);
int64_t topic_config_int(const struct config *c, const char *key, config_value_fn fn, void *ctx);
bool topic_config_bool(const struct config *c, const char *key, config_value_fn fn, void *ctx);
/* What concerns several keys of a topic, and what is not served. ERR_INVALID with a message. */
MUST_USE enum err topic_config_check(const struct config *c, config_value_fn fn, void *ctx,
                                     char *message, size_t message_n);

#endif
