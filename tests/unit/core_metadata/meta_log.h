/* What the tests of the image share: a metadata log of one segment as Kafka wrote it, the printed
 * form of an image, records made by hand. */
#ifndef UNIT_CORE_METADATA_META_LOG_H
#define UNIT_CORE_METADATA_META_LOG_H

#include <stdio.h>
#include <stdlib.h>

#include "core/metadata/image.h"
#include "core/metadata/loader.h"
#include "core/metadata/records.h"
#include "support/golden_dirs.h"
#include "support/test.h"

/* The batches of golden directory `which` ("clean", "killed"); the caller frees. */
static inline uint8_t *meta_log_read(const char *which, size_t *n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/__cluster_metadata-0/00000000000000000000.log",
             golden_dirs(), which);
    return test_read_file(path, n);
}

/* Gives every batch to l, up to the preallocated zeros. The number of batches. */
static inline int meta_log_load(struct loader *l, const uint8_t *p, size_t n)
{
    int batches = 0;
    struct batch b;
    for (; n > 0 && batch_parse((struct bytes){p, (int32_t)n}, &b) == ERR_NONE && b.size_bytes > 0;
         p += b.size_bytes, n -= b.size_bytes, batches++) {
        CU_ASSERT(batch_crc_ok(&b));
        CU_ASSERT_EQUAL_FATAL(loader_committed(l, &b), ERR_NONE);
    }
    return batches;
}

static inline enum err meta_add_framed(void *ctx, struct bytes framed)
{
    return record_list_add_framed(ctx, framed);
}

/* The image's snapshot; the caller closes. */
static inline struct record_list meta_snapshot(const struct image *img)
{
    struct record_list rl;
    record_list_init(&rl);
    CU_ASSERT_EQUAL_FATAL(image_snapshot(img, meta_add_framed, &rl), ERR_NONE);
    return rl;
}

/* Equal in every record of their snapshots, which hold all that an image holds. */
static inline bool meta_equal(const struct image *a, const struct image *b)
{
    struct record_list x = meta_snapshot(a), y = meta_snapshot(b);
    const bool same = x.n == y.n && x.bytes.n == y.bytes.n &&
                      (x.n == 0 || memcmp(x.bytes.p, y.bytes.p, x.bytes.n) == 0) &&
                      a->next_offset == b->next_offset && a->epoch == b->epoch &&
                      a->partitions_n == b->partitions_n &&
                      a->next_producer_id == b->next_producer_id;
    record_list_close(&x);
    record_list_close(&y);
    return same;
}

/* Applies one record as a log would: encoded, framed, decoded. */
static inline enum err meta_apply(struct image *img, const struct wire_message *m, int16_t version,
                                  const void *record, struct image_delta *d)
{
    struct record_list rl;
    struct arena a;
    int16_t type, got;
    void *decoded;
    record_list_init(&rl);
    arena_init(&a, NULL);
    CU_ASSERT_EQUAL_FATAL(record_list_add(&rl, m, version, record), ERR_NONE);
    const struct bytes framed = record_list_get(&rl, 0);
    CU_ASSERT_EQUAL_FATAL(record_decode(framed, &a, &type, &got, &decoded), ERR_NONE);
    CU_ASSERT_EQUAL(type, m->api_key);
    CU_ASSERT_EQUAL(got, version);
    enum err e = image_apply(img, type, got, decoded, framed, d);
    arena_close(&a);
    record_list_close(&rl);
    return e;
}

#endif
