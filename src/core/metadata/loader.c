/* A transaction's records are kept as they are until its end: so the image, which is changed in
 * place, never holds half of one, and an abort has nothing to undo. */
#include "core/metadata/loader.h"

#include <stdlib.h>

#include "core/metadata/features.h"
#include "core/metadata/records.h"

enum { RECORD_MAX_BYTES = 8 << 20 }; /* of the metadata log's largest batch */

struct loader {
    struct image *img;
    loader_publish_fn publish;
    void *ctx;
    struct arena arena; /* of one record */
    struct image_delta delta;
    struct record_list held; /* of the open transaction */
    bool in_snapshot;        /* no transactions there */
};

enum err loader_new(struct image *img, loader_publish_fn publish, void *ctx, struct loader **out)
{
    struct loader *l = calloc(1, sizeof *l);
    if (l == NULL)
        return ERR_NOMEM;
    l->img = img;
    l->publish = publish;
    l->ctx = ctx;
    arena_init(&l->arena, NULL);
    image_delta_init(&l->delta);
    record_list_init(&l->held);
    *out = l;
    return ERR_NONE;
}

void loader_free(struct loader *l)
{
    if (l == NULL)
        return;
    arena_close(&l->arena);
    image_delta_close(&l->delta);
    record_list_close(&l->held);
    free(l);
}

static void publish(struct loader *l)
{
    l->publish(l->ctx, &l->delta);
    image_delta_close(&l->delta);
}

/* A level beyond our range must stop the node: records may follow that it would misread. */
static bool level_supported(const struct feature_level_record *r)
{
    const struct feature_range *f = feature_find(r->name);
    return r->feature_level == 0 ||
           (f != NULL && r->feature_level >= f->min && r->feature_level <= f->max);
}

static enum err apply(struct loader *l, struct bytes framed)
{
    int16_t type, version;
    void *record;
    arena_reset(&l->arena);
    enum err e = record_decode(framed, &l->arena, &type, &version, &record);
    if (e != ERR_NONE)
        return e;
    if (type == RECORD_FEATURE_LEVEL && !level_supported(record))
        return ERR_UNSUPPORTED;
    return image_apply(l->img, type, version, record, framed, &l->delta);
}

/* ------------------------------------------------------------------ transactions */

static enum err begin(struct loader *l, struct bytes framed)
{
    if (l->img->in_transaction || l->in_snapshot)
        return ERR_CORRUPT;
    publish(l);
    return apply(l, framed);
}

static enum err end(struct loader *l, struct bytes framed)
{
    if (!l->img->in_transaction)
        return ERR_CORRUPT;
    enum err e = ERR_NONE;
    for (size_t i = 0; i < l->held.n && e == ERR_NONE; i++)
        e = apply(l, record_list_get(&l->held, i));
    record_list_close(&l->held);
    return e != ERR_NONE ? e : apply(l, framed);
}

static enum err abort_transaction(struct loader *l, struct bytes framed)
{
    if (!l->img->in_transaction)
        return ERR_CORRUPT;
    record_list_close(&l->held);
    return apply(l, framed);
}

static enum err take_record(struct loader *l, struct bytes framed)
{
    int16_t type, version;
    enum err e = record_peek(framed, &type, &version);
    if (e != ERR_NONE)
        return e;
    switch (type) {
    case RECORD_BEGIN_TRANSACTION:
        return begin(l, framed);
    case RECORD_END_TRANSACTION:
        return end(l, framed);
    case RECORD_ABORT_TRANSACTION:
        return abort_transaction(l, framed);
    default:
        return l->img->in_transaction ? record_list_add_framed(&l->held, framed) : apply(l, framed);
    }
}

/* ------------------------------------------------------------------ batches */

static enum err take_batch(struct loader *l, const struct batch *b)
{
    struct record_reader *reader;
    if (b->attributes & BATCH_CONTROL)
        return ERR_NONE;
    enum err e = record_reader_new(b, RECORD_MAX_BYTES, &reader);
    if (e != ERR_NONE)
        return e;
    for (;;) {
        struct record r;
        bool last = false;
        e = record_reader_next(reader, &r, &last);
        if (e != ERR_NONE || last)
            break;
        e = r.value.n <= 0 ? ERR_CORRUPT : take_record(l, r.value);
        if (e != ERR_NONE)
            break;
    }
    record_reader_free(reader);
    return e;
}

enum err loader_committed(struct loader *l, const struct batch *b)
{
    enum err e = take_batch(l, b);
    if (e != ERR_NONE)
        return e;
    l->img->next_offset = batch_next_offset(b);
    l->img->epoch = b->leader_epoch;
    publish(l);
    return ERR_NONE;
}

static enum err take_batches(struct loader *l, struct bytes in)
{
    while (in.n > 0) {
        struct batch b;
        enum err e = batch_take(&in, &b);
        if (e == ERR_NONE && !batch_crc_ok(&b))
            e = ERR_CORRUPT;
        if (e == ERR_NONE)
            e = take_batch(l, &b);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

enum err loader_snapshot(struct loader *l, int64_t offset, int32_t epoch, struct bytes batches)
{
    image_reset(l->img);
    image_delta_close(&l->delta);
    record_list_close(&l->held);
    l->in_snapshot = true;
    enum err e = take_batches(l, batches);
    l->in_snapshot = false;
    if (e != ERR_NONE)
        return e;
    l->img->next_offset = offset;
    l->img->epoch = epoch;
    l->delta.everything = true;
    publish(l);
    return ERR_NONE;
}
