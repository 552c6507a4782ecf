#include "cli/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/files.h"
#include "os/clocks.h"

int settings_open(struct settings *s, const char *command)
{
    *s = (struct settings){.command = command};
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

int settings_read_file(struct settings *s, const char *path)
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

int settings_set_option(struct settings *s, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return cli_usage_error(s->command, "--set needs KEY=VALUE, not %s", text);
    return settings_set(s, (struct str){text, (int32_t)(equals - text)}, str_of(equals + 1));
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

int settings_make_data_dir(struct settings *s)
{
    const char *dir = config_log_dir(s->config);
    if (files_make_dirs(dir, 0755))
        return CLI_OK;
    cli_error("cannot make the data directory %s: %s", dir, strerror(errno));
    return CLI_CONFIG;
}
