/* What one key's validator cannot see: keys that belong together (Kafka: KafkaConfig's checks of
 * several values), and what this broker does not serve yet, which stops the start instead of being
 * ignored. Whoever sets several log directories wants them. */
#include <stdio.h>
#include <stdlib.h>

#include "core/config/inside.h"

#define BAD(...) (snprintf(message, message_n, __VA_ARGS__), ERR_INVALID)

static enum err read_log_dir(struct config *c, char *message, size_t message_n)
{
    const char *key = "log.dirs", *text = config_text(c, key);
    if (text == NULL || text[0] == '\0') {
        key = "log.dir";
        text = config_text(c, key);
    }
    struct str list = str_of(text), first, more;
    if (!config_next_item(&list, &first))
        return BAD("%s=%s names no directory", key, text);
    if (config_next_item(&list, &more))
        return BAD("%s=%s: more than one log directory is not served yet", key, text);
    while (first.n > 1 && first.p[first.n - 1] == '/')
        first.n--;
    const char *metadata = config_text(c, "metadata.log.dir");
    if (metadata != NULL && !str_eq(str_of(metadata), first))
        return BAD("metadata.log.dir=%s: a directory other than %s=%s is not served yet", metadata,
                   key, text);
    free(c->log_dir);
    c->log_dir = strndup(first.p, (size_t)first.n);
    return c->log_dir == NULL ? ERR_NOMEM : ERR_NONE;
}

bool config_cordons(const struct config *c, struct str list, struct str *stranger)
{
    const char *own = config_log_dir(c);
    bool named = false;
    struct str dir;
    *stranger = STR_NULL;
    while (config_next_item(&list, &dir)) {
        const struct str given = dir;
        while (dir.n > 1 && dir.p[dir.n - 1] == '/')
            dir.n--;
        if (str_eq(dir, STR_LIT("*")) || (own != NULL && str_eq(dir, str_of(own))))
            named = true;
        else if (stranger->n < 0)
            *stranger = given;
    }
    return named;
}

static enum err check_cordoned(struct config *c, char *message, size_t message_n)
{
    struct str stranger;
    const char *text = config_text(c, "cordoned.log.dirs");
    (void)config_cordons(c, str_of(text), &stranger);
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
        config_check_roles, read_log_dir, check_cordoned,      config_convert_units,
        check_each,         check_order,  check_offsets_codec, config_read_listeners};
    snprintf(message, message_n, "out of memory");
    for (size_t i = 0; i < ARRAY_N(checks); i++) {
        enum err e = checks[i](c, message, message_n);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}
