/* Every file operation and every allocation of a node's first lives fails, once or from then on;
 * the power goes at every operation, with what was not synced kept, lost or torn. Afterwards a
 * start without faults has to succeed wherever formatting did, in a higher epoch, with every value
 * that was told as committed, in order, once. */
#include "raft_bench.h"
#include "support/fault.h"

/* ------------------------------------------------------------------ the workload */

static struct {
    bool formatted;
    int32_t epoch; /* the highest that was told */
    int32_t claimed_epoch;
    char values[VALUES_MAX][VALUE_MAX]; /* told as committed */
    int values_n;
    int next; /* number of the next value */
} known;

static void learn(void)
{
    if (b.leader_epoch > known.epoch)
        known.epoch = b.leader_epoch;
    if (b.claims > 0) {
        CU_ASSERT(b.claim_epoch >= known.claimed_epoch);
        known.claimed_epoch = b.claim_epoch;
    }
    for (int i = 0; i < known.values_n && i < b.values_n; i++)
        CU_ASSERT_STRING_EQUAL(b.values[i], known.values[i]);
    if (b.values_n <= known.values_n)
        return;
    memcpy(known.values, b.values, sizeof known.values);
    known.values_n = b.values_n;
}

/* Retries (a full disk) are waited for a little. */
static void settle_and_learn(void)
{
    settle();
    for (int i = 0; i < 3 && b.claims == 0 && b.failures == 0; i++)
        pass(1000000);
    learn();
}

static bool begin_life(void)
{
    begin_load();
    enum err e = b.load.err;
    if (e == ERR_NONE)
        e = raft_open(&b.load, &b.raft);
    raft_load_close(&b.load);
    if (e != ERR_NONE) {
        stop();
        return false;
    }
    settle_and_learn();
    return true;
}

/* Each value is appended at most once, so that finding it twice is a fault. */
static void append_next(void)
{
    char text[VALUE_MAX];
    int64_t last;
    snprintf(text, sizeof text, "v%d", known.next++);
    enum err e = append_value(text, &last);
    (void)e; /* then it is nowhere */
    settle_and_learn();
}

static void one_life(bool snapshots)
{
    if (!begin_life())
        return;
    append_next();
    if (snapshots && b.failures == 0 && b.committed_end > 0 && make_snapshot() == ERR_NONE)
        settle_and_learn();
    append_next();
}

static void workload(void)
{
    memset(&known, 0, sizeof known);
    known.formatted = format_disk() == ERR_NONE;
    for (int life = 0; known.formatted && life < 4; life++) {
        one_life(life < 3);
        stop();
    }
}

/* ------------------------------------------------------------------ afterwards */

static void check_values(void)
{
    int number = -1;
    CU_ASSERT(b.values_n >= known.values_n);
    for (int i = 0; i < b.values_n; i++) {
        const int n = atoi(b.values[i] + 1);
        CU_ASSERT(n > number); /* in order, none twice */
        number = n;
        if (i < known.values_n)
            CU_ASSERT_STRING_EQUAL(b.values[i], known.values[i]);
    }
}

static void check_afterwards(void)
{
    if (!known.formatted)
        return; /* meta.properties is not written then: it would be formatted again */
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT(b.claims == 1 && b.failures == 0);
    CU_ASSERT(raft_epoch(b.raft) > known.epoch);
    CU_ASSERT(raft_voters(b.raft)->n == 1);
    check_values();
    const int before = b.values_n;
    append_next();
    CU_ASSERT_EQUAL(b.values_n, before + 1);
    stop();
}

/* ------------------------------------------------------------------ the loops */

static void test_raft_survives_every_file_fault(void)
{
    static const struct {
        enum err err;
        bool persistent;
        unsigned kinds;
    } faults[] = {
        {ERR_IO, false, 0},
        {ERR_IO, true, 0},
        {ERR_NOSPC, false, MEMFS_KIND(MEMFS_WRITE)},
        {ERR_NOSPC, true, MEMFS_KIND(MEMFS_WRITE) | MEMFS_KIND(MEMFS_OPEN)},
    };
    long points = 0;
    for (size_t i = 0; i < ARRAY_N(faults); i++) {
        bool hit = true;
        for (long nth = 1; hit; nth++, points++) {
            machine_new((uint64_t)nth);
            b.segment_bytes = 200;
            memfs_fault_arm(&b.fs, (struct memfs_fault){.nth = nth,
                                                        .persistent = faults[i].persistent,
                                                        .err = faults[i].err,
                                                        .kinds = faults[i].kinds});
            workload();
            hit = memfs_fault_hit(&b.fs);
            check_afterwards();
            machine_free();
        }
    }
    printf("quorum: %ld file operations failed\n", points);
    CU_ASSERT(points > 300);
}

/* The power goes at each operation: that one and all behind it fail, a write in part. */
static void test_raft_survives_a_crash_at_every_operation(void)
{
    long points = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        bool hit = true;
        for (long nth = 1; hit; nth++, points++) {
            struct rng rng = {seed * 1000003 + (uint64_t)nth};
            machine_new(seed * 1000 + (uint64_t)nth);
            b.segment_bytes = seed % 2 == 0 ? 200 : 1 << 20;
            memfs_fault_arm(&b.fs,
                            (struct memfs_fault){.nth = nth, .persistent = true, .err = ERR_IO});
            workload();
            hit = memfs_fault_hit(&b.fs);
            memfs_crash(&b.fs, &rng);
            check_afterwards();
            machine_free();
        }
    }
    printf("quorum: %ld crashes\n", points);
    CU_ASSERT(points > 600);
}

static void test_raft_survives_every_allocation_fault(void)
{
    long points = 0;
    for (int persistent = 0; persistent <= 1; persistent++) {
        bool hit = true;
        for (long nth = 1; hit; nth++, points++) {
            machine_new((uint64_t)nth);
            b.segment_bytes = 200;
            fault_alloc_arm(nth, persistent);
            workload();
            hit = fault_alloc_hit();
            check_afterwards();
            machine_free();
        }
    }
    printf("quorum: %ld allocations failed\n", points);
    CU_ASSERT(points > 300);
}

/* ------------------------------------------------------------------ votes */

static bool grant(int32_t id, int32_t epoch)
{
    struct vote_request_partition_data part = {
        .replica_epoch = epoch,
        .replica_id = id,
        .replica_directory_id = {{(uint8_t)id}},
        .last_offset_epoch = epoch - 1,
        .last_offset = 1000,
    };
    struct vote_request_topic_data topic = {.topic_name = STR_LIT("__cluster_metadata")};
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    struct vote_request req = {.cluster_id = STR_NULL, .voter_id = -1};
    req.topics.v = &topic;
    req.topics.n = 1;
    struct vote_response resp;
    struct arena a;
    struct raft_op op = {.arena = &a};
    arena_init(&a, NULL);
    raft_vote(b.raft, &op, &req, &resp, b.now);
    list_remove(&op.link); /* it leaves when raft_is_durable */
    const bool granted = resp.topics.n == 1 && resp.topics.v[0].partitions.v[0].vote_granted;
    arena_close(&a);
    for (int i = 0; i < 3 && !raft_is_durable(b.raft); i++) {
        memenv_run_jobs(&b.env);
        memenv_reap_jobs(&b.env);
    }
    return granted && raft_is_durable(b.raft); /* else the answer never leaves */
}

/* One real vote in an epoch, whatever the disk does: what was answered is what a restart finds. */
static void test_raft_votes_once_across_crashes(void)
{
    long points = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        bool hit = true;
        for (long nth = 1; hit; nth++, points++) {
            struct rng rng = {seed * 1000003 + (uint64_t)nth};
            int32_t voted_epoch = 0, voted_id = -1;
            machine_new(seed);
            CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
            CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
            memfs_fault_arm(&b.fs,
                            (struct memfs_fault){.nth = nth, .persistent = true, .err = ERR_IO});
            for (int32_t epoch = 10; epoch < 13; epoch++) {
                const int32_t id = 2 + epoch % 2;
                if (!grant(id, epoch))
                    break;
                voted_epoch = epoch;
                voted_id = id;
                CU_ASSERT_FALSE(grant(id + 2, epoch));
            }
            hit = memfs_fault_hit(&b.fs);
            memenv_drop_jobs(&b.env);
            stop();
            memfs_crash(&b.fs, &rng);
            const struct quorum_state s = state_on_disk();
            CU_ASSERT(s.epoch > voted_epoch || (s.epoch == voted_epoch && s.voted_id == voted_id));
            CU_ASSERT(hit || voted_epoch == 12);
            machine_free();
        }
    }
    printf("quorum: %ld crashes while voting\n", points);
    CU_ASSERT(points > 50);
}

TEST_MAIN(TEST(test_raft_survives_every_file_fault),
          TEST(test_raft_survives_a_crash_at_every_operation),
          TEST(test_raft_survives_every_allocation_fault),
          TEST(test_raft_votes_once_across_crashes))
