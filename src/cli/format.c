/* dohle format: empty log directories become those of a node of a cluster, with the arguments of
 * Kafka's storage tool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/settings.h"
#include "core/metadata/features.h"
#include "core/metadata/random_uuid.h"
#include "node/format.h"
#include "os/clocks.h"
#include "os/disk.h"
#include "os/random.h"

enum {
    OPTION_CLUSTER_ID = SETTINGS_OPTIONS,
    OPTION_STANDALONE,
    OPTION_INITIAL,
    OPTION_NO_INITIAL,
    OPTION_IGNORE,
    OPTION_FEATURE,
    OPTION_RELEASE,
    OPTION_SCRAM,
    LEVELS_MAX = 16,
};

static const struct cli_option options[] = {
    {OPTION_CLUSTER_ID, 't', "cluster-id", "ID",
     "the cluster's, the same on all its nodes\n(dohle random-uuid prints a new one)"},
    {SETTINGS_CONFIG, 'c', "config", "FILE", "read a server.properties with Kafka's keys"},
    {SETTINGS_SET, 0, "set", "KEY=VALUE", "set a key; may be repeated, wins over the file"},
    {SETTINGS_DATA, 0, "data", "DIR", "the directory (the key log.dirs)"},
    {OPTION_STANDALONE, 's', "standalone", NULL,
     "this controller is the only one; others may join"},
    {OPTION_INITIAL, 'I', "initial-controllers", "LIST",
     "these are the controllers: ID@HOST:PORT:DIRECTORY,...\nthe same on all of them"},
    {OPTION_NO_INITIAL, 'N', "no-initial-controllers", NULL, "others say who the controllers are"},
    {OPTION_IGNORE, 'g', "ignore-formatted", NULL, "a formatted directory is no failure"},
    {OPTION_FEATURE, 'f', "feature", "NAME=LEVEL",
     "the level of a feature that the cluster begins\nwith; may be repeated"},
    {OPTION_RELEASE, 'r', "release-version", "VERSION", "4.4, of which features have their levels"},
    {OPTION_SCRAM, 'S', "add-scram", "CREDENTIAL", "refused: not served yet"},
    {SETTINGS_HELP, 'h', "help", NULL, "this"},
};

static const char usage[] = "dohle format -t ID [-c FILE] [--set KEY=VALUE]... [--data DIR]\n"
                            "       [-s | -I LIST | -N] [-g] [-f NAME=LEVEL]...";
static const char about[] =
    "Makes an empty directory that of a node of a cluster. A controller whose voters are\n"
    "configured (controller.quorum.voters) and a broker need the cluster's id only, a\n"
    "controller of a dynamic quorum one of -s, -I and -N.";

struct format {
    struct settings settings;
    struct node_format out;
    const char *cluster_id, *initial;
    bool standalone, no_initial, ignore_formatted;
    int16_t levels[LEVELS_MAX];
    struct voter_set voters;
};

/* ------------------------------------------------------------------ options */

static int refuse_level(const char *text, const char *why)
{
    cli_error("--feature %s: %s", text, why);
    return CLI_CONFIG;
}

static int16_t *level_of(struct format *f, const struct feature_range *r)
{
    size_t n;
    return &f->levels[r - feature_ranges(&n)];
}

static int take_feature(struct format *f, const char *text)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    const long level = equals == NULL ? -1 : strtol(equals + 1, &end, 10);
    if (equals == NULL || end == equals + 1 || *end != '\0')
        return cli_usage_error("format", "--feature needs NAME=LEVEL, not %s", text);
    const struct feature_range *r = feature_find((struct str){text, (int32_t)(equals - text)});
    if (r == NULL)
        return refuse_level(text, "there is no such feature");
    if (level < r->min || level > r->max)
        return refuse_level(text, "there is no such level");
    if (strcmp(r->name, "metadata.version") == 0 && level != r->fresh)
        return refuse_level(text, "only 33 (4.4-IV2) is formatted");
    *level_of(f, r) = (int16_t)level;
    return CLI_OK;
}

static int take_release(const char *text)
{
    if (strcmp(text, "4.4") == 0 || strcmp(text, "4.4-IV2") == 0)
        return CLI_OK;
    cli_error("--release-version %s: only 4.4 (4.4-IV2) is formatted", text);
    return CLI_CONFIG;
}

static int take_option(void *ctx, int id, const char *value)
{
    struct format *f = ctx;
    switch (id) {
    case OPTION_CLUSTER_ID:
        f->cluster_id = value;
        return CLI_OK;
    case OPTION_STANDALONE:
        f->standalone = true;
        return CLI_OK;
    case OPTION_INITIAL:
        f->initial = value;
        return CLI_OK;
    case OPTION_NO_INITIAL:
        f->no_initial = true;
        return CLI_OK;
    case OPTION_IGNORE:
        f->ignore_formatted = true;
        return CLI_OK;
    case OPTION_FEATURE:
        return take_feature(f, value);
    case OPTION_RELEASE:
        return take_release(value);
    case OPTION_SCRAM:
        cli_error("--add-scram: SCRAM credentials are not served yet");
        return CLI_CONFIG;
    }
    return ARGS_BAD;
}

static int read_options(struct format *f, struct args a, const char *file)
{
    int status = settings_read(&f->settings, file, a, take_option, f);
    if (status == CLI_OK && f->standalone + f->no_initial + (f->initial != NULL) > 1)
        status = cli_usage_error("format", "-s, -I and -N exclude each other");
    return status;
}

/* ------------------------------------------------------------------ what is to be written */

static int bad(const char *what)
{
    cli_error("%s", what);
    return CLI_CONFIG;
}

/* ID@HOST:PORT:DIRECTORY */
static bool take_voter(struct format *f, struct str item)
{
    struct voter_set one;
    int32_t colon = item.n - 1;
    while (colon >= 0 && item.p[colon] != ':')
        colon--;
    if (colon < 0 || f->voters.n == VOTERS_MAX ||
        voter_set_parse((struct str){item.p, colon}, &one) != ERR_NONE ||
        !uuid_parse((struct str){item.p + colon + 1, item.n - colon - 1}, &one.v[0].directory_id) ||
        uuid_is_zero(one.v[0].directory_id) ||
        voter_set_find(&f->voters, one.v[0].id, one.v[0].directory_id) != NULL)
        return false;
    snprintf(one.v[0].listener, sizeof one.v[0].listener, "%s",
             config_controller_listener(f->settings.config));
    one.v[0].kraft_max = 1;
    f->voters.v[f->voters.n++] = one.v[0];
    return true;
}

static int read_voters(struct format *f)
{
    struct str list = str_of(f->initial), item;
    while (config_next_item(&list, &item)) {
        if (take_voter(f, item))
            continue;
        cli_error("--initial-controllers: not ID@HOST:PORT:DIRECTORY: %.*s", item.n, item.p);
        return CLI_CONFIG;
    }
    for (int32_t i = 0; i < f->voters.n; i++)
        if (f->voters.v[i].id == f->out.meta.node_id)
            f->out.meta.directory_id = f->voters.v[i].directory_id;
    return f->voters.n > 0 ? CLI_OK : bad("--initial-controllers names no controller");
}

/* The controller's listener, with the port that is configured. */
static int read_endpoint(struct format *f)
{
    size_t n;
    const struct listener *ls = config_listeners(f->settings.config, &n);
    for (size_t i = 0; i < n; i++) {
        const uint16_t port = ls[i].advertised_port != 0 ? ls[i].advertised_port : ls[i].port;
        if (strcmp(ls[i].name, config_controller_listener(f->settings.config)) != 0)
            continue;
        f->out.endpoint =
            (struct raft_endpoint){str_of(ls[i].name), str_of(ls[i].advertised_host), port};
        return port != 0 ? CLI_OK
                         : bad("--standalone: the controller's listener needs a port that others "
                               "can be told");
    }
    return bad("--standalone: controller.listener.names names no listener of this node");
}

/* By the rules of Kafka's tool. */
static int choose_kind(struct format *f)
{
    struct voter_set configured;
    const struct config *c = f->settings.config;
    const bool asked = f->standalone || f->initial != NULL;
    if (config_voters(c, &configured) != ERR_NONE)
        return bad("controller.quorum.voters is wrong");
    if (!config_is_controller(c)) {
        f->out.kind = FORMAT_BROKER;
        return asked ? bad("-s and -I are for a node with the controller role") : CLI_OK;
    }
    if (configured.n > 0) {
        f->out.kind = FORMAT_STATIC;
        return asked ? bad("-s and -I are for a dynamic quorum: replace controller.quorum.voters "
                           "by controller.quorum.bootstrap.servers")
                     : CLI_OK;
    }
    if (!asked && !f->no_initial)
        return bad("controller.quorum.voters is not set: say --standalone, --initial-controllers "
                   "or --no-initial-controllers");
    f->out.kind = f->standalone        ? FORMAT_STANDALONE
                  : f->initial != NULL ? FORMAT_VOTERS
                                       : FORMAT_NO_VOTERS;
    return f->standalone ? read_endpoint(f) : f->initial != NULL ? read_voters(f) : CLI_OK;
}

static int check_kraft_version(struct format *f)
{
    const bool dynamic = f->out.kind != FORMAT_STATIC && f->out.kind != FORMAT_BROKER;
    const int16_t asked = *level_of(f, feature_find(STR_LIT("kraft.version")));
    if (asked < 0 || asked == dynamic)
        return CLI_OK;
    return bad(dynamic ? "--feature kraft.version: is 1 with a dynamic quorum"
                       : "--feature kraft.version: is 0 without a dynamic quorum");
}

static int read_ids(struct format *f)
{
    const struct config *c = f->settings.config;
    const char *configured = config_text(c, "cluster.id");
    struct meta_properties *m = &f->out.meta;
    if (f->cluster_id == NULL)
        f->cluster_id = configured;
    if (f->cluster_id == NULL || f->cluster_id[0] == '\0')
        return cli_usage_error("format", "the cluster's id is missing: --cluster-id ID");
    if (strlen(f->cluster_id) >= sizeof m->cluster_id)
        return bad("--cluster-id: too long");
    if (configured != NULL && strcmp(configured, f->cluster_id) != 0)
        return bad("--cluster-id differs from the key cluster.id");
    snprintf(m->cluster_id, sizeof m->cluster_id, "%s", f->cluster_id);
    const int64_t node_id = config_int(c, "node.id");
    m->node_id = node_id >= 0 ? (int32_t)node_id : 1;
    os_random(&m->directory_id, sizeof m->directory_id);
    return CLI_OK;
}

/* ------------------------------------------------------------------ writing */

static int told(enum err e, const char *dir)
{
    if (e == ERR_NONE)
        return CLI_OK;
    if (e == ERR_BUSY)
        cli_error("%s is not empty and has no meta.properties: name an empty directory", dir);
    else
        cli_error("%s cannot be formatted: %s", dir, err_name(e));
    return CLI_FAILED;
}

/* The log directories, that of the metadata log last: what is there when this is interrupted says
 * that it was. */
struct targets {
    const char *v[LOG_DIRS_MAX + 1];
    bool formatted[LOG_DIRS_MAX + 1];
    size_t n, formatted_n;
};

static void choose_targets(const struct format *f, struct targets *t)
{
    size_t n;
    const char *const *dirs = config_log_dirs(f->settings.config, &n);
    const char *metadata = config_metadata_log_dir(f->settings.config);
    *t = (struct targets){.n = 0};
    for (size_t i = 0; i < n; i++)
        if (strcmp(dirs[i], metadata) != 0)
            t->v[t->n++] = dirs[i];
    t->v[t->n++] = metadata;
}

static bool of_this_node(const struct format *f, const struct meta_properties *m)
{
    return m->node_id == f->out.meta.node_id && strcmp(m->cluster_id, f->out.meta.cluster_id) == 0;
}

/* Those that are formatted already may be left out. */
static int look(struct format *f, struct os_disk *d, struct targets *t)
{
    const char *stranger = NULL;
    for (size_t i = 0; i < t->n; i++) {
        struct meta_properties found;
        char why[256];
        const enum err e = meta_properties_read(&d->vfs.vfs, t->v[i], &found, why, sizeof why);
        if (e == ERR_NOENT)
            continue;
        if (!f->ignore_formatted) {
            cli_error("%s is formatted already; with --ignore-formatted that is no failure",
                      t->v[i]);
            return CLI_FAILED;
        }
        printf("%s is formatted already\n", t->v[i]);
        t->formatted[i] = true;
        t->formatted_n++;
        if (e != ERR_NONE || !of_this_node(f, &found))
            stranger = t->v[i];
    }
    if (stranger == NULL || t->formatted_n == t->n)
        return CLI_OK;
    cli_error("%s belongs to another node or cluster", stranger);
    return CLI_FAILED;
}

static int write_one(struct format *f, struct os_disk *d, const char *dir, bool metadata)
{
    struct node_format out = f->out;
    out.log_dir = dir;
    out.levels = f->levels;
    out.voters = &f->voters;
    out.now = os_now();
    if (!metadata) {
        out.kind = FORMAT_BROKER;
        os_random(&out.meta.directory_id, sizeof out.meta.directory_id);
    }
    const int status = told(node_format_write(&d->disk, &out), dir);
    if (status == CLI_OK)
        printf("formatted %s: node %d of cluster %s\n", dir, out.meta.node_id, out.meta.cluster_id);
    return status;
}

static int write_format(struct format *f)
{
    struct os_disk d;
    struct targets t;
    os_disk_init(&d, 8);
    choose_targets(f, &t);
    int status = look(f, &d, &t);
    for (size_t i = 0; i < t.n && status == CLI_OK; i++)
        if (!t.formatted[i])
            status = write_one(f, &d, t.v[i], i + 1 == t.n);
    os_disk_close(&d);
    return status == CLI_OK ? cli_printed() : status;
}

/* Levels that no option names are those of a fresh cluster; kraft.version follows from the kind. */
static void begin_levels(struct format *f)
{
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    for (size_t i = 0; i < n && i < LEVELS_MAX; i++)
        f->levels[i] = ranges[i].fresh > 0 ? ranges[i].fresh : -1;
}

static int do_format(struct format *f, struct args a, const char *file)
{
    int status = read_options(f, a, file);
    if (status == CLI_OK)
        status = settings_choose_data(&f->settings);
    if (status == CLI_OK)
        status = settings_finish(&f->settings);
    if (status == CLI_OK)
        status = read_ids(f);
    if (status == CLI_OK)
        status = choose_kind(f);
    if (status == CLI_OK)
        status = check_kraft_version(f);
    if (status == CLI_OK)
        status = settings_make_data_dirs(&f->settings);
    return status == CLI_OK ? write_format(f) : status;
}

static int run(char **argv, int n)
{
    const struct args a = {.command = "format",
                           .options = options,
                           .options_n = ARRAY_N(options),
                           .argv = argv,
                           .n = n};
    struct format f = {.cluster_id = NULL};
    const char *file = NULL;
    bool help = false;
    int status = settings_look_at_options(a, &file, &help);
    if (status != CLI_OK)
        return status;
    if (help) {
        args_print_help(&a, usage, about);
        return cli_printed();
    }
    status = settings_open(&f.settings);
    if (status != CLI_OK)
        return status;
    begin_levels(&f);
    status = do_format(&f, a, file);
    settings_close(&f.settings);
    return status;
}

const struct cli_command cli_format = {"format", "make a directory that of a node of a cluster",
                                       run};

/* ------------------------------------------------------------------ random-uuid */

static void random_bytes(struct env *e, void *p, size_t n)
{
    (void)e;
    os_random(p, n);
}

static int run_random_uuid(char **argv, int n)
{
    struct env env = {.random = random_bytes};
    char text[UUID_TEXT_N + 1];
    (void)argv;
    if (n > 0)
        return cli_usage_error("", "random-uuid takes no arguments");
    uuid_print(uuid_random(&env), text);
    printf("%s\n", text);
    return cli_printed();
}

const struct cli_command cli_random_uuid = {"random-uuid", "print an id for a new cluster",
                                            run_random_uuid};
