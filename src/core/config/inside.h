/* Shared by the files of core/config only. */
#ifndef CONFIG_INSIDE_H
#define CONFIG_INSIDE_H

#include "core/config/config.h"

enum { LISTENERS_MAX = 16 };

/* A static configuration, or (base set) a layer of dynamic values over one. */
struct config {
    const struct config *base;
    char **dynamic[CONFIG_LEVELS]; /* by index in the broker table; NULL: not set */
    char **values;                 /* by index in the broker table; NULL: the default */
    enum config_source *sources;   /* likewise */
    const struct config_key *keys;
    size_t keys_n;
    struct listener listeners[LISTENERS_MAX];
    size_t listeners_n;
    char inter_broker[64];
    char controller_listener[64];
    char **log_dirs;
    size_t log_dirs_n;
    char *metadata_log_dir;
};

static inline const struct config *config_statics(const struct config *c)
{
    return c->base != NULL ? c->base : c;
}

bool config_parse_double(struct str s, double *out);
bool config_is_true(struct str s);
/* Sets a value that config_check has passed. ERR_NOMEM. */
enum err config_put(struct config *c, const struct config_key *k, struct str value,
                    enum config_source source, char *message, size_t message_n);
/* Text of a broker key or NULL; no default. */
const char *config_own_text(const struct config *c, const char *key);
void config_free_dynamic(struct config *c);
/* The topic key whose default a broker key gives; NULL. */
const struct config_key *config_defaulted_by(const struct config_key *k);
/* Fine keys get the values of the coarse ones that stand in for them. */
enum err config_convert_units(struct config *c, char *message, size_t message_n);
void config_free_log_dirs(struct config *c);
/* roles.c: ids, roles and voters fit together; node.id is found. */
enum err config_check_roles(struct config *c, char *message, size_t message_n);
enum err config_read_listeners(struct config *c, char *message, size_t message_n);

#endif
