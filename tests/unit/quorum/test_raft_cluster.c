/* Several rafts over lossy messages and disks that lose power: scripted cases, and seeds. */
#include "base/endian.h"
#include "raft_asks.h"

static void test_cluster_elects_and_replicates(void)
{
    for (int is_static = 0; is_static <= 1; is_static++) {
        world_new(1, 3, 1, is_static);
        world_start_all();
        const int32_t id = world_elect(10000);
        CU_ASSERT_FATAL(id > 0);
        for (int i = 0; i < 10; i++)
            CU_ASSERT_EQUAL(world_append(id), ERR_NONE);
        CU_ASSERT(world_even_out(3000));
        CU_ASSERT_EQUAL(raft_epoch(raft_of(id)), 1);
        world_compare_logs();
        world_free();
    }
}

/* ------------------------------------------------------------------ scripts */

/* Three voters, `values` committed by all; the leader. */
static int32_t begin(uint64_t seed, int observers, int values)
{
    world_new(seed, 3, observers, false);
    world_start_all();
    const int32_t id = world_elect(10000);
    CU_ASSERT_FATAL(id > 0);
    for (int i = 0; i < values; i++)
        CU_ASSERT_EQUAL(world_append(id), ERR_NONE);
    CU_ASSERT_FATAL(world_even_out(5000));
    return id;
}

static int32_t other_than(int32_t a, int32_t b)
{
    for (int32_t id = 1;; id++)
        if (id != a && id != b)
            return id;
}

/* K1, KAFKA-10706: epochs began and nothing was written in them. */
static void test_cluster_epochs_without_records(void)
{
    const int32_t a = begin(11, 0, 3), b = other_than(a, a), c = other_than(a, b);
    const int64_t end = raft_end_offset(raft_of(a));
    CU_ASSERT_EQUAL(log_assign_epoch(raft_of(b)->log, 2, end), ERR_NONE);
    CU_ASSERT_EQUAL(log_assign_epoch(raft_of(c)->log, 3, end), ERR_NONE);
    raft_hear(raft_of(b), 2, -1, STR_NULL, 0);
    raft_hear(raft_of(c), 3, -1, STR_NULL, 0);
    CU_ASSERT(world_even_out(10000));
    const struct epoch_cache *lead = log_epochs(raft_of(world_leader())->log);
    for (int32_t id = 1; id <= 3; id++) {
        const struct epoch_cache *e = log_epochs(raft_of(id)->log);
        CU_ASSERT_EQUAL_FATAL(e->n, lead->n);
        for (size_t i = 0; i < e->n; i++)
            CU_ASSERT(e->v[i].epoch == lead->v[i].epoch &&
                      e->v[i].start_offset == lead->v[i].start_offset);
    }
    CU_ASSERT(raft_epoch(raft_of(world_leader())) >= 4);
    world_free();
}

/* K2, KAFKA-10527: a leader that restarts is none in that epoch. */
static void test_cluster_leader_restarts(void)
{
    const int32_t a = begin(12, 0, 3);
    const int32_t epoch = raft_epoch(raft_of(a));
    world_crash(a - 1);
    world_start(a - 1);
    CU_ASSERT(state_of(a) == RAFT_RESIGNED && raft_epoch(raft_of(a)) == epoch);
    for (int32_t id = 1; id <= 3; id++)
        if (id != a)
            world_isolate(id, true);
    world_run(1000);
    CU_ASSERT(raft_epoch(raft_of(a)) <= epoch + 1);
    memset(w.cut, 0, sizeof w.cut);
    CU_ASSERT(world_even_out(15000));
    CU_ASSERT(world_leader() != a || raft_epoch(raft_of(a)) >= epoch + 2);
    world_free();
}

/* K3, KAFKA-12619: what an earlier epoch left on a majority is not committed by that alone. */
static void test_cluster_old_records_are_not_committed_by_a_new_leader(void)
{
    const int32_t a = begin(13, 0, 1), b = other_than(a, a);
    struct raft *r = raft_of(a);
    world_isolate(a, true);
    world_crash(b - 1);
    w.m[b - 1].flushed_end = INT64_MAX; /* the test plays it, as if it had all on disk */
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    const int32_t last = raft_last_epoch(r);
    world_run(50);
    const int64_t hw = raft_high_watermark(r);
    raft_become_resigned(r);
    raft_become_unattached(r, raft_epoch(r) + 1, -1);
    raft_become_prospective(r);
    raft_become_candidate(r);
    world_run(50);
    for (int i = 0; i < 3; i++)
        r->votes[i] = VOTE_GRANTED;
    world_step(a - 1);
    world_run(50);
    CU_ASSERT_EQUAL_FATAL(state_of(a), RAFT_LEADER);
    const int64_t start = r->epoch_start_offset;
    struct asked *q = world_fetch(a, b, raft_epoch(r), start, last, INT64_MAX, 0);
    world_step(a - 1);
    CU_ASSERT(fetched(q)->error_code == K_NONE && fetched(q)->records.n > 0);
    CU_ASSERT(fetched(q)->high_watermark == -1 && raft_high_watermark(r) == hw);
    asked_free(q);
    q = world_fetch(a, b, raft_epoch(r), raft_end_offset(r), raft_epoch(r), -1, 1000);
    world_step(a - 1);
    CU_ASSERT_EQUAL(fetched(q)->high_watermark, raft_end_offset(r)); /* told at once */
    asked_free(q);
    world_free();
}

/* K4, KAFKA-15489: observers alone are no quorum. */
static void test_cluster_leader_without_voters_resigns(void)
{
    const int32_t a = begin(14, 1, 3);
    for (int32_t id = 1; id <= 3; id++)
        if (id != a)
            world_cut(a, id, true);
    world_run(2900);
    CU_ASSERT_EQUAL(state_of(a), RAFT_LEADER);
    world_run(3200); /* a window in which it heard them, and one in which not */
    CU_ASSERT(state_of(a) != RAFT_LEADER && w.m[a - 1].resigns == 1);
    world_run(5000);
    const int32_t b = world_leader();
    CU_ASSERT(b > 0 && b != a && raft_leader_id(raft_of(4)) == b);
    CU_ASSERT_EQUAL(world_append(b), ERR_NONE);
    world_run(500);
    CU_ASSERT_EQUAL(w.m[3].committed_end, raft_end_offset(raft_of(b)));
    world_free();
}

/* K5, KIP-996: a voter that was away does not disturb. */
static void test_cluster_voter_comes_back(void)
{
    const int32_t a = begin(15, 0, 3), b = other_than(a, a);
    const int32_t epoch = raft_epoch(raft_of(a));
    world_isolate(b, true);
    world_run(600000);
    CU_ASSERT_EQUAL(raft_epoch(raft_of(b)), epoch);
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    world_isolate(b, false);
    CU_ASSERT(world_even_out(5000));
    CU_ASSERT(world_leader() == a && raft_epoch(raft_of(a)) == epoch);
    CU_ASSERT(w.m[a - 1].claims == 1 && w.m[a - 1].resigns == 0);
    world_free();
}

/* K6, KAFKA-17641: who still hears its leader grants no pre-vote; when it is gone one is found. */
static void test_cluster_leader_dies(void)
{
    for (uint64_t seed = 160; seed < 180; seed++) {
        const int32_t a = begin(seed, 0, 3), b = other_than(a, a);
        world_cut(a, b, true); /* b alone misses it */
        world_run(5000);
        CU_ASSERT(world_leader() == a && raft_epoch(raft_of(a)) == 1);
        world_crash(a - 1);
        const int64_t before = w.now.mono_us;
        CU_ASSERT(world_elect(8000) > 0);
        CU_ASSERT(w.now.mono_us - before < 8000000);
        CU_ASSERT(raft_epoch(raft_of(b)) <= 3);
        world_free();
    }
}

/* A leader whose process is gone is not waited for: both others see it, one of them leads at once.
 */
static void test_cluster_leader_is_gone(void)
{
    for (uint64_t seed = 180; seed < 220; seed++) {
        const int32_t a = begin(seed, 0, 3);
        world_crash(a - 1);
        const int64_t before = w.now.mono_us;
        CU_ASSERT(world_elect(1000) > 0);
        CU_ASSERT(w.now.mono_us - before < 250000);
        CU_ASSERT_EQUAL(raft_epoch(raft_of(world_leader())), 2);
        world_free();
    }
}

/* K8, KAFKA-10677: a fetch that waits is answered when its leader resigns. */
static void test_cluster_parked_fetches(void)
{
    const int32_t a = begin(18, 0, 3), b = other_than(a, a);
    struct raft *r = raft_of(a);
    const int32_t epoch = raft_epoch(r), last = raft_last_epoch(r);
    const int64_t end = raft_end_offset(r);
    struct asked *q = world_fetch(a, b, epoch, end, last, end, 100000);
    struct asked *fewer = world_fetch(a, b, epoch, end, last, end - 1, 100000);
    struct asked *late = world_fetch(a, b, epoch, end, last, end, 20);
    struct asked *hastened = world_fetch(a, b, epoch, end, last, end, 100000);
    world_step(a - 1);
    CU_ASSERT(!q->done && fewer->done && !late->done && !hastened->done);
    raft_op_hasten(&hastened->op);
    world_step(a - 1);
    CU_ASSERT(!q->done && hastened->done && fetched(hastened)->error_code == K_NONE);
    world_run(30);
    CU_ASSERT(!q->done && late->done && fetched(late)->records.n == 0);
    raft_become_resigned(r);
    world_step(a - 1);
    CU_ASSERT(q->done && fetched(q)->error_code == K_NOT_LEADER_OR_FOLLOWER);
    asked_free(q);
    asked_free(fewer);
    asked_free(late);
    asked_free(hastened);
    CU_ASSERT(world_even_out(10000));
    world_free();
}

/* What a fetch wakes for: records, and a high watermark that rose. */
static void test_cluster_fetches_wake(void)
{
    const int32_t a = begin(19, 0, 3), b = other_than(a, a);
    struct raft *r = raft_of(a);
    const int32_t epoch = raft_epoch(r);
    world_isolate(a, true);
    const int64_t end = raft_end_offset(r);
    struct asked *q = world_fetch(a, b, epoch, end, epoch, end, 100000);
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    CU_ASSERT(fetched(q)->records.n > 0 && fetched(q)->high_watermark == end);
    asked_free(q);
    world_run(10);
    const int32_t c = other_than(a, b);
    q = world_fetch(a, c, epoch, end, epoch, end, 0); /* not there yet */
    world_step(a - 1);
    asked_free(q);
    struct asked *waits = world_fetch(a, 9, epoch, end + 1, epoch, end, 100000);
    world_step(a - 1);
    CU_ASSERT_FALSE(waits->done);
    world_crash(b - 1);
    w.m[b - 1].flushed_end = INT64_MAX; /* as if it had written it */
    q = world_fetch(a, b, epoch, end + 1, epoch, end, 0);
    world_step(a - 1);
    CU_ASSERT(fetched(waits)->records.n == 0 && fetched(waits)->high_watermark == end + 1);
    asked_free(q);
    asked_free(waits);
    world_free();
}

static void test_cluster_fetch_checks(void)
{
    const int32_t a = begin(20, 0, 3), b = other_than(a, a);
    struct raft *r = raft_of(a);
    const int32_t epoch = raft_epoch(r);
    const int64_t end = raft_end_offset(r), hw = INT64_MAX;
    const struct {
        int32_t of, epoch;
        int64_t offset;
        int32_t last_epoch, wait_ms;
        int16_t error;
    } cases[] = {
        {a, epoch, end, epoch, -1, K_INVALID_REQUEST},
        {a, epoch, -1, epoch, 0, K_INVALID_REQUEST},
        {a, epoch, end, -1, 0, K_INVALID_REQUEST},
        {a, epoch, end, epoch + 1, 0, K_INVALID_REQUEST},
        {a, epoch - 1, end, epoch - 1, 0, K_FENCED_LEADER_EPOCH},
        {a, epoch + 1, end, epoch, 0, K_UNKNOWN_LEADER_EPOCH},
        {b, epoch, end, epoch, 0, K_NOT_LEADER_OR_FOLLOWER},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct asked *q = world_fetch(cases[i].of, 9, cases[i].epoch, cases[i].offset,
                                      cases[i].last_epoch, hw, cases[i].wait_ms);
        world_step(cases[i].of - 1);
        CU_ASSERT_EQUAL(fetched(q)->error_code, cases[i].error);
        CU_ASSERT(fetched(q)->current_leader.leader_id == a &&
                  fetched(q)->current_leader.leader_epoch == epoch);
        CU_ASSERT(q->resp.fetch.node_endpoints.n == 1 &&
                  q->resp.fetch.node_endpoints.v[0].port == PORT + a);
        CU_ASSERT(fetched(q)->high_watermark == -1 && fetched(q)->records.n == 0);
        asked_free(q);
    }
    struct asked *q = world_fetch(a, 9, epoch, end + 5, epoch, hw, 0); /* past our end */
    world_step(a - 1);
    CU_ASSERT(fetched(q)->diverging_epoch.epoch == epoch &&
              fetched(q)->diverging_epoch.end_offset == end);
    asked_free(q);
    world_free();
}

/* K11, KAFKA-15076: who has nothing begins from the newest snapshot. */
static void test_cluster_snapshots_are_fetched(void)
{
    world_new(21, 3, 1, false);
    for (int i = 0; i < 3; i++)
        world_start(i);
    const int32_t a = world_elect(10000);
    CU_ASSERT_FATAL(a > 0);
    for (int i = 0; i < 20; i++)
        CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    world_run(200);
    CU_ASSERT_EQUAL(world_snapshot(a), ERR_NONE);
    world_run(100);
    CU_ASSERT(raft_of(a)->newest.offset > 0 && log_start_offset(raft_log(raft_of(a))) == 0);
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    world_start(3);
    world_step(3);
    CU_ASSERT(world_even_out(10000));
    CU_ASSERT_EQUAL(w.m[3].snapshots, 1);
    CU_ASSERT_EQUAL(log_start_offset(raft_log(raft_of(4))), raft_of(a)->newest.offset);
    CU_ASSERT_EQUAL(raft_voters(raft_of(4))->n, 3);
    world_crash(3);
    world_start(3); /* it is all on its disk */
    CU_ASSERT_EQUAL(log_start_offset(raft_log(raft_of(4))), raft_of(a)->newest.offset);
    world_step(3);
    CU_ASSERT(world_even_out(10000));
    world_free();
}

/* The log behind a snapshot names voters without a kraft.version: that is the snapshot's. */
static void test_cluster_voters_behind_a_snapshot(void)
{
    world_new(33, 3, 1, false);
    for (int i = 0; i < 3; i++)
        world_start(i);
    const int32_t a = world_elect(10000);
    CU_ASSERT_FATAL(a > 0);
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    world_run(200);
    CU_ASSERT_EQUAL(world_snapshot(a), ERR_NONE);
    world_run(100);
    world_start(3);
    world_step(3);
    CU_ASSERT(world_even_out(10000));
    CU_ASSERT_EQUAL(w.m[3].snapshots, 1);
    struct asked *q = world_add(a, 4);
    world_run(1000);
    CU_ASSERT(q->done && q->resp.add.error_code == K_NONE);
    asked_free(q);
    CU_ASSERT(world_even_out(10000));
    world_crash(3);
    world_start(3);
    CU_ASSERT_EQUAL(raft_of(4)->kraft_version, 1);
    CU_ASSERT_EQUAL(raft_voters(raft_of(4))->n, 4);
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    CU_ASSERT(world_even_out(10000));
    CU_ASSERT_EQUAL(world_snapshot(4), ERR_NONE); /* it has the voters too */
    world_run(100);
    world_crash(3);
    world_start(3);
    CU_ASSERT_EQUAL(raft_of(4)->kraft_version, 1);
    CU_ASSERT_EQUAL(raft_voters(raft_of(4))->n, 4);
    world_free();
}

/* K14: it goes while it is downloaded; the next one comes. */
static void test_cluster_snapshot_goes_meanwhile(void)
{
    world_new(22, 3, 1, false);
    for (int i = 0; i < 3; i++)
        world_start(i);
    const int32_t a = world_elect(10000);
    for (int i = 0; i < 60; i++)
        CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    world_run(200);
    CU_ASSERT_EQUAL(world_snapshot(a), ERR_NONE);
    world_run(100);
    world_start(3);
    world_step(3);
    for (int i = 0; i < 100000 && raft_of(4)->download.position == 0; i++)
        world_event(INT64_MAX - 1);
    CU_ASSERT_FATAL(raft_of(4)->download.position > 0);
    raft_of(4)->servers_n = 0; /* nobody else could say what there is now */
    world_cut(4, a, true);
    for (int k = 0; k < 2; k++) { /* two newer ones push it out */
        CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
        world_run(100);
        CU_ASSERT_EQUAL(world_snapshot(a), ERR_NONE);
        world_run(100);
    }
    world_cut(4, a, false);
    CU_ASSERT(world_even_out(10000));
    CU_ASSERT_EQUAL(log_start_offset(raft_log(raft_of(4))), raft_of(a)->newest.offset);
    world_free();
}

/* K13: a snapshot beyond the log, as a crash between its rename and the log's restart leaves it. */
static void test_cluster_snapshot_beyond_the_log(void)
{
    const int32_t a = begin(23, 0, 5), b = other_than(a, a);
    world_crash(b - 1);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    world_run(500);
    CU_ASSERT_EQUAL(world_snapshot(a), ERR_NONE);
    world_run(100);
    const struct snapshot_id id = raft_of(a)->newest;
    char name[SNAPSHOT_NAME_MAX], path[200];
    size_t n;
    snapshot_name(id, name);
    snprintf(path, sizeof path, "%s/%s", DIR, name);
    const uint8_t *p = memfs_get(&w.m[a - 1].fs, path, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    memfs_put(&w.m[b - 1].fs, path, p, n);
    world_start(b - 1);
    CU_ASSERT_EQUAL(log_start_offset(raft_log(raft_of(b))), id.offset);
    CU_ASSERT_EQUAL(raft_end_offset(raft_of(b)), id.offset);
    world_step(b - 1);
    CU_ASSERT(world_even_out(10000));
    world_free();
}

/* K12, KAFKA-18723: answers that hold what they should not. */
static int32_t spoil, spoiled_n, spoil_at;

static void spoil_records(int at, int16_t api_key, void *response)
{
    struct fetch_response *resp = response;
    if (api_key != API_FETCH || at != spoil_at || resp->responses.n != 1 || spoiled_n >= 3)
        return;
    struct wire_records *rec = &resp->responses.v[0].partitions.v[0].records;
    if (rec->n <= 0)
        return;
    uint8_t *p = (uint8_t *)(uintptr_t)rec->p;
    spoiled_n++;
    if (spoil == 0)
        p[rec->n - 1] ^= 1; /* the CRC is wrong */
    else
        p[15]++; /* a later leader epoch: not covered by the CRC */
}

static void test_cluster_spoiled_answers(void)
{
    for (spoil = 0; spoil < 2; spoil++) {
        const int32_t a = begin(24, 0, 3);
        spoil_at = other_than(a, a) - 1;
        spoiled_n = 0;
        w.on_answer = spoil_records;
        CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
        world_run(10);
        CU_ASSERT(spoiled_n > 0 &&
                  raft_end_offset(w.m[spoil_at].raft) < raft_end_offset(raft_of(a)));
        CU_ASSERT(world_even_out(5000));
        CU_ASSERT_EQUAL(spoiled_n, 3);
        CU_ASSERT_EQUAL(raft_epoch(raft_of(a)), 1);
        world_free();
    }
}

/* What a leader says that cannot be: where it diverges, batches that do not follow, control records
 * that are none. It is asked again, and nobody ends for it. */
static void spoil_answer(int at, int16_t api_key, void *response)
{
    const struct fetch_response *resp = response;
    if (api_key != API_FETCH || at != spoil_at || resp->responses.n != 1 || spoiled_n >= 3)
        return;
    struct fetch_response_partition_data *p = &resp->responses.v[0].partitions.v[0];
    if (p->error_code != K_NONE)
        return;
    if (spoil < 2) {
        p->diverging_epoch.epoch = spoil == 0 ? 0 : 1;
        p->diverging_epoch.end_offset = spoil == 0 ? 0 : -1;
        spoiled_n++;
    } else if (p->records.n > 0) {
        uint8_t *batch = (uint8_t *)(uintptr_t)p->records.p;
        const uint32_t n = be32(batch + 8);
        if (spoil == 2) {
            put_be64(batch, be64(batch) + 1); /* not under the CRC */
        } else {
            put_be16(batch + 21, spoil == 3 ? BATCH_CONTROL : BATCH_CONTROL | 1);
            put_be32(batch + 17, crc32c(0, batch + 21, n - 9));
        }
        spoiled_n++;
    }
}

static void test_cluster_answers_that_cannot_be(void)
{
    for (spoil = 0; spoil < 5; spoil++) {
        const int32_t a = begin(27, 0, 3);
        spoil_at = other_than(a, a) - 1;
        spoiled_n = 0;
        struct machine *m = &w.m[spoil_at];
        m->env.word = "quorum_leader_refused";
        w.on_answer = spoil_answer;
        CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
        world_run(600);
        CU_ASSERT(spoiled_n == 3 && m->env.word_n == 1);
        CU_ASSERT(m->failures == 0 && m->up);
        CU_ASSERT(world_even_out(5000));
        CU_ASSERT_EQUAL(raft_epoch(raft_of(a)), 1);
        world_compare_logs();
        world_free();
    }
}

/* A leader whose log does not hold what is committed is not followed for long: it is none. */
static void test_cluster_a_leader_that_never_was(void)
{
    const int32_t a = begin(29, 0, 3);
    spoil = 0;
    spoil_at = other_than(a, a) - 1;
    spoiled_n = INT32_MIN;
    w.on_answer = spoil_answer;
    world_run(10000);
    CU_ASSERT(spoiled_n > INT32_MIN + 10 && w.m[spoil_at].failures == 0);
    CU_ASSERT(raft_end_offset(raft_of(spoil_at + 1)) >= w.committed_end);
    CU_ASSERT_EQUAL(world_leader(), a); /* the others follow it */
    w.on_answer = NULL;
    CU_ASSERT(world_even_out(15000));
    world_free();
}

/* K21: the end of an epoch that is over already. */
static void test_cluster_late_end_of_an_epoch(void)
{
    const int32_t a = begin(25, 0, 3), b = other_than(a, a), c = other_than(a, b);
    struct raft *r = raft_of(b);
    raft_hear(r, 18, c, STR_LIT("h"), (uint16_t)(PORT + c));
    struct asked *q = world_end_epoch(b, a, 17);
    world_step(b - 1);
    world_run(30);
    const struct end_quorum_epoch_response_partition_data *p =
        &q->resp.end.topics.v[0].partitions.v[0];
    CU_ASSERT(q->done && p->error_code == K_FENCED_LEADER_EPOCH && p->leader_epoch == 18);
    asked_free(q);
    CU_ASSERT_EQUAL(raft_epoch(r), 18);
    world_run(100);
    w.leader_of[18] = 0; /* it was made up */
    world_crash(b - 1);
    world_crash(a - 1);
    world_crash(c - 1);
    world_free();
}

/* The leader's end of its epoch: the first of the list stands at once, and may be voted for. */
static void test_cluster_hands_over(void)
{
    for (uint64_t seed = 260; seed < 270; seed++) {
        const int32_t a = begin(seed, 1, 3);
        const int64_t before = w.now.mono_us;
        world_stop(a - 1);
        world_step(a - 1);
        const int32_t b = world_elect(1000);
        CU_ASSERT_FATAL(b > 0 && b != a);
        CU_ASSERT(w.now.mono_us - before < 500000);
        CU_ASSERT_EQUAL(raft_epoch(raft_of(b)), 2);
        world_run(1000);
        CU_ASSERT_FALSE(w.m[a - 1].up); /* it did not wait for its 5 s */
        world_start(a - 1);
        world_step(a - 1);
        CU_ASSERT(world_even_out(5000));
        CU_ASSERT_EQUAL(world_leader(), b);
        world_free();
    }
}

/* K7, KAFKA-20895: five voters, and the one that is named first may still hear nobody: whoever was
 * told that the epoch ends grants pre-votes, so somebody is elected within a second or two. */
static void test_cluster_hands_over_of_five(void)
{
    for (uint64_t seed = 270; seed < 280; seed++) {
        world_new(seed, 5, 0, false);
        world_start_all();
        const int32_t a = world_elect(10000);
        CU_ASSERT_FATAL(a > 0 && world_append(a) == ERR_NONE);
        CU_ASSERT_FATAL(world_even_out(5000));
        world_stop(a - 1);
        world_step(a - 1);
        const int32_t b = world_elect(3000);
        CU_ASSERT_FATAL(b > 0 && b != a);
        CU_ASSERT(raft_epoch(raft_of(b)) <= 4);
        world_run(1000);
        CU_ASSERT_FALSE(w.m[a - 1].up);
        world_start(a - 1);
        world_step(a - 1);
        CU_ASSERT(world_even_out(10000));
        world_free();
    }
}

/* A leader that is about to go can see that the others have heard of what is committed. */
static void test_cluster_commits_are_known(void)
{
    for (uint64_t seed = 270; seed < 290; seed++) {
        const int32_t a = begin(seed, 1, 3), b = other_than(a, a);
        world_run(1000);
        const int64_t before = raft_high_watermark(raft_of(a));
        CU_ASSERT(raft_commits_known(raft_of(a), w.now));
        CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
        while (raft_high_watermark(raft_of(a)) == before)
            (void)world_event(w.now.mono_us + 1000000);
        CU_ASSERT_FALSE(raft_commits_known(raft_of(a), w.now));
        while (!raft_commits_known(raft_of(a), w.now))
            (void)world_event(w.now.mono_us + 1000000);
        for (int32_t id = 1; id <= 4; id++)
            CU_ASSERT_EQUAL(raft_high_watermark(raft_of(id)), before + 1);
        world_crash(b - 1);
        CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
        world_run(500);
        CU_ASSERT_FALSE(raft_commits_known(raft_of(a), w.now)); /* it may still hear of it */
        world_run(2000);
        CU_ASSERT(raft_commits_known(raft_of(a), w.now));
        CU_ASSERT(raft_commits_known(raft_of(other_than(a, b)), w.now));
        world_free();
    }
}

static void test_cluster_stops_alone(void)
{
    const int32_t a = begin(27, 0, 3);
    world_isolate(a, true);
    w.loss_percent = 0;
    world_stop(a - 1);
    world_step(a - 1);
    CU_ASSERT(w.m[a - 1].up);
    world_run(5100);
    CU_ASSERT_FALSE(w.m[a - 1].up);
    world_free();
}

/* K22: it lost its quorum-state, the others name it the leader of its epoch: it waits for another.
 */
static void test_cluster_leader_lost_its_state(void)
{
    const int32_t a = begin(28, 0, 3);
    const int32_t epoch = raft_epoch(raft_of(a));
    world_crash(a - 1);
    struct memfs *fs = &w.m[a - 1].fs;
    CU_ASSERT_EQUAL(fs->vfs.ops->unlink(&fs->vfs, DIR "/quorum-state"), ERR_NONE);
    memfs_sync_all(fs);
    world_start(a - 1);
    world_step(a - 1);
    CU_ASSERT_EQUAL(state_of(a), RAFT_UNATTACHED);
    world_run(100);
    CU_ASSERT(state_of(a) != RAFT_LEADER && raft_leader_id(raft_of(a)) != a);
    CU_ASSERT(world_even_out(15000));
    CU_ASSERT(raft_epoch(raft_of(world_leader())) > epoch);
    world_free();
}

/* ------------------------------------------------------------------ voters */

static void test_cluster_voters_join_and_leave(void)
{
    const int32_t a = begin(30, 1, 3), b = other_than(a, a);
    struct asked *q = world_add(a, 4);
    world_run(1000);
    CU_ASSERT(q->done && q->resp.add.error_code == K_NONE);
    asked_free(q);
    CU_ASSERT(raft_voters(raft_of(a))->n == 4 && raft_is_voter(raft_of(4)));
    q = world_add(a, 4);
    world_step(a - 1);
    CU_ASSERT(q->done && q->resp.add.error_code == K_DUPLICATE_VOTER);
    asked_free(q);
    q = world_remove(a, b);
    world_run(1000);
    CU_ASSERT(q->done && q->resp.remove.error_code == K_NONE);
    asked_free(q);
    CU_ASSERT(raft_voters(raft_of(4))->n == 3 && !raft_is_voter(raft_of(b)));
    q = world_remove(a, b);
    world_step(a - 1);
    CU_ASSERT(q->done && q->resp.remove.error_code == K_VOTER_NOT_FOUND);
    asked_free(q);
    /* K9, KAFKA-17608: the leader itself; it commits that without its own vote */
    q = world_remove(a, a);
    world_run(5000);
    CU_ASSERT(q->done && q->resp.remove.error_code == K_NONE);
    asked_free(q);
    const int32_t c = world_leader();
    CU_ASSERT(c > 0 && c != a && c != b && raft_voters(raft_of(c))->n == 2);
    CU_ASSERT(world_even_out(5000)); /* the two others observe */
    for (int i = 0; i < 4; i++) {
        world_crash(i);
        world_start(i);
        world_step(i);
    }
    CU_ASSERT(world_even_out(15000));
    CU_ASSERT(world_leader() != a && world_leader() != b);
    CU_ASSERT_EQUAL(raft_voters(raft_of(a))->n, 2);
    world_free();
}

/* K10, KIP-853: a voter's disk is replaced. With its new directory it observes, whatever its id,
 * and votes for nobody; the two others go on. It becomes a voter when the old one is removed and it
 * is added. */
static void test_cluster_voter_with_another_disk(void)
{
    const int32_t a = begin(34, 0, 3), b = other_than(a, a), c = other_than(a, b);
    world_crash(b - 1);
    world_replace_disk(b - 1);
    world_start(b - 1);
    world_step(b - 1);
    world_run(3000);
    CU_ASSERT_FALSE(raft_is_voter(raft_of(b)));
    CU_ASSERT(raft_voter_index(raft_of(a), b, directory_of(b)) >= 0);
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    CU_ASSERT(world_even_out(5000));
    world_isolate(a, true); /* c and the old b would be a majority: b is not the old one */
    world_run(10000);
    CU_ASSERT(state_of(c) != RAFT_LEADER && state_of(b) != RAFT_LEADER);
    world_isolate(a, false);
    CU_ASSERT_FATAL(world_even_out(15000));
    const int32_t lead = world_leader();
    struct asked *q = world_add(lead, b);
    world_step(lead - 1);
    CU_ASSERT(q->done && q->resp.add.error_code == K_DUPLICATE_VOTER);
    asked_free(q);
    q = world_remove(lead, b); /* with its former disk */
    world_run(1000);
    CU_ASSERT(q->done && q->resp.remove.error_code == K_NONE);
    asked_free(q);
    q = world_add(lead, b);
    world_run(1000);
    CU_ASSERT(q->done && q->resp.add.error_code == K_NONE);
    asked_free(q);
    CU_ASSERT(world_even_out(5000) && raft_is_voter(raft_of(b)));
    world_free();
}

/* K17, KAFKA-19354: an observer that cannot reach who leads asks the bootstrap servers who does,
 * and goes back to it, or follows the next one. */
static void test_cluster_observer_without_its_leader(void)
{
    const int32_t a = begin(35, 1, 3);
    world_cut(4, a, true);
    world_run(20000);
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    world_run(5000);
    CU_ASSERT(w.m[3].committed_end < raft_end_offset(raft_of(a)));
    world_cut(4, a, false);
    CU_ASSERT(world_even_out(5000));
    world_crash(a - 1);
    const int32_t b = world_elect(10000);
    CU_ASSERT_FATAL(b > 0 && world_append(b) == ERR_NONE);
    world_run(5000);
    CU_ASSERT(raft_leader_id(raft_of(4)) == b &&
              w.m[3].committed_end == raft_end_offset(raft_of(b)));
    world_free();
}

/* K20: a change that was not committed is undone everywhere, across restarts too. */
static void test_cluster_uncommitted_voters_are_undone(void)
{
    for (int restart = 0; restart <= 1; restart++) {
        const int32_t a = begin(31, 1, 3), b = other_than(a, a);
        world_isolate(a, true);
        struct asked *q = world_remove(a, b);
        world_step(a - 1);
        CU_ASSERT_EQUAL(raft_voters(raft_of(a))->n, 2); /* at once */
        world_run(20);
        if (restart) {
            world_crash(a - 1);
            CU_ASSERT(q->done && q->op.err == ERR_CLOSED);
            world_start(a - 1);
            CU_ASSERT_EQUAL(raft_voters(raft_of(a))->n, 2);
            world_step(a - 1);
        }
        world_run(6000);
        CU_ASSERT(q->done);
        asked_free(q);
        const int32_t c = world_leader();
        CU_ASSERT_FATAL(c > 0 && c != a);
        CU_ASSERT_EQUAL(world_append(c), ERR_NONE);
        world_isolate(a, false);
        CU_ASSERT(world_even_out(10000));
        for (int32_t id = 1; id <= 4; id++)
            CU_ASSERT_EQUAL(raft_voters(raft_of(id))->n, 3);
        world_free();
    }
}

/* Static voters become the log's, once each has said that it can; for good, on every disk. */
static void test_cluster_kraft_version_is_raised(void)
{
    world_new(70, 3, 1, true);
    world_start_all();
    const int32_t a = world_elect(10000);
    CU_ASSERT_FATAL(a > 0);
    const int32_t epoch = raft_epoch(raft_of(a)), b = other_than(a, a);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(b), epoch, 1, false, w.now), ERR_BUSY);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), epoch, 1, false, w.now), ERR_INVALID); /* K19 */
    world_run(3000);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), epoch, 2, false, w.now), ERR_INVALID);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), epoch + 1, 1, false, w.now), ERR_BUSY);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), epoch, 0, false, w.now), ERR_NONE);
    const int64_t end = raft_end_offset(raft_of(a));
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), epoch, 1, true, w.now), ERR_NONE);
    CU_ASSERT_EQUAL(raft_end_offset(raft_of(a)), end);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), epoch, 1, false, w.now), ERR_NONE);
    CU_ASSERT_EQUAL(raft_kraft_version(raft_of(a)), 1);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), epoch, 0, false, w.now), ERR_AGAIN);
    world_step(a - 1);
    CU_ASSERT(world_even_out(5000));
    CU_ASSERT_EQUAL(raft_end_offset(raft_of(a)), end + 2); /* the version, the voters */
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), epoch, 0, false, w.now), ERR_INVALID);
    CU_ASSERT_EQUAL(raft_epoch(raft_of(a)), epoch);
    for (int round = 0; round < 2; round++) {
        for (int32_t id = 1; id <= 4; id++) {
            const struct raft *r = raft_of(id);
            CU_ASSERT(raft_kraft_version(r) == 1 && raft_voters(r)->n == 3);
            for (int32_t i = 0; i < 3; i++) {
                const struct voter *v = &raft_voters(r)->v[i];
                CU_ASSERT(uuid_eq(v->directory_id, directory_of(v->id)) && v->kraft_max == 1);
                CU_ASSERT_STRING_EQUAL(v->listener, "CONTROLLER");
            }
        }
        for (int i = 0; i < 4; i++) {
            world_crash(i);
            world_start(i);
            world_step(i);
        }
        CU_ASSERT(world_even_out(15000));
    }
    world_free();
}

/* Nobody upgrades before a voter that is silent has said what it knows; a leader that loses the
 * lead before the others have it leaves nothing. */
static void test_cluster_kraft_version_needs_all(void)
{
    world_new(71, 3, 0, true);
    world_start_all();
    const int32_t a = world_elect(10000), b = other_than(a, a), c = other_than(a, b);
    world_isolate(c, true);
    world_run(6000);
    CU_ASSERT_EQUAL(world_leader(), a);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(a), raft_epoch(raft_of(a)), 1, false, w.now), ERR_INVALID);
    world_isolate(c, false);
    CU_ASSERT(world_even_out(10000));
    world_run(5000);
    const int32_t d = world_leader();
    world_isolate(d, true);
    CU_ASSERT_EQUAL(raft_upgrade(raft_of(d), raft_epoch(raft_of(d)), 1, false, w.now), ERR_NONE);
    world_step(d - 1);
    world_run(6000);
    const int32_t e = world_leader();
    CU_ASSERT_FATAL(e > 0 && e != d);
    CU_ASSERT_EQUAL(world_append(e), ERR_NONE);
    world_isolate(d, false);
    CU_ASSERT(world_even_out(15000));
    for (int32_t id = 1; id <= 3; id++) {
        CU_ASSERT_EQUAL(raft_kraft_version(raft_of(id)), 0);
        CU_ASSERT(uuid_is_zero(raft_voters(raft_of(id))->v[0].directory_id));
    }
    world_free();
}

/* KIP-1186: who observes becomes a voter, in place of its former disk; once. */
static void test_cluster_controllers_join_by_themselves(void)
{
    world_new(72, 3, 1, false);
    w.auto_join = true;
    world_start_all();
    const int32_t a = world_elect(10000);
    CU_ASSERT_FATAL(a > 0);
    CU_ASSERT_EQUAL(world_append(a), ERR_NONE);
    world_run(6000);
    CU_ASSERT_EQUAL(raft_voters(raft_of(a))->n, 4);
    CU_ASSERT(world_even_out(5000));
    /* it is removed, and stays so (K18), over a restart too */
    struct asked *q = world_remove(a, 4);
    world_run(1000);
    CU_ASSERT(q->done && q->resp.remove.error_code == K_NONE);
    asked_free(q);
    world_run(8000);
    CU_ASSERT_EQUAL(raft_voters(raft_of(a))->n, 3);
    world_crash(3);
    world_start(3);
    world_step(3);
    world_run(8000);
    CU_ASSERT_EQUAL(raft_voters(raft_of(world_leader()))->n, 3);
    /* a voter with another disk takes the place of its former self */
    const int32_t b = other_than(world_leader(), 4);
    world_crash(b - 1);
    world_replace_disk(b - 1);
    world_start(b - 1);
    world_step(b - 1);
    world_run(15000);
    const struct raft *r = raft_of(world_leader());
    CU_ASSERT_EQUAL(raft_voters(r)->n, 3);
    CU_ASSERT_PTR_NOT_NULL(voter_set_find(raft_voters(r), b, directory_at(&w.m[b - 1])));
    CU_ASSERT(world_even_out(10000));
    world_free();
}

static void test_cluster_controllers_do_not_join_unasked(void)
{
    const int32_t a = begin(73, 1, 3);
    world_run(10000);
    CU_ASSERT_EQUAL(raft_voters(raft_of(a))->n, 3);
    world_free();
    world_new(74, 3, 1, true); /* nor with static voters */
    w.auto_join = true;
    world_start_all();
    CU_ASSERT_FATAL(world_elect(10000) > 0);
    world_run(10000);
    CU_ASSERT_EQUAL(raft_voters(raft_of(world_leader()))->n, 3);
    world_free();
}

/* Static voters that are not the same everywhere: whoever notices says so, once a minute. */
static void count_differences(void)
{
    for (int i = 0; i < w.n; i++)
        w.m[i].env.word = "quorum_voters_differ";
}

static uint64_t differences_n(int32_t id)
{
    return w.m[id - 1].env.word_n;
}

static void test_cluster_voter_lists_disagree(void)
{
    for (uint64_t seed = 60; seed < 66; seed++) {
        world_new(seed, 3, 1, true);
        count_differences();
        const struct voter_set all = w.voters;
        w.voters.n = 2;
        world_start(0); /* it counts without node 3, which is to lead sometimes */
        world_step(0);
        w.voters = all;
        for (int i = 1; i < w.n; i++) {
            world_start(i);
            world_step(i);
        }
        const int32_t a = world_elect(10000);
        CU_ASSERT_FATAL(a > 0);
        world_run(5000);
        /* node 1 sees who is none of its voters, or the others see its list */
        uint64_t n = 0;
        for (int32_t id = 1; id <= w.n; id++)
            n += differences_n(id);
        CU_ASSERT(n > 0);
        if (a == 1)
            CU_ASSERT(differences_n(2) == 1 && differences_n(3) >= 1 && differences_n(4) == 1);
        if (a == 3)
            CU_ASSERT(differences_n(1) >= 1);
        world_run(30000);
        for (int32_t id = 1; id <= w.n; id++)
            CU_ASSERT(differences_n(id) <= 3); /* one for each way to notice */
        world_free();
    }
}

static void test_cluster_voter_lists_agree(void)
{
    world_new(67, 3, 1, true);
    count_differences();
    world_start_all();
    CU_ASSERT_FATAL(world_elect(10000) > 0);
    world_run(5000);
    world_crash(world_leader() - 1);
    world_run(20000);
    for (int32_t id = 1; id <= w.n; id++)
        CU_ASSERT_EQUAL(differences_n(id), 0);
    world_free();
}

/* A voter that is reached elsewhere now says so. */
static void test_cluster_voter_moves(void)
{
    const int32_t a = begin(32, 0, 3), b = other_than(a, a);
    raft_of(b)->endpoint.host = STR_LIT("elsewhere");
    world_run(3000);
    for (int32_t id = 1; id <= 3; id++) {
        const int32_t i = raft_voter_index(raft_of(id), b, directory_of(b));
        CU_ASSERT_STRING_EQUAL(raft_voters(raft_of(id))->v[i].host, "elsewhere");
    }
    CU_ASSERT(raft_epoch(raft_of(a)) == 1 && world_even_out(3000));
    world_free();
}

/* DescribeQuorum's observers. */
static void test_cluster_observers_are_known(void)
{
    const int32_t a = begin(33, 2, 3);
    CU_ASSERT_EQUAL(raft_observers_n(raft_of(a), w.now), 2);
    const struct raft_replica o = raft_observer_at(raft_of(a), 0);
    CU_ASSERT((o.id == 4 || o.id == 5) && o.end_offset == raft_end_offset(raft_of(a)));
    CU_ASSERT(uuid_eq(o.directory_id, directory_of(o.id)));
    world_crash(3);
    world_run(301000);
    CU_ASSERT_EQUAL(raft_observers_n(raft_of(world_leader()), w.now), 1);
    world_free();
}

/* ------------------------------------------------------------------ seeds */

static int up_n(void)
{
    int n = 0;
    for (int i = 0; i < w.n; i++)
        n += w.m[i].up;
    return n;
}

static struct asked *asked_of_seed[64];
static int asked_n;

/* One joins or leaves; what becomes of it does not matter here. */
static void change_voters(int32_t leader)
{
    const int32_t id = 1 + (int32_t)rng_below(&w.rng, (uint64_t)w.n);
    if (w.is_static || leader == 0 || asked_n == (int)ARRAY_N(asked_of_seed))
        return;
    if (raft_voter_index(raft_of(leader), id, directory_of(id)) < 0)
        asked_of_seed[asked_n++] = world_add(leader, id);
    else if (raft_voters(raft_of(leader))->n > 2)
        asked_of_seed[asked_n++] = world_remove(leader, id);
    world_step(leader - 1);
}

static void something_happens(void)
{
    const int i = (int)rng_below(&w.rng, (uint64_t)w.n);
    const int32_t leader = world_leader();
    switch (rng_below(&w.rng, 14)) {
    case 0:
        if (w.m[i].up)
            world_crash(i);
        break;
    case 1:
    case 2:
        if (!w.m[i].up) {
            world_start(i);
            world_step(i);
        }
        break;
    case 3:
        world_cut(i + 1, 1 + (int32_t)rng_below(&w.rng, (uint64_t)w.n), true);
        break;
    case 4:
        memset(w.cut, 0, sizeof w.cut);
        break;
    case 5:
        world_isolate(i + 1, true);
        break;
    case 6: /* one way only */
        w.cut[i][rng_below(&w.rng, (uint64_t)w.n)] = true;
        break;
    case 7:
        if (w.m[i].up && w.m[i].committed_end > 0)
            (void)world_snapshot(i + 1);
        break;
    case 9:
        change_voters(leader);
        break;
    case 8:
        w.loss_percent = (unsigned)rng_below(&w.rng, 30);
        break;
    default:
        if (leader > 0 && w.values_n < OFFSETS_MAX / 4)
            (void)world_append(leader);
        break;
    }
}

static void heal(void)
{
    memset(w.cut, 0, sizeof w.cut);
    w.loss_percent = 0;
    w.delay_max_us = 2000;
    w.job_max_us = 2000;
    for (int i = 0; i < w.n; i++)
        if (!w.m[i].up) {
            world_start(i);
            world_step(i);
        }
}

static void run_seed(uint64_t seed)
{
    struct rng rng = {seed * 1000003};
    world_new(seed, 2 + (int)rng_below(&rng, 3), (int)rng_below(&rng, 3), rng_percent(&rng, 50));
    w.delay_max_us = 1 + (int64_t)rng_below(&rng, 300000);
    w.job_max_us = 1 + (int64_t)rng_below(&rng, 50000);
    world_start_all();
    for (int i = 0; i < 120; i++) {
        world_run((int64_t)rng_below(&w.rng, 600));
        something_happens();
        if (i % 20 == 0)
            world_compare_logs();
    }
    heal();
    CU_ASSERT_EQUAL(up_n(), w.n);
    world_run(5000); /* what was lost before is waited for that long */
    const bool even = world_even_out(60000);
    if (!even) {
        printf("seed %llu: not even\n", (unsigned long long)seed);
        for (int32_t id = 1; id <= w.n; id++)
            printf("  %d %s epoch %d leader %d end %lld hw %lld committed %lld\n", id,
                   w.m[id - 1].voter_role ? "voter" : "observer", raft_epoch(raft_of(id)),
                   raft_leader_id(raft_of(id)), (long long)raft_end_offset(raft_of(id)),
                   (long long)raft_high_watermark(raft_of(id)),
                   (long long)w.m[id - 1].committed_end);
    }
    CU_ASSERT_FATAL(even);
    const int32_t epoch = raft_epoch(raft_of(world_leader()));
    world_run(20000);
    const bool calm = raft_epoch(raft_of(world_leader())) == epoch; /* nobody disturbs it */
    if (!calm)
        printf("seed %llu: not calm\n", (unsigned long long)seed);
    CU_ASSERT(calm);
    world_compare_logs();
    world_free();
    while (asked_n > 0) {
        CU_ASSERT(asked_of_seed[asked_n - 1]->done);
        asked_free(asked_of_seed[--asked_n]);
    }
}

/* DOHLE_QUORUM_SEED: that one alone; DOHLE_QUORUM_SEEDS: how many. */
static void test_cluster_keeps_its_promises(void)
{
    const char *one = getenv("DOHLE_QUORUM_SEED"), *many = getenv("DOHLE_QUORUM_SEEDS");
    const uint64_t from = one == NULL ? 1 : strtoull(one, NULL, 10);
    const uint64_t n = one != NULL ? 1 : many == NULL ? 60 : strtoull(many, NULL, 10);
    for (uint64_t seed = from; seed < from + n; seed++)
        run_seed(seed);
    printf("quorum: %ld elections, %ld crashes, %ld snapshots fetched, %ld truncations, %ld voter "
           "changes\n",
           total_elections, total_crashes, total_installs, total_truncations, total_changes);
    CU_ASSERT(one != NULL || (total_elections > 100 && total_crashes > 100 && total_installs > 5 &&
                              total_truncations > 5 && total_changes > 10));
}

TEST_MAIN(TEST(test_cluster_elects_and_replicates), TEST(test_cluster_epochs_without_records),
          TEST(test_cluster_leader_restarts),
          TEST(test_cluster_old_records_are_not_committed_by_a_new_leader),
          TEST(test_cluster_leader_without_voters_resigns), TEST(test_cluster_voter_comes_back),
          TEST(test_cluster_leader_dies), TEST(test_cluster_leader_is_gone),
          TEST(test_cluster_parked_fetches), TEST(test_cluster_fetches_wake),
          TEST(test_cluster_fetch_checks), TEST(test_cluster_snapshots_are_fetched),
          TEST(test_cluster_voters_behind_a_snapshot), TEST(test_cluster_snapshot_goes_meanwhile),
          TEST(test_cluster_snapshot_beyond_the_log), TEST(test_cluster_spoiled_answers),
          TEST(test_cluster_answers_that_cannot_be), TEST(test_cluster_a_leader_that_never_was),
          TEST(test_cluster_kraft_version_is_raised), TEST(test_cluster_kraft_version_needs_all),
          TEST(test_cluster_controllers_join_by_themselves),
          TEST(test_cluster_controllers_do_not_join_unasked),
          TEST(test_cluster_voter_lists_disagree), TEST(test_cluster_voter_lists_agree),
          TEST(test_cluster_late_end_of_an_epoch), TEST(test_cluster_hands_over),
          TEST(test_cluster_commits_are_known), TEST(test_cluster_hands_over_of_five),
          TEST(test_cluster_stops_alone), TEST(test_cluster_leader_lost_its_state),
          TEST(test_cluster_voter_with_another_disk),
          TEST(test_cluster_observer_without_its_leader), TEST(test_cluster_voters_join_and_leave),
          TEST(test_cluster_uncommitted_voters_are_undone), TEST(test_cluster_voter_moves),
          TEST(test_cluster_observers_are_known), TEST(test_cluster_keeps_its_promises))
