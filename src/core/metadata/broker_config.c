#include "core/metadata/broker_config.h"

#include <stdio.h>

enum { ID_MAX = 16 };

struct resource {
    const struct image *image;
    struct str name;
};

static struct str print_id(int32_t node_id, char out[ID_MAX])
{
    return (struct str){out, snprintf(out, ID_MAX, "%d", node_id)};
}

bool broker_config_is_of(struct str name, int32_t node_id)
{
    char id[ID_MAX];
    return name.n == 0 || str_eq(name, print_id(node_id, id));
}

bool broker_config_changed(const struct image_delta *d, int32_t node_id)
{
    bool changed = d->everything;
    for (size_t i = 0; i < d->configs_n && !changed; i++)
        changed = d->configs[i].resource_type == CONFIG_RESOURCE_BROKER &&
                  broker_config_is_of(str_of(d->configs[i].name), node_id);
    return changed;
}

static const char *value(void *ctx, const char *key)
{
    const struct resource *r = ctx;
    return image_config_value(r->image, CONFIG_RESOURCE_BROKER, r->name, str_of(key));
}

enum err broker_config_take(struct config *c, const struct image *img, int32_t node_id,
                            bool *topics)
{
    char id[ID_MAX];
    struct resource own = {img, print_id(node_id, id)};
    struct resource cluster = {img, STR_LIT("")};
    enum err e = config_take_dynamic(c, CONFIG_OF_BROKER, value, &own, topics);
    return e != ERR_NONE ? e : config_take_dynamic(c, CONFIG_OF_CLUSTER, value, &cluster, topics);
}

int64_t broker_config_rate(const struct image *img, int32_t node_id, const char *key)
{
    char id[ID_MAX];
    struct resource own = {img, print_id(node_id, id)};
    struct resource cluster = {img, STR_LIT("")};
    int64_t rate;
    const char *text = value(&own, key);
    if (text == NULL)
        text = value(&cluster, key);
    return text != NULL && config_parse_int(str_of(text), &rate) && rate >= 0 ? rate : INT64_MAX;
}
