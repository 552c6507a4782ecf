/* What one key's validator cannot see: keys that belong together (Kafka: KafkaConfig's checks of
 * several values), and what this broker does not serve yet, which stops the start instead of being
 * ignored. */
#include <stdio.h>
#include <stdlib.h>

#include "core/config/inside.h"

#define BAD(...) (snprintf(message, message_n, __VA_ARGS__), ERR_INVALID)

/* Without slashes at the end. */
static struct str path_of(struct str s)
{
    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    return s;
}

void config_free_log_dirs(struct config *c)
{
    for (size_t i = 0; i < c->log_dirs_n; i++)
        free(c->log_dirs[i]);
    free(c->log_dirs);
    free(c->metadata_log_dir);
    c->log_dirs = NULL;
    c->metadata_log_dir = NULL;
    c->log_dirs_n = 0;
}

static bool is_log_dir(const struct config *c, struct str path)
{
    for (size_t i = 0; i < c->log_dirs_n; i++)
        if (str_eq(path, str_of(c->log_dirs[i])))
            return true;
    return false;
}

static enum err add_log_dir(struct config *c, struct str path)
{
    char **v = realloc(c->log_dirs, (c->log_dirs_n + 1) * sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    c->log_dirs = v;
    v[c->log_dirs_n] = strndup(path.p, (size_t)path.n);
    if (v[c->log_dirs_n] == NULL)
        return ERR_NOMEM;
    c->log_dirs_n++;
    return ERR_NONE;
}

static enum err read_log_dirs(struct config *c, char *message, size_t message_n)
{
    const char *key = "log.dirs", *text = config_text(c, key);
    const char *metadata = config_text(c, "metadata.log.dir");
    if (text == NULL || text[0] == '\0') {
        key = "log.dir";
        text = config_text(c, key);
    }
    config_free_log_dirs(c);
    struct str list = str_of(text), dir;
    while (config_next_item(&list, &dir)) {
        if (is_log_dir(c, path_of(dir)))
            return BAD("%s=%s names a directory twice", key, text);
        if (c->log_dirs_n == LOG_DIRS_MAX)
            return BAD("%s names more than %d directories", key, LOG_DIRS_MAX);
        if (add_log_dir(c, path_of(dir)) != ERR_NONE)
            return ERR_NOMEM;
    }
    if (c->log_dirs_n == 0)
        return BAD("%s=%s names no directory", key, text);
    if (metadata == NULL || metadata[0] == '\0')
        metadata = c->log_dirs[0];
    dir = path_of(str_of(metadata));
    c->metadata_log_dir = strndup(dir.p, (size_t)dir.n);
    return c->metadata_log_dir == NULL ? ERR_NOMEM : ERR_NONE;
}

bool config_cordons(struct str list, const char *log_dir)
{
    struct str dir;
    while (config_next_item(&list, &dir))
        if (str_eq(dir, STR_LIT("*")) || str_eq(path_of(dir), str_of(log_dir)))
            return true;
    return false;
}

struct str config_cordons_stranger(const struct config *c, struct str list)
{
    struct str dir;
    while (config_next_item(&list, &dir))
        if (!str_eq(dir, STR_LIT("*")) && !is_log_dir(config_statics(c), path_of(dir)))
            return dir;
    return STR_NULL;
}

static enum err check_cordoned(struct config *c, char *message, size_t message_n)
{
    const char *text = config_text(c, "cordoned.log.dirs");
    const struct str stranger = config_cordons_stranger(c, str_of(text));
    return stranger.n < 0
               ? ERR_NONE
               : BAD("cordoned.log.dirs=%s: %.*s is not in log.dirs", text, stranger.n, stranger.p);
}

static enum err check_each(struct config *c, char *message, size_t message_n)
{
    for (size_t i = 0; i < c->keys_n; i++) {
        const char *text = c->values[i];
        if (text != NULL &&
            config_check_broker(&c->keys[i], str_of(text), message, message_n) != ERR_NONE)
            return ERR_INVALID;
    }
    return ERR_NONE;
}

static enum err check_order(struct config *c, char *message, size_t message_n)
{
    static const struct {
        const char *small, *large;
    } pairs[] = {
        {"replica.fetch.wait.max.ms", "replica.lag.time.max.ms"},
        {"replica.fetch.wait.max.ms", "replica.socket.timeout.ms"},
        {"broker.heartbeat.interval.ms", "broker.session.timeout.ms"},
        {"group.min.session.timeout.ms", "group.max.session.timeout.ms"},
        {"group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
        {"group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
    };
    for (size_t i = 0; i < ARRAY_N(pairs); i++) {
        const int64_t small = config_int(c, pairs[i].small), large = config_int(c, pairs[i].large);
        if (small > large)
            return BAD("Invalid value %lld for configuration %s: must be at most %s (%lld)",
                       (long long)small, pairs[i].small, pairs[i].large, (long long)large);
    }
    return ERR_NONE;
}

/* Kafka finds the codec of that id, or does not start. */
static enum err check_offsets_codec(struct config *c, char *message, size_t message_n)
{
    const int64_t id = config_int(c, "offsets.topic.compression.codec");
    if (id < CODEC_NONE || id >= CODEC_MAX)
        return BAD(
            "Invalid value %lld for configuration offsets.topic.compression.codec: must be 0 "
            "(none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)",
            (long long)id);
    return ERR_NONE;
}

enum err config_finish(struct config *c, char *message, size_t message_n)
{
    static enum err (*const checks[])(struct config *, char *, size_t) = {
        config_check_roles, read_log_dirs, check_cordoned,      config_convert_units,
        check_each,         check_order,   check_offsets_codec, config_read_listeners};
    snprintf(message, message_n, "out of memory");
    for (size_t i = 0; i < ARRAY_N(checks); i++) {
        enum err e = checks[i](c, message, message_n);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}
