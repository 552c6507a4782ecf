/* Configurations of topics, brokers and groups: shared by dohle configs and dohle topics. */
#ifndef CLI_CONFIGS_H
#define CLI_CONFIGS_H

#include "cli/line.h"

/* Kafka's ids of resource types. */
enum config_type { CONFIG_OF_TOPIC = 2, CONFIG_OF_BROKER = 4, CONFIG_OF_GROUP = 32 };

struct config_resource {
    enum config_type type;
    struct str name; /* of a broker its id, "" for the default of all */
};

/* "topic NAME", "broker ID", "broker default", "group NAME", for messages. */
#define CONFIGS_WHAT_BYTES 300
const char *configs_what(const struct config_resource *r, char out[CONFIGS_WHAT_BYTES]);

/* Sets the pairs with a value, unsets those without; all or nothing. CLI_FAILED: told. */
int configs_change(struct client *c, const struct config_resource *r,
                   const struct line_pairs *pairs);

struct configs {
    struct answer answer;
    struct describe_configs_response_describe_configs_resource_result *v; /* by name */
    size_t n;
};

/* All of them, with sources. CLI_FAILED: told. */
int configs_read(struct client *c, const struct config_resource *r, struct configs *out);
/* Harmless when only zeroed, or twice. */
void configs_close(struct configs *configs);
/* "topic", "broker", "brokers", "static", "default", ... */
const char *configs_source(int8_t source);
extern const struct verb configs_describe, configs_get, configs_set, configs_unset;

/* Set nowhere. */
bool configs_is_default(int8_t source);
/* Set for this very resource. */
bool configs_is_own(const struct config_resource *r, int8_t source);

#endif
