/* Offsets of groups without members: commit, fetch, delete, list (groups.md 3 and 7). */
#include "coordinator.h"

static struct co c;

static void test_offsets_of_an_unknown_group_are_none(void) /* row 1 */
{
    struct co_fetch q;
    co_begin(&c);
    co_fetch_init(&q, "nobody");
    co_ask(&q, "t", 0);
    co_ask(&q, "t", 99);
    co_ask(&q, "nope", 0);
    co_fetch_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && q.op.error == K_NONE);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(q.parts[i].offset, -1);
        CU_ASSERT_EQUAL(q.parts[i].leader_epoch, -1);
        CU_ASSERT(str_eq(q.parts[i].metadata, STR_LIT("")));
        CU_ASSERT_EQUAL(q.parts[i].error, K_NONE);
    }
    arena_close(&q.arena);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "nobody"), 0);
    co_end(&c);
}

static void test_offsets_commit_needs_a_group_when_it_names_a_generation(void) /* row 2 */
{
    struct co_commit q;
    co_begin(&c);
    for (int16_t version = 8; version <= 10; version++) {
        co_commit_init(&q, "nobody");
        q.op.generation = 0;
        q.op.version = version;
        co_part(&c, &q, "t", 0, 5, "");
        co_commit_start(&c, &q);
        fix_turn(&c.f);
        CU_ASSERT_EQUAL(q.done, 1);
        CU_ASSERT_EQUAL(q.parts[0].error,
                        version == 8 ? K_ILLEGAL_GENERATION : K_GROUP_ID_NOT_FOUND);
    }
    CU_ASSERT(!co_exists(&c, "nobody"));
    co_end(&c);
}

static void test_offsets_make_a_simple_group(void) /* row 3 */
{
    struct co_commit q;
    struct co_list l;
    co_begin(&c);
    co_commit_init(&q, "g");
    q.op.member = STR_LIT("x");
    co_part(&c, &q, "t", 0, 5, "meta");
    co_part(&c, &q, "t", 3, 7, NULL);
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_NONE && q.parts[1].error == K_NONE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 3), 7);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), -1);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 2);
    CU_ASSERT_EQUAL(co_list(&c, &l), K_NONE);
    CU_ASSERT_EQUAL_FATAL(l.n, 1);
    CU_ASSERT_STRING_EQUAL(l.v[0].id, "g");
    CU_ASSERT_STRING_EQUAL(l.v[0].type, "classic");
    CU_ASSERT_STRING_EQUAL(l.v[0].state, "Empty");
    CU_ASSERT_STRING_EQUAL(l.v[0].protocol, "");
    co_end(&c);
}

static void test_offsets_all_come_by_topic_and_partition(void)
{
    struct co_commit q;
    struct co_fetch f;
    co_begin(&c);
    fix_topic(&c.f, "u", 1);
    co_commit_init(&q, "g");
    co_part(&c, &q, "u", 0, 1, "");
    co_part(&c, &q, "t", 2, 2, "two");
    co_part(&c, &q, "t", 0, 3, "");
    co_part(&c, &q, "t", 1, 4, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    co_fetch_init(&f, "g");
    f.op.all = true;
    co_fetch_start(&c, &f);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL_FATAL(f.op.parts_n, 4);
    CU_ASSERT(str_eq(f.op.parts[0].topic, STR_LIT("u")) && f.op.parts[0].offset == 1);
    for (int i = 1; i < 4; i++)
        CU_ASSERT(str_eq(f.op.parts[i].topic, STR_LIT("t")) && f.op.parts[i].index == i - 1);
    CU_ASSERT(str_eq(f.op.parts[3].metadata, STR_LIT("two")));
    CU_ASSERT(uuid_eq(f.op.parts[3].topic_id, c.t));
    arena_close(&f.arena);
    co_end(&c);
}

static void test_offsets_last_of_a_request_wins(void)
{
    struct co_commit q;
    co_begin(&c);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_part(&c, &q, "t", 0, 6, "");
    co_part(&c, &q, "t", 1, -100, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 6);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), -100); /* what a member says is kept */
    co_end(&c);
}

static void test_offsets_metadata_is_measured_in_utf16(void) /* row 7 */
{
    static char wide[2 * 4096 + 1], narrow[4097 + 1], astral[4 * 2049 + 1];
    struct co_commit q;
    for (int i = 0; i < 4096; i++)
        memcpy(wide + 2 * i, "\xC3\xA9", 2);
    memset(narrow, 'x', 4097);
    for (int i = 0; i < 2049; i++)
        memcpy(astral + 4 * i, "\xF0\x9F\x90\xA6", 4);
    co_begin(&c);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 1, wide);
    co_part(&c, &q, "t", 1, 1, narrow);
    co_part(&c, &q, "t", 2, 1, astral);
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q.parts[0].error, K_NONE);
    CU_ASSERT_EQUAL(q.parts[1].error, K_OFFSET_METADATA_TOO_LARGE);
    CU_ASSERT_EQUAL(q.parts[2].error, K_OFFSET_METADATA_TOO_LARGE);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1);
    /* nothing left: no group comes of it */
    co_commit_init(&q, "h");
    co_part(&c, &q, "t", 1, 1, narrow);
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_OFFSET_METADATA_TOO_LARGE);
    CU_ASSERT(!co_exists(&c, "h"));
    CU_ASSERT_EQUAL(c.gs->shards[0].groups.n, 1);
    co_end(&c);
}

static void test_offsets_refused_before_leave_the_group_alone(void) /* row 6 */
{
    struct co_commit q;
    co_begin(&c);
    co_commit_init(&q, "g");
    q.op.generation = 5;
    co_part(&c, &q, "nope", 0, 1, "")->error = K_UNKNOWN_TOPIC_OR_PARTITION;
    q.parts[0].refused = true;
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_UNKNOWN_TOPIC_OR_PARTITION);
    /* a good one beside it: the group's error is its own */
    q.done = 0;
    co_part(&c, &q, "t", 0, 1, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(q.parts[1].error, K_GROUP_ID_NOT_FOUND);
    co_end(&c);
}

static void test_offsets_by_id_are_of_that_topic(void)
{
    struct co_fetch f;
    co_begin(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    for (int same = 0; same < 2; same++) {
        co_fetch_init(&f, "g");
        co_ask(&f, "t", 0);
        f.op.by_id = true;
        f.parts[0].topic_id = same ? c.t : (struct uuid){{1}};
        co_fetch_start(&c, &f);
        fix_turn(&c.f);
        CU_ASSERT_EQUAL(f.parts[0].offset, same ? 5 : -1);
        CU_ASSERT_EQUAL(f.parts[0].error, K_NONE);
        arena_close(&f.arena);
    }
    co_end(&c);
}

static void test_offsets_partition_of_a_group(void) /* groups.md 1 */
{
    static const struct {
        const char *group;
        int32_t partition;
    } cases[] = {{"g1", 42}, {"ret", 1}, {"my-group", 12}, {"polygenelubricants", 0}, {"", 0}};
    int32_t one[] = {1};
    co_begin_on(&c, 50, one, 1);
    CU_ASSERT_EQUAL(groups_partitions_n(c.gs), 50);
    for (size_t i = 0; i < ARRAY_N(cases); i++)
        CU_ASSERT_EQUAL(groups_partition(c.gs, str_of(cases[i].group)), cases[i].partition);
    co_end(&c);
}

/* ------------------------------------------------------------------ deletions */

static void test_offsets_delete(void)
{
    co_begin(&c);
    CU_ASSERT_EQUAL(co_delete_offset(&c, "g", 0), K_GROUP_ID_NOT_FOUND);
    CU_ASSERT_EQUAL(co_delete_offset(&c, "", 0), K_INVALID_GROUP_ID);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    CU_ASSERT_EQUAL(co_delete_offset(&c, "g", 1), K_NONE); /* nothing to delete */
    CU_ASSERT_EQUAL(co_delete_offset(&c, "g", 0), K_NONE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT(co_exists(&c, "g"));
    CU_ASSERT_EQUAL(co_delete_offset(&c, "g", 0), K_NONE);
    co_end(&c);
}

static void test_offsets_go_with_their_group(void)
{
    co_begin(&c);
    CU_ASSERT_EQUAL(co_delete(&c, "g"), K_GROUP_ID_NOT_FOUND);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 1, 6), K_NONE);
    CU_ASSERT_EQUAL(co_delete(&c, "g"), K_NONE);
    CU_ASSERT(!co_exists(&c, "g"));
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(c.gs->shards[0].groups.n, 0);
    CU_ASSERT_EQUAL(c.gs->shards[0].topics.n, 0);
    CU_ASSERT_EQUAL(co_delete(&c, "g"), K_GROUP_ID_NOT_FOUND);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 1, 7), K_NONE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), 7);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    co_end(&c);
}

/* The empty id is an id (groups.md 1). */
static void test_offsets_of_the_group_without_a_name(void)
{
    co_begin(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "", 0, 5), K_NONE);
    CU_ASSERT_EQUAL(co_offset(&c, "", 0), 5);
    CU_ASSERT(co_exists(&c, ""));
    CU_ASSERT_EQUAL(co_delete(&c, ""), K_NONE);
    co_end(&c);
}

/* ------------------------------------------------------------------ what is not committed yet */

/* A second replica that never fetches holds the high watermark back. */
static void begin_held(void)
{
    int32_t two[] = {1, 2};
    co_begin_on(&c, 1, two, 2);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_ACTIVE);
}

static void release_held(void)
{
    int32_t one[] = {1};
    fix_change(&c.f, c.offsets, 0, -2, one, 1);
    fix_turn(&c.f);
    fix_turn(&c.f);
}

static void test_offsets_show_when_they_are_committed(void)
{
    struct co_commit q;
    struct co_fetch stable;
    begin_held();
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "m");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q.done, 0);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 0);
    CU_ASSERT(!co_exists(&c, "g"));
    co_fetch_init(&stable, "g");
    stable.op.require_stable = true;
    co_ask(&stable, "t", 0);
    co_fetch_start(&c, &stable);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(stable.done, 0); /* it waits for what is on its way */
    c.f.now.mono_us += 31000 * 1000; /* the other replica is out of the ISR by then */
    release_held();
    CU_ASSERT(q.done == 1 && stable.done == 1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    CU_ASSERT_EQUAL(stable.parts[0].offset, 5);
    CU_ASSERT(str_eq(stable.parts[0].metadata, STR_LIT("m")));
    CU_ASSERT(co_exists(&c, "g"));
    arena_close(&stable.arena);
    co_end(&c);
}

/* The one before shows meanwhile, and what is deleted still does. */
static void test_offsets_show_the_committed_version(void)
{
    int32_t two[] = {1, 2};
    struct co_commit q;
    struct co_delete d;
    begin_held();
    c.f.now.mono_us += 31000 * 1000;
    release_held();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 1), K_NONE);
    fix_change(&c.f, c.offsets, 0, -2, two, 2); /* held again */
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 2, "");
    co_part(&c, &q, "t", 1, 2, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q.done, 0);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), -1);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1);
    co_delete_start(&c, &d, "g");
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(d.done, 0);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 1);
    CU_ASSERT(co_exists(&c, "g"));
    c.f.now.mono_us += 31000 * 1000;
    release_held();
    CU_ASSERT(q.done == 1 && d.done == 1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT(!co_exists(&c, "g"));
    co_end(&c);
}

static void test_offsets_versions_commit_one_by_one(void)
{
    struct co_commit a, b, again;
    struct co_delete d;
    begin_held();
    co_commit_init(&a, "g");
    co_part(&c, &a, "t", 0, 1, "");
    co_commit_start(&c, &a);
    co_commit_init(&b, "g");
    co_part(&c, &b, "t", 0, 2, "");
    co_part(&c, &b, "t", 1, 2, "");
    co_commit_start(&c, &b);
    co_delete_start(&c, &d, "g");
    co_commit_init(&again, "g");
    co_part(&c, &again, "t", 1, 9, "");
    co_commit_start(&c, &again);
    fix_turn(&c.f);
    CU_ASSERT(a.done + b.done + d.done + again.done == 0);
    c.f.now.mono_us += 31000 * 1000;
    release_held();
    CU_ASSERT(a.done == 1 && b.done == 1 && d.done == 1 && again.done == 1);
    CU_ASSERT(d.op.error == K_NONE && again.parts[0].error == K_NONE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), 9);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1);
    co_end(&c);
}

static void test_offsets_commit_times_out(void)
{
    struct co_commit q;
    struct co_fetch stable;
    begin_held();
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_commit_start(&c, &q);
    co_fetch_init(&stable, "g");
    stable.op.require_stable = true;
    co_ask(&stable, "t", 0);
    co_fetch_start(&c, &stable);
    fix_turn(&c.f);
    co_wait(&c, 4999);
    CU_ASSERT_EQUAL(q.done, 0);
    co_wait(&c, 1); /* offsets.commit.timeout.ms */
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_COORDINATOR_NOT_AVAILABLE);
    CU_ASSERT(stable.done == 1 && stable.op.error == K_NOT_COORDINATOR);
    c.f.now.mono_us += 31000 * 1000;
    release_held(); /* it is committed all the same */
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    arena_close(&stable.arena);
    co_end(&c);
}

static void test_offsets_cancelled_ops_end(void)
{
    struct co_commit q;
    struct co_fetch stable;
    begin_held();
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_commit_start(&c, &q);
    co_fetch_init(&stable, "g");
    stable.op.require_stable = true;
    co_ask(&stable, "t", 0);
    co_fetch_start(&c, &stable);
    groups_commit_cancel(&q.op);
    groups_commit_cancel(&q.op);
    groups_fetch_cancel(&stable.op);
    CU_ASSERT(q.done == 0 && stable.done == 0);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && stable.done == 1);
    arena_close(&stable.arena);
    co_end(&c);
}

/* Clients go on committing while nothing is replicated: all of what waits for it is counted. */
static void test_offsets_count_the_memory_of_what_waits(void)
{
    begin_held();
    struct co_commit q[2];
    for (size_t i = 0; i < ARRAY_N(q); i++) {
        co_commit_init(&q[i], "g");
        co_part(&c, &q[i], "t", 0, 5, "");
        co_commit_start(&c, &q[i]);
    }
    fix_turn(&c.f);
    const struct write *w = LIST_ENTRY(co_shard(&c, 0)->writes.next, struct write, link);
    CU_ASSERT(w->charged_bytes > sizeof *w);
    CU_ASSERT_PTR_NULL(w->bb); /* the log has a copy */
    c.f.now.mono_us += 31000 * 1000;
    release_held();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 6), K_NONE);
    co_end(&c);
}

/* Not leader any more: what waits is told, what comes too. */
static void test_offsets_end_with_the_leadership(void)
{
    struct co_commit q;
    struct co_list l;
    begin_held();
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    fix_change(&c.f, c.offsets, 0, 2, NULL, 0);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 6), K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), CO_ERROR - K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_delete(&c, "g"), K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_delete_offset(&c, "g", 0), K_NOT_COORDINATOR);
    CU_ASSERT(co_list(&c, &l) == K_NONE && l.n == 0);
    co_end(&c);
}

TEST_MAIN(
    TEST(test_offsets_of_an_unknown_group_are_none),
    TEST(test_offsets_commit_needs_a_group_when_it_names_a_generation),
    TEST(test_offsets_make_a_simple_group), TEST(test_offsets_all_come_by_topic_and_partition),
    TEST(test_offsets_last_of_a_request_wins), TEST(test_offsets_metadata_is_measured_in_utf16),
    TEST(test_offsets_refused_before_leave_the_group_alone),
    TEST(test_offsets_by_id_are_of_that_topic), TEST(test_offsets_partition_of_a_group),
    TEST(test_offsets_delete), TEST(test_offsets_go_with_their_group),
    TEST(test_offsets_of_the_group_without_a_name), TEST(test_offsets_show_when_they_are_committed),
    TEST(test_offsets_show_the_committed_version), TEST(test_offsets_versions_commit_one_by_one),
    TEST(test_offsets_commit_times_out), TEST(test_offsets_cancelled_ops_end),
    TEST(test_offsets_count_the_memory_of_what_waits), TEST(test_offsets_end_with_the_leadership))
