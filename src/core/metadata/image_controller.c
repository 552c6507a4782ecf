#include <stdlib.h>

#include "core/metadata/image_impl.h"

void image_controller_free(struct image_controller *c)
{
    if (c == NULL)
        return;
    image_endpoints_free(c->endpoints, c->endpoints_n);
    image_ranges_free(c->features, c->features_n);
    free(c);
}

static enum err copy_endpoints(struct image_controller *c,
                               const struct register_controller_record *r)
{
    c->endpoints = calloc((size_t)r->end_points.n + 1, sizeof *c->endpoints);
    if (c->endpoints == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < r->end_points.n; i++) {
        const struct register_controller_record_controller_endpoint *from = &r->end_points.v[i];
        struct image_endpoint *to = &c->endpoints[c->endpoints_n++];
        *to = (struct image_endpoint){image_text(from->name), image_text(from->host), from->port,
                                      from->security_protocol};
        if (to->name == NULL || to->host == NULL)
            return ERR_NOMEM;
    }
    return ERR_NONE;
}

static enum err copy_features(struct image_controller *c,
                              const struct register_controller_record *r)
{
    c->features = calloc((size_t)r->features.n + 1, sizeof *c->features);
    if (c->features == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < r->features.n; i++) {
        const struct register_controller_record_controller_feature *from = &r->features.v[i];
        struct image_range *to = &c->features[c->features_n++];
        *to = (struct image_range){image_text(from->name), from->min_supported_version,
                                   from->max_supported_version};
        if (to->name == NULL)
            return ERR_NOMEM;
    }
    return ERR_NONE;
}

enum err image_register_controller(struct image *img, const struct register_controller_record *r)
{
    struct image_controller *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ERR_NOMEM;
    c->id = r->controller_id;
    c->incarnation_id = r->incarnation_id;
    c->zk_migration_ready = r->zk_migration_ready;
    enum err e = copy_endpoints(c, r);
    if (e == ERR_NONE)
        e = copy_features(c, r);
    struct image_controller *old = image_controller(img, c->id);
    if (e == ERR_NONE)
        e = map_put(&img->controllers, &c->id, sizeof c->id, c);
    image_controller_free(e == ERR_NONE ? old : c);
    return e;
}

void image_unregister_controller(struct image *img, int32_t id)
{
    image_controller_free(map_remove(&img->controllers, &id, sizeof id));
}
