/* The image as records, in Kafka's order: metadata.version, other features, brokers, controllers,
 * topics with partitions, configurations, quotas, producer ids, ACLs, SCRAM, tokens. */
#include <stdlib.h>

#include "core/metadata/image_impl.h"
#include "core/metadata/records.h"

struct snapshot {
    const struct image *img;
    struct record_list one; /* the record being written */
    image_record_fn fn;
    void *ctx;
    int16_t metadata_version;
};

static enum err emit(struct snapshot *s, const struct wire_message *m, int16_t version,
                     const void *record)
{
    record_list_cut(&s->one, 0);
    enum err e = record_list_add(&s->one, m, version, record);
    return e != ERR_NONE ? e : s->fn(s->ctx, record_list_get(&s->one, 0));
}

static enum err features(struct snapshot *s)
{
    /* metadata.version first: it says how the rest is written */
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < s->img->features_n; i++) {
            const struct image_feature *f = &s->img->features[i];
            if ((strcmp(f->name, "metadata.version") == 0) != (pass == 0))
                continue;
            const struct feature_level_record r = {str_of(f->name), f->level};
            enum err e = emit(s, &msg_feature_level_record, 0, &r);
            if (e != ERR_NONE)
                return e;
        }
    }
    return ERR_NONE;
}

static enum err broker(struct snapshot *s, const struct image_broker *b)
{
    struct register_broker_record r;
    wire_default(&wire_register_broker_record, &r);
    r.broker_id = b->id;
    r.incarnation_id = b->incarnation_id;
    r.broker_epoch = b->epoch;
    r.rack = b->rack == NULL ? STR_NULL : str_of(b->rack);
    r.fenced = b->fenced;
    r.in_controlled_shutdown = b->in_controlled_shutdown;
    const int16_t version = record_version_register_broker(s->metadata_version);
    if (version >= 3) {
        r.log_dirs.v = b->log_dirs;
        r.log_dirs.n = b->log_dirs_n;
    }
    if (version >= 4) {
        r.cordoned_log_dirs.v = b->cordoned_log_dirs;
        r.cordoned_log_dirs.n = b->cordoned_log_dirs_n;
    }
    r.end_points.v = calloc((size_t)b->endpoints_n + 1, sizeof *r.end_points.v);
    r.features.v = calloc((size_t)b->features_n + 1, sizeof *r.features.v);
    enum err e = r.end_points.v == NULL || r.features.v == NULL ? ERR_NOMEM : ERR_NONE;
    for (int32_t i = 0; e == ERR_NONE && i < b->endpoints_n; i++) {
        const struct image_endpoint *p = &b->endpoints[i];
        r.end_points.v[r.end_points.n++] = (struct register_broker_record_broker_endpoint){
            str_of(p->name), str_of(p->host), p->port, p->security_protocol};
    }
    for (int32_t i = 0; e == ERR_NONE && i < b->features_n; i++) {
        const struct image_range *f = &b->features[i];
        r.features.v[r.features.n++] =
            (struct register_broker_record_broker_feature){str_of(f->name), f->min, f->max};
    }
    if (e == ERR_NONE)
        e = emit(s, &msg_register_broker_record, version, &r);
    free(r.end_points.v);
    free(r.features.v);
    return e;
}

static enum err brokers(struct snapshot *s)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&s->img->brokers, it)) != NULL) {
        enum err e = broker(s, map_value(it));
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

static enum err controller(struct snapshot *s, const struct image_controller *c)
{
    struct register_controller_record r;
    wire_default(&wire_register_controller_record, &r);
    r.controller_id = c->id;
    r.incarnation_id = c->incarnation_id;
    r.zk_migration_ready = c->zk_migration_ready;
    r.end_points.v = calloc((size_t)c->endpoints_n + 1, sizeof *r.end_points.v);
    r.features.v = calloc((size_t)c->features_n + 1, sizeof *r.features.v);
    enum err e = r.end_points.v == NULL || r.features.v == NULL ? ERR_NOMEM : ERR_NONE;
    for (int32_t i = 0; e == ERR_NONE && i < c->endpoints_n; i++) {
        const struct image_endpoint *p = &c->endpoints[i];
        r.end_points.v[r.end_points.n++] = (struct register_controller_record_controller_endpoint){
            str_of(p->name), str_of(p->host), p->port, p->security_protocol};
    }
    for (int32_t i = 0; e == ERR_NONE && i < c->features_n; i++) {
        const struct image_range *f = &c->features[i];
        r.features.v[r.features.n++] =
            (struct register_controller_record_controller_feature){str_of(f->name), f->min, f->max};
    }
    if (e == ERR_NONE)
        e = emit(s, &msg_register_controller_record, 0, &r);
    free(r.end_points.v);
    free(r.features.v);
    return e;
}

static enum err controllers(struct snapshot *s)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&s->img->controllers, it)) != NULL) {
        enum err e = controller(s, map_value(it));
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

static enum err kept(struct snapshot *s, int16_t type)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&s->img->kept, it)) != NULL) {
        const struct image_kept *k = map_value(it);
        if (k->type != type)
            continue;
        enum err e = s->fn(s->ctx, (struct bytes){k->framed, k->n});
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

static enum err partition(struct snapshot *s, struct uuid topic_id, int32_t index,
                          const struct image_partition *p)
{
    struct partition_record r;
    wire_default(&wire_partition_record, &r);
    const int16_t version = record_version_partition(s->metadata_version);
    r.partition_id = index;
    r.topic_id = topic_id;
    r.replicas.v = p->replicas;
    r.replicas.n = p->replicas_n;
    r.isr.v = p->isr;
    r.isr.n = p->isr_n;
    r.removing_replicas.v = p->removing;
    r.removing_replicas.n = p->removing_n;
    r.adding_replicas.v = p->adding;
    r.adding_replicas.n = p->adding_n;
    r.leader = p->leader;
    r.leader_recovery_state = p->leader_recovery_state;
    r.leader_epoch = p->leader_epoch;
    r.partition_epoch = p->partition_epoch;
    struct uuid *unspecified = NULL;
    if (version >= 1) {
        r.directories.v = p->directories;
        r.directories.n = p->replicas_n;
        if (p->directories == NULL) {
            r.directories.v = unspecified = calloc((size_t)p->replicas_n, sizeof *unspecified);
            if (unspecified == NULL)
                return ERR_NOMEM;
        }
    }
    if (version >= 2 && p->elr_n > 0) {
        r.eligible_leader_replicas.v = p->elr;
        r.eligible_leader_replicas.n = p->elr_n;
    }
    if (version >= 2 && p->last_known_elr_n > 0) {
        r.last_known_elr.v = p->last_known_elr;
        r.last_known_elr.n = p->last_known_elr_n;
    }
    enum err e = emit(s, &msg_partition_record, version, &r);
    free(unspecified);
    return e;
}

static enum err topics(struct snapshot *s)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&s->img->topics_by_id, it)) != NULL) {
        const struct image_topic *t = map_value(it);
        const struct topic_record r = {str_of(t->name), t->id};
        enum err e = emit(s, &msg_topic_record, 0, &r);
        for (int32_t i = 0; e == ERR_NONE && i < t->partitions_n; i++)
            if (t->partitions[i].replicas_n > 0)
                e = partition(s, t->id, i, &t->partitions[i]);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

static enum err configs(struct snapshot *s)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&s->img->configs, it)) != NULL) {
        const struct image_config *c = map_value(it);
        const struct map_entry *v = NULL;
        while ((v = map_next(&c->values, v)) != NULL) {
            size_t n;
            const char *key = map_key(v, &n);
            const struct config_record r = {
                c->resource_type, str_of(c->name), {key, (int32_t)n}, str_of(map_value(v))};
            enum err e = emit(s, &msg_config_record, 0, &r);
            if (e != ERR_NONE)
                return e;
        }
    }
    return ERR_NONE;
}

static enum err producer_ids(struct snapshot *s)
{
    if (s->img->next_producer_id < 0)
        return ERR_NONE;
    const struct producer_ids_record r = {-1, -1, s->img->next_producer_id};
    return emit(s, &msg_producer_ids_record, 0, &r);
}

static enum err write_all(struct snapshot *s)
{
    enum err e = features(s);
    if (e == ERR_NONE)
        e = brokers(s);
    if (e == ERR_NONE)
        e = controllers(s);
    if (e == ERR_NONE)
        e = topics(s);
    if (e == ERR_NONE)
        e = configs(s);
    if (e == ERR_NONE)
        e = kept(s, RECORD_CLIENT_QUOTA);
    if (e == ERR_NONE)
        e = producer_ids(s);
    if (e == ERR_NONE)
        e = kept(s, RECORD_ACCESS_CONTROL_ENTRY);
    if (e == ERR_NONE)
        e = kept(s, RECORD_USER_SCRAM_CREDENTIAL);
    if (e == ERR_NONE)
        e = kept(s, RECORD_DELEGATION_TOKEN);
    return e;
}

enum err image_snapshot(const struct image *img, image_record_fn fn, void *ctx)
{
    struct snapshot s = {
        .img = img, .fn = fn, .ctx = ctx, .metadata_version = image_metadata_version(img)};
    record_list_init(&s.one);
    enum err e = write_all(&s);
    record_list_close(&s.one);
    return e;
}
