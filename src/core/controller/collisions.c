#include "core/controller/collisions.h"

#include <stdlib.h>

bool collisions_unify(struct str name, char out[COLLISION_MAX])
{
    bool found = false;
    if (name.n <= 0 || name.n > LIMIT_NAME_MAX)
        return false;
    for (int32_t i = 0; i < name.n; i++) {
        out[i] = name.p[i] == '.' ? '_' : name.p[i];
        found |= out[i] == '_';
    }
    return found;
}

enum err collisions_add(struct controller *c, struct str name)
{
    char key[COLLISION_MAX];
    if (!collisions_unify(name, key) || map_get(&c->collisions, key, (size_t)name.n) != NULL)
        return ERR_NONE; /* two that collide are older than the rule */
    char *copy = malloc((size_t)name.n + 1);
    if (copy == NULL)
        return ERR_NOMEM;
    memcpy(copy, name.p, (size_t)name.n);
    copy[name.n] = '\0';
    enum err e = map_put(&c->collisions, key, (size_t)name.n, copy);
    if (e != ERR_NONE)
        free(copy);
    return e;
}

void collisions_remove(struct controller *c, struct uuid topic_id)
{
    char key[COLLISION_MAX];
    const struct image_topic *t = image_topic_by_id(&c->ahead, topic_id);
    if (t == NULL || !collisions_unify(str_of(t->name), key))
        return;
    const size_t n = strlen(t->name);
    char *name = map_get(&c->collisions, key, n);
    if (name != NULL && strcmp(name, t->name) == 0)
        free(map_remove(&c->collisions, key, n));
}

const char *collisions_find(const struct controller *c, struct str name)
{
    char key[COLLISION_MAX];
    return collisions_unify(name, key) ? map_get(&c->collisions, key, (size_t)name.n) : NULL;
}

enum err collisions_open(struct controller *c)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->ahead.topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        enum err err = collisions_add(c, str_of(t->name));
        if (err != ERR_NONE)
            return err;
    }
    return ERR_NONE;
}

void collisions_close(struct controller *c)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->collisions, e)) != NULL)
        free(map_value(e));
    map_close(&c->collisions);
    map_init(&c->collisions, c->ahead.seed);
}
