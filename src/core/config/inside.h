/* Shared by the files of core/config only. */
#ifndef CONFIG_INSIDE_H
#define CONFIG_INSIDE_H

#include "core/config/config.h"

enum { LISTENERS_MAX = 16 };

struct config {
    char **values;               /* by index in the broker table; NULL: the default */
    enum config_source *sources; /* likewise */
    const struct config_key *keys;
    size_t keys_n;
    struct listener listeners[LISTENERS_MAX];
    size_t listeners_n;
    char *log_dir;
};

/* Decimal with an optional sign, blanks around it; false if it is none or too large. */
bool config_parse_int(struct str s, int64_t *out);
bool config_is_true(struct str s);
/* The next element of a comma-separated list that is not empty, without blanks around it; false at
 * the end. */
bool config_next_item(struct str *list, struct str *item);
/* Sets a value that config_check has passed. ERR_NOMEM. */
enum err config_put(struct config *c, const struct config_key *k, struct str value,
                    enum config_source source, char *message, size_t message_n);
/* Text of a broker key or NULL; no default. */
const char *config_own_text(const struct config *c, const char *key);
enum err config_read_listeners(struct config *c, char *message, size_t message_n);

#endif
