/* Configuration as one table: names, types, defaults, validators (Kafka 4.4's; our own keys begin
 * "dohle."). Values come from defaults, a properties file, --set; topics override by their own
 * keys. Text in, checked values out; nothing here reads files or the environment. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/buf.h"
#include "base/err.h"
#include "base/types.h"
#include "log/log.h"
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

enum config_scope { CONFIG_BROKER, CONFIG_TOPIC, CONFIG_GROUP };

enum config_source { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_SET };

struct config_key {
    const char *name;
    enum config_scope scope;
    enum config_type type;
    const char *def;            /* text; NULL: null, or required */
    const char *valid;          /* for messages: "[1,...]"; "" when anything of the type is */
    const char *broker_synonym; /* topic keys: the broker key that gives their default */
    double min, max;            /* numbers */
};

/* The table, NULL when the name is not Kafka's or ours. */
const struct config_key *config_find(enum config_scope scope, struct str name);
const struct config_key *config_keys(enum config_scope scope, size_t *n);

/* ERR_INVALID: *message names key, value and what is valid. */
MUST_USE enum err config_check(const struct config_key *key, struct str value, char *message,
                               size_t message_n);

/* The broker's static configuration. */
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
 * config_listeners and config_log_dir give; node.id becomes what broker.id or a sole voter say when
 * it is not set itself. May be called again after more config_set. */
MUST_USE enum err config_finish(struct config *c, char *message, size_t message_n);

/* Values; the key must be in the broker table with that type (CHECK). Text: NULL is null. */
const char *config_text(const struct config *c, const char *key);
int64_t config_int(const struct config *c, const char *key);
bool config_bool(const struct config *c, const char *key);
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
/* First of log.dirs (several are refused: ERR_INVALID in config_finish). */
const char *config_log_dir(const struct config *c);

/* ---- topics */

/* Where a topic's own values come from (the metadata image); NULL when not set. */
typedef const char *(*topic_value_fn)(void *ctx, const char *key);

/* Everything of a topic that broker code acts upon. */
struct topic_config {
    struct log_config log;
    struct validate_config validate;
    int32_t min_insync_replicas;
    bool compact, delete_; /* cleanup.policy */
    int64_t file_delete_delay_ms;
};
void topic_config_resolve(const struct config *c, topic_value_fn fn, void *ctx,
                          struct topic_config *out);
/* The effective text of a topic key: own, else the broker synonym's, else the default. */
const char *topic_config_text(const struct config *c, const char *key, topic_value_fn fn,
                              void *ctx);

#endif
