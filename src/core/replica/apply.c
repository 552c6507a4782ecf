/* Following the committed image: partitions come, change and go, topics get other values. Only what
 * the delta names is looked at. */
#include <stdlib.h>

#include "core/metadata/broker_config.h"
#include "core/replica/inside.h"

/* ------------------------------------------------------------------ configuration */

struct topic_values {
    const struct image *image;
    struct str topic;
};

static const char *topic_value(void *ctx, const char *key)
{
    const struct topic_values *v = ctx;
    return image_config_value(v->image, CONFIG_RESOURCE_TOPIC, v->topic, str_of(key));
}

/* The values of a topic, worked out once for its partitions that come in a row. */
struct resolved {
    bool known;
    struct uuid topic_id;
    struct topic_config config;
    struct throttled leader, follower;
};

static void resolved_close(struct resolved *r)
{
    throttled_close(&r->leader);
    throttled_close(&r->follower);
}

static void resolve_throttled(const struct replicas *rs, struct topic_values *v, const char *key,
                              struct throttled *out)
{
    throttled_close(out);
    if (throttled_parse(out, topic_value(v, key), rs->node_id) != ERR_NONE)
        env_log(rs->env, LOG_WARN, "throttle_skipped topic=%.*s error=NOMEM", v->topic.n,
                v->topic.p);
}

static void resolve(const struct partition *p, struct resolved *r)
{
    struct topic_values v = {p->rs->image, str_of(p->topic)};
    topic_config_resolve(p->rs->config, topic_value, &v, &r->config);
    resolve_throttled(p->rs, &v, "leader.replication.throttled.replicas", &r->leader);
    resolve_throttled(p->rs, &v, "follower.replication.throttled.replicas", &r->follower);
    r->topic_id = p->topic_id;
    r->known = true;
}

static void set_throttled(struct partition *p, const struct resolved *r)
{
    const int leader = throttled_has(&r->leader, p->index) ? THROTTLED_LEADER : 0;
    const int follower = throttled_has(&r->follower, p->index) ? THROTTLED_FOLLOWER : 0;
    p->throttled = (uint8_t)(leader | follower);
    follow_throttle_changed(p);
}

static void configure(struct partition *p, struct resolved *r)
{
    if (!r->known || !uuid_eq(r->topic_id, p->topic_id))
        resolve(p, r);
    p->config = r->config;
    set_throttled(p, r);
    if (p->log != NULL)
        log_set_config(p->log, &p->config.log);
    replicas_mark_dirty(p); /* the high watermark hangs on min.insync.replicas */
}

static void apply_configs(struct replicas *rs, const struct image_delta *d)
{
    struct resolved r = {0};
    for (size_t i = 0; i < d->configs_n; i++) {
        struct image_topic *t = d->configs[i].resource_type == CONFIG_RESOURCE_TOPIC
                                    ? image_topic_named(rs->image, str_of(d->configs[i].name))
                                    : NULL;
        for (int32_t k = 0; t != NULL && k < t->partitions_n; k++) {
            struct partition *p = replicas_find(rs, t->id, k);
            if (p != NULL)
                configure(p, &r);
        }
    }
    resolved_close(&r);
}

/* No key of this broker's table has them: no file may set them. */
static void apply_throttle(struct replicas *rs, const char *key, struct throttle *t)
{
    const int64_t before = t->bytes_per_s;
    t->bytes_per_s = broker_config_rate(rs->image, rs->node_id, key);
    if (t->bytes_per_s != before)
        env_log(rs->env, LOG_INFO, "replication_throttle key=%s bytes_per_s=%lld", key,
                (long long)t->bytes_per_s);
}

static void apply_throttles(struct replicas *rs)
{
    apply_throttle(rs, "leader.replication.throttled.rate", &rs->leader_throttle);
    apply_throttle(rs, "follower.replication.throttled.rate", &rs->follower_throttle);
}

/* ------------------------------------------------------------------ defaults of topics */

enum { WALK_PARTITIONS = 64 }; /* of a settle */

/* Takes the walk past some partitions more. */
static void walk_on(struct replicas *rs)
{
    struct resolved r = {0};
    for (int i = 0; i < WALK_PARTITIONS && rs->walk.next != &rs->all; i++) {
        struct list *next = rs->walk.next;
        list_remove(&rs->walk);
        list_prepend(next, &rs->walk);
        configure(LIST_ENTRY(next, struct partition, all), &r);
    }
    if (rs->walk.next == &rs->all)
        list_remove(&rs->walk);
    resolved_close(&r);
}

void replicas_defaults_changed(struct replicas *rs, struct now now)
{
    rs->now = now;
    list_remove(&rs->walk);
    list_prepend(&rs->all, &rs->walk);
    walk_on(rs);
}

bool apply_settle(struct replicas *rs)
{
    if (list_empty(&rs->walk) || rs->closing)
        return false;
    walk_on(rs);
    return true;
}

/* ------------------------------------------------------------------ partitions */

static enum err new_partition(struct replicas *rs, const struct image_topic *t, int32_t index,
                              struct resolved *r, struct partition **out)
{
    uint8_t key[PARTITION_KEY_BYTES];
    struct partition *p = calloc(1, sizeof *p);
    if (p == NULL)
        return ERR_NOMEM;
    list_init(&p->all);
    list_init(&p->dirty);
    list_init(&p->led);
    list_init(&p->misplaced);
    list_init(&p->writing);
    list_init(&p->promising);
    list_init(&p->replicating);
    list_init(&p->deleting);
    list_init(&p->watchers);
    list_init(&p->coordinators);
    list_init(&p->raised);
    p->rs = rs;
    p->topic = strdup(t->name);
    p->topic_id = t->id;
    p->index = index;
    p->leader = -1;
    p->leader_epoch = p->partition_epoch = -1;
    p->leaving = leaving_new_partition(rs, t->name, index);
    partition_key(t->id, index, key);
    if (p->topic == NULL || p->leaving == NULL ||
        map_put(&rs->partitions, key, sizeof key, p) != ERR_NONE) {
        partition_free(p);
        return ERR_NOMEM;
    }
    list_append(&rs->all, &p->all);
    configure(p, r);
    *out = p;
    return ERR_NONE;
}

enum err partition_begin_empty(struct partition *p)
{
    char dir[PARTITION_DIR_MAX];
    struct log_args args;
    struct log *log;
    if (p->dir == NULL)
        partition_set_dir(p, log_dir_choose(p));
    if (p->dir->failed)
        return ERR_NONE;
    enum err e = partition_log_args(p, p->dir, &args, dir, sizeof dir);
    if (e == ERR_NONE)
        e = log_new(&args, &log);
    if (e != ERR_NONE)
        return e;
    if (leaving_still(p->rs, p->topic, p->index))
        log_hold_dir(log); /* until the directory of that name is gone */
    return partition_log_ready(p, log, 0, p->rs->now);
}

static bool ours(const struct replicas *rs, const struct image_partition *ip)
{
    for (int32_t i = 0; i < ip->replicas_n; i++)
        if (ip->replicas[i] == rs->node_id)
            return true;
    return false;
}

/* Who waits is told e. */
static void delete_partition(struct replicas *rs, struct uuid topic_id, int32_t index, int16_t e)
{
    uint8_t key[PARTITION_KEY_BYTES];
    partition_key(topic_id, index, key);
    struct partition *p = map_remove(&rs->partitions, key, sizeof key);
    if (p == NULL)
        return;
    produce_fail(p, e);
    delete_records_fail(p, e);
    follow_end(p);
    partition_gone(p);
    if (p->log != NULL) {
        p->leaving->delay_ms = p->config.file_delete_delay_ms;
        p->leaving->dir = p->dir;
        leaving_log(p->leaving, p->log);
        p->leaving = NULL;
    }
    partition_free(p);
}

static enum err apply_partition(struct replicas *rs, struct uuid topic_id, int32_t index,
                                struct resolved *r)
{
    struct image_topic *t = image_topic_by_id(rs->image, topic_id);
    struct image_partition *ip = t == NULL ? NULL : image_partition(t, index);
    struct partition *p = replicas_find(rs, topic_id, index);
    enum err e = ERR_NONE;
    if (ip == NULL)
        return ERR_NONE;
    if (!ours(rs, ip)) { /* reassigned: the others have it all */
        delete_partition(rs, topic_id, index, K_NOT_LEADER_OR_FOLLOWER);
        return ERR_NONE;
    }
    const bool fresh = p == NULL;
    if (fresh)
        e = new_partition(rs, t, index, r, &p);
    if (e == ERR_NONE)
        e = partition_apply(p, ip, rs->now);
    /* Until loading is through, a log on disk may still turn up for it. */
    if (e == ERR_NONE && fresh && rs->load_begun && !rs->closing)
        e = partition_begin_empty(p);
    if (e == ERR_NONE)
        directory_sender_look(p);
    return e;
}

/* After a snapshot: what it does not know is deleted. */
static void delete_unknown(struct replicas *rs)
{
    struct map_entry *it = map_next(&rs->partitions, NULL);
    while (it != NULL) {
        const struct partition *p = map_value(it);
        it = map_next(&rs->partitions, it);
        if (image_topic_by_id(rs->image, p->topic_id) == NULL)
            delete_partition(rs, p->topic_id, p->index, K_UNKNOWN_TOPIC_OR_PARTITION);
    }
}

static enum err apply_everything(struct replicas *rs, struct resolved *r)
{
    struct map_entry *it = NULL;
    while ((it = map_next(&rs->image->topics_by_id, it)) != NULL) {
        const struct image_topic *t = map_value(it);
        for (int32_t i = 0; i < t->partitions_n; i++) {
            struct partition *p = replicas_find(rs, t->id, i);
            if (p != NULL)
                configure(p, r);
            enum err e = apply_partition(rs, t->id, i, r);
            if (e != ERR_NONE)
                return e;
        }
    }
    return ERR_NONE;
}

void replicas_apply(struct replicas *rs, const struct image_delta *d, struct now now)
{
    enum err e = ERR_NONE;
    struct resolved r = {0};
    rs->now = now;
    for (size_t i = 0; i < d->deleted_n; i++)
        for (int32_t k = 0; k < d->deleted[i].partitions_n; k++)
            delete_partition(rs, d->deleted[i].id, k, K_UNKNOWN_TOPIC_OR_PARTITION);
    if (d->everything) {
        delete_unknown(rs);
        e = apply_everything(rs, &r);
    }
    for (size_t i = 0; i < d->partitions_n && e == ERR_NONE; i++)
        e = apply_partition(rs, d->partitions[i].topic_id, d->partitions[i].index, &r);
    resolved_close(&r);
    apply_configs(rs, d);
    if (broker_config_changed(d, rs->node_id))
        apply_throttles(rs);
    if (d->brokers || d->everything)
        fetchers_brokers_changed(rs);
    if (e != ERR_NONE) /* the metadata is committed: this node can no longer follow it */
        replicas_fail(rs, e, "a committed change of partitions cannot be taken over");
}
