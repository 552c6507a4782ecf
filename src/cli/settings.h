/* The configuration of a node as a command puts it together: defaults, a properties file, --set in
 * the order of the options, --data. Errors are told; the results are statuses of the process. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "cli/args.h"
#include "core/config/config.h"
#include "os/log.h"

/* Ids of the options that the commands share; a command's own begin with SETTINGS_OPTIONS. */
enum { SETTINGS_CONFIG = 1, SETTINGS_SET, SETTINGS_DATA, SETTINGS_HELP, SETTINGS_OPTIONS };

struct settings {
    struct config *config;
    struct os_log log; /* what is not known of the file */
    const char *data;  /* --data, or NULL */
};

/* The first pass: is the usage right, is help wanted, which file is it (NULL before)? */
int settings_look_at_options(struct args a, const char **file, bool *help);
int settings_open(struct settings *s);
void settings_close(struct settings *s);
/* The second pass: the file, or NULL, then the options in their order; take() gets the command's
 * own. */
int settings_read(struct settings *s, const char *file, struct args a,
                  int (*take)(void *ctx, int id, const char *value), void *ctx);
int settings_set(struct settings *s, struct str key, struct str value);
/* Without log.dirs and log.dir: --data, else the user's state directory. */
int settings_choose_data(struct settings *s);
int settings_finish(struct settings *s);
/* Where the metadata log is; all of them. */
int settings_make_data_dir(struct settings *s);
int settings_make_data_dirs(struct settings *s);

#endif
