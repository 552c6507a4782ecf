#include <stdlib.h>

#include "core/metadata/image_impl.h"

void image_config_free(struct image_config *c)
{
    if (c == NULL)
        return;
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->values, e)) != NULL)
        free(map_value(e));
    map_close(&c->values);
    free(c->name);
    free(c);
}

/* Type byte and name; names of topics, brokers and nearly all groups fit without an allocation. */
struct key {
    uint8_t small[256];
    uint8_t *p;
    size_t n;
};

static bool key_open(struct key *k, int8_t type, struct str name)
{
    const size_t n = name.n < 0 ? 0 : (size_t)name.n;
    k->n = n + 1;
    k->p = k->n <= sizeof k->small ? k->small : malloc(k->n);
    if (k->p == NULL)
        return false;
    k->p[0] = (uint8_t)type;
    if (n > 0)
        memcpy(k->p + 1, name.p, n);
    return true;
}

static void key_close(struct key *k)
{
    if (k->p != k->small)
        free(k->p);
}

static struct image_config *add(struct image *img, const struct key *k, int8_t type,
                                struct str name)
{
    struct image_config *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->resource_type = type;
    c->name = image_text(name);
    map_init(&c->values, img->seed);
    if (c->name == NULL || map_put(&img->configs, k->p, k->n, c) != ERR_NONE) {
        image_config_free(c);
        return NULL;
    }
    return c;
}

static enum err set_value(struct image_config *c, struct str key, struct str value)
{
    if (value.n < 0) {
        free(map_remove(&c->values, key.p, (size_t)key.n));
        return ERR_NONE;
    }
    char *text = image_text(value);
    if (text == NULL)
        return ERR_NOMEM;
    char *old = map_get_str(&c->values, key);
    enum err e = map_put(&c->values, key.p, (size_t)key.n, text);
    free(e == ERR_NONE ? old : text);
    return e;
}

enum err image_set_config(struct image *img, const struct config_record *r, struct image_delta *d)
{
    struct key k;
    if (!key_open(&k, r->resource_type, r->resource_name))
        return ERR_NOMEM;
    struct image_config *c = map_get(&img->configs, k.p, k.n);
    if (c == NULL)
        c = add(img, &k, r->resource_type, r->resource_name);
    enum err e = c == NULL ? ERR_NOMEM : set_value(c, r->name, r->value);
    if (e == ERR_NONE && d != NULL)
        e = image_delta_add_config(d, r->resource_type, c->name);
    if (c != NULL && c->values.n == 0) {
        (void)map_remove(&img->configs, k.p, k.n);
        image_config_free(c);
    }
    key_close(&k);
    return e;
}

enum err image_remove_config(struct image *img, int8_t type, struct str name)
{
    struct key k;
    if (!key_open(&k, type, name))
        return ERR_NOMEM;
    image_config_free(map_remove(&img->configs, k.p, k.n));
    key_close(&k);
    return ERR_NONE;
}

const struct image_config *image_config(const struct image *img, int8_t type, struct str resource)
{
    struct key k;
    if (!key_open(&k, type, resource))
        return NULL;
    const struct image_config *c = map_get(&img->configs, k.p, k.n);
    key_close(&k);
    return c;
}

const char *image_config_value(const struct image *img, int8_t type, struct str resource,
                               struct str key)
{
    const struct image_config *c = image_config(img, type, resource);
    return c == NULL ? NULL : map_get_str(&c->values, key);
}
