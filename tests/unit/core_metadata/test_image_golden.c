/* The metadata logs that Apache Kafka 4.4.0 wrote: every record is understood, the image says what
 * they say, and a snapshot of it makes the same image again. */
#include "meta_log.h"

struct seen {
    struct image img;
    struct loader *loader;
    int published, partitions, deleted, configs, brokers;
};

static void publish(void *ctx, const struct image_delta *d)
{
    struct seen *s = ctx;
    s->published++;
    s->partitions += (int)d->partitions_n;
    s->deleted += (int)d->deleted_n;
    s->configs += (int)d->configs_n;
    s->brokers += d->brokers;
}

static int seen_open(struct seen *s, const char *which)
{
    size_t n;
    *s = (struct seen){0};
    uint8_t *p = meta_log_read(which, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    image_init(&s->img, 7);
    CU_ASSERT_EQUAL_FATAL(loader_new(&s->img, publish, s, &s->loader), ERR_NONE);
    const int batches = meta_log_load(s->loader, p, n);
    free(p);
    return batches;
}

static void seen_close(struct seen *s)
{
    loader_free(s->loader);
    image_close(&s->img);
}

static void test_image_golden_clean(void)
{
    struct seen s;
    const int batches = seen_open(&s, "clean");
    CU_ASSERT(batches > 100);
    CU_ASSERT(s.published >= batches); /* and one before the transaction */
    CU_ASSERT_EQUAL(s.img.next_offset, 240);
    CU_ASSERT_EQUAL(s.img.epoch, 2);
    CU_ASSERT_FALSE(s.img.in_transaction);
    CU_ASSERT_EQUAL(image_metadata_version(&s.img), 33);
    CU_ASSERT_EQUAL(image_feature_level(&s.img, "transaction.version"), 2);
    CU_ASSERT_EQUAL(image_feature_level(&s.img, "kraft.version"), 0);
    CU_ASSERT_EQUAL(s.img.features_n, 6);
    CU_ASSERT_EQUAL(s.img.topics_by_id.n, 15);
    CU_ASSERT_EQUAL(s.img.partitions_n, 18);
    CU_ASSERT_EQUAL(s.img.next_producer_id, 1000);

    const struct image_broker *b = image_broker(&s.img, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL(b->epoch, 174);
    CU_ASSERT_TRUE(b->fenced);
    CU_ASSERT_TRUE(b->in_controlled_shutdown);
    CU_ASSERT_EQUAL(b->log_dirs_n, 1);
    CU_ASSERT_EQUAL(b->cordoned_log_dirs_n, 0);
    CU_ASSERT_EQUAL(b->features_n, 7);
    const struct image_endpoint *at = image_endpoint(b, STR_LIT("PLAINTEXT"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    CU_ASSERT_STRING_EQUAL(at->host, "127.0.0.1");
    CU_ASSERT_EQUAL(at->port, 19092);
    CU_ASSERT_PTR_NULL(image_endpoint(b, STR_LIT("CONTROLLER")));

    struct image_topic *t = image_topic_named(&s.img, STR_LIT("g-txn"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT_PTR_EQUAL(image_topic_by_id(&s.img, t->id), t);
    CU_ASSERT_EQUAL(t->partitions_n, 2);
    const struct image_partition *p = image_partition(t, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_EQUAL(p->leader, -1);
    CU_ASSERT_EQUAL(p->leader_epoch, 3);
    CU_ASSERT_EQUAL(p->partition_epoch, 4);
    CU_ASSERT_EQUAL(p->leader_recovery_state, 1);
    CU_ASSERT_EQUAL(p->isr_n, 0);
    CU_ASSERT_EQUAL(p->elr_n, 1);
    CU_ASSERT_EQUAL(p->last_known_elr_n, 1);
    CU_ASSERT_TRUE(image_directory_online(&s.img, p, 1));
    CU_ASSERT_PTR_NULL(image_partition(t, 2));
    CU_ASSERT_STRING_EQUAL(image_config_value(&s.img, CONFIG_RESOURCE_TOPIC, STR_LIT("g-compact"),
                                              STR_LIT("segment.ms")),
                           "1000");
    CU_ASSERT_STRING_EQUAL(image_config_value(&s.img, CONFIG_RESOURCE_BROKER, STR_LIT(""),
                                              STR_LIT("min.insync.replicas")),
                           "1");
    CU_ASSERT_PTR_NULL(image_config_value(&s.img, CONFIG_RESOURCE_TOPIC, STR_LIT("g-none"),
                                          STR_LIT("segment.ms")));
    seen_close(&s);
}

static void test_image_golden_killed(void)
{
    struct seen s;
    seen_open(&s, "killed");
    CU_ASSERT_EQUAL(s.img.topics_by_id.n, 15);
    const struct image_broker *b = image_broker(&s.img, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL(b->epoch, 11);
    CU_ASSERT_FALSE(b->fenced);
    struct image_topic *t = image_topic_named(&s.img, STR_LIT("g-none"));
    const struct image_partition *p = image_partition(t, 0);
    CU_ASSERT_EQUAL(p->leader, 1);
    CU_ASSERT_EQUAL(p->leader_epoch, 0);
    CU_ASSERT_EQUAL(p->isr_n, 1);
    seen_close(&s);
}

static void test_image_golden_copy(void)
{
    static const char *const which[] = {"clean", "killed"};
    for (size_t i = 0; i < ARRAY_N(which); i++) {
        struct seen s;
        struct image copy;
        seen_open(&s, which[i]);
        image_init(&copy, 99);
        CU_ASSERT_EQUAL(image_copy(&s.img, &copy), ERR_NONE);
        CU_ASSERT_TRUE(meta_equal(&s.img, &copy));
        CU_ASSERT_EQUAL(copy.controllers.n, 1);
        image_close(&copy);
        seen_close(&s);
    }
}

/* A snapshot in batches, through the loader, is the same image too. */
static void test_image_golden_snapshot(void)
{
    struct seen s, from;
    struct batch_builder *bb;
    struct bytes batch;
    seen_open(&s, "clean");
    struct record_list rl = meta_snapshot(&s.img);
    const struct batch_builder_args args = {
        .leader_epoch = s.img.epoch, .producer_id = -1, .producer_epoch = -1, .base_sequence = -1};
    CU_ASSERT_EQUAL_FATAL(batch_builder_new(&args, &bb), ERR_NONE);
    for (size_t i = 0; i < rl.n; i++)
        CU_ASSERT_EQUAL(batch_builder_add(bb, 1, BYTES_NULL, record_list_get(&rl, i), NULL, 0),
                        ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(batch_builder_finish(bb, &batch), ERR_NONE);

    from = (struct seen){0};
    image_init(&from.img, 1);
    CU_ASSERT_EQUAL_FATAL(loader_new(&from.img, publish, &from, &from.loader), ERR_NONE);
    for (int i = 0; i < 2; i++) { /* the second replaces what the first made */
        CU_ASSERT_EQUAL(loader_snapshot(from.loader, s.img.next_offset, s.img.epoch, batch),
                        ERR_NONE);
        CU_ASSERT_TRUE(meta_equal(&s.img, &from.img));
    }
    CU_ASSERT_EQUAL(from.published, 2);
    CU_ASSERT_EQUAL(from.partitions, 2 * 18);
    batch_builder_free(bb);
    record_list_close(&rl);
    seen_close(&from);
    seen_close(&s);
}

TEST_MAIN(TEST(test_image_golden_clean), TEST(test_image_golden_killed),
          TEST(test_image_golden_copy), TEST(test_image_golden_snapshot))
