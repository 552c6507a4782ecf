/* UnregisterBroker, and what becomes of a broker that registers again afterwards. */
#include "cluster.h"

static int16_t unregister(struct cluster *c, int32_t id)
{
    const struct unregister_broker_request req = {.broker_id = id};
    struct test_op op = test_op_new();
    controller_unregister_broker(c->f.controller, &op.op, &req, c->f.now);
    return test_op_wait(&c->f, &op);
}

static void test_unregister_forgets(void)
{
    struct cluster c;
    struct broker_heartbeat_request req;
    struct broker_heartbeat_response resp;
    cluster_open(&c, 1, "2");
    CU_ASSERT_EQUAL(unregister(&c, 9), K_BROKER_ID_NOT_REGISTERED);
    cluster_fence(&c, 2);
    CU_ASSERT_EQUAL(unregister(&c, 2), K_NONE);
    CU_ASSERT_PTR_NULL(image_broker(&c.f.image, 2));
    CU_ASSERT_EQUAL(unregister(&c, 2), K_BROKER_ID_NOT_REGISTERED);
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = 2;
    req.broker_epoch = c.epoch[2];
    CU_ASSERT_EQUAL(fixture_heartbeat(&c.f, &req, &resp), K_STALE_BROKER_EPOCH);
    controller_resign(c.f.controller);
    CU_ASSERT_EQUAL(unregister(&c, 3), K_NOT_CONTROLLER);
    fixture_close(&c.f);
}

/* One that is alive loses what it leads; its session does not keep its next life away. */
static void test_unregister_a_live_one(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    CU_ASSERT_EQUAL(unregister(&c, 2), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 34  ");
    cluster_restart(&c, 2, false);
    cluster_unfence(&c, 2);
    cluster_pass(&c, 20 * 1000); /* no session of before is left to expire */
    CU_ASSERT_FALSE(image_broker(&c.f.image, 2)->fenced);
    fixture_close(&c.f);
}

/* It stays in the ELR, but not beyond its return: its log may be another. */
static void test_unregister_and_the_elr(void)
{
    struct cluster c;
    cluster_open(&c, 1, "3");
    cluster_fence(&c, 4);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 23 4 ");
    CU_ASSERT_EQUAL(unregister(&c, 4), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 23 4 ");
    cluster_restart(&c, 4, true);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 23  ");
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_unregister_forgets), TEST(test_unregister_a_live_one),
          TEST(test_unregister_and_the_elr))
