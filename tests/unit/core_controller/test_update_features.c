/* UpdateFeatures and ControllerRegistration: who must understand a level. */
#include "cluster.h"

enum { UPGRADE = 1, SAFE_DOWNGRADE = 2, UNSAFE_DOWNGRADE = 3 };

struct updating {
    struct update_features_request_feature_update_key updates[4];
    struct update_features_request req;
    struct update_features_response resp;
};

static void updating_init(struct updating *u)
{
    *u = (struct updating){0};
    wire_default(&wire_update_features_request, &u->req);
    wire_default(&wire_update_features_response, &u->resp);
    u->req.feature_updates.v = u->updates;
}

static void add(struct updating *u, const char *name, int16_t level, int8_t type)
{
    u->updates[u->req.feature_updates.n++] = (struct update_features_request_feature_update_key){
        .feature = str_of(name), .max_version_level = level, .upgrade_type = type};
}

static int16_t run(struct cluster *c, struct updating *u)
{
    struct test_op op = test_op_new();
    controller_update_features(c->f.controller, &op.op, &u->req, &u->resp, c->f.now);
    return test_op_wait(&c->f, &op);
}

static int16_t update(struct cluster *c, const char *name, int16_t level, int8_t type)
{
    struct updating u;
    updating_init(&u);
    add(&u, name, level, type);
    const int16_t error = run(c, &u);
    CU_ASSERT_EQUAL(u.resp.error_message.n > 0, error == K_INVALID_UPDATE_VERSION);
    return error;
}

static int16_t level_of(struct cluster *c, const char *name)
{
    return image_feature_level(&c->f.image, name);
}

static void test_update_features_up_and_down(void)
{
    struct cluster c;
    cluster_open(&c, 1, "1");
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 2, UPGRADE), K_NONE);
    CU_ASSERT_EQUAL(level_of(&c, "transaction.version"), 2);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 2, UPGRADE), K_NONE);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, SAFE_DOWNGRADE), K_NONE);
    CU_ASSERT_EQUAL(level_of(&c, "transaction.version"), 1);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 2, SAFE_DOWNGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 2, UNSAFE_DOWNGRADE),
                    K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 0, UNSAFE_DOWNGRADE), K_NONE);
    CU_ASSERT_EQUAL(level_of(&c, "transaction.version"), 0);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, 0), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, 4), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", -1, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 3, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "no.such", 1, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "no.such", 0, UPGRADE), K_INVALID_UPDATE_VERSION);
    controller_resign(c.f.controller);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, UPGRADE), K_NOT_CONTROLLER);
    fixture_close(&c.f);
}

static void test_update_features_metadata_version(void)
{
    struct cluster c;
    cluster_open(&c, 1, "1");
    CU_ASSERT_EQUAL(update(&c, "metadata.version", 33, UPGRADE), K_NONE);
    CU_ASSERT_EQUAL(update(&c, "metadata.version", 34, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "metadata.version", 32, SAFE_DOWNGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "metadata.version", 32, UNSAFE_DOWNGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "metadata.version", 6, UPGRADE), K_INVALID_UPDATE_VERSION);
    fixture_close(&c.f);
    fixture_init(&c.f);
    cluster_claim(&c, 21, 0);
    /* from 21 down to 18 nothing changed in the records */
    CU_ASSERT_EQUAL(update(&c, "metadata.version", 16, SAFE_DOWNGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "metadata.version", 17, SAFE_DOWNGRADE), K_NONE);
    CU_ASSERT_EQUAL(level_of(&c, "metadata.version"), 17);
    CU_ASSERT_EQUAL(update(&c, "eligible.leader.replicas.version", 1, UPGRADE),
                    K_INVALID_UPDATE_VERSION);
    fixture_close(&c.f);
}

/* All or none; only to validate: none. */
static void test_update_features_together(void)
{
    struct cluster c;
    struct updating u;
    cluster_open(&c, 1, "1");
    updating_init(&u);
    add(&u, "group.version", 1, UPGRADE);
    add(&u, "share.version", 9, UPGRADE);
    CU_ASSERT_EQUAL(run(&c, &u), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(level_of(&c, "group.version"), 0);
    u.updates[1].max_version_level = 1;
    u.req.validate_only = true;
    CU_ASSERT_EQUAL(run(&c, &u), K_NONE);
    CU_ASSERT_EQUAL(level_of(&c, "group.version"), 0);
    u.req.validate_only = false;
    CU_ASSERT_EQUAL(run(&c, &u), K_NONE);
    CU_ASSERT_EQUAL(level_of(&c, "group.version"), 1);
    CU_ASSERT_EQUAL(level_of(&c, "share.version"), 1);
    fixture_close(&c.f);
}

/* ELR makes one min.insync.replicas that of the cluster. */
static void test_update_features_elr(void)
{
    struct cluster c;
    struct updating u;
    const struct str key = STR_LIT("min.insync.replicas");
    cluster_open(&c, 0, "2");
    cluster_config(&c.f, CONFIG_RESOURCE_BROKER, "3", "min.insync.replicas", "4");
    CU_ASSERT_EQUAL(update(&c, "eligible.leader.replicas.version", 1, UPGRADE), K_NONE);
    CU_ASSERT_EQUAL(level_of(&c, "eligible.leader.replicas.version"), 1);
    CU_ASSERT_PTR_NULL(image_config_value(&c.f.image, CONFIG_RESOURCE_BROKER, STR_LIT("3"), key));
    CU_ASSERT_STRING_EQUAL(image_config_value(&c.f.image, CONFIG_RESOURCE_BROKER, STR_LIT(""), key),
                           "2");
    fixture_close(&c.f);
    cluster_open_with(&c, 0, "2", (const char *const[]){"min.insync.replicas", "3", NULL});
    struct config_record r = {CONFIG_RESOURCE_BROKER, STR_LIT(""), key, STR_NULL};
    CU_ASSERT_EQUAL_FATAL(record_list_add(&c.f.raft.records, &msg_config_record, 0, &r), ERR_NONE);
    fixture_commit(&c.f);
    controller_resign(c.f.controller);
    fixture_claim(&c.f);
    updating_init(&u);
    add(&u, "eligible.leader.replicas.version", 1, UPGRADE);
    CU_ASSERT_EQUAL(run(&c, &u), K_NONE);
    CU_ASSERT_STRING_EQUAL(image_config_value(&c.f.image, CONFIG_RESOURCE_BROKER, STR_LIT(""), key),
                           "3");
    fixture_close(&c.f);
}

/* kraft.version is the quorum's own. */
static void test_update_features_kraft(void)
{
    struct cluster c;
    cluster_open(&c, 1, "1");
    struct updating u;
    c.f.raft.upgrade = ERR_INVALID;
    CU_ASSERT_EQUAL(update(&c, "kraft.version", 1, UPGRADE), K_INVALID_UPDATE_VERSION);
    c.f.raft.upgrade = ERR_AGAIN;
    CU_ASSERT_EQUAL(update(&c, "kraft.version", 1, UPGRADE), K_INVALID_UPDATE_VERSION);
    c.f.raft.upgrade = ERR_NONE;
    CU_ASSERT_EQUAL(update(&c, "kraft.version", 2, UPGRADE), K_INVALID_UPDATE_VERSION);
    updating_init(&u); /* all or none */
    add(&u, "kraft.version", 1, UPGRADE);
    add(&u, "transaction.version", 3, UPGRADE);
    CU_ASSERT_EQUAL(run(&c, &u), K_INVALID_UPDATE_VERSION);
    updating_init(&u);
    add(&u, "kraft.version", 1, UPGRADE);
    u.req.validate_only = true;
    CU_ASSERT_EQUAL(run(&c, &u), K_NONE);
    CU_ASSERT_EQUAL(c.f.raft.kraft_version, 0);
    const int appends = c.f.raft.appends;
    CU_ASSERT_EQUAL(update(&c, "kraft.version", 1, UPGRADE), K_NONE);
    CU_ASSERT_EQUAL(c.f.raft.kraft_version, 1);
    CU_ASSERT_EQUAL(c.f.raft.appends, appends + 1); /* what the answer waits for */
    CU_ASSERT_EQUAL(update(&c, "kraft.version", 1, UPGRADE), K_NONE);
    CU_ASSERT_EQUAL(level_of(&c, "kraft.version"), 0);
    c.f.raft.upgrade = ERR_INVALID;
    CU_ASSERT_EQUAL(update(&c, "kraft.version", 0, SAFE_DOWNGRADE), K_INVALID_UPDATE_VERSION);
    fixture_close(&c.f);
}

/* ------------------------------------------------------------------ who else */

static int16_t register_controller(struct cluster *c, int32_t id, int16_t transaction_max)
{
    struct controller_registration_request_feature features[] = {
        {STR_LIT("metadata.version"), 7, 33}, {STR_LIT("transaction.version"), 0, transaction_max}};
    struct controller_registration_request_listener listener = {STR_LIT("CONTROLLER"),
                                                                STR_LIT("here"), 9093, 0};
    struct controller_registration_request req = {.controller_id = id,
                                                  .incarnation_id = {{(uint8_t)id}},
                                                  .listeners = {&listener, 1},
                                                  .features = {features, 2}};
    struct test_op op = test_op_new();
    controller_register_controller(c->f.controller, &op.op, &req, c->f.now);
    return test_op_wait(&c->f, &op);
}

static void test_update_features_needs_every_broker(void)
{
    struct cluster c;
    cluster_open(&c, 1, "1");
    struct broker_registration_request_feature few[] = {
        {STR_LIT("metadata.version"), 7, 33},
        {STR_LIT("eligible.leader.replicas.version"), 0, 1},
        {STR_LIT("transaction.version"), 0, 1},
    };
    struct broker_registration_request req = fixture_registration(&c.f, 5, 1);
    req.features.v = few;
    req.features.n = 3;
    CU_ASSERT_EQUAL(fixture_register(&c.f, &req, &c.epoch[5]), K_NONE);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 2, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, UPGRADE), K_NONE);
    CU_ASSERT_EQUAL(update(&c, "group.version", 1, UPGRADE), K_INVALID_UPDATE_VERSION);
    fixture_close(&c.f);
}

static void test_update_features_needs_every_controller(void)
{
    struct cluster c;
    cluster_open_with(&c, 1, "1",
                      (const char *const[]){"node.id", "1", "process.roles", "broker,controller",
                                            "listeners",
                                            "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
                                            "controller.listener.names", "CONTROLLER",
                                            "listener.security.protocol.map",
                                            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                                            "controller.quorum.voters", "1@a:1,7@b:1,8@c:1", NULL});
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(register_controller(&c, 7, 1), K_NONE);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(register_controller(&c, 8, 2), K_NONE);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 1, UPGRADE), K_NONE);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 2, UPGRADE), K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(register_controller(&c, 7, 2), K_NONE);
    CU_ASSERT_EQUAL(update(&c, "transaction.version", 2, UPGRADE), K_NONE);
    fixture_close(&c.f);
}

static void test_register_controller(void)
{
    struct cluster c;
    cluster_open(&c, 1, "1");
    CU_ASSERT_EQUAL(register_controller(&c, 7, 2), K_NONE);
    const struct image_controller *k = image_controller(&c.f.image, 7);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    CU_ASSERT_EQUAL(k->incarnation_id.b[0], 7);
    CU_ASSERT_EQUAL_FATAL(k->endpoints_n, 1);
    CU_ASSERT_STRING_EQUAL(k->endpoints[0].name, "CONTROLLER");
    CU_ASSERT_STRING_EQUAL(k->endpoints[0].host, "here");
    CU_ASSERT_EQUAL(k->endpoints[0].port, 9093);
    CU_ASSERT_EQUAL_FATAL(k->features_n, 2);
    CU_ASSERT_EQUAL(k->features[1].max, 2);
    struct image copy; /* snapshots have it too */
    image_init(&copy, 1);
    CU_ASSERT_EQUAL(image_copy(&c.f.image, &copy), ERR_NONE);
    k = image_controller(&copy, 7);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    CU_ASSERT_STRING_EQUAL(k->endpoints[0].host, "here");
    CU_ASSERT_EQUAL(k->features[0].max, 33);
    image_close(&copy);
    fixture_close(&c.f);
    fixture_init(&c.f);
    cluster_claim(&c, 14, 0);
    CU_ASSERT_EQUAL(register_controller(&c, 7, 2), K_UNSUPPORTED_VERSION);
    controller_resign(c.f.controller);
    CU_ASSERT_EQUAL(register_controller(&c, 7, 2), K_NOT_CONTROLLER);
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_update_features_up_and_down), TEST(test_update_features_metadata_version),
          TEST(test_update_features_together), TEST(test_update_features_elr),
          TEST(test_update_features_kraft), TEST(test_update_features_needs_every_broker),
          TEST(test_update_features_needs_every_controller), TEST(test_register_controller))
