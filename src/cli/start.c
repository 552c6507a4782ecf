/* dohle start: the configuration is put together (defaults, then the file, then the options in
 * their order, then --data and --port), the server runs, the exit status says how it ended. The
 * ports file of an earlier run is removed first, so that a script that waits for it waits for this
 * run's. stdout carries one line, when everything serves; logs go to stderr. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/files.h"
#include "cli/settings.h"
#include "net/server.h"
#include "os/clocks.h"
#include "os/log.h"

enum { OPTION_PORT = SETTINGS_OPTIONS, OPTION_PORTS_FILE };

static const struct cli_option options[] = {
    {SETTINGS_CONFIG, 'c', "config", "FILE", "read a server.properties with Kafka's keys"},
    {SETTINGS_SET, 0, "set", "KEY=VALUE", "set a key; may be repeated, wins over the file"},
    {SETTINGS_DATA, 0, "data", "DIR",
     "keep the data in DIR (the key log.dirs); else in\n"
     "$XDG_STATE_HOME/dohle or ~/.local/state/dohle"},
    {OPTION_PORT, 0, "port", "N", "listen for clients on port N; 0 takes a free one"},
    {OPTION_PORTS_FILE, 0, "ports-file", "FILE",
     "when ready, write a line LISTENER HOST PORT for each\n"
     "listener to FILE, all at once"},
    {SETTINGS_HELP, 'h', "help", NULL, "this"},
};

static const char usage[] =
    "dohle start [-c FILE] [--set KEY=VALUE]... [--data DIR] [--port N] [--ports-file FILE]";
static const char about[] =
    "Runs a broker in the foreground. Without options it serves on 127.0.0.1:9092.\n"
    "The first line on stdout when it is ready: Dohle VERSION ready on HOST:PORT in N ms\n"
    "TERM and INT stop it cleanly (status 0), a second one, or one before it is ready, at\n"
    "once (status 1); the next start then recovers the logs.";

struct start {
    struct settings settings;
    const char *ports_file;
    int port; /* -1: as configured */
    bool ready_failed;
};

static int read_port(struct start *s, const char *text)
{
    char *end;
    errno = 0;
    const long port = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || port > UINT16_MAX)
        return cli_usage_error("start", "--port needs a number from 0 to 65535, not %s", text);
    s->port = (int)port;
    return CLI_OK;
}

static int take_option(void *ctx, int id, const char *value)
{
    struct start *s = ctx;
    switch (id) {
    case OPTION_PORT:
        return read_port(s, value);
    case OPTION_PORTS_FILE:
        s->ports_file = value;
        return value[0] != '\0' ? CLI_OK : cli_usage_error("start", "--ports-file needs FILE");
    }
    return ARGS_BAD;
}

/* --port: the listeners again, the first for clients with that port. */
static int choose_port(struct start *s)
{
    size_t n;
    const struct listener *l = config_listeners(s->settings.config, &n);
    struct buf text;
    bool done = false;
    enum err e = ERR_NONE;
    if (s->port < 0)
        return CLI_OK;
    buf_init(&text);
    for (size_t i = 0; i < n && e == ERR_NONE; i++) {
        const bool here = !done && !l[i].controller;
        const bool v6 = strchr(l[i].host, ':') != NULL;
        done |= here;
        e = buf_printf(&text, "%s://%s%s%s:%d,", l[i].name, v6 ? "[" : "", l[i].host, v6 ? "]" : "",
                       here ? s->port : l[i].port);
    }
    int status = CLI_FAILED;
    if (e == ERR_NONE && !done) {
        cli_error("--port: with process.roles=%s this node has no listener for clients",
                  config_text(s->settings.config, "process.roles"));
        buf_close(&text);
        return CLI_CONFIG;
    }
    if (e == ERR_NONE)
        status = settings_set(&s->settings, STR_LIT("listeners"),
                              (struct str){(const char *)text.p, (int32_t)text.n});
    else
        cli_error("out of memory");
    buf_close(&text);
    return status == CLI_OK ? settings_finish(&s->settings) : status;
}

/* Clients elsewhere would be sent to 127.0.0.1. */
static void warn_unreachable(struct start *s)
{
    size_t n;
    const struct listener *l = config_listeners(s->settings.config, &n);
    const bool advertised = config_text(s->settings.config, "advertised.listeners") != NULL;
    for (size_t i = 0; i < n; i++) {
        char line[512];
        if (advertised || l[i].controller || (l[i].host[0] != '\0' && strcmp(l[i].host, "::") != 0))
            continue;
        snprintf(line, sizeof line,
                 "listener_local name=%s advertised=%s hint=\"clients on other machines need "
                 "advertised.listeners\"",
                 l[i].name, l[i].advertised_host);
        os_log_line(&s->settings.log, os_now(), LOG_WARN, line);
    }
}

static int forget_ports(struct start *s)
{
    if (s->ports_file == NULL || unlink(s->ports_file) == 0 || errno == ENOENT)
        return CLI_OK;
    cli_error("cannot replace the ports file %s: %s", s->ports_file, strerror(errno));
    return CLI_CONFIG;
}

static int configure(struct start *s, struct args a, const char *file)
{
    int status = settings_read(&s->settings, file, a, take_option, s);
    if (status == CLI_OK)
        status = settings_choose_data(&s->settings);
    if (status == CLI_OK)
        status = settings_finish(&s->settings);
    if (status == CLI_OK)
        status = choose_port(s);
    if (status == CLI_OK)
        status = settings_make_data_dir(&s->settings);
    if (status == CLI_OK)
        status = forget_ports(s);
    return status;
}

/* Tells the world. A ports file that cannot be written stops the server: someone waits for it. */
static void ready(void *ctx, const struct server_port *ports, size_t n)
{
    struct start *s = ctx;
    size_t listeners_n, shown = 0;
    const struct listener *l = config_listeners(s->settings.config, &listeners_n);
    while (shown + 1 < n && l[shown].controller)
        shown++;
    if (s->ports_file != NULL && !files_write_ports(s->ports_file, ports, n)) {
        cli_error("cannot write the ports file %s: %s", s->ports_file, strerror(errno));
        s->ready_failed = true;
        (void)kill(getpid(), SIGTERM);
        return;
    }
    const bool v6 = strchr(ports[shown].host, ':') != NULL;
    printf("Dohle %s ready on %s%s%s:%u in %lld ms\n", DOHLE_VERSION, v6 ? "[" : "",
           ports[shown].host, v6 ? "]" : "", ports[shown].port,
           (long long)(os_now().mono_us - cli_started_us()) / 1000);
    (void)cli_printed(); /* whoever reads it may be gone; the broker serves on */
}

static int serve(struct start *s)
{
    char message[600] = "";
    const struct server_args args = {.config = s->settings.config, .ready = ready, .ctx = s};
    const enum server_exit how = server_run(&args, message, sizeof message);
    switch (how) {
    case SERVER_STOPPED:
        return s->ready_failed ? CLI_FAILED : CLI_OK;
    case SERVER_KILLED: /* workers still run: nothing may be freed or run at exit */
        cli_error("%s", message);
        _exit(CLI_FAILED);
    case SERVER_FAILED:
        cli_error("%s", message);
        return CLI_FAILED;
    case SERVER_BAD_CONFIG:
        cli_error("%s", message);
        return CLI_CONFIG;
    }
    return CLI_FAILED;
}

static int run(char **argv, int n)
{
    const struct args a = {.command = "start",
                           .options = options,
                           .options_n = ARRAY_N(options),
                           .argv = argv,
                           .n = n};
    struct start s = {.port = -1};
    const char *file = NULL;
    bool help = false;
    int status = settings_look_at_options(a, &file, &help);
    if (status != CLI_OK)
        return status;
    if (help) {
        args_print_help(&a, usage, about);
        return cli_printed();
    }
    status = settings_open(&s.settings);
    if (status != CLI_OK)
        return status;
    status = configure(&s, a, file);
    if (status == CLI_OK) {
        warn_unreachable(&s);
        status = serve(&s);
    }
    settings_close(&s.settings);
    return status;
}

const struct cli_command cli_start = {"start", "run a broker in the foreground", run};
