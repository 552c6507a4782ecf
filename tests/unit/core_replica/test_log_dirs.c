/* DescribeLogDirs: partitions, sizes, the room of the disk, a failed directory. */
#include "fixture.h"

enum { ASK_MAX = 6 };

struct query {
    struct describe_log_dirs_op op;
    struct describe_log_dirs_request request;
    struct describe_log_dirs_response response;
    struct describe_log_dirs_request_describable_log_dir_topic topics[ASK_MAX];
    int32_t parts[ASK_MAX];
    struct arena arena;
    int done;
};

static void described(struct describe_log_dirs_op *op)
{
    CONTAINER_OF(op, struct query, op)->done++;
}

/* For all. */
static void query_init(struct query *q)
{
    memset(q, 0, sizeof *q);
    arena_init(&q->arena, NULL);
    wire_default(&wire_describe_log_dirs_request, &q->request);
    wire_default(&wire_describe_log_dirs_response, &q->response);
    q->request.topics.v = q->topics;
    q->request.topics.n = -1;
    q->op = (struct describe_log_dirs_op){
        .arena = &q->arena, .request = &q->request, .response = &q->response, .done = described};
}

static void ask(struct query *q, const char *topic, int32_t index)
{
    const int32_t i = q->request.topics.n < 0 ? 0 : q->request.topics.n;
    q->request.topics.n = i + 1;
    q->topics[i].topic = str_of(topic);
    q->parts[i] = index;
    q->topics[i].partitions.v = &q->parts[i];
    q->topics[i].partitions.n = 1;
}

static const struct describe_log_dirs_response_describe_log_dirs_result *run(struct fix *f,
                                                                             struct query *q)
{
    CU_ASSERT_EQUAL_FATAL(replicas_describe_log_dirs(f->rs, &q->op), ERR_NONE);
    CU_ASSERT_EQUAL(q->done, 0);
    fix_turn(f);
    CU_ASSERT_EQUAL_FATAL(q->done, 1);
    CU_ASSERT_EQUAL_FATAL(q->response.results.n, 1);
    CU_ASSERT(str_eq(q->response.results.v[0].log_dir, STR_LIT("/data")));
    return &q->response.results.v[0];
}

/* "t:0=123,1=0 u:0=5" */
static const char *text_of(const struct describe_log_dirs_response_describe_log_dirs_result *r)
{
    static char text[400];
    size_t n = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < r->topics.n; i++) {
        const struct describe_log_dirs_response_describe_log_dirs_topic *t = &r->topics.v[i];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s:", i > 0 ? " " : "", t->name.n,
                              t->name.p);
        for (int32_t k = 0; k < t->partitions.n; k++) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%d=%lld", k > 0 ? "," : "",
                                  t->partitions.v[k].partition_index,
                                  (long long)t->partitions.v[k].partition_size);
            CU_ASSERT(t->partitions.v[k].offset_lag == 0 && !t->partitions.v[k].is_future_key);
        }
    }
    return text;
}

static void test_log_dirs_partitions(void)
{
    struct fix f = {0};
    struct query q;
    int32_t others[] = {2, 3};
    char expected[100];
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    fix_topic(&f, "a", 1);
    fix_topic_of(&f, "elsewhere", 1, others, 2);
    CU_ASSERT_EQUAL(fix_append(&f, t, 1, 3), K_NONE);
    const long long size = (long long)log_size_bytes(fix_find(&f, t, 1)->log);
    CU_ASSERT(size > 61);
    query_init(&q);
    snprintf(expected, sizeof expected, "t:0=0,1=%lld a:0=0", size);
    CU_ASSERT_STRING_EQUAL(text_of(run(&f, &q)), expected);
    arena_close(&q.arena);

    query_init(&q); /* each once, by name; what is not here is left out */
    ask(&q, "t", 1);
    ask(&q, "none", 0);
    ask(&q, "elsewhere", 0);
    ask(&q, "a", 0);
    ask(&q, "t", 7);
    ask(&q, "t", 1);
    snprintf(expected, sizeof expected, "a:0=0 t:1=%lld", size);
    CU_ASSERT_STRING_EQUAL(text_of(run(&f, &q)), expected);
    arena_close(&q.arena);

    query_init(&q);
    q.request.topics.n = 0;
    CU_ASSERT_STRING_EQUAL(text_of(run(&f, &q)), "");
    arena_close(&q.arena);

    fix_delete(&f, t);
    fix_topic(&f, "t", 2); /* the other's directory still has the name */
    query_init(&q);
    ask(&q, "t", 1);
    CU_ASSERT_STRING_EQUAL(text_of(run(&f, &q)), "t:1=0");
    arena_close(&q.arena);
    fix_end(&f);
}

/* A worker asks, once for all that ask meanwhile. */
static void test_log_dirs_room(void)
{
    struct fix f = {0};
    struct query q[3];
    fix_begin(&f);
    f.fs.limit_bytes = 1 << 20;
    for (int i = 0; i < 3; i++) {
        query_init(&q[i]);
        CU_ASSERT_EQUAL(replicas_describe_log_dirs(f.rs, &q[i].op), ERR_NONE);
        fix_settle(&f);
        CU_ASSERT_EQUAL(q[i].done, 0);
    }
    f.fs.ops[MEMFS_SPACE] = 0;
    fix_turn(&f);
    CU_ASSERT_EQUAL(f.fs.ops[MEMFS_SPACE], 1);
    for (int i = 0; i < 3; i++) {
        const struct describe_log_dirs_response_describe_log_dirs_result *r =
            &q[i].response.results.v[0];
        CU_ASSERT_EQUAL(q[i].done, 1);
        CU_ASSERT(r->error_code == K_NONE && r->total_bytes == 1 << 20 && !r->is_cordoned);
        CU_ASSERT(r->usable_bytes == (1 << 20) - (int64_t)f.fs.used_bytes);
        arena_close(&q[i].arena);
    }
    query_init(&q[0]);
    memfs_fault_arm(
        &f.fs, (struct memfs_fault){.nth = 1, .err = ERR_IO, .kinds = MEMFS_KIND(MEMFS_SPACE)});
    CU_ASSERT(run(&f, &q[0])->total_bytes == -1 && q[0].response.results.v[0].usable_bytes == -1);
    CU_ASSERT(memfs_fault_hit(&f.fs) && f.failed == 0);
    arena_close(&q[0].arena);
    fix_end(&f);
}

static void test_log_dirs_failed(void)
{
    struct fix f = {0};
    struct query q;
    fix_begin(&f);
    fix_topic(&f, "t", 1);
    log_dir_fail(&f.rs->dirs[0], ERR_IO, "test");
    query_init(&q);
    const struct describe_log_dirs_response_describe_log_dirs_result *r = run(&f, &q);
    CU_ASSERT(r->error_code == K_KAFKA_STORAGE_ERROR && r->topics.n == 0);
    CU_ASSERT(r->total_bytes == -1 && r->usable_bytes == -1);
    arena_close(&q.arena);
    fix_end(&f);
}

static void test_log_dirs_cordoned(void)
{
    struct fix f = {0};
    struct query q;
    char message[256];
    fix_prepare(&f);
    fix_set(&f, "log.dirs", "/data");
    fix_set(&f, "cordoned.log.dirs", "/data");
    CU_ASSERT_EQUAL(config_finish(f.config, message, sizeof message), ERR_NONE);
    fix_begin(&f);
    query_init(&q);
    CU_ASSERT_TRUE(run(&f, &q)->is_cordoned);
    arena_close(&q.arena);
    fix_end(&f);
}

static void test_log_dirs_without_memory(void)
{
    struct fix f = {0};
    fix_begin(&f);
    fix_topic(&f, "t", 2);
    for (int named = 0; named < 2; named++) {
        bool hit = true;
        for (long n = 1; hit; n++) {
            struct query q;
            query_init(&q);
            if (named)
                ask(&q, "t", 1);
            fault_alloc_arm(n, true);
            enum err e = replicas_describe_log_dirs(f.rs, &q.op);
            hit = fault_alloc_hit();
            CU_ASSERT_EQUAL(e, hit ? ERR_NOMEM : ERR_NONE);
            fix_turn(&f);
            CU_ASSERT_EQUAL(q.done, hit ? 0 : 1);
            arena_close(&q.arena);
        }
    }
    fix_end(&f);
}

TEST_MAIN(TEST(test_log_dirs_partitions), TEST(test_log_dirs_room), TEST(test_log_dirs_failed),
          TEST(test_log_dirs_cordoned), TEST(test_log_dirs_without_memory))
