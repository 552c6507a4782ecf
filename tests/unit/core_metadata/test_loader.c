/* Deliveries, transactions, what stops a node. */
#include "meta_log.h"

struct fixture {
    struct image img;
    struct loader *loader;
    struct batch_builder *bb;
    int64_t offset;
    int published;
    int64_t offset_at_publish[16];
    bool features_at_publish[16];
};

static void publish(void *ctx, const struct image_delta *d)
{
    struct fixture *f = ctx;
    f->offset_at_publish[f->published] = f->img.next_offset;
    f->features_at_publish[f->published++] = d->features;
}

static void fixture_open(struct fixture *f)
{
    *f = (struct fixture){0};
    image_init(&f->img, 1);
    CU_ASSERT_EQUAL_FATAL(loader_new(&f->img, publish, f, &f->loader), ERR_NONE);
}

static void fixture_close(struct fixture *f)
{
    loader_free(f->loader);
    image_close(&f->img);
}

static void batch_begin(struct fixture *f, int16_t attributes)
{
    const struct batch_builder_args args = {.base_offset = f->offset,
                                            .leader_epoch = 3,
                                            .attributes = attributes,
                                            .producer_id = -1,
                                            .producer_epoch = -1,
                                            .base_sequence = -1};
    CU_ASSERT_EQUAL_FATAL(batch_builder_new(&args, &f->bb), ERR_NONE);
}

static void add(struct fixture *f, const struct wire_message *m, const void *record)
{
    struct record_list rl;
    record_list_init(&rl);
    CU_ASSERT_EQUAL_FATAL(record_list_add(&rl, m, m->max_version, record), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(batch_builder_add(f->bb, 1, BYTES_NULL, record_list_get(&rl, 0), NULL, 0),
                          ERR_NONE);
    record_list_close(&rl);
}

static void add_level(struct fixture *f, const char *name, int16_t level)
{
    const struct feature_level_record r = {str_of(name), level};
    add(f, &msg_feature_level_record, &r);
}

static enum err deliver(struct fixture *f)
{
    struct bytes bytes;
    struct batch b;
    CU_ASSERT_EQUAL_FATAL(batch_builder_finish(f->bb, &bytes), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(batch_parse(bytes, &b), ERR_NONE);
    enum err e = loader_committed(f->loader, &b);
    f->offset = batch_next_offset(&b);
    batch_builder_free(f->bb);
    return e;
}

static const struct begin_transaction_record begin = {STR_LIT("tx")};
static const struct end_transaction_record end;
static const struct abort_transaction_record aborted = {STR_NULL};

static void test_loader_delivery_is_a_publication(void)
{
    struct fixture f;
    fixture_open(&f);
    batch_begin(&f, 0);
    add_level(&f, "metadata.version", 33);
    add_level(&f, "group.version", 1);
    CU_ASSERT_EQUAL(deliver(&f), ERR_NONE);
    CU_ASSERT_EQUAL(f.published, 1);
    CU_ASSERT_TRUE(f.features_at_publish[0]);
    CU_ASSERT_EQUAL(f.offset_at_publish[0], 2);
    CU_ASSERT_EQUAL(f.img.epoch, 3);
    batch_begin(&f, BATCH_CONTROL);
    CU_ASSERT_EQUAL(batch_builder_add(f.bb, 1, BYTES_NULL, BYTES_NULL, NULL, 0), ERR_NONE);
    CU_ASSERT_EQUAL(deliver(&f), ERR_NONE);
    CU_ASSERT_EQUAL(f.img.next_offset, 3);
    CU_ASSERT_FALSE(f.features_at_publish[1]);
    fixture_close(&f);
}

static void test_loader_transaction_ends(void)
{
    struct fixture f;
    fixture_open(&f);
    batch_begin(&f, 0);
    add_level(&f, "metadata.version", 33);
    add(&f, &msg_begin_transaction_record, &begin);
    add_level(&f, "group.version", 1);
    CU_ASSERT_EQUAL(deliver(&f), ERR_NONE);
    CU_ASSERT_EQUAL(f.published, 2);
    CU_ASSERT_TRUE(f.features_at_publish[0]); /* what came before */
    CU_ASSERT_FALSE(f.features_at_publish[1]);
    CU_ASSERT_TRUE(f.img.in_transaction);
    CU_ASSERT_EQUAL(image_feature_level(&f.img, "group.version"), 0);
    batch_begin(&f, 0);
    add_level(&f, "share.version", 1);
    add(&f, &msg_end_transaction_record, &end);
    CU_ASSERT_EQUAL(deliver(&f), ERR_NONE);
    CU_ASSERT_TRUE(f.features_at_publish[2]);
    CU_ASSERT_FALSE(f.img.in_transaction);
    CU_ASSERT_EQUAL(image_feature_level(&f.img, "group.version"), 1);
    CU_ASSERT_EQUAL(image_feature_level(&f.img, "share.version"), 1);
    fixture_close(&f);
}

static void test_loader_transaction_aborts(void)
{
    struct fixture f;
    fixture_open(&f);
    batch_begin(&f, 0);
    add(&f, &msg_begin_transaction_record, &begin);
    add_level(&f, "group.version", 1);
    CU_ASSERT_EQUAL(deliver(&f), ERR_NONE);
    batch_begin(&f, 0);
    add(&f, &msg_abort_transaction_record, &aborted);
    CU_ASSERT_EQUAL(deliver(&f), ERR_NONE);
    CU_ASSERT_FALSE(f.img.in_transaction);
    CU_ASSERT_EQUAL(image_feature_level(&f.img, "group.version"), 0);
    CU_ASSERT_FALSE(f.features_at_publish[f.published - 1]);
    batch_begin(&f, 0); /* the next one holds nothing of the aborted */
    add(&f, &msg_begin_transaction_record, &begin);
    add_level(&f, "share.version", 1);
    add(&f, &msg_end_transaction_record, &end);
    CU_ASSERT_EQUAL(deliver(&f), ERR_NONE);
    CU_ASSERT_EQUAL(f.img.features_n, 1);
    fixture_close(&f);
}

static void test_loader_transaction_rules(void)
{
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        fixture_open(&f);
        batch_begin(&f, 0);
        if (i == 0) {
            add(&f, &msg_begin_transaction_record, &begin);
            add(&f, &msg_begin_transaction_record, &begin);
        } else if (i == 1) {
            add(&f, &msg_end_transaction_record, &end);
        } else {
            add(&f, &msg_abort_transaction_record, &aborted);
        }
        CU_ASSERT_EQUAL(deliver(&f), ERR_CORRUPT);
        fixture_close(&f);
    }
}

static void test_loader_levels_beyond_ours(void)
{
    static const struct {
        const char *name;
        int16_t level;
        enum err e;
    } cases[] = {
        {"metadata.version", 33, ERR_NONE},       {"metadata.version", 34, ERR_UNSUPPORTED},
        {"metadata.version", 6, ERR_UNSUPPORTED}, {"transaction.version", 3, ERR_UNSUPPORTED},
        {"transaction.version", 0, ERR_NONE},     {"later.version", 1, ERR_UNSUPPORTED},
        {"later.version", 0, ERR_NONE},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct fixture f;
        fixture_open(&f);
        batch_begin(&f, 0);
        add_level(&f, cases[i].name, cases[i].level);
        CU_ASSERT_EQUAL(deliver(&f), cases[i].e);
        fixture_close(&f);
    }
}

static void test_loader_damage(void)
{
    struct fixture f;
    struct bytes bytes;
    fixture_open(&f);
    batch_begin(&f, 0);
    CU_ASSERT_EQUAL(batch_builder_add(f.bb, 1, BYTES_NULL, BYTES_NULL, NULL, 0), ERR_NONE);
    CU_ASSERT_EQUAL(deliver(&f), ERR_CORRUPT); /* a record without a value */
    batch_begin(&f, 0);
    add_level(&f, "metadata.version", 33);
    CU_ASSERT_EQUAL_FATAL(batch_builder_finish(f.bb, &bytes), ERR_NONE);
    uint8_t *copy = malloc((size_t)bytes.n);
    memcpy(copy, bytes.p, (size_t)bytes.n);
    copy[bytes.n - 1] ^= 1;
    CU_ASSERT_EQUAL(loader_snapshot(f.loader, 1, 1, (struct bytes){copy, bytes.n}), ERR_CORRUPT);
    CU_ASSERT_EQUAL(loader_snapshot(f.loader, 1, 1, (struct bytes){bytes.p, bytes.n - 1}),
                    ERR_TRUNCATED);
    free(copy);
    batch_builder_free(f.bb);
    fixture_close(&f);
}

TEST_MAIN(TEST(test_loader_delivery_is_a_publication), TEST(test_loader_transaction_ends),
          TEST(test_loader_transaction_aborts), TEST(test_loader_transaction_rules),
          TEST(test_loader_levels_beyond_ours), TEST(test_loader_damage))
