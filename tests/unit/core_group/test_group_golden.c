/* The logs of __consumer_offsets that Apache Kafka 4.4.0 wrote: what its own broker answered from
 * them, ours answers too; and the records that ours writes for the same changes are the same bytes.
 */
#include "coordinator.h"
#include "support/golden_dirs.h"

static struct co c;
static const char *which;

static void import(struct co *co)
{
    for (int i = 0; i < 2; i++) {
        char from[512], to[64], meta[128];
        snprintf(from, sizeof from, "%s/%s/__consumer_offsets-%d", golden_dirs(), which, i);
        snprintf(to, sizeof to, "/data/__consumer_offsets-%d", i);
        memfs_import(&co->f.fs, from, to);
        /* its topic has another id here */
        snprintf(meta, sizeof meta, "%s/partition.metadata", to);
        CU_ASSERT_EQUAL(co->f.fs.vfs.ops->unlink(&co->f.fs.vfs, meta), ERR_NONE);
    }
}

static void begin(const char *dir)
{
    int32_t one[] = {1};
    which = dir;
    co_prepare(&c);
    fix_set(&c.f, "offsets.topic.num.partitions", "2");
    co_begin_on(&c, 2, one, 1);
    c.stopped = import;
    co_restart(&c);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_ACTIVE);
    CU_ASSERT_EQUAL(co_shard(&c, 1)->state, SHARD_ACTIVE);
}

static void check_offset(const char *group, const char *topic, int64_t offset, int32_t epoch,
                         const char *metadata)
{
    struct co_fetch q;
    for (int stable = 0; stable < 2; stable++) {
        co_fetch_init(&q, group);
        q.op.require_stable = stable;
        co_ask(&q, topic, 0);
        co_ask(&q, topic, 1);
        co_fetch_start(&c, &q);
        fix_turn(&c.f);
        CU_ASSERT(q.done == 1 && q.op.error == K_NONE);
        CU_ASSERT_EQUAL(q.parts[0].offset, offset);
        CU_ASSERT_EQUAL(q.parts[0].leader_epoch, epoch);
        CU_ASSERT(str_eq(q.parts[0].metadata, str_of(metadata)));
        CU_ASSERT_EQUAL(q.parts[1].offset, -1);
        arena_close(&q.arena);
    }
}

/* As Apache Kafka answered when it was started on a copy of the directory. */
static void check_answers(void)
{
    static const char *const groups[][4] = {
        {"golden-classic", "Stable", "classic", "consumer"},
        {"golden-consumer", "Empty", "consumer", "consumer"},
        {"golden-group", "Empty", "classic", ""},
    };
    struct co_list l;
    check_offset("golden-classic", "g-none", 30, 0, "");
    check_offset("golden-classic", "g-zstd", 30, 0, "");
    check_offset("golden-consumer", "g-none", 30, 0, "");
    check_offset("golden-consumer", "g-zstd", 30, 0, "");
    check_offset("golden-group", "g-none", 7, -1, "meta");
    CU_ASSERT_EQUAL(co_offsets_n(&c, "golden-classic"), 2);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "golden-group"), 1);
    CU_ASSERT_EQUAL(co_list(&c, &l), K_NONE);
    CU_ASSERT_EQUAL_FATAL(l.n, 3);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_STRING_EQUAL(l.v[i].id, groups[i][0]);
        CU_ASSERT_STRING_EQUAL(l.v[i].state, groups[i][1]);
        CU_ASSERT_STRING_EQUAL(l.v[i].type, groups[i][2]);
        CU_ASSERT_STRING_EQUAL(l.v[i].protocol, groups[i][3]);
    }
    CU_ASSERT_EQUAL(co_delete(&c, "golden-classic"), K_NON_EMPTY_GROUP);
    CU_ASSERT_EQUAL(co_delete(&c, "golden-consumer"), K_NONE);
    CU_ASSERT_EQUAL(co_delete(&c, "golden-group"), K_NONE);
}

static void test_golden_answers(void)
{
    begin("clean");
    check_answers();
    co_end(&c);
    begin("killed");
    check_answers();
    co_end(&c);
}

/* ------------------------------------------------------------------ bytes */

struct golden_record {
    uint8_t key[128], value[512];
    int32_t key_n, value_n;
    int32_t base_sequence; /* of its batch */
};

/* The record at an offset of a log's bytes. */
static struct golden_record find(const uint8_t *p, size_t n, int64_t offset)
{
    struct golden_record out = {.key_n = -1};
    struct bytes in = {p, (int32_t)n};
    struct batch b;
    while (in.n > 0 && batch_take(&in, &b) == ERR_NONE) {
        struct record_reader *reader;
        struct record r;
        bool end = false;
        CU_ASSERT_EQUAL_FATAL(record_reader_new(&b, 1 << 20, &reader), ERR_NONE);
        while (record_reader_next(reader, &r, &end) == ERR_NONE && !end) {
            if (r.offset != offset)
                continue;
            CU_ASSERT_EQUAL(r.headers_n, 0);
            out.base_sequence = b.base_sequence;
            out.key_n = r.key.n;
            out.value_n = r.value.n;
            memcpy(out.key, r.key.p, (size_t)r.key.n);
            if (r.value.n > 0)
                memcpy(out.value, r.value.p, (size_t)r.value.n);
        }
        record_reader_free(reader);
        if (out.key_n >= 0)
            return out;
    }
    CU_FAIL("no record at that offset");
    return out;
}

static struct golden_record theirs(int partition, int64_t offset)
{
    char path[512];
    size_t n;
    snprintf(path, sizeof path, "%s/clean/__consumer_offsets-%d/00000000000000000000.log",
             golden_dirs(), partition);
    uint8_t *p = test_read_file(path, &n);
    const struct golden_record out = find(p, n, offset);
    free(p);
    return out;
}

static struct golden_record ours(int64_t offset)
{
    size_t n;
    const uint8_t *p =
        memfs_get(&c.f.fs, "/data/__consumer_offsets-0/00000000000000000000.log", &n);
    return find(p, n, offset);
}

static void check_same(struct golden_record a, struct golden_record b)
{
    CU_ASSERT_EQUAL(a.base_sequence, b.base_sequence);
    CU_ASSERT(a.key_n == b.key_n && memcmp(a.key, b.key, (size_t)a.key_n) == 0);
    CU_ASSERT_EQUAL_FATAL(a.value_n, b.value_n);
    if (a.value_n > 0)
        CU_ASSERT_EQUAL(memcmp(a.value, b.value, (size_t)a.value_n), 0);
}

static void commit_as(const char *group, const char *topic, const char *id, int64_t offset,
                      int32_t epoch, const char *metadata, int64_t at_ms)
{
    struct co_commit q;
    c.f.now.wall_ms = at_ms;
    co_commit_init(&q, group);
    struct commit_part *p = co_part(&c, &q, topic, 0, offset, metadata);
    p->leader_epoch = epoch;
    CU_ASSERT_TRUE(uuid_parse(str_of(id), &p->topic_id));
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && p->error == K_NONE);
}

static void test_golden_records(void)
{
    struct group *g;
    co_begin(&c);
    commit_as("golden-classic", "g-zstd", "F30h4ctBTKKUznsIQFjghw", 30, 0, "", 1796002539414);
    check_same(theirs(0, 2), ours(0));
    commit_as("golden-classic", "g-none", "2YVUzFcnSrqkwhqkIIXhlg", 30, 0, "", 1796002539414);
    check_same(theirs(0, 3), ours(1));
    commit_as("golden-group", "g-none", "2YVUzFcnSrqkwhqkIIXhlg", 7, -1, "meta", 1796002538903);
    check_same(theirs(1, 0), ours(2));
    CU_ASSERT_EQUAL(co_delete(&c, "golden-classic"), K_NONE);
    c.f.now.wall_ms = 1796002539230;
    CU_ASSERT_EQUAL(group_create_classic(co_shard(&c, 0), STR_LIT("golden-classic"), c.f.now, &g),
                    K_NONE);
    fix_turn(&c.f);
    check_same(theirs(0, 0), ours(6));
    co_end(&c);
}

TEST_MAIN(TEST(test_golden_answers), TEST(test_golden_records))
