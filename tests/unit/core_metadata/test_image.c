/* Single records: what they change, what they may not name, what a failed allocation leaves. */
#include "meta_log.h"
#include "support/fault.h"
#include "support/rng.h"

static const struct uuid topic_id = {{7, 7, 7}};
static int32_t three[] = {1, 2, 3};

static void add_topic(struct image *img, const char *name, struct uuid id)
{
    const struct topic_record r = {str_of(name), id};
    CU_ASSERT_EQUAL_FATAL(meta_apply(img, &msg_topic_record, 0, &r, NULL), ERR_NONE);
}

static struct partition_record partition_of(struct uuid id, int32_t index)
{
    struct partition_record r;
    wire_default(&wire_partition_record, &r);
    r.partition_id = index;
    r.topic_id = id;
    r.replicas.v = r.isr.v = three;
    r.replicas.n = r.isr.n = 3;
    r.leader = 1;
    r.leader_epoch = r.partition_epoch = 0;
    return r;
}

static void add_partition(struct image *img, struct uuid id, int32_t index)
{
    const struct partition_record r = partition_of(id, index);
    CU_ASSERT_EQUAL_FATAL(meta_apply(img, &msg_partition_record, 1, &r, NULL), ERR_NONE);
}

static struct partition_change_record change_of(struct uuid id, int32_t index)
{
    struct partition_change_record r;
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = id;
    r.partition_id = index;
    return r;
}

static void test_image_partition_change_counts_epochs(void)
{
    struct image img;
    struct image_delta d;
    image_init(&img, 1);
    image_delta_init(&d);
    add_topic(&img, "t", topic_id);
    add_partition(&img, topic_id, 0);
    const struct image_partition *p = image_partition(image_topic_named(&img, STR_LIT("t")), 0);

    struct partition_change_record r = change_of(topic_id, 0);
    r.isr.v = three;
    r.isr.n = 2;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_partition_change_record, 2, &r, &d), ERR_NONE);
    CU_ASSERT_EQUAL(p->isr_n, 2);
    CU_ASSERT_EQUAL(p->leader_epoch, 0);
    CU_ASSERT_EQUAL(p->partition_epoch, 1);

    r = change_of(topic_id, 0);
    r.leader = -1;
    r.isr.n = 0; /* empty, not absent */
    r.eligible_leader_replicas.v = r.last_known_elr.v = three;
    r.eligible_leader_replicas.n = r.last_known_elr.n = 1;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_partition_change_record, 2, &r, &d), ERR_NONE);
    CU_ASSERT_EQUAL(p->leader, -1);
    CU_ASSERT_EQUAL(p->leader_epoch, 1);
    CU_ASSERT_EQUAL(p->partition_epoch, 2);
    CU_ASSERT_EQUAL(p->isr_n, 0);
    CU_ASSERT_EQUAL(p->elr_n, 1);
    CU_ASSERT_EQUAL(d.partitions_n, 2);

    const struct clear_elr_record all = {STR_LIT("")};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_clear_elr_record, 0, &all, &d), ERR_NONE);
    CU_ASSERT_EQUAL(p->elr_n, 0);
    CU_ASSERT_EQUAL(p->last_known_elr_n, 0);
    CU_ASSERT_EQUAL(p->partition_epoch, 3);
    CU_ASSERT_EQUAL(p->leader_epoch, 1);
    const struct clear_elr_record one = {STR_LIT("t")};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_clear_elr_record, 0, &one, &d), ERR_NONE);
    CU_ASSERT_EQUAL(p->partition_epoch, 3); /* nothing to clear */
    CU_ASSERT_EQUAL(d.partitions_n, 3);
    image_delta_close(&d);
    image_close(&img);
}

/* Snapshots may hold partitions in any order. */
static void test_image_partitions_in_any_order(void)
{
    struct image img;
    image_init(&img, 1);
    add_topic(&img, "t", topic_id);
    struct image_topic *t = image_topic_named(&img, STR_LIT("t"));
    add_partition(&img, topic_id, 2);
    CU_ASSERT_EQUAL(img.partitions_n, 1);
    CU_ASSERT_PTR_NULL(image_partition(t, 0));
    CU_ASSERT_PTR_NOT_NULL(image_partition(t, 2));
    add_partition(&img, topic_id, 0);
    add_partition(&img, topic_id, 0); /* again: replaced */
    CU_ASSERT_EQUAL(img.partitions_n, 2);
    CU_ASSERT_EQUAL(t->partitions_n, 3);
    image_close(&img);
}

static void test_image_remove_topic(void)
{
    struct image img;
    struct image_delta d;
    image_init(&img, 1);
    image_delta_init(&d);
    add_topic(&img, "t", topic_id);
    add_partition(&img, topic_id, 0);
    const struct config_record c = {CONFIG_RESOURCE_TOPIC, STR_LIT("t"), STR_LIT("segment.ms"),
                                    STR_LIT("5")};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_config_record, 0, &c, &d), ERR_NONE);
    CU_ASSERT_EQUAL(d.configs_n, 1);
    const struct remove_topic_record r = {topic_id};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_remove_topic_record, 0, &r, &d), ERR_NONE);
    CU_ASSERT_EQUAL(d.deleted_n, 1);
    CU_ASSERT_STRING_EQUAL(d.deleted[0].name, "t");
    CU_ASSERT_EQUAL(d.deleted[0].partitions_n, 1);
    CU_ASSERT_PTR_NULL(image_topic_named(&img, STR_LIT("t")));
    CU_ASSERT_PTR_NULL(image_topic_by_id(&img, topic_id));
    CU_ASSERT_PTR_NULL(
        image_config_value(&img, CONFIG_RESOURCE_TOPIC, STR_LIT("t"), STR_LIT("segment.ms")));
    CU_ASSERT_EQUAL(img.partitions_n, 0);
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_remove_topic_record, 0, &r, &d), ERR_CORRUPT);
    image_delta_close(&d);
    image_close(&img);
}

static void test_image_config_null_removes(void)
{
    struct image img;
    char long_name[400];
    memset(long_name, 'g', sizeof long_name);
    const struct str names[] = {STR_LIT(""), STR_LIT("t"), {long_name, sizeof long_name}};
    image_init(&img, 1);
    for (size_t i = 0; i < ARRAY_N(names); i++) {
        struct config_record c = {CONFIG_RESOURCE_GROUP, names[i], STR_LIT("k"), STR_LIT("1")};
        CU_ASSERT_EQUAL(meta_apply(&img, &msg_config_record, 0, &c, NULL), ERR_NONE);
        c.value = STR_LIT("2");
        CU_ASSERT_EQUAL(meta_apply(&img, &msg_config_record, 0, &c, NULL), ERR_NONE);
        CU_ASSERT_STRING_EQUAL(
            image_config_value(&img, CONFIG_RESOURCE_GROUP, names[i], STR_LIT("k")), "2");
        CU_ASSERT_PTR_NULL(image_config_value(&img, CONFIG_RESOURCE_TOPIC, names[i], STR_LIT("k")));
        c.value = STR_NULL;
        CU_ASSERT_EQUAL(meta_apply(&img, &msg_config_record, 0, &c, NULL), ERR_NONE);
        CU_ASSERT_EQUAL(img.configs.n, 0);
    }
    image_close(&img);
}

static void test_image_features(void)
{
    struct image img;
    struct image_delta d;
    image_init(&img, 1);
    image_delta_init(&d);
    struct feature_level_record r = {STR_LIT("group.version"), 1};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_feature_level_record, 0, &r, &d), ERR_NONE);
    r = (struct feature_level_record){STR_LIT("metadata.version"), 33};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_feature_level_record, 0, &r, &d), ERR_NONE);
    CU_ASSERT_TRUE(d.features);
    CU_ASSERT_EQUAL(image_feature_level(&img, "group.version"), 1);
    struct record_list rl = meta_snapshot(&img); /* metadata.version comes first there */
    CU_ASSERT_EQUAL(rl.n, 2);
    CU_ASSERT_PTR_NOT_NULL(memmem(record_list_get(&rl, 0).p, (size_t)record_list_get(&rl, 0).n,
                                  "metadata.version", 16));
    record_list_close(&rl);
    r = (struct feature_level_record){STR_LIT("group.version"), 0};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_feature_level_record, 0, &r, &d), ERR_NONE);
    CU_ASSERT_EQUAL(img.features_n, 1);
    CU_ASSERT_EQUAL(image_metadata_version(&img), 33);
    image_delta_close(&d);
    image_close(&img);
}

static void test_image_broker_epochs(void)
{
    struct image img;
    image_init(&img, 1);
    struct register_broker_record r;
    struct uuid dirs[] = {{{9}}, {{8}}};
    wire_default(&wire_register_broker_record, &r);
    r.broker_id = 3;
    r.broker_epoch = 10;
    r.rack = STR_LIT("r1");
    r.log_dirs.v = dirs;
    r.log_dirs.n = 2;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_register_broker_record, 4, &r, NULL), ERR_NONE);
    const struct image_broker *b = image_broker(&img, 3);
    CU_ASSERT_TRUE(b->fenced);
    CU_ASSERT_EQUAL(b->cordoned_log_dirs_n, -1);

    struct broker_registration_change_record c;
    wire_default(&wire_broker_registration_change_record, &c);
    c.broker_id = 3;
    c.broker_epoch = 9;
    c.fenced = -1;
    CU_ASSERT_EQUAL(record_version_registration_change(&c), 0);
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_broker_registration_change_record, 0, &c, NULL),
                    ERR_CORRUPT);
    c.broker_epoch = 10;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_broker_registration_change_record, 0, &c, NULL),
                    ERR_NONE);
    CU_ASSERT_FALSE(b->fenced);
    c.fenced = 0;
    c.in_controlled_shutdown = 1;
    CU_ASSERT_EQUAL(record_version_registration_change(&c), 1);
    c.cordoned_log_dirs.n = 0;
    CU_ASSERT_EQUAL(record_version_registration_change(&c), 3);
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_broker_registration_change_record, 3, &c, NULL),
                    ERR_NONE);
    CU_ASSERT_FALSE(b->fenced);
    CU_ASSERT_TRUE(b->in_controlled_shutdown);
    CU_ASSERT_EQUAL(b->cordoned_log_dirs_n, 0);
    CU_ASSERT_EQUAL(b->log_dirs_n, 2);

    const struct fence_broker_record f = {3, 10};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_fence_broker_record, 0, &f, NULL), ERR_NONE);
    CU_ASSERT_TRUE(b->fenced);
    const struct unregister_broker_record u = {3, 10};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_unregister_broker_record, 0, &u, NULL), ERR_NONE);
    CU_ASSERT_PTR_NULL(image_broker(&img, 3));
    image_close(&img);
}

static void test_image_directories(void)
{
    struct image img;
    image_init(&img, 1);
    struct register_broker_record r;
    struct uuid dirs[] = {{{9}}};
    wire_default(&wire_register_broker_record, &r);
    r.broker_id = 2;
    r.log_dirs.v = dirs;
    r.log_dirs.n = 1;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_register_broker_record, 3, &r, NULL), ERR_NONE);
    struct uuid of[] = {{{1}}, {{9}}, {{1}}};
    struct image_partition p = {.replicas = three, .replicas_n = 3, .directories = of};
    CU_ASSERT_TRUE(image_directory_online(&img, &p, 2));
    CU_ASSERT_FALSE(image_directory_online(&img, &p, 1)); /* not registered */
    of[1].b[0] = 4;
    CU_ASSERT_FALSE(image_directory_online(&img, &p, 2));
    of[1] = (struct uuid){{0}};
    CU_ASSERT_TRUE(image_directory_online(&img, &p, 2)); /* unspecified */
    of[1].b[15] = 1;
    CU_ASSERT_TRUE(image_directory_online(&img, &p, 2)); /* not yet chosen */
    of[1].b[15] = 2;
    CU_ASSERT_FALSE(image_directory_online(&img, &p, 2)); /* lost */
    image_close(&img);
}

static void test_image_corrupt_records(void)
{
    struct image img;
    image_init(&img, 1);
    struct partition_record p = partition_of(topic_id, 0);
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_partition_record, 0, &p, NULL), ERR_CORRUPT);
    add_topic(&img, "t", topic_id);
    const struct topic_record again = {STR_LIT("t"), {{1}}};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_topic_record, 0, &again, NULL), ERR_CORRUPT);
    const struct topic_record same_id = {STR_LIT("u"), topic_id};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_topic_record, 0, &same_id, NULL), ERR_CORRUPT);
    p.partition_id = INT32_MAX;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_partition_record, 0, &p, NULL), ERR_CORRUPT);
    p.partition_id = 0;
    p.replicas.n = 0;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_partition_record, 0, &p, NULL), ERR_CORRUPT);
    struct partition_change_record c = change_of(topic_id, 0);
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_partition_change_record, 0, &c, NULL), ERR_CORRUPT);
    image_close(&img);
}

static void test_image_kept_records(void)
{
    struct image img;
    image_init(&img, 1);
    struct client_quota_record_entity_data parts[] = {{STR_LIT("user"), STR_LIT("u")},
                                                      {STR_LIT("client-id"), STR_NULL}};
    struct client_quota_record q = {.key = STR_LIT("producer_byte_rate"), .value = 5};
    q.entity.v = parts;
    q.entity.n = 2;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_client_quota_record, 0, &q, NULL), ERR_NONE);
    q.value = 6;
    struct client_quota_record_entity_data other = parts[0];
    parts[0] = parts[1]; /* the same entity */
    parts[1] = other;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_client_quota_record, 0, &q, NULL), ERR_NONE);
    CU_ASSERT_EQUAL(img.kept.n, 1);
    struct user_scram_credential_record u = {.name = STR_LIT("u"), .mechanism = 1};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_user_scram_credential_record, 0, &u, NULL), ERR_NONE);
    struct access_control_entry_record acl = {.id = {{1}}, .principal = STR_LIT("User:a")};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_access_control_entry_record, 0, &acl, NULL), ERR_NONE);
    struct delegation_token_record token = {.token_id = STR_LIT("x")};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_delegation_token_record, 0, &token, NULL), ERR_NONE);
    struct register_controller_record rc = {.controller_id = 4};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_register_controller_record, 0, &rc, NULL), ERR_NONE);
    struct record_list rl = meta_snapshot(&img);
    CU_ASSERT_EQUAL(rl.n, 5);
    static const int16_t order[] = {RECORD_REGISTER_CONTROLLER, RECORD_CLIENT_QUOTA,
                                    RECORD_ACCESS_CONTROL_ENTRY, RECORD_USER_SCRAM_CREDENTIAL,
                                    RECORD_DELEGATION_TOKEN};
    for (size_t i = 0; i < rl.n; i++) {
        int16_t type, version;
        CU_ASSERT_EQUAL(record_peek(record_list_get(&rl, i), &type, &version), ERR_NONE);
        CU_ASSERT_EQUAL(type, order[i]);
    }
    record_list_close(&rl);

    q.remove = true;
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_client_quota_record, 0, &q, NULL), ERR_NONE);
    const struct remove_user_scram_credential_record ru = {STR_LIT("u"), 1};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_remove_user_scram_credential_record, 0, &ru, NULL),
                    ERR_NONE);
    const struct remove_access_control_entry_record ra = {{{1}}};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_remove_access_control_entry_record, 0, &ra, NULL),
                    ERR_NONE);
    const struct remove_delegation_token_record rt = {STR_LIT("x")};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_remove_delegation_token_record, 0, &rt, NULL), ERR_NONE);
    const struct unregister_controller_record urc = {4};
    CU_ASSERT_EQUAL(meta_apply(&img, &msg_unregister_controller_record, 0, &urc, NULL), ERR_NONE);
    CU_ASSERT_EQUAL(img.kept.n, 0);
    image_close(&img);
}

static uint64_t next_bits(void *ctx)
{
    return rng_u64(ctx);
}

/* No random record, valid or not, hurts; its frame round-trips. */
static void test_image_random_records(void)
{
    struct rng rng = {20};
    struct arena a;
    struct image img;
    arena_init(&a, NULL);
    image_init(&img, 1);
    for (int i = 0; i < 20000; i++) {
        const struct wire_message *m = wire_find(WIRE_RECORD, (int16_t)rng_below(&rng, 30));
        if (m == NULL)
            continue;
        const int16_t version = (int16_t)rng_below(&rng, (uint64_t)m->max_version + 1);
        void *record = arena_alloc(&a, m->body->size);
        CU_ASSERT_EQUAL_FATAL(wire_random(m, version, &a, next_bits, &rng, record), ERR_NONE);
        enum err e = meta_apply(&img, m, version, record, NULL);
        CU_ASSERT(e == ERR_NONE || e == ERR_CORRUPT);
        arena_reset(&a);
    }
    struct image copy;
    image_init(&copy, 1);
    CU_ASSERT_EQUAL(image_copy(&img, &copy), ERR_NONE);
    image_close(&copy);
    image_close(&img);
    arena_close(&a);
}

static void test_records_frames(void)
{
    struct arena a;
    int16_t type, version;
    void *record;
    arena_init(&a, NULL);
    const struct {
        const char *bytes;
        int32_t n;
        enum err e;
    } cases[] = {
        {"", 0, ERR_TRUNCATED},
        {"\x01", 1, ERR_TRUNCATED},
        {"\x01\x14", 2, ERR_TRUNCATED},
        {"\x02\x14\x00\x00", 4, ERR_UNSUPPORTED},
        {"\x01\x14\x01\x00", 4, ERR_UNSUPPORTED}, /* version of NoOp */
        {"\x01\x06\x00\x00", 4, ERR_UNSUPPORTED}, /* no such type */
        {"\x01\x14\x00\x00", 4, ERR_NONE},
        {"\x01\x14\x00\x00\x00", 5, ERR_TRAILING},
        {"\x01\xff\xff\xff\xff\xff\xff", 7, ERR_CORRUPT},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++)
        CU_ASSERT_EQUAL(record_decode((struct bytes){(const uint8_t *)cases[i].bytes, cases[i].n},
                                      &a, &type, &version, &record),
                        cases[i].e);
    CU_ASSERT_EQUAL(record_version_register_broker(33), 4);
    CU_ASSERT_EQUAL(record_version_register_broker(17), 3);
    CU_ASSERT_EQUAL(record_version_register_broker(7), 1);
    CU_ASSERT_EQUAL(record_version_partition(33), 2);
    CU_ASSERT_EQUAL(record_version_partition(22), 1);
    CU_ASSERT_EQUAL(record_version_partition(16), 0);
    arena_close(&a);
}

static void ignore(void *ctx, const struct image_delta *d)
{
    (void)ctx;
    (void)d;
}

/* Every allocation of loading and copying fails once: an error, and all memory is given back. */
static void test_image_out_of_memory(void)
{
    size_t n;
    uint8_t *p = meta_log_read("killed", &n);
    bool ok = false;
    long points = 0;
    while (!ok) {
        struct image img, copy;
        struct loader *l = NULL;
        image_init(&img, 1);
        image_init(&copy, 1);
        fault_alloc_arm(++points, false);
        enum err e = loader_new(&img, ignore, NULL, &l);
        struct batch b;
        size_t at = 0;
        while (e == ERR_NONE && at < n &&
               batch_parse((struct bytes){p + at, (int32_t)(n - at)}, &b) == ERR_NONE) {
            e = loader_committed(l, &b);
            at += b.size_bytes;
        }
        if (e == ERR_NONE)
            e = image_copy(&img, &copy);
        const bool hit = fault_alloc_hit();
        CU_ASSERT_EQUAL(e, hit ? ERR_NOMEM : ERR_NONE);
        ok = !hit;
        loader_free(l);
        image_close(&copy);
        image_close(&img);
    }
    printf("  %ld allocations\n", points - 1);
    free(p);
}

TEST_MAIN(TEST(test_image_partition_change_counts_epochs), TEST(test_image_partitions_in_any_order),
          TEST(test_image_remove_topic), TEST(test_image_config_null_removes),
          TEST(test_image_features), TEST(test_image_broker_epochs), TEST(test_image_directories),
          TEST(test_image_corrupt_records), TEST(test_image_kept_records),
          TEST(test_image_random_records), TEST(test_records_frames),
          TEST(test_image_out_of_memory))
