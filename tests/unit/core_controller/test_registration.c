/* Registration and heartbeats: Kafka's checks, the state table, sessions. */
#include "fake_raft.h"

static void open_fresh(struct fixture *f)
{
    fixture_init(f);
    fixture_start(f);
    fixture_claim(f);
}

static struct broker_heartbeat_response beat_fatal(struct fixture *f, int32_t id, int64_t epoch)
{
    return fixture_beat(f, id, epoch, false, false);
}

static void test_registration_checks(void)
{
    struct fixture f;
    int64_t epoch;
    open_fresh(&f);
    struct broker_registration_request req = fixture_registration(&f, 2, 1);
    req.cluster_id = STR_LIT("another");
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_INCONSISTENT_CLUSTER_ID);
    req = fixture_registration(&f, 2, 1);
    req.log_dirs.n = 0;
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_INVALID_REGISTRATION);
    struct uuid dirs[] = {{{5}}, {{5}}};
    req.log_dirs.v = dirs;
    req.log_dirs.n = 2;
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_INVALID_REGISTRATION);
    dirs[1] = (struct uuid){{0}}; /* reserved */
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_INVALID_REGISTRATION);
    req = fixture_registration(&f, 2, 1);
    req.features.n = ARRAY_N(fixture_features) - 1; /* kraft.version may be left out at 0 */
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_NONE);
    CU_ASSERT_EQUAL(epoch, f.image.next_offset - 1);
    req = fixture_registration(&f, 3, 1);
    req.log_dirs.v[0].b[0] = 2; /* the directory of broker 2 */
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_INVALID_REGISTRATION);
    fixture_close(&f);
}

static void test_registration_features(void)
{
    struct fixture f;
    int64_t epoch;
    open_fresh(&f);
    f.raft.kraft_version = 1;
    for (size_t skip = 0; skip < ARRAY_N(fixture_features); skip++) {
        struct broker_registration_request req = fixture_registration(&f, 2, 1);
        struct broker_registration_request_feature some[ARRAY_N(fixture_features)];
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_N(fixture_features); i++)
            if (i != skip)
                some[n++] = fixture_features[i];
        req.features.v = some;
        req.features.n = (int32_t)n;
        CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_UNSUPPORTED_VERSION);
        some[n] = fixture_features[skip];
        some[n].max_supported_version = 0;
        req.features.n = (int32_t)n + 1;
        CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_UNSUPPORTED_VERSION);
    }
    struct broker_registration_request req = fixture_registration(&f, 2, 1);
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_NONE);
    fixture_close(&f);
}

static void test_registration_same_incarnation_amends(void)
{
    struct fixture f;
    int64_t again;
    open_fresh(&f);
    const int64_t epoch = fixture_broker(&f, 2, 1, -1);
    struct broker_registration_request req = fixture_registration(&f, 2, 1);
    req.rack = STR_LIT("there");
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &again), K_NONE);
    CU_ASSERT_EQUAL(again, epoch);
    CU_ASSERT_FALSE(image_broker(&f.image, 2)->fenced);
    CU_ASSERT_STRING_EQUAL(image_broker(&f.image, 2)->rack, "there");
    fixture_close(&f);
}

static void test_registration_duplicate(void)
{
    struct fixture f;
    int64_t epoch;
    open_fresh(&f);
    fixture_broker(&f, 2, 1, -1);
    struct broker_registration_request other = fixture_registration(&f, 2, 9);
    CU_ASSERT_EQUAL(fixture_register(&f, &other, &epoch), K_DUPLICATE_BROKER_REGISTRATION);
    fixture_pass(&f, 9000);
    CU_ASSERT_TRUE(image_broker(&f.image, 2)->fenced);
    CU_ASSERT_EQUAL(fixture_register(&f, &other, &epoch), K_NONE);
    fixture_close(&f);
}

/* A broker that dies with its node need not wait for itself; while it is heard it is alive. */
static void test_registration_own_node(void)
{
    struct fixture f;
    int64_t epoch;
    open_fresh(&f);
    const int64_t old = fixture_broker(&f, 1, 1, -1);
    struct broker_registration_request other = fixture_registration(&f, 1, 9);
    CU_ASSERT_EQUAL(fixture_register(&f, &other, &epoch), K_DUPLICATE_BROKER_REGISTRATION);
    fixture_broker(&f, 2, 1, -1);
    controller_resign(f.controller);
    fixture_claim(&f); /* the node came back */
    CU_ASSERT_EQUAL(fixture_register(&f, &other, &epoch), K_NONE);
    CU_ASSERT(epoch > old);
    struct broker_registration_request foreign = fixture_registration(&f, 2, 9);
    CU_ASSERT_EQUAL(fixture_register(&f, &foreign, &epoch), K_DUPLICATE_BROKER_REGISTRATION);
    fixture_close(&f);
}

/* One that was told to go is not alive: its next life begins at once. */
static void test_registration_after_a_clean_stop(void)
{
    struct fixture f;
    int64_t epoch;
    open_fresh(&f);
    const int64_t old = fixture_broker(&f, 2, 1, -1);
    struct broker_registration_request other = fixture_registration(&f, 2, 9);
    CU_ASSERT_EQUAL(fixture_register(&f, &other, &epoch), K_DUPLICATE_BROKER_REGISTRATION);
    CU_ASSERT_TRUE(fixture_beat(&f, 2, old, false, true).should_shut_down);
    CU_ASSERT_EQUAL(fixture_register(&f, &other, &epoch), K_NONE);
    CU_ASSERT(epoch > old);
    fixture_close(&f);
}

static void test_heartbeat_stale_epoch(void)
{
    struct fixture f;
    struct broker_heartbeat_request req;
    struct broker_heartbeat_response resp;
    open_fresh(&f);
    const int64_t epoch = fixture_broker(&f, 2, 1, -1);
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = 2;
    req.broker_epoch = epoch - 1;
    CU_ASSERT_EQUAL(fixture_heartbeat(&f, &req, &resp), K_STALE_BROKER_EPOCH);
    req.broker_id = 3;
    CU_ASSERT_EQUAL(fixture_heartbeat(&f, &req, &resp), K_STALE_BROKER_EPOCH);
    fixture_close(&f);
}

static void test_heartbeat_states(void)
{
    struct fixture f;
    int64_t epoch;
    open_fresh(&f);
    struct broker_registration_request req = fixture_registration(&f, 2, 1);
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_NONE);
    const struct image_broker *b = image_broker(&f.image, 2);
    CU_ASSERT_TRUE(b->fenced);
    /* fenced */
    CU_ASSERT_TRUE(fixture_beat(&f, 2, epoch, true, false).is_fenced);
    CU_ASSERT_FALSE(fixture_beat(&f, 2, epoch, true, false).should_shut_down);
    CU_ASSERT_TRUE(fixture_beat(&f, 2, epoch, true, true).should_shut_down);
    CU_ASSERT_TRUE(fixture_beat(&f, 2, epoch, false, true).should_shut_down);
    CU_ASSERT_FALSE(beat_fatal(&f, 2, epoch).is_fenced);
    CU_ASSERT_FALSE(b->fenced);
    /* unfenced */
    const size_t before = f.raft.records.n;
    CU_ASSERT_FALSE(beat_fatal(&f, 2, epoch).is_fenced);
    CU_ASSERT_EQUAL(f.raft.records.n, before); /* no change, no record */
    CU_ASSERT_TRUE(fixture_beat(&f, 2, epoch, true, false).is_fenced);
    CU_ASSERT_TRUE(b->fenced);
    CU_ASSERT_FALSE(beat_fatal(&f, 2, epoch).is_fenced);
    CU_ASSERT_TRUE(fixture_beat(&f, 2, epoch, true, true).should_shut_down);
    CU_ASSERT_TRUE(b->fenced);
    CU_ASSERT_FALSE(beat_fatal(&f, 2, epoch).is_fenced);
    /* leads nothing: at once */
    CU_ASSERT_TRUE(fixture_beat(&f, 2, epoch, false, true).should_shut_down);
    CU_ASSERT_TRUE(b->fenced);
    CU_ASSERT_FALSE(b->in_controlled_shutdown);
    fixture_close(&f);
}

static void test_heartbeat_keeps_the_session(void)
{
    struct fixture f;
    open_fresh(&f);
    const int64_t two = fixture_broker(&f, 2, 1, -1), three = fixture_broker(&f, 3, 1, -1);
    for (int i = 0; i < 20; i++) {
        fixture_pass(&f, 2000);
        CU_ASSERT_FALSE(beat_fatal(&f, 3, three).is_fenced);
    }
    CU_ASSERT_TRUE(image_broker(&f.image, 2)->fenced);
    CU_ASSERT_FALSE(image_broker(&f.image, 3)->fenced);
    CU_ASSERT_FALSE(beat_fatal(&f, 2, two).is_fenced); /* it is back, with its epoch */
    CU_ASSERT_FALSE(image_broker(&f.image, 2)->fenced);
    fixture_close(&f);
}

/* A new controller gives every unfenced broker a whole session. */
static void test_heartbeat_after_a_claim(void)
{
    struct fixture f;
    open_fresh(&f);
    fixture_broker(&f, 2, 1, -1);
    fixture_pass(&f, 8000);
    controller_resign(f.controller);
    fixture_pass(&f, 60000); /* nobody counts */
    fixture_claim(&f);
    fixture_pass(&f, 8999);
    CU_ASSERT_FALSE(image_broker(&f.image, 2)->fenced);
    fixture_pass(&f, 1);
    CU_ASSERT_TRUE(image_broker(&f.image, 2)->fenced);
    fixture_close(&f);
}

static void test_heartbeat_directories(void)
{
    struct fixture f;
    struct broker_heartbeat_request req;
    struct broker_heartbeat_response resp;
    struct uuid dirs[] = {{{31}}, {{32}}};
    int64_t epoch;
    open_fresh(&f);
    struct broker_registration_request reg = fixture_registration(&f, 2, 1);
    reg.log_dirs.v = dirs;
    reg.log_dirs.n = 2;
    CU_ASSERT_EQUAL(fixture_register(&f, &reg, &epoch), K_NONE);
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = 2;
    req.broker_epoch = epoch;
    req.current_metadata_offset = f.image.next_offset;
    req.offline_log_dirs.v = dirs;
    req.offline_log_dirs.n = 1;
    req.cordoned_log_dirs.v = dirs + 1;
    req.cordoned_log_dirs.n = 1;
    CU_ASSERT_EQUAL(fixture_heartbeat(&f, &req, &resp), K_NONE);
    const struct image_broker *b = image_broker(&f.image, 2);
    CU_ASSERT_EQUAL_FATAL(b->log_dirs_n, 1);
    CU_ASSERT_EQUAL(b->log_dirs[0].b[0], 32);
    CU_ASSERT_EQUAL_FATAL(b->cordoned_log_dirs_n, 1);
    const size_t before = f.raft.records.n;
    CU_ASSERT_EQUAL(fixture_heartbeat(&f, &req, &resp), K_NONE);
    CU_ASSERT_EQUAL(f.raft.records.n, before); /* told already */
    req.offline_log_dirs.n = 2;                /* none left: no record says that */
    CU_ASSERT_EQUAL(fixture_heartbeat(&f, &req, &resp), K_NONE);
    CU_ASSERT_EQUAL(b->log_dirs_n, 1);
    fixture_close(&f);
}

TEST_MAIN(TEST(test_registration_checks), TEST(test_registration_features),
          TEST(test_registration_same_incarnation_amends), TEST(test_registration_duplicate),
          TEST(test_registration_own_node), TEST(test_registration_after_a_clean_stop),
          TEST(test_heartbeat_stale_epoch), TEST(test_heartbeat_states),
          TEST(test_heartbeat_keeps_the_session), TEST(test_heartbeat_after_a_claim),
          TEST(test_heartbeat_directories))
