/* Every allocation, and every operation on files, of a workload fails once, and from there on: what
 * was acknowledged is there, also after the next start, all operations end, nothing leaks. */
#include "coordinator.h"

enum { GROUPS = 3, PARTS = 2, ROUNDS = 3 };

struct run {
    struct co c; /* first */
    struct co_commit commits[GROUPS * ROUNDS];
    struct co_delete del;
    struct co_fetch stable;
    int64_t acked[GROUPS][PARTS]; /* -1: none */
    bool deleted;                 /* group 2, for certain */
};

static const char *const names[GROUPS] = {"a", "b", "c"};

static void prepare(struct run *r)
{
    memset(r, 0, sizeof *r);
    co_prepare(&r->c);
    fix_set(&r->c.f, "offsets.retention.minutes", "60");
    fix_set(&r->c.f, "offsets.retention.check.interval.ms", "60000");
    co_begin(&r->c);
    memset(r->acked, -1, sizeof r->acked);
}

/* Until it is done; without memory for its deadline its client goes. */
static void finish_commit(struct run *r, struct co_commit *q, int g, int round)
{
    fix_turn(&r->c.f);
    groups_commit_cancel(&q->op);
    fix_turn(&r->c.f);
    CU_ASSERT_EQUAL_FATAL(q->done, 1);
    for (int p = 0; p < PARTS; p++)
        if (q->parts[p].error == K_NONE)
            r->acked[g][p] = round;
}

static void workload(struct run *r)
{
    struct co *c = &r->c;
    for (int round = 0; round < ROUNDS; round++) {
        for (int g = 0; g < GROUPS; g++) {
            struct co_commit *q = &r->commits[round * GROUPS + g];
            co_commit_init(q, names[g]);
            for (int p = 0; p < PARTS; p++)
                co_part(c, q, "t", p, round, "some metadata");
            co_commit_start(c, q);
        }
        for (int g = 0; g < GROUPS; g++)
            finish_commit(r, &r->commits[round * GROUPS + g], g, round);
    }
    co_delete_start(c, &r->del, names[2]);
    co_fetch_init(&r->stable, names[0]);
    r->stable.op.require_stable = r->stable.op.all = true;
    co_fetch_start(c, &r->stable);
    fix_turn(&c->f);
    groups_delete_cancel(&r->del.op);
    groups_fetch_cancel(&r->stable.op);
    fix_turn(&c->f);
    CU_ASSERT_FATAL(r->del.done == 1 && r->stable.done == 1);
    r->deleted = r->del.op.error == K_NONE;
    c->f.now.mono_us += 60000 * 1000; /* an expiry looks at everything */
    c->f.now.wall_ms += 60000;
    co_turns(c);
}

/* With the fault over. An offset is the last that was acknowledged, or one that was not and is
 * later. */
static void check(struct run *r)
{
    struct co *c = &r->c;
    if (c->f.failed)
        return; /* the log directory is gone, and the node with it */
    for (int g = 0; g < GROUPS; g++)
        for (int p = 0; p < PARTS; p++) {
            const int64_t offset = co_offset(c, names[g], p);
            if (g == 2 && r->deleted)
                CU_ASSERT_EQUAL(offset, -1)
            else if (g != 2)
                CU_ASSERT(offset >= r->acked[g][p] && offset < ROUNDS)
        }
}

/* The coordinator still works, and its log is understood. */
static void check_alive(struct run *r)
{
    struct co *c = &r->c;
    if (c->f.failed)
        return;
    fix_wait(&c->f, 1000);
    if (co_shard(c, 0)->state == SHARD_FAILED)
        return; /* without memory for its load */
    CU_ASSERT_EQUAL(co_commit(c, names[0], 0, 77), K_NONE);
    CU_ASSERT_EQUAL(co_fetch_as(c, names[0], 0, true), 77);
}

static void finish(struct run *r)
{
    arena_close(&r->stable.arena);
    co_end(&r->c);
}

static void test_faults_without_memory(void)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        bool hit = true;
        long n = 1;
        for (; hit; n++) {
            static struct run r;
            prepare(&r);
            fault_alloc_arm(n, persistent);
            workload(&r);
            hit = fault_alloc_hit();
            check(&r);
            check_alive(&r);
            finish(&r);
        }
        printf("\n%ld allocations%s\n", n - 1, persistent ? ", persistent" : "");
        CU_ASSERT(n > 100);
    }
}

static void test_faults_of_files(void)
{
    const enum err errs[] = {ERR_IO, ERR_NOSPC};
    for (int persistent = 0; persistent < 2; persistent++)
        for (size_t e = 0; e < ARRAY_N(errs); e++) {
            bool hit = true;
            long n = 1;
            for (; hit; n++) {
                static struct run r;
                prepare(&r);
                memfs_fault_arm(&r.c.f.fs, (struct memfs_fault){
                                               .nth = n, .persistent = persistent, .err = errs[e]});
                workload(&r);
                hit = memfs_fault_hit(&r.c.f.fs);
                check(&r);
                check_alive(&r);
                finish(&r);
            }
            printf("\n%ld file operations%s\n", n - 1, persistent ? ", persistent" : "");
            CU_ASSERT(n > 10);
        }
}

/* The budget refuses where malloc does not. */
static void test_faults_of_a_full_budget(void)
{
    static struct run r;
    prepare(&r);
    struct co *c = &r.c;
    int16_t error = K_NONE;
    int commits = 0;
    c->f.budget.limit_bytes = c->f.budget.used_bytes + 20000;
    for (; error == K_NONE && commits < 1000; commits++) {
        char name[16];
        snprintf(name, sizeof name, "g%d", commits);
        error = co_commit(c, name, 0, commits);
    }
    CU_ASSERT(commits > 10 && commits < 1000);
    CU_ASSERT_EQUAL(error, K_COORDINATOR_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(co_offset(c, "g1", 0), 1);
    c->f.budget.limit_bytes += 1 << 20;
    CU_ASSERT_EQUAL(co_commit(c, "more", 0, 5), K_NONE);
    finish(&r);
}

/* ------------------------------------------------------------------ loading */

static void test_faults_while_loading(void)
{
    bool hit = true;
    long n = 1;
    for (; hit; n++) {
        static struct run r;
        int32_t one[] = {1};
        prepare(&r);
        workload(&r);
        struct partition_change_record pc;
        struct image_delta d;
        wire_default(&wire_partition_change_record, &pc);
        pc.topic_id = r.c.offsets;
        pc.partition_id = 0;
        pc.leader = 1;
        pc.isr.v = one;
        pc.isr.n = 1;
        image_delta_init(&d);
        fix_record(&r.c.f, &msg_partition_change_record, 0, &pc, &d);
        replicas_apply(r.c.f.rs, &d, r.c.f.now);
        fault_alloc_arm(n, false);
        groups_apply(r.c.gs, &d, r.c.f.now);
        co_turns(&r.c);
        hit = fault_alloc_hit();
        image_delta_close(&d);
        const enum shard_state state = co_shard(&r.c, 0)->state;
        CU_ASSERT(state == SHARD_ACTIVE || state == SHARD_FAILED);
        if (!hit)
            CU_ASSERT_EQUAL(state, SHARD_ACTIVE);
        if (state == SHARD_ACTIVE)
            check(&r);
        finish(&r);
    }
    printf("\n%ld allocations of a load\n", n - 1);
    CU_ASSERT(n > 20);
}

TEST_MAIN(TEST(test_faults_without_memory), TEST(test_faults_of_files),
          TEST(test_faults_of_a_full_budget), TEST(test_faults_while_loading))
