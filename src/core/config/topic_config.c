/* A topic's effective values: its own, else the broker's by the key's synonym, else the default.
 * Values were checked when they were set (by the controller, or with the file); one that is wrong
 * all the same, from a foreign metadata log, counts as not set. */
#include <limits.h>

#include "base/check.h"
#include "core/config/inside.h"

static const char *effective(const struct config *c, const struct config_key *k, topic_value_fn fn,
                             void *ctx)
{
    char why[8];
    const char *text = fn == NULL ? NULL : fn(ctx, k->name);
    if (text != NULL && config_check(k, str_of(text), why, sizeof why) == ERR_NONE)
        return text;
    if (k->broker_synonym == NULL)
        return k->def;
    text = config_own_text(c, k->broker_synonym);
    return text != NULL ? text : k->def;
}

const char *topic_config_text(const struct config *c, const char *key, topic_value_fn fn, void *ctx)
{
    const struct config_key *k = config_find(CONFIG_TOPIC, str_of(key));
    CHECK(k != NULL);
    return effective(c, k, fn, ctx);
}

static int64_t number(const struct config *c, const char *key, topic_value_fn fn, void *ctx)
{
    int64_t v;
    const struct config_key *k = config_find(CONFIG_TOPIC, str_of(key));
    CHECK(k != NULL);
    const char *text = effective(c, k, fn, ctx);
    CHECK(config_parse_int(str_of(text), &v));
    return v;
}

static bool flag(const struct config *c, const char *key, topic_value_fn fn, void *ctx)
{
    return config_is_true(str_of(topic_config_text(c, key, fn, ctx)));
}

static int codec_of(const char *type, const char **level_key)
{
    static const char *const names[] = {"uncompressed", "gzip", "snappy", "lz4", "zstd"};
    static const char *const levels[] = {NULL, "compression.gzip.level", NULL,
                                         "compression.lz4.level", "compression.zstd.level"};
    for (int i = 0; i < (int)ARRAY_N(names); i++) {
        if (strcmp(type, names[i]) == 0) {
            *level_key = levels[i];
            return i;
        }
    }
    return -1;
}

static void resolve_validation(const struct config *c, topic_value_fn fn, void *ctx,
                               struct topic_config *out)
{
    struct validate_config *v = &out->validate;
    const char *level_key = NULL;
    v->compacted = out->compact;
    v->log_append_time =
        strcmp(topic_config_text(c, "message.timestamp.type", fn, ctx), "LogAppendTime") == 0;
    v->timestamp_before_max_ms = number(c, "message.timestamp.before.max.ms", fn, ctx);
    v->timestamp_after_max_ms = number(c, "message.timestamp.after.max.ms", fn, ctx);
    v->max_message_bytes = (int32_t)number(c, "max.message.bytes", fn, ctx);
    v->segment_bytes = out->log.segment_bytes;
    v->max_decompressed_bytes = (int32_t)number(c, "max.decompressed.message.bytes", fn, ctx);
    v->compression = codec_of(topic_config_text(c, "compression.type", fn, ctx), &level_key);
    v->compression_level = level_key != NULL ? (int)number(c, level_key, fn, ctx) : INT_MIN;
}

void topic_config_resolve(const struct config *c, topic_value_fn fn, void *ctx,
                          struct topic_config *out)
{
    struct str policy = str_of(topic_config_text(c, "cleanup.policy", fn, ctx)), item;
    *out = (struct topic_config){0};
    while (config_next_item(&policy, &item)) {
        out->compact |= str_eq(item, STR_LIT("compact"));
        out->delete_ |= str_eq(item, STR_LIT("delete"));
    }
    struct log_config *l = &out->log;
    l->segment_bytes = (int32_t)number(c, "segment.bytes", fn, ctx);
    l->segment_ms = number(c, "segment.ms", fn, ctx);
    l->segment_jitter_ms = number(c, "segment.jitter.ms", fn, ctx);
    l->segment_index_bytes = (int32_t)number(c, "segment.index.bytes", fn, ctx);
    l->index_interval_bytes = (int32_t)number(c, "index.interval.bytes", fn, ctx);
    l->flush_messages = number(c, "flush.messages", fn, ctx);
    l->flush_ms = number(c, "flush.ms", fn, ctx);
    l->preallocate = flag(c, "preallocate", fn, ctx);
    l->compacted = out->compact;
    l->max_compaction_lag_ms = number(c, "max.compaction.lag.ms", fn, ctx);
    l->producer_id_expiration_ms = config_int(c, "producer.id.expiration.ms");
    out->min_insync_replicas = (int32_t)number(c, "min.insync.replicas", fn, ctx);
    out->file_delete_delay_ms = number(c, "file.delete.delay.ms", fn, ctx);
    resolve_validation(c, fn, ctx, out);
}
