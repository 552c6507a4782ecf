/* Every allocation, and every operation on files, of a workload fails once, and from there on: what
 * was answered without an error is there, all operations end, nothing leaks (ASan), no invariant
 * breaks. */
#include "fixture.h"

enum { SENDS = 4 };

struct run {
    struct fix f;
    struct uuid t;
    struct fix_produce sends[SENDS];
    struct image_delta created, deleted;
    int64_t acked_end[2];  /* behind the last acknowledged offset */
    int64_t deleted_to[2]; /* as it was told */
};

/* What is not the workload: batches and requests are made without faults. */
static void prepare(struct run *r)
{
    static int32_t one[] = {1};
    struct fix *f = &r->f;
    memset(r, 0, sizeof *r);
    fix_begin(f);
    r->t = (struct uuid){{8}};
    const struct topic_record topic = {STR_LIT("t"), r->t};
    image_delta_init(&r->created);
    image_delta_init(&r->deleted);
    fix_record(f, &msg_topic_record, 0, &topic, &r->created);
    for (int32_t i = 0; i < 2; i++)
        fix_partition(f, r->t, i, one, 1, &r->created);
    for (int i = 0; i < SENDS; i++) {
        struct fix_produce *p = &r->sends[i];
        struct fix_batch b = fix_plain;
        size_t n;
        b.value_n = i == 2 ? 40000 : 10;
        b.producer_id = i == 1 ? 5 : -1;
        b.producer_epoch = b.base_sequence = i == 1 ? 0 : -1;
        p->bytes = fix_batch_bytes(f, &b, &n);
        p->part = (struct produce_part){
            .topic = STR_LIT("t"), .topic_id = r->t, .index = i % 2, .records = {p->bytes, (int)n}};
        batch_prepare(p->part.records, &p->part.facts);
        arena_init(&p->arena, NULL);
        p->op = (struct produce_op){.arena = &p->arena,
                                    .acks = i == 3 ? -1 : 1,
                                    .timeout_ms = 1000,
                                    .parts = &p->part,
                                    .parts_n = 1,
                                    .done = fix_produced};
    }
}

static void produce(struct run *r, int i)
{
    struct fix_produce *p = &r->sends[i];
    replicas_produce(r->f.rs, &p->op, r->f.now);
    fix_turn(&r->f);
    if (!p->done) /* no memory for its deadline, or none of a sync: its client goes */
        replicas_produce_cancel(&p->op);
    fix_turn(&r->f);
    CU_ASSERT_EQUAL(p->done, 1);
    if (p->part.error == K_NONE && p->part.base_offset + 1 > r->acked_end[i % 2])
        r->acked_end[i % 2] = p->part.base_offset + 1;
}

/* Two fetches, the second goes on with the first one's session. */
static void fetch(struct run *r)
{
    int32_t session = 0;
    for (int32_t epoch = 0; epoch < 2; epoch++) {
        struct fix_fetch q;
        fix_fetch_init(&q);
        q.request.session_id = session;
        q.request.session_epoch = session == 0 ? 0 : 1;
        q.request.isolation_level = 1;
        for (int32_t i = 0; i < 2; i++)
            fix_ask(&q, r->t, i, epoch);
        if (replicas_fetch(r->f.rs, &q.op, r->f.now) == ERR_NONE) {
            fix_turn(&r->f);
            fix_wait(&r->f, 500);
            CU_ASSERT_EQUAL(q.done, 1);
            session = q.response.session_id;
        }
        fix_fetch_close(&q);
    }
}

static int searched;

static void search_done(struct list_offsets_op *op)
{
    (void)op;
    searched++;
}

static void search(struct run *r)
{
    struct list_offsets_request_list_offsets_partition parts[2];
    struct list_offsets_request_list_offsets_topic topic;
    struct list_offsets_request request;
    struct list_offsets_response response;
    struct arena a;
    struct list_offsets_op op = {.arena = &a,
                                 .request = &request,
                                 .version = 11,
                                 .response = &response,
                                 .done = search_done};
    arena_init(&a, NULL);
    wire_default(&wire_list_offsets_request, &request);
    wire_default(&wire_list_offsets_response, &response);
    wire_default(&wire_list_offsets_request_list_offsets_topic, &topic);
    for (int32_t i = 0; i < 2; i++) {
        wire_default(&wire_list_offsets_request_list_offsets_partition, &parts[i]);
        parts[i].partition_index = i;
        parts[i].timestamp = i == 0 ? 5 : -3;
    }
    request.replica_id = -1;
    topic.name = STR_LIT("t");
    topic.partitions.v = parts;
    topic.partitions.n = 2;
    request.topics.v = &topic;
    request.topics.n = 1;
    searched = 0;
    if (replicas_list_offsets(r->f.rs, &op, r->f.now) == ERR_NONE) {
        fix_turn(&r->f);
        CU_ASSERT_EQUAL(searched, 1);
    }
    arena_close(&a);
}

static void records_deleted(struct delete_records_op *op)
{
    (*(int *)op->allowed_ctx)++;
}

static bool any(void *ctx, struct str topic)
{
    (void)ctx;
    (void)topic;
    return true;
}

/* All of both partitions that is acknowledged; what is told of one holds. */
static void delete_records(struct run *r)
{
    struct delete_records_request_delete_records_partition parts[2] = {{0, -1}, {1, -1}};
    struct delete_records_request_delete_records_topic topic = {.name = STR_LIT("t")};
    struct delete_records_request request = {.timeout_ms = 1000};
    struct delete_records_response response;
    struct arena a;
    int done = 0;
    struct delete_records_op op = {.arena = &a,
                                   .request = &request,
                                   .allowed = any,
                                   .allowed_ctx = &done,
                                   .response = &response,
                                   .done = records_deleted};
    arena_init(&a, NULL);
    wire_default(&wire_delete_records_response, &response);
    topic.partitions.v = parts;
    topic.partitions.n = 2;
    request.topics.v = &topic;
    request.topics.n = 1;
    if (replicas_delete_records(r->f.rs, &op, r->f.now) == ERR_NONE) {
        fix_turn(&r->f);
        fix_wait(&r->f, 1000);
        CU_ASSERT_EQUAL(done, 1);
        for (int32_t i = 0; i < response.topics.n; i++)
            for (int32_t k = 0; k < response.topics.v[i].partitions.n; k++)
                if (response.topics.v[i].partitions.v[k].error_code == K_NONE)
                    r->deleted_to[k] = response.topics.v[i].partitions.v[k].low_watermark;
    }
    arena_close(&a);
}

static void workload(struct run *r)
{
    struct fix *f = &r->f;
    replicas_apply(f->rs, &r->created, f->now);
    fix_turn(f);
    for (int i = 0; i < SENDS; i++)
        produce(r, i);
    fetch(r);
    search(r);
    delete_records(r);
    fix_wait(f, 60000);
}

/* With the fault over. */
static void check(struct run *r)
{
    for (int32_t i = 0; i < 2; i++) {
        const struct partition *p = fix_find(&r->f, r->t, i);
        if (p == NULL || p->log == NULL) {
            CU_ASSERT(r->f.failed && r->acked_end[i] == 0);
            continue;
        }
        CU_ASSERT(log_end_offset(p->log) >= r->acked_end[i]);
        CU_ASSERT(p->high_watermark >= r->acked_end[i]);
        CU_ASSERT(log_start_offset(p->log) >= r->deleted_to[i]);
        CU_ASSERT(p->saved_start >= r->deleted_to[i]);
    }
}

static void finish(struct run *r)
{
    struct fix *f = &r->f;
    for (int i = 0; i < SENDS; i++) {
        arena_close(&r->sends[i].arena);
        free(r->sends[i].bytes);
    }
    const struct remove_topic_record gone = {r->t};
    fix_record(f, &msg_remove_topic_record, 0, &gone, &r->deleted);
    image_delta_close(&r->created);
    fix_publish(f, &r->deleted);
    fix_turn(f);
    fix_end(f);
}

static void test_replicas_without_memory(void)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        bool hit = true;
        long n = 1;
        for (; hit; n++) {
            struct run r;
            prepare(&r);
            fault_alloc_arm(n, persistent);
            workload(&r);
            hit = fault_alloc_hit();
            check(&r);
            finish(&r);
        }
        printf("\n%ld allocations%s\n", n - 1, persistent ? ", persistent" : "");
        CU_ASSERT(n > 50);
    }
}

static void test_replicas_with_failing_files(void)
{
    const enum err errs[] = {ERR_IO, ERR_NOSPC};
    for (int persistent = 0; persistent < 2; persistent++) {
        for (size_t e = 0; e < ARRAY_N(errs); e++) {
            bool hit = true;
            long n = 1;
            for (; hit; n++) {
                struct run r;
                prepare(&r);
                memfs_fault_arm(&r.f.fs, (struct memfs_fault){
                                             .nth = n, .persistent = persistent, .err = errs[e]});
                workload(&r);
                hit = memfs_fault_hit(&r.f.fs);
                check(&r);
                finish(&r);
            }
            printf("\n%ld file operations%s\n", n - 1, persistent ? ", persistent" : "");
            CU_ASSERT(n > 30);
        }
    }
}

TEST_MAIN(TEST(test_replicas_without_memory), TEST(test_replicas_with_failing_files))
