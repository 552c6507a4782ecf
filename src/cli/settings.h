/* The configuration of a node as a command puts it together: defaults, a properties file, --set in
 * the order of the options, --data. Errors are told; the results are statuses of the process. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "core/config/config.h"
#include "os/log.h"

struct settings {
    const char *command; /* for usage errors */
    struct config *config;
    struct os_log log; /* what is not known of the file */
    const char *data;  /* --data, or NULL */
};

int settings_open(struct settings *s, const char *command);
void settings_close(struct settings *s);
int settings_read_file(struct settings *s, const char *path);
int settings_set(struct settings *s, struct str key, struct str value);
/* KEY=VALUE */
int settings_set_option(struct settings *s, const char *text);
/* Without log.dirs and log.dir: --data, else the user's state directory. */
int settings_choose_data(struct settings *s);
int settings_finish(struct settings *s);
int settings_make_data_dir(struct settings *s);

#endif
