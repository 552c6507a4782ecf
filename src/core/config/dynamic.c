/* Dynamic values of broker keys (KIP-226): what the metadata log says of them lies over the static
 * configuration. Which keys are dynamic is Kafka's, without those whose change this broker could
 * not follow: of listeners, TLS, SASL and principals. Those of Kerberos, which nobody here logs in
 * by, change nothing. */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/config/inside.h"

/* Sorted by name. */
static const char *const dynamic_keys[] = {
    "background.threads",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "config.providers",
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.topic.name.prefix",
    "follower.fetch.last.tiered.offset.enable",
    "group.consumer.assignment.interval.ms",
    "group.coordinator.cached.buffer.max.bytes",
    "group.share.assignment.interval.ms",
    "group.streams.assignment.interval.ms",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleaner.threads",
    "log.cleanup.policy",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.local.retention.bytes",
    "log.local.retention.ms",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.preallocate",
    "log.remote.copy.lag.bytes",
    "log.remote.copy.lag.ms",
    "log.retention.bytes",
    "log.retention.ms",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.decompressed.message.bytes",
    "message.max.bytes",
    "metric.reporters",
    "min.insync.replicas",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "producer.id.expiration.ms",
    "remote.fetch.max.wait.ms",
    "remote.list.offsets.request.timeout.ms",
    "remote.log.index.file.cache.total.size.bytes",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.copy.max.bytes.per.second",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.fetch.max.bytes.per.second",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
    "share.coordinator.cached.buffer.max.bytes",
    "transaction.partition.verification.enable",
    "unclean.leader.election.enable",
};

/* Sorted by name. */
static const char *const own_keys[] = {
    "cordoned.log.dirs",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
};

/* Kafka's quotas of replication, which no file may set. */
static const struct config_key dynamic_only[] = {
    {"follower.replication.throttled.rate", CONFIG_BROKER, CONFIG_LONG, NULL, "[0,...]", NULL, 0,
     INFINITY},
    {"leader.replication.throttled.rate", CONFIG_BROKER, CONFIG_LONG, NULL, "[0,...]", NULL, 0,
     INFINITY},
    {"replica.alter.log.dirs.io.max.bytes.per.second", CONFIG_BROKER, CONFIG_LONG, NULL, "[0,...]",
     NULL, 0, INFINITY},
};

static int compare(const void *name, const void *row)
{
    return strcmp(name, *(const char *const *)row);
}

static bool among(const char *const *names, size_t n, const char *name)
{
    return bsearch(name, names, n, sizeof *names, compare) != NULL;
}

enum config_dynamic config_dynamic(const struct config_key *k)
{
    const bool only = k >= dynamic_only && k < dynamic_only + ARRAY_N(dynamic_only);
    if (k->scope != CONFIG_BROKER || only || among(dynamic_keys, ARRAY_N(dynamic_keys), k->name))
        return CONFIG_DYNAMIC;
    return among(own_keys, ARRAY_N(own_keys), k->name) ? CONFIG_DYNAMIC_BROKER : CONFIG_READ_ONLY;
}

/* "listener.name.internal.max.connections" -> "max.connections". */
static struct str without_listener(struct str name)
{
    static const char prefix[] = "listener.name.";
    const int32_t n = (int32_t)sizeof prefix - 1;
    if (name.n <= n || memcmp(name.p, prefix, (size_t)n) != 0)
        return name;
    const char *dot = memchr(name.p + n, '.', (size_t)(name.n - n));
    return dot == NULL ? name : (struct str){dot + 1, (int32_t)(name.p + name.n - dot - 1)};
}

const struct config_key *config_find_dynamic(struct str name)
{
    const struct str base = without_listener(name);
    for (size_t i = 0; i < ARRAY_N(dynamic_only); i++)
        if (str_eq(base, str_of(dynamic_only[i].name)))
            return &dynamic_only[i];
    return config_find(CONFIG_BROKER, base);
}

/* ------------------------------------------------------------------ the layer */

enum err config_over(const struct config *base, struct config **out)
{
    struct config *c = calloc(1, sizeof *c);
    CHECK(base->base == NULL);
    if (c == NULL)
        return ERR_NOMEM;
    c->base = base;
    c->keys = base->keys;
    c->keys_n = base->keys_n;
    for (int i = 0; i < CONFIG_LEVELS; i++) {
        c->dynamic[i] = calloc(c->keys_n, sizeof *c->dynamic[i]);
        if (c->dynamic[i] == NULL) {
            config_free(c);
            return ERR_NOMEM;
        }
    }
    *out = c;
    return ERR_NONE;
}

void config_free_dynamic(struct config *c)
{
    for (int i = 0; i < CONFIG_LEVELS; i++) {
        for (size_t k = 0; c->dynamic[i] != NULL && k < c->keys_n; k++)
            free(c->dynamic[i][k]);
        free(c->dynamic[i]);
    }
}

/* What counts of a value in the metadata log: one that this broker would have refused does not. */
static const char *accepted(const struct config_key *k, enum config_level level, const char *text)
{
    char why[8];
    const enum config_dynamic d = config_dynamic(k);
    const bool may = d == CONFIG_DYNAMIC || (d != CONFIG_READ_ONLY && level == CONFIG_OF_BROKER);
    if (text == NULL || !may || config_check_broker(k, str_of(text), why, sizeof why) != ERR_NONE)
        return NULL;
    return text;
}

static enum err replace(char **value, const char *text, bool *changed)
{
    char *copy = NULL;
    if (text == *value || (text != NULL && *value != NULL && strcmp(text, *value) == 0))
        return ERR_NONE;
    if (text != NULL && (copy = strdup(text)) == NULL)
        return ERR_NOMEM;
    free(*value);
    *value = copy;
    *changed = true;
    return ERR_NONE;
}

static bool concerns_topics(const struct config_key *k)
{
    return config_defaulted_by(k) != NULL || strcmp(k->name, "producer.id.expiration.ms") == 0;
}

enum err config_take_dynamic(struct config *c, enum config_level level, config_value_fn fn,
                             void *ctx, bool *topics)
{
    CHECK(c->base != NULL);
    for (size_t i = 0; i < c->keys_n; i++) {
        const struct config_key *k = &c->keys[i];
        bool changed = false;
        if (config_dynamic(k) == CONFIG_READ_ONLY)
            continue;
        enum err e = replace(&c->dynamic[level][i], accepted(k, level, fn(ctx, k->name)), &changed);
        if (e != ERR_NONE)
            return e;
        *topics |= changed && concerns_topics(k);
    }
    return ERR_NONE;
}
