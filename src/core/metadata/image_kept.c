/* Records that are only kept, so that snapshots hold them: whole, under the key by which a later
 * record replaces or removes them. Key: type byte, then what names the thing. */
#include <stdlib.h>

#include "base/buf.h"
#include "core/metadata/image_impl.h"
#include "core/metadata/records.h"

void image_kept_close(struct image *img)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&img->kept, e)) != NULL)
        free(map_value(e));
}

static enum err add_text(struct buf *key, struct str s)
{
    const int32_t n = s.n;
    enum err e = buf_append(key, &n, sizeof n);
    return e != ERR_NONE || n <= 0 ? e : buf_append(key, s.p, (size_t)n);
}

static enum err scram_key(struct buf *key, struct str name, int8_t mechanism)
{
    enum err e = add_text(key, name);
    return e != ERR_NONE ? e : buf_append(key, &mechanism, 1);
}

/* The parts of an entity come in any order: the smallest type first. */
static enum err quota_key(struct buf *key, const struct client_quota_record *r)
{
    enum err e = add_text(key, r->key);
    struct str last = {"", 0};
    for (int32_t i = 0; i < r->entity.n && e == ERR_NONE; i++) {
        const struct client_quota_record_entity_data *next = NULL;
        for (int32_t j = 0; j < r->entity.n; j++) {
            const struct client_quota_record_entity_data *at = &r->entity.v[j];
            if (str_cmp(at->entity_type, last) > 0 &&
                (next == NULL || str_cmp(at->entity_type, next->entity_type) < 0))
                next = at;
        }
        if (next == NULL)
            return ERR_CORRUPT; /* a type twice */
        last = next->entity_type;
        e = add_text(key, next->entity_type);
        if (e == ERR_NONE)
            e = add_text(key, next->entity_name);
    }
    return e;
}

/* The thing's type in *type, the key behind it; *removed when the record takes it away. */
static enum err key_of(struct buf *key, int16_t *type, const void *record, bool *removed)
{
    *removed = false;
    switch (*type) {
    case RECORD_CLIENT_QUOTA:
        *removed = ((const struct client_quota_record *)record)->remove;
        return quota_key(key, record);
    case RECORD_ACCESS_CONTROL_ENTRY:
        return buf_append(key, ((const struct access_control_entry_record *)record)->id.b,
                          sizeof(struct uuid));
    case RECORD_REMOVE_ACCESS_CONTROL_ENTRY:
        *type = RECORD_ACCESS_CONTROL_ENTRY;
        *removed = true;
        return buf_append(key, ((const struct remove_access_control_entry_record *)record)->id.b,
                          sizeof(struct uuid));
    case RECORD_USER_SCRAM_CREDENTIAL: {
        const struct user_scram_credential_record *r = record;
        return scram_key(key, r->name, r->mechanism);
    }
    case RECORD_REMOVE_USER_SCRAM_CREDENTIAL: {
        const struct remove_user_scram_credential_record *r = record;
        *type = RECORD_USER_SCRAM_CREDENTIAL;
        *removed = true;
        return scram_key(key, r->name, r->mechanism);
    }
    case RECORD_DELEGATION_TOKEN:
        return add_text(key, ((const struct delegation_token_record *)record)->token_id);
    case RECORD_REMOVE_DELEGATION_TOKEN:
        *type = RECORD_DELEGATION_TOKEN;
        *removed = true;
        return add_text(key, ((const struct remove_delegation_token_record *)record)->token_id);
    default:
        return ERR_UNSUPPORTED;
    }
}

static enum err put(struct image *img, int16_t type, const struct buf *key, struct bytes framed)
{
    struct image_kept *k = malloc(sizeof *k + (size_t)framed.n);
    if (k == NULL)
        return ERR_NOMEM;
    k->type = type;
    k->n = framed.n;
    memcpy(k->framed, framed.p, (size_t)framed.n);
    struct image_kept *old = map_get(&img->kept, key->p, key->n);
    enum err e = map_put(&img->kept, key->p, key->n, k);
    free(e == ERR_NONE ? old : k);
    return e;
}

enum err image_keep(struct image *img, int16_t type, const void *record, struct bytes framed)
{
    struct buf key;
    bool removed;
    uint8_t place = 0;
    buf_init(&key);
    enum err e = buf_append(&key, &place, 1);
    if (e == ERR_NONE)
        e = key_of(&key, &type, record, &removed);
    if (e == ERR_NONE) {
        key.p[0] = (uint8_t)type;
        if (removed)
            free(map_remove(&img->kept, key.p, key.n));
        else
            e = put(img, type, &key, framed);
    }
    buf_close(&key);
    return e;
}
