/* A topic's effective values: its own, else the broker's by the key's synonym, else the default.
 * Values were checked when they were set (by the controller, or with the file); one that is wrong
 * all the same, from a foreign metadata log, counts as not set. */
#include <limits.h>
#include <stdio.h>

#include "base/check.h"
#include "core/config/inside.h"

const char *config_value(const struct config *c, const struct config_key *k, config_value_fn fn,
                         void *ctx)
{
    char why[8];
    const char *text = fn == NULL ? NULL : fn(ctx, k->name);
    if (text != NULL && config_check(k, str_of(text), why, sizeof why) == ERR_NONE)
        return text;
    if (k->broker_synonym == NULL)
        return k->def;
    text = config_own_text(c, k->broker_synonym);
    if (text != NULL)
        return text;
    return k->def != NULL ? k->def : config_text(c, k->broker_synonym);
}

const char *topic_config_text(const struct config *c, const char *key, config_value_fn fn,
                              void *ctx)
{
    const struct config_key *k = config_find(CONFIG_TOPIC, str_of(key));
    CHECK(k != NULL);
    return config_value(c, k, fn, ctx);
}

int64_t topic_config_int(const struct config *c, const char *key, config_value_fn fn, void *ctx)
{
    int64_t v;
    CHECK(config_parse_int(str_of(topic_config_text(c, key, fn, ctx)), &v));
    return v;
}

bool topic_config_bool(const struct config *c, const char *key, config_value_fn fn, void *ctx)
{
    return config_is_true(str_of(topic_config_text(c, key, fn, ctx)));
}

/* Without the blanks that a checked value may have around it. */
static struct str word(const struct config *c, const char *key, config_value_fn fn, void *ctx)
{
    return config_trim(str_of(topic_config_text(c, key, fn, ctx)));
}

static int codec_of(struct str type, const char **level_key)
{
    static const char *const names[] = {"uncompressed", "gzip", "snappy", "lz4", "zstd"};
    static const char *const levels[] = {NULL, "compression.gzip.level", NULL,
                                         "compression.lz4.level", "compression.zstd.level"};
    for (int i = 0; i < (int)ARRAY_N(names); i++) {
        if (str_eq(type, str_of(names[i]))) {
            *level_key = levels[i];
            return i;
        }
    }
    return -1;
}

static void resolve_validation(const struct config *c, config_value_fn fn, void *ctx,
                               struct topic_config *out)
{
    struct validate_config *v = &out->validate;
    const char *level_key = NULL;
    v->compacted = out->compact;
    v->log_append_time =
        str_eq(word(c, "message.timestamp.type", fn, ctx), STR_LIT("LogAppendTime"));
    v->timestamp_before_max_ms = topic_config_int(c, "message.timestamp.before.max.ms", fn, ctx);
    v->timestamp_after_max_ms = topic_config_int(c, "message.timestamp.after.max.ms", fn, ctx);
    v->max_message_bytes = (int32_t)topic_config_int(c, "max.message.bytes", fn, ctx);
    v->segment_bytes = out->log.segment_bytes;
    v->max_decompressed_bytes =
        (int32_t)topic_config_int(c, "max.decompressed.message.bytes", fn, ctx);
    v->compression = codec_of(word(c, "compression.type", fn, ctx), &level_key);
    v->compression_level =
        level_key != NULL ? (int)topic_config_int(c, level_key, fn, ctx) : INT_MIN;
}

void topic_config_resolve(const struct config *c, config_value_fn fn, void *ctx,
                          struct topic_config *out)
{
    struct str policy = str_of(topic_config_text(c, "cleanup.policy", fn, ctx)), item;
    *out = (struct topic_config){0};
    while (config_next_item(&policy, &item)) {
        out->compact |= str_eq(item, STR_LIT("compact"));
        out->delete_ |= str_eq(item, STR_LIT("delete"));
    }
    struct log_config *l = &out->log;
    l->segment_bytes = (int32_t)topic_config_int(c, "segment.bytes", fn, ctx);
    l->segment_ms = topic_config_int(c, "segment.ms", fn, ctx);
    l->segment_jitter_ms = topic_config_int(c, "segment.jitter.ms", fn, ctx);
    l->segment_index_bytes = (int32_t)topic_config_int(c, "segment.index.bytes", fn, ctx);
    l->index_interval_bytes = (int32_t)topic_config_int(c, "index.interval.bytes", fn, ctx);
    l->flush_messages = topic_config_int(c, "flush.messages", fn, ctx);
    l->flush_ms = topic_config_int(c, "flush.ms", fn, ctx);
    l->preallocate = topic_config_bool(c, "preallocate", fn, ctx);
    l->compacted = out->compact;
    l->max_compaction_lag_ms = topic_config_int(c, "max.compaction.lag.ms", fn, ctx);
    l->producer_id_expiration_ms = config_int(c, "producer.id.expiration.ms");
    out->min_insync_replicas = (int32_t)topic_config_int(c, "min.insync.replicas", fn, ctx);
    out->file_delete_delay_ms = topic_config_int(c, "file.delete.delay.ms", fn, ctx);
    resolve_validation(c, fn, ctx, out);
}

enum err topic_config_check(const struct config *c, config_value_fn fn, void *ctx, char *message,
                            size_t message_n)
{
    const int64_t min = topic_config_int(c, "min.compaction.lag.ms", fn, ctx);
    const int64_t max = topic_config_int(c, "max.compaction.lag.ms", fn, ctx);
    if (min > max) {
        snprintf(message, message_n,
                 "min.compaction.lag.ms (%lld) must be at most max.compaction.lag.ms (%lld)",
                 (long long)min, (long long)max);
        return ERR_INVALID;
    }
    if (topic_config_bool(c, "remote.storage.enable", fn, ctx)) {
        snprintf(message, message_n, "remote.storage.enable: this broker has no tiered storage");
        return ERR_INVALID;
    }
    return ERR_NONE;
}
