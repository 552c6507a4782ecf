/* The image is plain maps of plain structs that records change in place. A record that cannot be
 * applied for want of memory leaves the image whole but of no use: the log says that it was
 * committed, so the node stops (architecture: after the point of no return). */
#include "core/metadata/image.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/metadata/image_impl.h"
#include "core/metadata/records.h"

void image_init(struct image *img, uint64_t seed)
{
    *img = (struct image){.seed = seed, .next_producer_id = -1};
    map_init(&img->brokers, seed);
    map_init(&img->controllers, seed);
    map_init(&img->topics_by_name, seed);
    map_init(&img->topics_by_id, seed);
    map_init(&img->configs, seed);
    map_init(&img->kept, seed);
}

void image_close(struct image *img)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&img->brokers, e)) != NULL)
        image_broker_free(map_value(e));
    while ((e = map_next(&img->controllers, e)) != NULL)
        image_controller_free(map_value(e));
    while ((e = map_next(&img->topics_by_id, e)) != NULL)
        image_topic_free(map_value(e));
    while ((e = map_next(&img->configs, e)) != NULL)
        image_config_free(map_value(e));
    image_kept_close(img);
    for (int32_t i = 0; i < img->features_n; i++)
        free(img->features[i].name);
    free(img->features);
    map_close(&img->brokers);
    map_close(&img->controllers);
    map_close(&img->topics_by_name);
    map_close(&img->topics_by_id);
    map_close(&img->configs);
    map_close(&img->kept);
}

void image_reset(struct image *img)
{
    const uint64_t seed = img->seed;
    image_close(img);
    image_init(img, seed);
}

/* A copy is a snapshot taken in. */
struct copy {
    struct image *out;
    struct arena arena;
};

static enum err copy_record(void *ctx, struct bytes framed)
{
    struct copy *c = ctx;
    int16_t type, version;
    void *record;
    arena_reset(&c->arena);
    enum err e = record_decode(framed, &c->arena, &type, &version, &record);
    return e != ERR_NONE ? e : image_apply(c->out, type, version, record, framed, NULL);
}

enum err image_copy(const struct image *img, struct image *out)
{
    struct copy c = {.out = out};
    arena_init(&c.arena, NULL);
    enum err e = image_snapshot(img, copy_record, &c);
    arena_close(&c.arena);
    out->next_offset = img->next_offset;
    out->epoch = img->epoch;
    out->in_transaction = img->in_transaction;
    return e;
}

/* ------------------------------------------------------------------ memory */

char *image_text(struct str s)
{
    const size_t n = s.n < 0 ? 0 : (size_t)s.n;
    char *copy = malloc(n + 1);
    if (copy == NULL)
        return NULL;
    if (n > 0)
        memcpy(copy, s.p, n);
    copy[n] = '\0';
    return copy;
}

enum err image_ints(const int32_t *v, int32_t n, int32_t **out)
{
    *out = NULL;
    if (n <= 0)
        return ERR_NONE;
    *out = malloc((size_t)n * sizeof **out);
    if (*out == NULL)
        return ERR_NOMEM;
    memcpy(*out, v, (size_t)n * sizeof **out);
    return ERR_NONE;
}

enum err image_uuids(const struct uuid *v, int32_t n, struct uuid **out)
{
    *out = NULL;
    if (n <= 0)
        return ERR_NONE;
    *out = malloc((size_t)n * sizeof **out);
    if (*out == NULL)
        return ERR_NOMEM;
    memcpy(*out, v, (size_t)n * sizeof **out);
    return ERR_NONE;
}

void image_endpoints_free(struct image_endpoint *v, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        free(v[i].name);
        free(v[i].host);
    }
    free(v);
}

void image_ranges_free(struct image_range *v, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        free(v[i].name);
    free(v);
}

/* ------------------------------------------------------------------ looking up */

struct image_broker *image_broker(const struct image *img, int32_t id)
{
    return map_get(&img->brokers, &id, sizeof id);
}

struct image_controller *image_controller(const struct image *img, int32_t id)
{
    return map_get(&img->controllers, &id, sizeof id);
}

struct image_topic *image_topic_named(const struct image *img, struct str name)
{
    return map_get_str(&img->topics_by_name, name);
}

struct image_topic *image_topic_by_id(const struct image *img, struct uuid id)
{
    return map_get(&img->topics_by_id, id.b, sizeof id.b);
}

struct image_partition *image_partition(struct image_topic *t, int32_t index)
{
    if (index < 0 || index >= t->partitions_n || t->partitions[index].replicas_n == 0)
        return NULL;
    return &t->partitions[index];
}

const struct image_endpoint *image_endpoint(const struct image_broker *b, struct str listener)
{
    for (int32_t i = 0; i < b->endpoints_n; i++)
        if (str_eq(str_of(b->endpoints[i].name), listener))
            return &b->endpoints[i];
    return NULL;
}

bool image_directory_reserved(struct uuid id)
{
    static const uint8_t zero[15];
    return memcmp(id.b, zero, sizeof zero) == 0 && id.b[15] < 100;
}

struct uuid image_default_directory(const struct image *img, int32_t broker_id)
{
    const struct image_broker *b = image_broker(img, broker_id);
    struct uuid dir = {{0}};
    if (b != NULL && b->log_dirs_n == 1)
        return b->log_dirs[0];
    if (b == NULL || b->log_dirs_n > 1)
        dir.b[15] = IMAGE_DIRECTORY_UNASSIGNED;
    return dir;
}

struct uuid image_replica_directory(const struct image_partition *p, int32_t broker_id)
{
    for (int32_t i = 0; p->directories != NULL && i < p->replicas_n; i++)
        if (p->replicas[i] == broker_id)
            return p->directories[i];
    return (struct uuid){{0}};
}

bool image_directory_online(const struct image *img, const struct image_partition *p,
                            int32_t broker_id)
{
    const struct image_broker *b = image_broker(img, broker_id);
    return b != NULL && image_broker_has_directory(b, p);
}

bool image_broker_has_directory(const struct image_broker *b, const struct image_partition *p)
{
    if (p->directories == NULL || b->log_dirs_n == 0)
        return true;
    for (int32_t i = 0; i < p->replicas_n; i++)
        if (p->replicas[i] == b->id)
            return image_broker_serves(b, p->directories[i]);
    return false;
}

bool image_broker_owns(const struct image_broker *b, struct uuid dir)
{
    for (int32_t i = 0; i < b->log_dirs_n; i++)
        if (uuid_eq(b->log_dirs[i], dir))
            return true;
    return false;
}

bool image_broker_serves(const struct image_broker *b, struct uuid dir)
{
    if (image_directory_reserved(dir))
        return dir.b[15] != IMAGE_DIRECTORY_LOST;
    return image_broker_owns(b, dir) || b->log_dirs_n == 0;
}

/* ------------------------------------------------------------------ features */

static struct image_feature *find_feature(const struct image *img, struct str name)
{
    for (int32_t i = 0; i < img->features_n; i++)
        if (str_eq(str_of(img->features[i].name), name))
            return &img->features[i];
    return NULL;
}

int16_t image_feature_level(const struct image *img, const char *name)
{
    const struct image_feature *f = find_feature(img, str_of(name));
    return f == NULL ? 0 : f->level;
}

int16_t image_metadata_version(const struct image *img)
{
    return image_feature_level(img, "metadata.version");
}

static enum err set_feature(struct image *img, const struct feature_level_record *r)
{
    struct image_feature *f = find_feature(img, r->name);
    if (f != NULL && r->feature_level == 0) {
        free(f->name);
        const size_t at = (size_t)(f - img->features);
        img->features_n--;
        memmove(f, f + 1, ((size_t)img->features_n - at) * sizeof *f);
        return ERR_NONE;
    }
    if (f == NULL && r->feature_level != 0) {
        f = realloc(img->features, (size_t)(img->features_n + 1) * sizeof *f);
        if (f == NULL)
            return ERR_NOMEM;
        img->features = f;
        f += img->features_n;
        f->name = image_text(r->name);
        if (f->name == NULL)
            return ERR_NOMEM;
        img->features_n++;
    }
    if (f != NULL)
        f->level = r->feature_level;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ applying */

static enum err apply_broker(struct image *img, int16_t type, const void *record)
{
    switch (type) {
    case RECORD_REGISTER_BROKER:
        return image_register(img, record);
    case RECORD_UNREGISTER_BROKER: {
        const struct unregister_broker_record *r = record;
        return image_unregister(img, r->broker_id, r->broker_epoch);
    }
    case RECORD_FENCE_BROKER: {
        const struct fence_broker_record *r = record;
        return image_set_fenced(img, r->id, r->epoch, true);
    }
    case RECORD_UNFENCE_BROKER: {
        const struct unfence_broker_record *r = record;
        return image_set_fenced(img, r->id, r->epoch, false);
    }
    default:
        return image_change_registration(img, record);
    }
}

static enum err apply_topic(struct image *img, int16_t type, const void *record,
                            struct image_delta *d)
{
    switch (type) {
    case RECORD_TOPIC:
        return image_add_topic(img, record);
    case RECORD_REMOVE_TOPIC:
        return image_remove_topic(img, record, d);
    case RECORD_PARTITION:
        return image_set_partition(img, record, d);
    case RECORD_PARTITION_CHANGE:
        return image_change_partition(img, record, d);
    default:
        return image_clear_elr(img, ((const struct clear_elr_record *)record)->topic_name, d);
    }
}

enum err image_apply(struct image *img, int16_t type, int16_t version, const void *record,
                     struct bytes framed, struct image_delta *d)
{
    (void)version; /* what a version lacks is at its default */
    switch (type) {
    case RECORD_REGISTER_BROKER:
    case RECORD_UNREGISTER_BROKER:
    case RECORD_FENCE_BROKER:
    case RECORD_UNFENCE_BROKER:
    case RECORD_BROKER_REGISTRATION_CHANGE:
        if (d != NULL)
            d->brokers = true;
        return apply_broker(img, type, record);
    case RECORD_REGISTER_CONTROLLER:
        return image_register_controller(img, record);
    case RECORD_UNREGISTER_CONTROLLER:
        image_unregister_controller(
            img, ((const struct unregister_controller_record *)record)->controller_id);
        return ERR_NONE;
    case RECORD_TOPIC:
    case RECORD_REMOVE_TOPIC:
    case RECORD_PARTITION:
    case RECORD_PARTITION_CHANGE:
    case RECORD_CLEAR_ELR:
        return apply_topic(img, type, record, d);
    case RECORD_CONFIG:
        return image_set_config(img, record, d);
    case RECORD_FEATURE_LEVEL:
        if (d != NULL)
            d->features = true;
        return set_feature(img, record);
    case RECORD_PRODUCER_IDS:
        if (d != NULL)
            d->producer_ids = true;
        img->next_producer_id = ((const struct producer_ids_record *)record)->next_producer_id;
        return ERR_NONE;
    case RECORD_NO_OP:
    case RECORD_ZK_MIGRATION_STATE: /* of clusters that came from ZooKeeper; Kafka 4 ignores it */
        return ERR_NONE;
    case RECORD_BEGIN_TRANSACTION:
        img->in_transaction = true;
        return ERR_NONE;
    case RECORD_END_TRANSACTION:
    case RECORD_ABORT_TRANSACTION:
        img->in_transaction = false;
        return ERR_NONE;
    default:
        return image_keep(img, type, record, framed);
    }
}
