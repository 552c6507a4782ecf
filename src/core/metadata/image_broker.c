#include <stdlib.h>

#include "core/metadata/image_impl.h"

void image_broker_free(struct image_broker *b)
{
    if (b == NULL)
        return;
    image_endpoints_free(b->endpoints, b->endpoints_n);
    image_ranges_free(b->features, b->features_n);
    free(b->rack);
    free(b->log_dirs);
    free(b->cordoned_log_dirs);
    free(b);
}

static enum err copy_endpoints(struct image_broker *b, const struct register_broker_record *r)
{
    b->endpoints = calloc((size_t)r->end_points.n + 1, sizeof *b->endpoints);
    if (b->endpoints == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < r->end_points.n; i++) {
        const struct register_broker_record_broker_endpoint *from = &r->end_points.v[i];
        struct image_endpoint *to = &b->endpoints[b->endpoints_n++];
        to->name = image_text(from->name);
        to->host = image_text(from->host);
        to->port = from->port;
        to->security_protocol = from->security_protocol;
        if (to->name == NULL || to->host == NULL)
            return ERR_NOMEM;
    }
    return ERR_NONE;
}

static enum err copy_features(struct image_broker *b, const struct register_broker_record *r)
{
    b->features = calloc((size_t)r->features.n + 1, sizeof *b->features);
    if (b->features == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < r->features.n; i++) {
        const struct register_broker_record_broker_feature *from = &r->features.v[i];
        struct image_range *to = &b->features[b->features_n++];
        to->name = image_text(from->name);
        to->min = from->min_supported_version;
        to->max = from->max_supported_version;
        if (to->name == NULL)
            return ERR_NOMEM;
    }
    return ERR_NONE;
}

static enum err fill(struct image_broker *b, const struct register_broker_record *r)
{
    b->id = r->broker_id;
    b->epoch = r->broker_epoch;
    b->incarnation_id = r->incarnation_id;
    b->fenced = r->fenced;
    b->in_controlled_shutdown = r->in_controlled_shutdown;
    b->log_dirs_n = r->log_dirs.n;
    b->cordoned_log_dirs_n = r->cordoned_log_dirs.n;
    if (r->rack.n >= 0 && (b->rack = image_text(r->rack)) == NULL)
        return ERR_NOMEM;
    enum err e = image_uuids(r->log_dirs.v, r->log_dirs.n, &b->log_dirs);
    if (e == ERR_NONE)
        e = image_uuids(r->cordoned_log_dirs.v, r->cordoned_log_dirs.n, &b->cordoned_log_dirs);
    if (e == ERR_NONE)
        e = copy_endpoints(b, r);
    if (e == ERR_NONE)
        e = copy_features(b, r);
    return e;
}

enum err image_register(struct image *img, const struct register_broker_record *r)
{
    struct image_broker *b = calloc(1, sizeof *b);
    if (b == NULL)
        return ERR_NOMEM;
    enum err e = fill(b, r);
    struct image_broker *old = image_broker(img, r->broker_id);
    if (e == ERR_NONE)
        e = map_put(&img->brokers, &b->id, sizeof b->id, b);
    image_broker_free(e == ERR_NONE ? old : b);
    return e;
}

/* The broker that a record names, if it is of that epoch. */
static struct image_broker *of_epoch(const struct image *img, int32_t id, int64_t epoch)
{
    struct image_broker *b = image_broker(img, id);
    return b != NULL && b->epoch == epoch ? b : NULL;
}

enum err image_unregister(struct image *img, int32_t id, int64_t epoch)
{
    if (of_epoch(img, id, epoch) == NULL)
        return ERR_CORRUPT;
    image_broker_free(map_remove(&img->brokers, &id, sizeof id));
    return ERR_NONE;
}

enum err image_set_fenced(struct image *img, int32_t id, int64_t epoch, bool fenced)
{
    struct image_broker *b = of_epoch(img, id, epoch);
    if (b == NULL)
        return ERR_CORRUPT;
    b->fenced = fenced;
    return ERR_NONE;
}

enum err image_change_registration(struct image *img,
                                   const struct broker_registration_change_record *r)
{
    struct image_broker *b = of_epoch(img, r->broker_id, r->broker_epoch);
    if (b == NULL || r->fenced < -1 || r->fenced > 1 || r->in_controlled_shutdown < 0 ||
        r->in_controlled_shutdown > 1)
        return ERR_CORRUPT;
    if (r->log_dirs.n > 0) {
        struct uuid *dirs;
        enum err e = image_uuids(r->log_dirs.v, r->log_dirs.n, &dirs);
        if (e != ERR_NONE)
            return e;
        free(b->log_dirs);
        b->log_dirs = dirs;
        b->log_dirs_n = r->log_dirs.n;
    }
    if (r->cordoned_log_dirs.n >= 0) {
        struct uuid *dirs;
        enum err e = image_uuids(r->cordoned_log_dirs.v, r->cordoned_log_dirs.n, &dirs);
        if (e != ERR_NONE)
            return e;
        free(b->cordoned_log_dirs);
        b->cordoned_log_dirs = dirs;
        b->cordoned_log_dirs_n = r->cordoned_log_dirs.n;
    }
    if (r->fenced != 0)
        b->fenced = r->fenced > 0;
    if (r->in_controlled_shutdown != 0)
        b->in_controlled_shutdown = true;
    return ERR_NONE;
}
