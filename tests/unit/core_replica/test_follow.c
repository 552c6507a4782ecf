/* Followers against true leaders: what is produced at one node comes to the others, byte for byte,
 * in sessions that say only what changed; leaders, directories and connections come and go. */
#include "cluster.h"

static int32_t both[] = {1, 2}, reversed[] = {2, 1}, alone[] = {1};

/* Node 1 leads it, node 2 follows and is in sync. */
static struct uuid followed(struct cluster *c, const char *name, int32_t partitions_n)
{
    return cluster_topic(c, name, partitions_n, both, 2, both, 2);
}

/* Two nodes, and one such partition. */
static struct uuid begin(struct cluster *c)
{
    cluster_begin(c, 2);
    const struct uuid t = followed(c, "t", 1);
    cluster_turn(c);
    return t;
}

/* ------------------------------------------------------------------ fetching */

static void test_follow_copies_what_is_produced(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 3), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 4), K_NONE);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 7);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 7);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_wait(&c, 600); /* a high watermark alone does not end a follower's wait (KAFKA-9952) */
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 7);
    CU_ASSERT_EQUAL(c.fetched_version, 18);
    CU_ASSERT_EQUAL(c.fetched.replica_state.replica_id, 2);
    CU_ASSERT_EQUAL(c.fetched.replica_state.replica_epoch, 200);
    CU_ASSERT_EQUAL(c.fetched.max_wait_ms, 500);
    CU_ASSERT_EQUAL(c.fetched.min_bytes, 1);
    CU_ASSERT_EQUAL(c.fetched.max_bytes, 10 << 20);
    CU_ASSERT_EQUAL(c.fetched_part.partition_max_bytes, 1 << 20);
    CU_ASSERT_EQUAL(c.fetch_forgotten, 0); /* what waited for its directory was asked for again */
    CU_ASSERT_EQUAL(c.refused, 0);
    cluster_end(&c);
}

/* With a life that is not registered nobody is asked: a leader would take it for the one before. */
static void test_follow_once_it_is_registered(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    cluster_wait(&c, 1000);
    c.nodes[2].broker_epoch = -1;
    cluster_disconnect(&c, 2);
    cluster_wait(&c, 2000);
    const int before = c.fetches;
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 2000);
    CU_ASSERT_EQUAL(c.fetches, before);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 0);
    c.nodes[2].broker_epoch = 200;
    cluster_wait(&c, 2000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    cluster_end(&c);
}

/* What is not written yet at the leader when a fetch is parked ends its wait. */
static void test_follow_waits_at_the_leader(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 1);
    cluster_wait(&c, 600);
    const int before = c.fetches;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(c.fetches, before);
    cluster_wait(&c, 500);
    CU_ASSERT_EQUAL(c.fetches, before + 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT(c.fetches > before + 1);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    cluster_end(&c);
}

/* A session's request names what changed: of a hundred partitions the one that was written to. */
/* A new leadership does not wait for the end of the fetch that its follower has under way there,
 * whichever of the two hears of it first; and when it is old, fetches wait as before. */
static void test_follow_what_is_added_to_a_fetch_that_waits(void)
{
    struct cluster c;
    (void)begin(&c);
    cluster_wait(&c, 1000);
    const struct uuid u = followed(&c, "u", 1);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, u, 1), K_NONE);
    cluster_pass(&c, 5); /* its directory is made meanwhile */
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, u), 1);
    cluster_wait(&c, 1000);
    c.lazy[2] = true;
    const struct uuid v = followed(&c, "v", 1);
    cluster_turn(&c);
    cluster_pass(&c, 50);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, v, 1), K_NONE);
    c.lazy[2] = false;
    cluster_turn(&c);
    cluster_pass(&c, 10);
    cluster_pass(&c, 5);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, v), 1);
    cluster_wait(&c, 1000);
    const int before = c.fetches;
    cluster_wait(&c, 2000);
    CU_ASSERT(c.fetches - before <= 4);
    cluster_end(&c);
}

static void test_follow_asks_for_what_changed(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 100);
    cluster_wait(&c, 2000);
    CU_ASSERT_EQUAL(c.fetch_parts, 100);
    CU_ASSERT(c.fetched.session_id != 0 && c.fetched.session_epoch > 0);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 2000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    /* that one, again when its directory is made, forgotten in between */
    CU_ASSERT(c.fetch_parts <= 100 + 3);
    const int before = c.fetch_parts;
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 2000);
    CU_ASSERT_EQUAL(c.fetch_parts, before + 1);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 2);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 99)->followers[0].end_offset, 0);
    cluster_end(&c);
}

static void test_follow_begins_again_when_its_session_is_lost(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 2);
    cluster_wait(&c, 1000);
    cluster_session(&c, 1)->epoch = 77;
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    CU_ASSERT_EQUAL(c.fetched.session_epoch > 0, true);
    cluster_end(&c);
}

/* A leader without room for sessions is asked for everything each time. */
static void test_follow_without_sessions(void)
{
    struct cluster c;
    cluster_prepare(&c, 2);
    fix_set(&c.nodes[1], "max.incremental.fetch.session.cache.slots", "0");
    cluster_start(&c);
    const struct uuid t = followed(&c, "t", 1);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 2);
    CU_ASSERT_EQUAL(c.fetched.session_id, 0);
    CU_ASSERT_EQUAL(c.fetched.session_epoch, 0);
    CU_ASSERT_EQUAL(c.refused, 0);
    cluster_end(&c);
}

/* S10 (KAFKA-15510): after an answer without records the last epoch is still named. */
static void test_follow_s10_names_its_last_epoch(void)
{
    struct cluster c;
    cluster_prepare(&c, 2);
    fix_set(&c.nodes[1], "max.incremental.fetch.session.cache.slots", "0");
    cluster_start(&c);
    const struct uuid t = followed(&c, "t", 1);
    cluster_turn(&c);
    cluster_wait(&c, 500);
    CU_ASSERT_EQUAL(c.fetched_part.last_fetched_epoch, -1);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 2000);
    CU_ASSERT_EQUAL(c.fetched_part.fetch_offset, 1);
    CU_ASSERT_EQUAL(c.fetched_part.last_fetched_epoch, 0);
    CU_ASSERT_EQUAL(c.fetched_part.current_leader_epoch, 0);
    cluster_end(&c);
}

static void test_follow_speaks_what_metadata_version_says(void)
{
    struct cluster c;
    cluster_prepare(&c, 2);
    cluster_metadata_version(&c, 9);
    cluster_start(&c);
    const struct uuid t = followed(&c, "t", 1);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(c.fetched_version, 14);
    CU_ASSERT_EQUAL(c.fetched.replica_id, 2);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 2), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 2);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 2);
    cluster_end(&c);
}

/* Batches that are written from the answer's own memory, and more than one answer holds. */
static void test_follow_large_batches(void)
{
    struct cluster c;
    struct fix_produce p[6];
    struct fix_batch b = fix_plain;
    cluster_prepare(&c, 2);
    fix_set(&c.nodes[2], "replica.fetch.response.max.bytes", "100000");
    cluster_start(&c);
    const struct uuid t = followed(&c, "t", 1);
    cluster_turn(&c);
    b.value_n = 60000;
    for (size_t i = 0; i < ARRAY_N(p); i++) {
        fix_produce(&c.nodes[1], &p[i], t, 0, -1, &b);
        cluster_turn(&c);
    }
    cluster_wait(&c, 1000);
    for (size_t i = 0; i < ARRAY_N(p); i++) {
        CU_ASSERT_EQUAL(p[i].part.error, K_NONE);
        fix_produce_close(&p[i]);
    }
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 6);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

/* num.replica.fetchers conversations at most, one for each leader at least. */
static void test_follow_by_several_fetchers(void)
{
    struct cluster c;
    struct list *l, *tmp;
    int n = 0;
    cluster_prepare(&c, 2);
    fix_set(&c.nodes[2], "num.replica.fetchers", "3");
    cluster_start(&c);
    const struct uuid t = followed(&c, "t", 20);
    cluster_wait(&c, 200);
    LIST_EACH(l, tmp, &c.nodes[2].rs->fetchers)
    n++;
    CU_ASSERT_EQUAL(n, 3);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 2), K_NONE);
    cluster_wait(&c, 600);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 2);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ promises */

/* Where flush.messages asks for it, the offset that is asked for promises what is synced. */
static void test_follow_promises_what_is_synced(void)
{
    struct cluster c;
    struct fix_produce p;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 1);
    cluster_topic_config(&c, "t", "flush.messages", "1");
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 600);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->followers[0].end_offset, 1);
    fix_produce(&c.nodes[1], &p, t, 0, -1, &fix_plain);
    /* everything but the follower's workers moves */
    for (int i = 0; i < 20; i++) {
        node_turn(&c, 1);
        while (replicas_settle(c.nodes[2].rs, c.nodes[2].now))
            ;
        lines_turn(&c);
    }
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 2);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->followers[0].end_offset, 1);
    CU_ASSERT_EQUAL(p.done, 0);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(p.done, 1);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    fix_produce_close(&p);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ connections */

static void test_follow_again_after_a_lost_connection(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 1);
    cluster_wait(&c, 1000); /* in the midst of a session */
    cluster_cut(&c, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 5), K_NONE);
    cluster_wait(&c, 3000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 0);
    CU_ASSERT(c.connects <= 1 + 9); /* pauses of 10 ms, doubled up to replica.fetch.backoff.ms */
    cluster_heal(&c, 4000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 5);
    CU_ASSERT(c.fetched.session_epoch > 0);
    CU_ASSERT_EQUAL(c.refused, 0); /* it does not go on where it was interrupted */
    cluster_end(&c);
}

/* A leader that is not registered yet, or nowhere on our listener. */
static void test_follow_a_leader_that_comes_later(void)
{
    struct cluster c;
    const struct unregister_broker_record gone = {1, 100};
    cluster_prepare(&c, 2);
    cluster_record(&c, &msg_unregister_broker_record, 0, &gone);
    cluster_start(&c);
    const struct uuid t = followed(&c, "t", 1);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(c.fetches, 0);
    cluster_register(&c, 1, 500, NULL);
    cluster_turn(&c); /* at once, not after a backoff */
    CU_ASSERT(c.fetches > 0);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    cluster_end(&c);
}

/* A follower that has heard of an epoch before its leader does not leave it alone for a second, but
 * does not ask as fast as it is refused either. */
static void test_follow_a_leader_that_hears_later(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    cluster_wait(&c, 1000);
    c.lazy[1] = true;
    cluster_change(&c, t, 0, 1, NULL, 0);
    cluster_pass(&c, 500); /* the fetch before */
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_DELAYED);
    const int before = c.fetches;
    for (int ms = 0; ms < 3000; ms += 10)
        cluster_pass(&c, 10);
    CU_ASSERT(c.fetches - before >= 7);
    CU_ASSERT(c.fetches - before <= 10);
    c.lazy[1] = false;
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_FETCHING);
    c.lazy[1] = true; /* the next epoch begins with the shortest pause again */
    cluster_change(&c, t, 0, 1, NULL, 0);
    cluster_pass(&c, 500);
    c.lazy[1] = false;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_DELAYED);
    cluster_pass(&c, 10);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_FETCHING);
    cluster_end(&c);
}

/* An answer that is too late for its time limit is not waited for. */
static void test_follow_gives_a_silent_leader_up(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 1);
    cluster_wait(&c, 1000);
    c.hold[2] = true;
    cluster_wait(&c, 29000);
    const int before = c.fetches;
    cluster_wait(&c, 3000);
    CU_ASSERT(c.fetches > before);
    c.hold[2] = false;
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 2000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ changes */

static void test_follow_another_leader(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 3), K_NONE);
    cluster_wait(&c, 1000);
    cluster_change(&c, t, 0, 2, NULL, 0);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NOT_LEADER_OR_FOLLOWER);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 2), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 5);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 5);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    CU_ASSERT(list_empty(&c.nodes[2].rs->fetchers)); /* nobody needs it any more */
    cluster_change(&c, t, 0, -1, NULL, 0);
    cluster_turn(&c);
    CU_ASSERT_PTR_NULL(cluster_part(&c, 1, t, 0)->follow);
    CU_ASSERT(list_empty(&c.lines));
    cluster_end(&c);
}

static void test_follow_a_deleted_topic_no_more(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 1);
    const struct uuid u = followed(&c, "u", 1);
    const struct remove_topic_record gone = {t};
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 3), K_NONE);
    cluster_wait(&c, 1000);
    const int forgotten = c.fetch_forgotten;
    c.hold[2] = true; /* deleted while its records are on their way */
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 3), K_NONE);
    cluster_record(&c, &msg_remove_topic_record, 0, &gone);
    cluster_turn(&c);
    c.hold[2] = false;
    cluster_wait(&c, 1000);
    CU_ASSERT_PTR_NULL(fix_find(&c.nodes[2], t, 0));
    CU_ASSERT_EQUAL(c.fetch_forgotten, forgotten + 1);
    CU_ASSERT_EQUAL(cluster_session(&c, 1)->parts.n, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, u, 3), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, u), 3);
    cluster_end(&c);
}

/* Reassigned away: as Kafka's StopReplica, the log goes; who waited is sent elsewhere. */
static void test_follow_reassigned_away(void)
{
    struct cluster c;
    struct fix_fetch q;
    const struct uuid t = begin(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 3), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT(has_dir(&c.nodes[2], "t-0"));
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 3);
    fix_fetch_start(&c.nodes[2], &q);
    CU_ASSERT_EQUAL(q.done, 0);
    cluster_change_replicas(&c, t, 0, 1, alone, 1, alone, 1);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NOT_LEADER_OR_FOLLOWER);
    fix_fetch_close(&q);
    CU_ASSERT_PTR_NULL(fix_find(&c.nodes[2], t, 0));
    CU_ASSERT_FALSE(has_dir(&c.nodes[2], "t-0"));
    CU_ASSERT_EQUAL(dirs_with(&c.nodes[2], "-delete"), 1);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 3);
    cluster_change_replicas(&c, t, 0, -2, NULL, 0, both, 2); /* and back */
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3);
    cluster_end(&c);
}

/* In controlled shutdown what goes on without us is let go; what is in sync is fetched on. */
static void test_follow_in_controlled_shutdown(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 1);
    const struct uuid u = followed(&c, "u", 1);
    cluster_turn(&c);
    replicas_begin_shutdown(c.nodes[2].rs);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 600);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    cluster_change_broker(&c, 2, 0, 1);
    cluster_change(&c, t, 0, -2, alone, 1);
    cluster_change(&c, u, 0, -1, NULL, 0);
    cluster_wait(&c, 600);
    CU_ASSERT_PTR_NULL(cluster_part(&c, 2, t, 0)->follow);
    CU_ASSERT_PTR_NULL(cluster_part(&c, 2, u, 0)->follow);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 600);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 2);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ restarts */

static void test_follow_after_a_restart(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 3), K_NONE);
    cluster_wait(&c, 1000);
    cluster_stop_node(&c, 2);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 2), K_NONE);
    cluster_start_node(&c, 2, 250);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 5);
    CU_ASSERT_EQUAL(c.fetched.replica_state.replica_epoch, 250);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

/* A log directory that failed is not filled on: its replicas are not to come back into an ISR. */
static void test_follow_not_into_a_failed_directory(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 600);
    memfs_fault_arm(&c.nodes[2].fs, (struct memfs_fault){.nth = 1,
                                                         .err = ERR_IO,
                                                         .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                         .under = "/data/t-0"});
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 600);
    CU_ASSERT_EQUAL(c.nodes[2].failed, 1);
    CU_ASSERT(list_empty(&c.nodes[2].rs->fetchers));
    const int before = c.fetches;
    cluster_wait(&c, 5000);
    CU_ASSERT_EQUAL(c.fetches, before);
    cluster_end(&c);
}

/* The other way round: both lead something of the other's. */
static void test_follow_each_other(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = followed(&c, "t", 1);
    const struct uuid u = cluster_topic(&c, "u", 1, reversed, 2, both, 2);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, u, 2), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 1);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, u), 2);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, u), 2);
    cluster_end(&c);
}

TEST_MAIN(TEST(test_follow_copies_what_is_produced), TEST(test_follow_once_it_is_registered),
          TEST(test_follow_waits_at_the_leader),
          TEST(test_follow_what_is_added_to_a_fetch_that_waits),
          TEST(test_follow_asks_for_what_changed),
          TEST(test_follow_begins_again_when_its_session_is_lost),
          TEST(test_follow_without_sessions), TEST(test_follow_s10_names_its_last_epoch),
          TEST(test_follow_speaks_what_metadata_version_says), TEST(test_follow_large_batches),
          TEST(test_follow_by_several_fetchers), TEST(test_follow_promises_what_is_synced),
          TEST(test_follow_again_after_a_lost_connection),
          TEST(test_follow_a_leader_that_comes_later), TEST(test_follow_a_leader_that_hears_later),
          TEST(test_follow_gives_a_silent_leader_up), TEST(test_follow_another_leader),
          TEST(test_follow_a_deleted_topic_no_more), TEST(test_follow_reassigned_away),
          TEST(test_follow_in_controlled_shutdown), TEST(test_follow_after_a_restart),
          TEST(test_follow_not_into_a_failed_directory), TEST(test_follow_each_other))
