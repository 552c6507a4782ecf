#include "cli/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/files.h"
#include "os/clocks.h"

int settings_look_at_options(struct args a, const char **file, bool *help)
{
    int id;
    while ((id = args_next(&a)) > ARGS_END) {
        *help |= id == SETTINGS_HELP;
        if (id != SETTINGS_CONFIG)
            continue;
        if (*file != NULL)
            return cli_usage_error(a.command, "--config is given twice");
        *file = a.value;
    }
    return id == ARGS_END ? CLI_OK : CLI_USAGE;
}

int settings_open(struct settings *s)
{
    *s = (struct settings){0};
    os_log_init(&s->log, STDERR_FILENO, LOG_INFO);
    if (config_new(&s->config) == ERR_NONE)
        return CLI_OK;
    cli_error("out of memory");
    return CLI_FAILED;
}

void settings_close(struct settings *s)
{
    os_log_flush(&s->log, os_now());
    config_free(s->config);
}

static void warn_unknown(void *ctx, struct str key)
{
    struct settings *s = ctx;
    char line[400];
    snprintf(line, sizeof line, "config_unknown key=%.*s", key.n > 300 ? 300 : key.n, key.p);
    os_log_line(&s->log, os_now(), LOG_WARN, line);
}

static int read_file(struct settings *s, const char *path)
{
    struct buf text;
    char message[600];
    if (!files_read(path, &text)) {
        cli_error("cannot read %s: %s", path, strerror(errno));
        buf_close(&text);
        return CLI_CONFIG;
    }
    const enum err e =
        config_parse_properties(s->config, (struct str){(const char *)text.p, (int32_t)text.n},
                                path, warn_unknown, s, message, sizeof message);
    buf_close(&text);
    if (e == ERR_NONE)
        return CLI_OK;
    cli_error("%s", message);
    return e == ERR_NOMEM ? CLI_FAILED : CLI_CONFIG;
}

int settings_set(struct settings *s, struct str key, struct str value)
{
    char message[600];
    const enum err e =
        config_set(s->config, key, value, CONFIG_SET, warn_unknown, s, message, sizeof message);
    if (e == ERR_NONE)
        return CLI_OK;
    cli_error("%s", message);
    return e == ERR_NOMEM ? CLI_FAILED : CLI_CONFIG;
}

static int take_set(struct settings *s, const struct args *a)
{
    const char *text = a->value, *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return cli_usage_error(a->command, "--set needs KEY=VALUE, not %s", text);
    return settings_set(s, (struct str){text, (int32_t)(equals - text)}, str_of(equals + 1));
}

static int take_shared(struct settings *s, const struct args *a, int id)
{
    switch (id) {
    case SETTINGS_CONFIG:
        return CLI_OK; /* read before the others */
    case SETTINGS_SET:
        return take_set(s, a);
    case SETTINGS_DATA:
        s->data = a->value;
        return a->value[0] != '\0' ? CLI_OK : cli_usage_error(a->command, "--data needs DIR");
    }
    return ARGS_BAD;
}

int settings_read(struct settings *s, const char *file, struct args a,
                  int (*take)(void *ctx, int id, const char *value), void *ctx)
{
    int status = file == NULL ? CLI_OK : read_file(s, file);
    while (status == CLI_OK) {
        const int id = args_next(&a);
        if (id == ARGS_END)
            break;
        status = id < SETTINGS_OPTIONS ? take_shared(s, &a, id) : take(ctx, id, a.value);
    }
    return status;
}

int settings_choose_data(struct settings *s)
{
    char dir[PATH_MAX];
    if (s->data != NULL)
        return settings_set(s, STR_LIT("log.dirs"), str_of(s->data));
    if (config_source(s->config, "log.dirs") != CONFIG_DEFAULT ||
        config_source(s->config, "log.dir") != CONFIG_DEFAULT)
        return CLI_OK;
    if (!files_state_dir(dir, sizeof dir)) {
        cli_error("no directory for the data: neither XDG_STATE_HOME nor HOME is set; use --data");
        return CLI_CONFIG;
    }
    return settings_set(s, STR_LIT("log.dirs"), str_of(dir));
}

int settings_finish(struct settings *s)
{
    char message[600];
    const enum err e = config_finish(s->config, message, sizeof message);
    if (e == ERR_NONE)
        return CLI_OK;
    cli_error("%s", message);
    return e == ERR_NOMEM ? CLI_FAILED : CLI_CONFIG;
}

static int make_dir(const char *dir)
{
    if (files_make_dirs(dir, 0755))
        return CLI_OK;
    cli_error("cannot make the data directory %s: %s", dir, strerror(errno));
    return CLI_CONFIG;
}

int settings_make_data_dir(struct settings *s)
{
    return make_dir(config_metadata_log_dir(s->config));
}

int settings_make_data_dirs(struct settings *s)
{
    size_t n;
    const char *const *dirs = config_log_dirs(s->config, &n);
    int status = CLI_OK;
    for (size_t i = 0; i < n && status == CLI_OK; i++)
        status = make_dir(dirs[i]);
    return status == CLI_OK ? settings_make_data_dir(s) : status;
}
