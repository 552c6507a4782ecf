/* Throttles of replication: what is counted, and who is held back, at the leader and at the
 * follower; in-sync replicas and other partitions go on. */
#include "cluster.h"

static int32_t both[] = {1, 2}, alone[] = {1};

#define SECOND INT64_C(1000000)
#define LEADER_LIST "leader.replication.throttled.replicas"
#define FOLLOWER_LIST "follower.replication.throttled.replicas"
#define LEADER_RATE "leader.replication.throttled.rate"
#define FOLLOWER_RATE "follower.replication.throttled.rate"

/* ------------------------------------------------------------------ the rate */

static void test_throttle_rate(void)
{
    struct throttle t;
    int64_t now = 50 * SECOND;
    throttle_init(&t);
    throttle_record(&t, 1000000, now);
    CU_ASSERT_FALSE(throttle_exceeded(&t, now)); /* no limit */
    t.bytes_per_s = 1000;
    CU_ASSERT(throttle_exceeded(&t, now));
    throttle_init(&t);
    t.bytes_per_s = 1000;
    CU_ASSERT_FALSE(throttle_exceeded(&t, now));
    throttle_record(&t, 1000, now);
    CU_ASSERT_FALSE(throttle_exceeded(&t, now)); /* as much as it may */
    throttle_record(&t, 1, now);
    CU_ASSERT(throttle_exceeded(&t, now));
    CU_ASSERT(throttle_exceeded(&t, now + SECOND));
    CU_ASSERT_FALSE(throttle_exceeded(&t, now + SECOND + SECOND / 100));
    throttle_record(&t, 9000, now + 2 * SECOND); /* 10 001 bytes */
    CU_ASSERT(throttle_exceeded(&t, now + 10 * SECOND));
    CU_ASSERT_FALSE(throttle_exceeded(&t, now + 10 * SECOND + SECOND / 100));
    CU_ASSERT_FALSE(throttle_exceeded(&t, now + 11 * SECOND)); /* 9 000 in 9 s: one is forgotten */
    CU_ASSERT_EQUAL(t.n, 1);
    CU_ASSERT_FALSE(throttle_exceeded(&t, now + 60 * SECOND));
    CU_ASSERT_EQUAL(t.n, 0);
    t.bytes_per_s = 0;
    throttle_record(&t, 1, now + 61 * SECOND);
    CU_ASSERT(throttle_exceeded(&t, now + 62 * SECOND));
}

static void test_throttle_many_samples(void)
{
    struct throttle t;
    throttle_init(&t);
    t.bytes_per_s = 100;
    for (int64_t s = 0; s < 40; s++) {
        throttle_record(&t, 100, s * SECOND);
        CU_ASSERT(t.n <= THROTTLE_SAMPLES);
    }
    CU_ASSERT(throttle_exceeded(&t, 39 * SECOND)); /* 11 samples in 10 s */
    CU_ASSERT_FALSE(throttle_exceeded(&t, 40 * SECOND));
}

static void test_throttle_lists(void)
{
    struct throttled t;
    static const char *const none[] = {"",  " ",  "1:3,2:3", "x",    "1",
                                       ":", "1:", ":2",      "-1:2", "4294967297:2"};
    for (size_t i = 0; i < ARRAY_N(none); i++) {
        CU_ASSERT_EQUAL(throttled_parse(&t, none[i], 2), ERR_NONE);
        CU_ASSERT(!t.all && t.n == 0 && !throttled_has(&t, 1));
        throttled_close(&t);
    }
    CU_ASSERT_EQUAL(throttled_parse(&t, NULL, 2), ERR_NONE);
    CU_ASSERT(!throttled_has(&t, 0));
    CU_ASSERT_EQUAL(throttled_parse(&t, "*", 2), ERR_NONE);
    CU_ASSERT(throttled_has(&t, 0) && throttled_has(&t, 7));
    CU_ASSERT_EQUAL(throttled_parse(&t, "7:2, 3:1 ,5:2,0:2,5:1", 2), ERR_NONE);
    CU_ASSERT(throttled_has(&t, 0) && throttled_has(&t, 5) && throttled_has(&t, 7));
    CU_ASSERT(!throttled_has(&t, 3) && !throttled_has(&t, 1) && t.n == 3);
    throttled_close(&t);
}

/* ------------------------------------------------------------------ a cluster */

static void broker_value(struct cluster *c, const char *id, const char *key, const char *value)
{
    const struct config_record r = {CONFIG_RESOURCE_BROKER, str_of(id), str_of(key),
                                    value == NULL ? STR_NULL : str_of(value)};
    cluster_record(c, &msg_config_record, 0, &r);
}

static int16_t append(struct cluster *c, struct uuid t, int32_t n)
{
    struct fix_batch b = fix_plain;
    b.value_n = 10000;
    for (int32_t i = 0; i < n; i++) {
        struct fix_produce p;
        fix_produce(&c->nodes[1], &p, t, 0, 1, &b);
        cluster_turn(c); /* a directory is made first */
        fix_produce_close(&p);
        CU_ASSERT_EQUAL(p.part.error, K_NONE);
    }
    return K_NONE;
}

/* A topic of 100 batches of 10 kB that node 1 leads alone and node 2 is to come to; a batch a
 * fetch. */
static struct uuid begin(struct cluster *c)
{
    cluster_prepare(c, 2);
    fix_set(&c->nodes[2], "replica.fetch.max.bytes", "1024");
    fix_set(&c->nodes[2], "replica.fetch.response.max.bytes", "1024");
    cluster_start(c);
    c->cut[2] = true;
    const struct uuid t = cluster_topic(c, "t", 1, both, 2, alone, 1);
    cluster_turn(c);
    CU_ASSERT_EQUAL(append(c, t, 100), K_NONE);
    cluster_turn(c);
    return t;
}

/* Bytes that node 2 got in so many seconds, once it is connected. */
static int64_t got_in(struct cluster *c, struct uuid t, int64_t s)
{
    const int64_t before = cluster_leo(c, 2, t);
    cluster_wait(c, s * 1000);
    return (cluster_leo(c, 2, t) - before) * 10000;
}

static void connect(struct cluster *c)
{
    c->cut[2] = false;
    cluster_wait(c, 2000); /* a pause of the fetcher may be under way */
}

static void test_throttle_none(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    connect(&c);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 100);
    cluster_end(&c);
}

static void holds_back(const char *list, const char *replicas, const char *key, const char *id)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    cluster_topic_config(&c, "t", list, replicas);
    broker_value(&c, id, key, "50000");
    cluster_turn(&c);
    connect(&c);
    CU_ASSERT(cluster_leo(&c, 2, t) < 30);
    const int64_t got = got_in(&c, t, 10);
    CU_ASSERT(got > 300000 && got < 700000);
    CU_ASSERT_FALSE(cluster_in_sync(&c, t, 2));
    CU_ASSERT(c.fetches < 300); /* it waits in between */
    broker_value(&c, id, key, "1000000000");
    cluster_wait(&c, 3000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 100);
    cluster_wait(&c, 1000);
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

static void test_throttle_leader(void)
{
    holds_back(LEADER_LIST, "0:1", LEADER_RATE, "1");
    holds_back(LEADER_LIST, "*", LEADER_RATE, "");
}

static void test_throttle_follower(void)
{
    holds_back(FOLLOWER_LIST, "5:2,0:2", FOLLOWER_RATE, "2");
    holds_back(FOLLOWER_LIST, "*", FOLLOWER_RATE, "");
}

/* Of other partitions, of this one at another broker, without a rate: nobody is. */
static void test_throttle_of_others(void)
{
    static const char *const lists[][2] = {{"1:1,0:2", "1:2,0:1"}, {"", ""}, {"0:1", "0:2"}};
    for (size_t i = 0; i < ARRAY_N(lists); i++) {
        struct cluster c;
        const struct uuid t = begin(&c);
        cluster_topic_config(&c, "t", LEADER_LIST, lists[i][0]);
        cluster_topic_config(&c, "t", FOLLOWER_LIST, lists[i][1]);
        if (i < 2) {
            broker_value(&c, "", LEADER_RATE, "50000");
            broker_value(&c, "", FOLLOWER_RATE, "50000");
        } else { /* a broker's own rate is over the cluster's */
            broker_value(&c, "", LEADER_RATE, "50000");
            broker_value(&c, "1", LEADER_RATE, "1000000000");
        }
        cluster_turn(&c);
        connect(&c);
        CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 100);
        cluster_end(&c);
    }
}

/* A replica that is in sync is never held back, though its bytes count. */
static void test_throttle_not_in_sync_replicas(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    connect(&c);
    cluster_wait(&c, 1000);
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_topic_config(&c, "t", LEADER_LIST, "*");
    cluster_topic_config(&c, "t", FOLLOWER_LIST, "*");
    broker_value(&c, "", LEADER_RATE, "1000");
    broker_value(&c, "", FOLLOWER_RATE, "1000");
    cluster_turn(&c);
    for (int32_t i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(append(&c, t, 1), K_NONE);
        cluster_wait(&c, 200);
    }
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 120);
    CU_ASSERT(throttle_exceeded(&c.nodes[1].rs->leader_throttle, c.nodes[1].now.mono_us));
    CU_ASSERT(throttle_exceeded(&c.nodes[2].rs->follower_throttle, c.nodes[2].now.mono_us));
    cluster_end(&c);
}

/* Another partition of the same fetcher goes on meanwhile, and the leader sends nothing of what is
 * left out, though its session had it. */
static void test_throttle_others_go_on(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    const struct uuid u = cluster_topic(&c, "u", 1, both, 2, both, 2);
    cluster_topic_config(&c, "t", FOLLOWER_LIST, "*");
    broker_value(&c, "2", FOLLOWER_RATE, "20000");
    cluster_turn(&c);
    connect(&c);
    for (int32_t i = 0; i < 10; i++) {
        CU_ASSERT_EQUAL(append(&c, u, 1), K_NONE);
        cluster_wait(&c, 600);
        CU_ASSERT_EQUAL(cluster_leo(&c, 2, u), i + 1);
    }
    CU_ASSERT(cluster_leo(&c, 2, t) > 5 && cluster_leo(&c, 2, t) < 40);
    cluster_end(&c);
}

TEST_MAIN(TEST(test_throttle_rate), TEST(test_throttle_many_samples), TEST(test_throttle_lists),
          TEST(test_throttle_none), TEST(test_throttle_leader), TEST(test_throttle_follower),
          TEST(test_throttle_of_others), TEST(test_throttle_not_in_sync_replicas),
          TEST(test_throttle_others_go_on))
