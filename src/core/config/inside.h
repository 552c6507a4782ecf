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

bool config_parse_int(struct str s, int64_t *out);
bool config_next_item(struct str *list, struct str *item);
/* Text of a broker key or NULL; no default. */
const char *config_own_text(const struct config *c, const char *key);
enum err config_read_listeners(struct config *c, char *message, size_t message_n);

#endif
