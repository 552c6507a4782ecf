/* A broker whose connection is gone is looked after, and fenced only when nobody listens there. */
#include "cluster.h"

enum { LINES_MAX = 8 };

struct line {
    struct peer *peer; /* NULL: not open */
    uint16_t port;
};

static struct {
    struct dialing dialing;
    struct line lines[LINES_MAX];
    int opened;
} net;

static struct cluster c;

static void ready(void *driver)
{
    (void)driver;
}

static enum err open_line(struct dialing *d, const struct dialing_args *args, struct peer **out)
{
    CU_ASSERT_PTR_EQUAL(d, &net.dialing);
    CU_ASSERT_FATAL(net.opened < LINES_MAX);
    struct line *l = &net.lines[net.opened++];
    const struct peer_args peer_args = {.timers = args->timers,
                                        .client_id = args->client_id,
                                        .answer_max_bytes = args->answer_max_bytes,
                                        .ready = ready,
                                        .driver = l};
    enum err e = peer_new(&peer_args, out);
    *l = (struct line){*out, args->port};
    return e;
}

static void close_line(struct dialing *d, struct peer *p)
{
    (void)d;
    struct line *l = peer_driver(p);
    if (peer_wants(p) == PEER_WANTS_END || peer_wants(p) == PEER_WANTS_SEND)
        peer_disconnected(p, c.f.now);
    peer_free(p);
    l->peer = NULL;
}

static void open_cluster(void)
{
    memset(&net, 0, sizeof net);
    net.dialing = (struct dialing){open_line, close_line};
    cluster_open_dialing(&c, &net.dialing);
    /* the claims of the set-up looked at every broker: they answer nothing */
    fixture_pass(&c.f, 2000);
    for (int i = 0; i < LINES_MAX; i++)
        CU_ASSERT_PTR_NULL(net.lines[i].peer);
    for (int32_t id = 2; id <= 4; id++)
        cluster_unfence(&c, id);
    net.opened = 0;
}

/* Every connection that is wanted now is refused, or made and ended; how many. */
static int end_connections(bool refused)
{
    int n = 0;
    fixture_commit(&c.f);
    for (int i = 0; i < LINES_MAX; i++) {
        struct peer *p = net.lines[i].peer;
        if (p == NULL || peer_wants(p) != PEER_WANTS_CONNECTION)
            continue;
        c.f.now.mono_us += 1000;
        if (peer_connect_at_us(p) > c.f.now.mono_us)
            c.f.now.mono_us = peer_connect_at_us(p);
        if (refused) {
            peer_refused(p, c.f.now);
        } else {
            peer_connected(p, c.f.now);
            fixture_commit(&c.f);
            peer_disconnected(p, c.f.now);
        }
        n++;
    }
    fixture_commit(&c.f);
    return n;
}

static int refuse(void)
{
    return end_connections(true);
}

static bool fenced(int32_t id)
{
    return image_broker(&c.f.image, id)->fenced;
}

static void test_probe_refused_twice(void)
{
    open_cluster();
    const int64_t before = c.f.now.mono_us;
    controller_broker_lost(c.f.controller, 2, c.f.now);
    controller_broker_lost(c.f.controller, 2, c.f.now); /* one look is enough */
    CU_ASSERT_EQUAL(net.opened, 1);
    CU_ASSERT_EQUAL(net.lines[0].port, 19092);
    CU_ASSERT_EQUAL(refuse(), 1);
    CU_ASSERT_FALSE(fenced(2)); /* once may be a moment between two listeners */
    CU_ASSERT_EQUAL(refuse(), 1);
    CU_ASSERT_TRUE(fenced(2));
    CU_ASSERT(c.f.now.mono_us - before < 500 * 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 34  ");
    CU_ASSERT_PTR_NULL(net.lines[0].peer);
    cluster_restart(&c, 2, true); /* nothing is left that its next life had to wait for */
    cluster_unfence(&c, 2);
    fixture_close(&c.f);
}

static void test_probe_heard_meanwhile(void)
{
    open_cluster();
    controller_broker_lost(c.f.controller, 2, c.f.now);
    CU_ASSERT_EQUAL(refuse(), 1);
    cluster_unfence(&c, 2); /* a heartbeat, by another connection */
    CU_ASSERT_EQUAL(refuse(), 1);
    CU_ASSERT_FALSE(fenced(2));
    CU_ASSERT_PTR_NULL(net.lines[0].peer);
    controller_broker_lost(c.f.controller, 2, c.f.now); /* and the next signal is looked at */
    CU_ASSERT_EQUAL(net.opened, 2);
    fixture_close(&c.f);
}

/* A process that is ending may close its connections first, and then refuse new ones. */
static void test_probe_of_a_process_that_is_ending(void)
{
    open_cluster();
    controller_broker_lost(c.f.controller, 2, c.f.now);
    CU_ASSERT_EQUAL(end_connections(false), 1);
    CU_ASSERT_EQUAL(refuse(), 1);
    CU_ASSERT_EQUAL(end_connections(false), 1);
    CU_ASSERT_EQUAL(refuse(), 1);
    CU_ASSERT_FALSE(fenced(2)); /* not twice in a row */
    CU_ASSERT_EQUAL(refuse(), 1);
    CU_ASSERT_TRUE(fenced(2));
    fixture_close(&c.f);
}

/* Connections that are made and end, for as long as is looked; silence: nothing is proven. */
static void test_probe_proves_nothing(void)
{
    open_cluster();
    controller_broker_lost(c.f.controller, 2, c.f.now);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(end_connections(false), 1);
    fixture_pass(&c.f, 2000);
    CU_ASSERT_PTR_NULL(net.lines[0].peer);
    CU_ASSERT_FALSE(fenced(2));
    controller_broker_lost(c.f.controller, 2, c.f.now);
    fixture_pass(&c.f, 2000);
    CU_ASSERT_PTR_NULL(net.lines[1].peer);
    CU_ASSERT_FALSE(fenced(2));
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 234  ");
    fixture_close(&c.f);
}

/* Another life, a broker that is fenced, or not registered, or ourselves; not the active one. */
static void test_probe_of_whom(void)
{
    open_cluster();
    c.epoch[1] = fixture_broker(&c.f, 1, 1, -1);
    controller_broker_lost(c.f.controller, 1, c.f.now);
    controller_broker_lost(c.f.controller, 9, c.f.now);
    cluster_fence(&c, 3);
    controller_broker_lost(c.f.controller, 3, c.f.now);
    CU_ASSERT_EQUAL(net.opened, 0);
    controller_broker_lost(c.f.controller, 2, c.f.now);
    CU_ASSERT_EQUAL(net.opened, 1);
    controller_resign(c.f.controller);
    CU_ASSERT_PTR_NULL(net.lines[0].peer);
    controller_broker_lost(c.f.controller, 2, c.f.now);
    CU_ASSERT_EQUAL(net.opened, 1);
    fixture_close(&c.f);
}

/* A new active controller looks at all: the one before may have died with a broker. */
static void test_probe_after_a_claim(void)
{
    open_cluster();
    controller_resign(c.f.controller);
    fixture_claim(&c.f);
    CU_ASSERT_EQUAL(net.opened, 3);
    fixture_commit(&c.f);
    for (int i = 1; i < 3; i++)
        peer_connected(net.lines[i].peer, c.f.now); /* and silent */
    CU_ASSERT_EQUAL(refuse(), 1);
    CU_ASSERT_EQUAL(refuse(), 1);
    CU_ASSERT_TRUE(fenced(2));
    CU_ASSERT_FALSE(fenced(3));
    CU_ASSERT_FALSE(fenced(4));
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_probe_refused_twice), TEST(test_probe_heard_meanwhile),
          TEST(test_probe_of_a_process_that_is_ending), TEST(test_probe_proves_nothing),
          TEST(test_probe_of_whom), TEST(test_probe_after_a_claim))
