/* Offsets that go by themselves (groups.md 3): retention, explicit retention, deleted topics. */
#include "made.h"

enum { MINUTE = 60 * 1000 };

static struct co c;

/* An hour of retention, looked at each minute. */
static void begin(void)
{
    co_prepare(&c);
    fix_set(&c.f, "offsets.retention.minutes", "60");
    fix_set(&c.f, "offsets.retention.check.interval.ms", "60000");
    co_begin(&c);
}

static int16_t commit_keeping(const char *group, int32_t index, int64_t retention_ms)
{
    struct co_commit q;
    co_commit_init(&q, group);
    q.op.version = 4;
    q.op.retention_ms = retention_ms;
    co_part(&c, &q, "t", index, 5, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    return q.parts[0].error;
}

static void test_expiry_of_a_simple_group(void) /* GR-08 */
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    co_wait(&c, 30 * MINUTE);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 1, 6), K_NONE);
    co_wait(&c, 29 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1); /* 60 minutes after its own commit */
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), 6);
    CU_ASSERT(co_exists(&c, "g"));
    co_wait(&c, 30 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), -1);
    CU_ASSERT(!co_exists(&c, "g")); /* with its last offset the group */
    CU_ASSERT_EQUAL(co_shard(&c, 0)->groups.n, 0);
    co_restart(&c);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->groups.n, 0);
    co_end(&c);
}

static void test_expiry_by_the_commit(void) /* GR-08 */
{
    begin();
    CU_ASSERT_EQUAL(commit_keeping("g", 0, 5 * MINUTE), K_NONE);
    CU_ASSERT_EQUAL(commit_keeping("g", 1, 120 * MINUTE), K_NONE);
    CU_ASSERT_EQUAL(commit_keeping("g", 2, -1), K_NONE); /* the broker's */
    co_wait(&c, 4 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    co_restart(&c); /* the record tells when */
    co_turns(&c);
    co_wait(&c, 55 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 2), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), 5);
    co_wait(&c, 60 * MINUTE);
    CU_ASSERT(!co_exists(&c, "g"));
    co_end(&c);
}

/* A group that was made and never had offsets goes at the first look. */
static void test_expiry_of_an_empty_group(void)
{
    struct group *g;
    begin();
    CU_ASSERT_EQUAL(group_create_classic(co_shard(&c, 0), STR_LIT("g"), c.f.now, &g), K_NONE);
    fix_turn(&c.f);
    CU_ASSERT(co_exists(&c, "g"));
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT(!co_exists(&c, "g"));
    co_end(&c);
}

/* A clock that jumps back makes nothing old. */
static void test_expiry_survives_the_clock(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    c.f.now.wall_ms -= 1000ll * 24 * 60 * MINUTE;
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_end(&c);
}

/* No record makes the sum overflow. */
static void test_expiry_of_any_time(void)
{
    static const int64_t times[] = {INT64_MIN, INT64_MAX, -1};
    begin();
    for (int32_t i = 0; i < 3; i++) {
        const struct offset_commit_key key = {STR_LIT("g"), STR_LIT("t"), i};
        const struct offset_commit_value value = {.offset = 6,
                                                  .leader_epoch = -1,
                                                  .metadata = STR_LIT(""),
                                                  .commit_timestamp = times[i],
                                                  .expire_timestamp = -1};
        struct made m;
        made_begin(&m, -1, 0);
        made_add(&c, &m, 1, &msg_offset_commit_key, &key, &msg_offset_commit_value, 4, &value);
        made_end(&c, &m);
    }
    co_restart(&c);
    co_turns(&c);
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), 6);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 2), -1);
    co_end(&c);
}

/* What could not be written is met again. */
static void test_expiry_after_a_full_disk(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    memfs_fault_arm(&c.f.fs, (struct memfs_fault){.nth = 1,
                                                  .persistent = true,
                                                  .err = ERR_NOSPC,
                                                  .kinds = MEMFS_KIND(MEMFS_WRITE)});
    co_wait(&c, 60 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    (void)memfs_fault_hit(&c.f.fs);
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    co_end(&c);
}

static void test_expiry_in_slices(void)
{
    enum { N = 3000 };
    begin();
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "g%d", i);
        CU_ASSERT_EQUAL(co_commit(&c, name, i % 4, i), K_NONE);
    }
    CU_ASSERT_EQUAL(co_shard(&c, 0)->groups.n, N);
    c.f.now.mono_us += 60ll * MINUTE * 1000;
    c.f.now.wall_ms += 60ll * MINUTE;
    size_t left = N;
    int turns = 0;
    for (; left > 0 && turns < 100; turns++) {
        timers_run(&c.f.timers, c.f.now.mono_us);
        fix_settle(&c.f);
        const size_t n = co_shard(&c, 0)->groups.n;
        CU_ASSERT(left - n <= 256);
        left = n;
    }
    CU_ASSERT(left == 0 && turns >= N / 256);
    co_end(&c);
}

/* ------------------------------------------------------------------ classic groups */

/* A Stable group of one member, which subscribes to t; sessions of half an hour. */
static void put_group(const char *group, const char *type)
{
    static const char subscription[] = "\0\0\0\0\0\1\0\1t\xFF\xFF\xFF\xFF";
    struct group_metadata_value_member_metadata member;
    struct group_metadata_value value;
    const struct group_metadata_key key = {str_of(group)};
    struct made m;
    wire_default(&wire_group_metadata_value_member_metadata, &member);
    member.member_id = member.client_id = member.client_host = STR_LIT("m");
    member.rebalance_timeout = member.session_timeout = 30 * MINUTE;
    member.subscription = (struct bytes){(const uint8_t *)subscription, sizeof subscription - 1};
    member.assignment = (struct bytes){(const uint8_t *)"", 0};
    wire_default(&wire_group_metadata_value, &value);
    value.protocol_type = str_of(type);
    value.generation = 1;
    value.protocol = STR_LIT("range");
    value.leader = STR_LIT("m");
    value.current_state_timestamp = c.f.now.wall_ms;
    value.members.v = &member;
    value.members.n = 1;
    made_begin(&m, -1, 0);
    made_add(&c, &m, 2, &msg_group_metadata_key, &key, &msg_group_metadata_value, 3, &value);
    made_offset(&c, &m, group, 0, 5);
    made_end(&c, &m);
}

static void begin_with(const char *type)
{
    co_prepare(&c);
    fix_set(&c.f, "offsets.retention.minutes", "10");
    fix_set(&c.f, "offsets.retention.check.interval.ms", "60000");
    co_begin(&c);
    fix_topic(&c.f, "u", 1);
    put_group("g", type);
    const struct offset_commit_key key = {STR_LIT("g"), STR_LIT("u"), 0};
    const struct offset_commit_value value = {.offset = 6,
                                              .leader_epoch = -1,
                                              .metadata = STR_LIT(""),
                                              .commit_timestamp = c.f.now.wall_ms,
                                              .expire_timestamp = -1};
    struct made m;
    made_begin(&m, -1, 0);
    made_add(&c, &m, 1, &msg_offset_commit_key, &key, &msg_offset_commit_value, 4, &value);
    made_end(&c, &m);
    co_restart(&c);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 2);
}

static void test_expiry_spares_what_members_consume(void) /* GR-08 */
{
    begin_with("consumer");
    co_wait(&c, 9 * MINUTE);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 2);
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1); /* nobody subscribes to u */
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_wait(&c, 19 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_end(&c);
}

/* When its members are gone the time runs from there, and goes on over a restart. */
static void test_expiry_from_when_a_group_became_empty(void) /* GR-08 */
{
    struct co_list l;
    begin_with("consumer");
    co_wait(&c, 31 * MINUTE); /* the session ends on the way */
    co_list(&c, &l);
    CU_ASSERT_STRING_EQUAL(l.v[0].state, "Empty");
    co_wait(&c, 5 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_restart(&c);
    co_turns(&c);
    co_wait(&c, 4 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT(!co_exists(&c, "g"));
    co_end(&c);
}

/* Members of another type: nobody knows what they consume. */
static void test_expiry_never_of_other_types(void)
{
    begin_with("connect");
    co_wait(&c, 29 * MINUTE);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 2);
    co_end(&c);
}

/* What a transaction may still replace stays, and its group too. */
static void test_expiry_spares_what_is_pending(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 1, 5), K_NONE);
    made_put_offset(&c, 7, "g", 0, 6);
    made_put_offset(&c, 7, "h", 0, 6);
    co_restart(&c);
    co_turns(&c);
    co_wait(&c, 61 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), -1);
    CU_ASSERT(co_exists(&c, "g") && co_exists(&c, "h"));
    co_end(&c);
}

/* ------------------------------------------------------------------ deleted topics */

static void test_expiry_of_a_deleted_topic(void)
{
    begin();
    fix_topic(&c.f, "u", 1);
    struct co_commit q;
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_part(&c, &q, "u", 0, 6, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(co_commit(&c, "h", 0, 7), K_NONE);
    fix_delete(&c.f, c.t);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "h", 0), -1);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1); /* of u */
    CU_ASSERT(co_exists(&c, "h"));
    co_end(&c);
}

/* Nothing is read yet, or only some, when the topic goes. */
static void test_expiry_of_a_topic_deleted_while_loading(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "h", 1, 6), K_NONE);
    co_restart(&c);
    fix_settle(&c.f);
    CU_ASSERT_EQUAL_FATAL(co_shard(&c, 0)->state, SHARD_LOADING);
    CU_ASSERT_EQUAL_FATAL(co_shard(&c, 0)->groups.n, 0);
    fix_delete(&c.f, c.t);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "h", 1), -1);
    co_end(&c);
}

/* What a full disk has kept goes with the next expiry. */
static void test_expiry_of_a_deleted_topic_on_a_full_disk(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "h", 0, 5), K_NONE);
    memfs_fault_arm(&c.f.fs, (struct memfs_fault){.nth = 1,
                                                  .persistent = true,
                                                  .err = ERR_NOSPC,
                                                  .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                  .under = "/data/__consumer_offsets"});
    fix_delete(&c.f, c.t);
    co_turns(&c);
    (void)memfs_fault_hit(&c.f.fs);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_wait(&c, 1 * MINUTE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "h", 0), -1);
    co_end(&c);
}

/* One of the same name that came at once keeps what was committed to it. */
static void test_expiry_spares_a_topic_of_the_same_name(void)
{
    struct co_commit q;
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "h", 0, 5), K_NONE);
    fix_delete(&c.f, c.t);
    c.t = fix_topic(&c.f, "t", 4);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 9, "");
    co_commit_start(&c, &q); /* before the slice that forgets the other */
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 9);
    CU_ASSERT_EQUAL(co_offset(&c, "h", 0), -1);
    co_end(&c);
}

static void test_expiry_of_many_deleted_topics(void)
{
    enum { TOPICS = 5, GROUPS = 600 };
    struct uuid ids[TOPICS];
    begin();
    for (int i = 0; i < TOPICS; i++) {
        char name[8];
        snprintf(name, sizeof name, "d%d", i);
        ids[i] = fix_topic(&c.f, name, 1);
    }
    for (int g = 0; g < GROUPS; g++) {
        static const char *const topics[TOPICS] = {"d0", "d1", "d2", "d3", "d4"};
        char name[16];
        struct co_commit q;
        snprintf(name, sizeof name, "g%d", g);
        co_commit_init(&q, name);
        for (int i = 0; i < TOPICS; i++)
            co_part(&c, &q, topics[i], 0, g, "");
        co_commit_start(&c, &q);
        fix_turn(&c.f);
    }
    for (int i = 0; i < TOPICS - 1; i++)
        fix_delete(&c.f, ids[i]);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->topics.n, GROUPS);
    CU_ASSERT(list_empty(&co_shard(&c, 0)->gone));
    co_restart(&c);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->topics.n, GROUPS);
    co_end(&c);
}

/* Its own topic: the coordinator has nothing left. */
static void test_expiry_of_the_offsets_topic(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    fix_delete(&c.f, c.offsets);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NOT_COORDINATOR);
    int32_t one[] = {1};
    c.offsets = fix_topic_of(&c.f, "__consumer_offsets", 1, one, 1);
    co_wait(&c, 2 * MINUTE); /* the old directory of that name has gone */
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 6), K_NONE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 6);
    co_end(&c);
}

/* A metadata snapshot does not name what was deleted before it. */
static void delete_behind_a_snapshot(struct uuid id)
{
    const struct remove_topic_record r = {id};
    struct image_delta d;
    fix_record(&c.f, &msg_remove_topic_record, 0, &r, NULL);
    image_delta_init(&d);
    d.everything = true;
    fix_publish(&c.f, &d);
}

static void test_expiry_of_topics_deleted_behind_a_snapshot(void)
{
    struct co_commit q;
    begin();
    fix_topic(&c.f, "u", 1);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_part(&c, &q, "u", 0, 6, "");
    co_commit_start(&c, &q);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "i", 1, 8), K_NONE);
    delete_behind_a_snapshot(c.t);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "i", 1), -1);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1); /* of u */
    c.t = fix_topic(&c.f, "t", 4);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 9), K_NONE);
    delete_behind_a_snapshot(fix_topic(&c.f, "v", 1));
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 9);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 2);
    CU_ASSERT(list_empty(&co_shard(&c, 0)->gone));
    co_end(&c);
}

static void test_expiry_of_the_offsets_topic_behind_a_snapshot(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    delete_behind_a_snapshot(c.offsets);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_NONE);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->groups.n, 0);
    CU_ASSERT(!co_exists(&c, "g"));
    co_end(&c);
}

TEST_MAIN(TEST(test_expiry_of_a_simple_group), TEST(test_expiry_by_the_commit),
          TEST(test_expiry_of_an_empty_group), TEST(test_expiry_survives_the_clock),
          TEST(test_expiry_of_any_time), TEST(test_expiry_after_a_full_disk),
          TEST(test_expiry_in_slices), TEST(test_expiry_spares_what_members_consume),
          TEST(test_expiry_from_when_a_group_became_empty), TEST(test_expiry_never_of_other_types),
          TEST(test_expiry_spares_what_is_pending), TEST(test_expiry_of_a_deleted_topic),
          TEST(test_expiry_of_a_topic_deleted_while_loading),
          TEST(test_expiry_of_a_deleted_topic_on_a_full_disk),
          TEST(test_expiry_spares_a_topic_of_the_same_name),
          TEST(test_expiry_of_many_deleted_topics), TEST(test_expiry_of_the_offsets_topic),
          TEST(test_expiry_of_topics_deleted_behind_a_snapshot),
          TEST(test_expiry_of_the_offsets_topic_behind_a_snapshot))
