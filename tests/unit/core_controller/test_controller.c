/* Operations and their commits, deletion, producer ids, loss of leadership and of memory. */
#include "support/fault.h"
#include "topics.h"

static struct delete_topics_request_delete_topic_state named(const char *name)
{
    return (struct delete_topics_request_delete_topic_state){.name = str_of(name)};
}

static struct delete_topics_request_delete_topic_state by_id(struct uuid id)
{
    return (struct delete_topics_request_delete_topic_state){.name = STR_NULL, .topic_id = id};
}

static int16_t delete_all(struct fixture *f, struct delete_topics_request_delete_topic_state *v,
                          int32_t n, struct delete_topics_response *resp)
{
    struct delete_topics_request req;
    struct test_op op = test_op_new();
    wire_default(&wire_delete_topics_request, &req);
    wire_default(&wire_delete_topics_response, resp);
    req.topics.v = v;
    req.topics.n = n;
    controller_delete_topics(f->controller, &op.op, &req, 6, &f->arena, resp, f->now);
    return test_op_wait(f, &op);
}

static void test_delete_topics(void)
{
    struct fixture f;
    struct delete_topics_response resp;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "a"), K_NONE);
    CU_ASSERT_EQUAL(create_named(&f, "b"), K_NONE);
    CU_ASSERT_EQUAL(create_named(&f, "c.d"), K_NONE);
    CU_ASSERT_EQUAL(create_named(&f, "e"), K_NONE);
    const struct uuid a = image_topic_named(&f.image, STR_LIT("a"))->id;
    const struct uuid b = image_topic_named(&f.image, STR_LIT("b"))->id;
    const struct uuid unknown = {{5}};
    struct delete_topics_request_delete_topic_state v[] = {
        named("nope"),     by_id(unknown), by_id((struct uuid){{0}}),
        {STR_LIT("e"), a}, named("nope"),  by_id(a),
        named("b"),        by_id(b),       named("c.d"),
        by_id(unknown),    named(""),
    };
    CU_ASSERT_EQUAL(delete_all(&f, v, ARRAY_N(v), &resp), K_NONE);
    static const int16_t expected[] = {
        K_INVALID_REQUEST /* nope twice */,
        K_INVALID_REQUEST /* the id twice */,
        K_INVALID_REQUEST /* neither */,
        K_INVALID_REQUEST /* both */,
        K_NONE /* a */,
        K_INVALID_REQUEST /* b by name and id */,
        K_NONE /* c.d */,
        K_UNKNOWN_TOPIC_OR_PARTITION,
    };
    CU_ASSERT_EQUAL_FATAL(resp.responses.n, ARRAY_N(expected));
    for (size_t i = 0; i < ARRAY_N(expected); i++)
        CU_ASSERT_EQUAL(resp.responses.v[i].error_code, expected[i]);
    CU_ASSERT_TRUE(str_eq(resp.responses.v[4].name, STR_LIT("a"))); /* asked for by id */
    CU_ASSERT_TRUE(uuid_eq(resp.responses.v[4].topic_id, a));
    CU_ASSERT_FALSE(topic_exists(&f, "a"));
    CU_ASSERT_FALSE(topic_exists(&f, "c.d"));
    CU_ASSERT_TRUE(topic_exists(&f, "b"));
    CU_ASSERT_TRUE(topic_exists(&f, "e"));
    CU_ASSERT_EQUAL(create_named(&f, "c_d"), K_NONE); /* collides no more */
    struct delete_topics_request_delete_topic_state again = by_id(a);
    CU_ASSERT_EQUAL(delete_all(&f, &again, 1, &resp), K_NONE);
    CU_ASSERT_EQUAL(resp.responses.v[0].error_code, K_UNKNOWN_TOPIC_ID);
    fixture_close(&f);
}

static void test_delete_topics_by_name_only(void)
{
    struct fixture f;
    struct delete_topics_request req;
    struct delete_topics_response resp;
    struct test_op op = test_op_new();
    struct str names[] = {STR_LIT("a"), STR_LIT("nope")};
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "a"), K_NONE);
    wire_default(&wire_delete_topics_request, &req);
    wire_default(&wire_delete_topics_response, &resp);
    req.topic_names.v = names;
    req.topic_names.n = 2;
    controller_delete_topics(f.controller, &op.op, &req, 3, &f.arena, &resp, f.now);
    CU_ASSERT_EQUAL(test_op_wait(&f, &op), K_NONE);
    CU_ASSERT_EQUAL(resp.responses.v[0].error_code, K_NONE);
    CU_ASSERT_EQUAL(resp.responses.v[1].error_code, K_UNKNOWN_TOPIC_OR_PARTITION);
    fixture_close(&f);
}

/* AD-05: no "exists" after a delete, a new id each time, and the epochs begin anew with it. */
static void test_delete_and_recreate(void)
{
    struct fixture f;
    struct delete_topics_response resp;
    struct uuid last = {{0}};
    topics_open(&f);
    for (int i = 0; i < 50; i++) {
        CU_ASSERT_EQUAL(create_named(&f, "again"), K_NONE);
        const struct uuid id = image_topic_named(&f.image, STR_LIT("again"))->id;
        CU_ASSERT_FALSE(uuid_eq(id, last));
        CU_ASSERT_EQUAL(fixture_partition(&f, "again", 0)->leader_epoch, 0);
        last = id;
        struct delete_topics_request_delete_topic_state v = named("again");
        CU_ASSERT_EQUAL(delete_all(&f, &v, 1, &resp), K_NONE);
    }
    fixture_close(&f);
}

/* ------------------------------------------------------------------ commits */

static void begin_create(struct fixture *f, struct creating *c, struct test_op *op,
                         const char *name)
{
    creating_init(c);
    *op = test_op_new();
    creating_add(c, topic_of(name, 1, 1));
    controller_create_topics(f->controller, &op->op, &c->req, 7, &f->arena, &c->resp, f->now);
    CU_ASSERT_EQUAL(op->done, 0);
}

static void test_controller_answers_when_committed(void)
{
    struct fixture f;
    struct creating a, again, b;
    struct test_op op_a, op_again, op_b;
    topics_open(&f);
    begin_create(&f, &a, &op_a, "a");
    begin_create(&f, &again, &op_again, "a"); /* judged by what is not committed yet */
    begin_create(&f, &b, &op_b, "b");
    while (controller_settle(f.controller, f.now))
        ;
    CU_ASSERT_EQUAL(op_a.done + op_again.done + op_b.done, 0);
    CU_ASSERT_EQUAL(fixture_commit_n(&f, 1), ERR_NONE); /* a's TopicRecord alone */
    (void)controller_settle(f.controller, f.now);
    CU_ASSERT_EQUAL(op_a.done, 0);
    CU_ASSERT_EQUAL(fixture_commit_n(&f, 1), ERR_NONE);
    CU_ASSERT_EQUAL(op_a.done, 0); /* not inside that call */
    CU_ASSERT_TRUE(controller_settle(f.controller, f.now));
    CU_ASSERT_EQUAL(op_a.done, 1);
    CU_ASSERT_EQUAL(op_again.done, 1); /* what it has read is committed */
    CU_ASSERT_EQUAL(again.resp.topics.v[0].error_code, K_TOPIC_ALREADY_EXISTS);
    CU_ASSERT_EQUAL(op_b.done, 0);
    fixture_commit(&f);
    CU_ASSERT_EQUAL(op_b.done, 1);
    CU_ASSERT_FALSE(controller_settle(f.controller, f.now));
    fixture_close(&f);
}

static void test_controller_resigns(void)
{
    struct fixture f;
    struct creating c;
    struct test_op op, late;
    topics_open(&f);
    begin_create(&f, &c, &op, "a");
    controller_resign(f.controller);
    CU_ASSERT_FALSE(controller_is_active(f.controller));
    CU_ASSERT_EQUAL(op.done, 0);
    begin_create(&f, &c, &late, "b");
    (void)controller_settle(f.controller, f.now);
    CU_ASSERT_EQUAL(op.done, 1);
    CU_ASSERT_EQUAL(op.error, K_NOT_CONTROLLER);
    CU_ASSERT_EQUAL(late.done, 1);
    CU_ASSERT_EQUAL(late.error, K_NOT_CONTROLLER);
    record_list_cut(&f.raft.records, f.raft.committed_n); /* it was lost */
    fixture_claim(&f);
    CU_ASSERT_EQUAL(create_named(&f, "a"), K_NONE);
    fixture_close(&f);
}

/* K16 (KAFKA-20839): the lead is lost before the records of the first claim are committed, and they
 * with it. The next claim finds as little as that one, and writes them. */
static void test_controller_bootstraps_again(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_start(&f);
    controller_claim(f.controller, 1, f.now);
    while (controller_settle(f.controller, f.now))
        ;
    const size_t n = f.raft.records.n;
    CU_ASSERT(n > 0 && image_metadata_version(&f.image) == 0);
    controller_resign(f.controller);
    record_list_cut(&f.raft.records, 0);
    fixture_claim(&f);
    CU_ASSERT_EQUAL(f.raft.records.n, n);
    CU_ASSERT(image_metadata_version(&f.image) > 0);
    fixture_close(&f);
}

static void test_controller_append_refused(void)
{
    static const struct {
        enum err e;
        int16_t error;
    } cases[] = {{ERR_BUSY, K_NOT_CONTROLLER},
                 {ERR_NOSPC, K_KAFKA_STORAGE_ERROR},
                 {ERR_OFFLINE, K_KAFKA_STORAGE_ERROR},
                 {ERR_NOMEM, K_UNKNOWN_SERVER_ERROR}};
    struct fixture f;
    topics_open(&f);
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct creating c;
        creating_init(&c);
        creating_add(&c, topic_of("a", 1, 1));
        f.raft.fail = cases[i].e;
        CU_ASSERT_EQUAL(creating_run(&f, &c), cases[i].error);
        f.raft.fail = ERR_NONE;
    }
    CU_ASSERT_EQUAL(create_named(&f, "a"), K_NONE); /* nothing of it stayed */
    fixture_close(&f);
}

/* A broker that cannot be fenced now is fenced later. */
static void test_controller_fences_later(void)
{
    struct fixture f;
    topics_open(&f);
    f.raft.fail = ERR_NOSPC;
    fixture_pass(&f, 9000);
    CU_ASSERT_FALSE(image_broker(&f.image, 1)->fenced);
    f.raft.fail = ERR_NONE;
    fixture_commit(&f);
    CU_ASSERT_TRUE(image_broker(&f.image, 1)->fenced);
    fixture_close(&f);
}

static void test_controller_splits_large_changes(void)
{
    struct fixture f;
    struct creating c;
    int64_t epoch;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("a", 9000, 1)), K_NONE);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("b", 9000, 1)), K_NONE);
    const int before = f.raft.appends;
    fixture_pass(&f, 9000);
    CU_ASSERT_EQUAL(f.raft.appends - before, 2); /* 18,000 and one, 10,000 at most */
    CU_ASSERT_TRUE(image_broker(&f.image, 1)->fenced);
    struct broker_registration_request req = fixture_registration(&f, 1, 5);
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_NONE);
    CU_ASSERT_FALSE(fixture_beat(&f, 1, epoch, false, false).is_fenced);
    CU_ASSERT_EQUAL(fixture_partition(&f, "b", 8999)->leader, 1);
    fixture_close(&f);
}

static void test_controller_ends_a_transaction(void)
{
    const struct begin_transaction_record begin = {STR_LIT("Bootstrap records")};
    const struct feature_level_record level = {STR_LIT("metadata.version"), 33};
    struct fixture f;
    fixture_init(&f);
    fixture_start(&f);
    CU_ASSERT_EQUAL_FATAL(
        record_list_add(&f.raft.records, &msg_begin_transaction_record, 0, &begin), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(record_list_add(&f.raft.records, &msg_feature_level_record, 0, &level),
                          ERR_NONE);
    fixture_commit(&f); /* the controller that began it died */
    CU_ASSERT_TRUE(f.image.in_transaction);
    fixture_claim(&f);
    CU_ASSERT_FALSE(f.image.in_transaction);
    int16_t type, version;
    CU_ASSERT_EQUAL(record_peek(record_list_get(&f.raft.records, 2), &type, &version), ERR_NONE);
    CU_ASSERT_EQUAL(type, RECORD_ABORT_TRANSACTION);
    CU_ASSERT_EQUAL(f.raft.records.n, 3 + 9);
    CU_ASSERT_EQUAL(image_feature_level(&f.image, "transaction.version"), 2);
    fixture_close(&f);
}

/* The levels that formatting wrote rule over those of a fresh 4.4. */
static void test_controller_takes_what_was_formatted(void)
{
    const struct batch_builder_args args = {
        .producer_id = -1, .producer_epoch = -1, .base_sequence = -1};
    const struct feature_level_record levels[] = {{STR_LIT("transaction.version"), 1},
                                                  {STR_LIT("metadata.version"), 25}};
    const struct user_scram_credential_record scram = {.name = STR_LIT("u"), .mechanism = 1};
    struct batch_builder *bb;
    struct record_list rl;
    struct fixture f;
    fixture_init(&f);
    record_list_init(&rl);
    CU_ASSERT_EQUAL_FATAL(batch_builder_new(&args, &bb), ERR_NONE);
    for (size_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(record_list_add(&rl, &msg_feature_level_record, 0, &levels[i]),
                              ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(record_list_add(&rl, &msg_user_scram_credential_record, 0, &scram),
                          ERR_NONE);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL_FATAL(
            batch_builder_add(bb, 1, BYTES_NULL, record_list_get(&rl, i), NULL, 0), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(batch_builder_finish(bb, &f.raft.bootstrap), ERR_NONE);
    fixture_start(&f);
    fixture_claim(&f);
    CU_ASSERT_EQUAL(f.raft.records.n, 5); /* no ELR, so no min.insync.replicas */
    CU_ASSERT_EQUAL(image_metadata_version(&f.image), 25);
    CU_ASSERT_EQUAL(image_feature_level(&f.image, "transaction.version"), 1);
    CU_ASSERT_EQUAL(f.image.kept.n, 1);
    batch_builder_free(bb);
    record_list_close(&rl);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ producer ids */

static int16_t allocate(struct fixture *f, int32_t id, int64_t epoch, int64_t *start)
{
    const struct allocate_producer_ids_request req = {id, epoch};
    struct allocate_producer_ids_response resp;
    struct test_op op = test_op_new();
    wire_default(&wire_allocate_producer_ids_response, &resp);
    controller_allocate_producer_ids(f->controller, &op.op, &req, &resp, f->now);
    const int16_t error = test_op_wait(f, &op);
    *start = resp.producer_id_start;
    CU_ASSERT_EQUAL(resp.producer_id_len, error == K_NONE ? 1000 : 0);
    return error;
}

static void test_producer_ids(void)
{
    struct fixture f;
    int64_t start;
    topics_open(&f);
    const int64_t epoch = image_broker(&f.image, 1)->epoch;
    const struct allocate_producer_ids_request req = {1, epoch};
    struct allocate_producer_ids_response resp;
    struct test_op op = test_op_new();
    controller_allocate_producer_ids(f.controller, &op.op, &req, &resp, f.now);
    (void)controller_settle(f.controller, f.now);
    CU_ASSERT_EQUAL(op.done, 0); /* not before its only record is committed */
    CU_ASSERT_EQUAL(test_op_wait(&f, &op), K_NONE);
    CU_ASSERT_EQUAL(resp.producer_id_start, 0);
    for (int64_t i = 1; i < 3; i++) {
        CU_ASSERT_EQUAL(allocate(&f, 1, epoch, &start), K_NONE);
        CU_ASSERT_EQUAL(start, i * 1000);
    }
    CU_ASSERT_EQUAL(allocate(&f, 1, epoch - 1, &start), K_STALE_BROKER_EPOCH);
    CU_ASSERT_EQUAL(allocate(&f, 2, epoch, &start), K_STALE_BROKER_EPOCH);
    controller_resign(f.controller);
    fixture_claim(&f);
    CU_ASSERT_EQUAL(allocate(&f, 1, epoch, &start), K_NONE);
    CU_ASSERT_EQUAL(start, 3000);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ out of memory */

enum step { CLAIM, REGISTER, UNFENCE, CREATE, GROW, RESTART, PRODUCER_IDS, FENCE, DELETE, STEPS };

struct attempt {
    struct test_op op;
    struct creating create;
    struct growing grow;
    struct delete_topics_request delete;
    struct delete_topics_request_delete_topic_state topic;
    struct delete_topics_response deleted;
    struct broker_registration_request registration;
    struct broker_registration_response registered;
    struct broker_heartbeat_request heartbeat;
    struct broker_heartbeat_response beaten;
    struct allocate_producer_ids_request ids;
    struct allocate_producer_ids_response allocated;
};

/* Request and response of a step; may allocate. */
static void attempt_init(struct fixture *f, struct attempt *a, enum step step)
{
    const struct image_broker *b = image_broker(&f->image, 1);
    *a = (struct attempt){.op = test_op_new(), .topic = named("a.b")};
    creating_init(&a->create);
    creating_add(&a->create, topic_of("a.b", 2, 1));
    const struct image_topic *t = image_topic_named(&f->image, STR_LIT("a.b"));
    growing_init(&a->grow);
    growing_add(&a->grow, "a.b", t == NULL ? 1 : t->partitions_n + 1);
    wire_default(&wire_delete_topics_request, &a->delete);
    wire_default(&wire_delete_topics_response, &a->deleted);
    a->delete.topics.v = &a->topic;
    a->delete.topics.n = 1;
    a->registration = fixture_registration(f, 1, step == RESTART ? 2 : 1);
    wire_default(&wire_broker_registration_response, &a->registered);
    wire_default(&wire_broker_heartbeat_request, &a->heartbeat);
    wire_default(&wire_broker_heartbeat_response, &a->beaten);
    a->heartbeat.broker_id = a->ids.broker_id = 1;
    a->heartbeat.broker_epoch = a->ids.broker_epoch = b == NULL ? -1 : b->epoch;
    a->heartbeat.current_metadata_offset = f->image.next_offset;
    a->heartbeat.want_fence = step == FENCE;
}

static void attempt_begin(struct fixture *f, struct attempt *a, enum step step)
{
    struct controller *c = f->controller;
    switch (step) {
    case CLAIM:
        controller_claim(c, 1, f->now);
        break;
    case REGISTER:
    case RESTART:
        controller_register_broker(c, &a->op.op, &a->registration, &a->registered, f->now);
        break;
    case UNFENCE:
    case FENCE:
        controller_heartbeat(c, &a->op.op, &a->heartbeat, &a->beaten, f->now);
        break;
    case CREATE:
        controller_create_topics(c, &a->op.op, &a->create.req, 7, &f->arena, &a->create.resp,
                                 f->now);
        break;
    case GROW:
        growing_begin(f, &a->grow, &a->op);
        break;
    case PRODUCER_IDS:
        controller_allocate_producer_ids(c, &a->op.op, &a->ids, &a->allocated, f->now);
        break;
    case DELETE:
        controller_delete_topics(c, &a->op.op, &a->delete, 6, &f->arena, &a->deleted, f->now);
        break;
    case STEPS:
        break;
    }
}

/* A restart is accepted once the first incarnation is not heard any more. */
static void before(struct fixture *f, enum step step)
{
    if (step == RESTART) {
        controller_resign(f->controller);
        fixture_claim(f);
    }
}

static void run_step(struct fixture *f, enum step step)
{
    struct attempt a;
    attempt_init(f, &a, step);
    attempt_begin(f, &a, step);
    fixture_commit(f);
    CU_ASSERT_EQUAL(a.op.done, step == CLAIM ? 0 : 1);
    CU_ASSERT_EQUAL(a.op.error, K_NONE);
    CU_ASSERT_TRUE(controller_is_active(f->controller));
}

/* The nth allocation of a step fails: the operation fails or not, but the controller goes on, and
 * the step goes through when tried again. False when there is no nth. */
static bool fail_nth(enum step step, long nth, bool persistent)
{
    struct fixture f;
    struct attempt a;
    fixture_init(&f);
    fixture_start(&f);
    for (int i = 0; i < (int)step; i++) {
        before(&f, (enum step)i);
        run_step(&f, (enum step)i);
    }
    before(&f, step);
    attempt_init(&f, &a, step);
    fault_alloc_arm(nth, persistent);
    attempt_begin(&f, &a, step);
    const bool hit = fault_alloc_hit();
    fixture_commit(&f);
    CU_ASSERT_EQUAL(a.op.done, step == CLAIM ? 0 : 1);
    CU_ASSERT_TRUE(hit || a.op.error == K_NONE);
    run_step(&f, step);
    const struct image_broker *b = image_broker(&f.image, 1);
    CU_ASSERT_EQUAL(b != NULL && !b->fenced, step != CLAIM && step != REGISTER && step != RESTART &&
                                                 step != FENCE && step != PRODUCER_IDS &&
                                                 step != DELETE);
    CU_ASSERT_EQUAL(topic_exists(&f, "a.b"), step >= CREATE && step != DELETE);
    fixture_close(&f);
    return hit;
}

static void test_controller_out_of_memory(void)
{
    long points = 0;
    for (int step = CLAIM; step < STEPS; step++)
        for (int persistent = 0; persistent < 2; persistent++)
            for (long nth = 1; fail_nth((enum step)step, nth, persistent == 1); nth++)
                points++;
    printf("  %ld points\n", points);
}

TEST_MAIN(TEST(test_delete_topics), TEST(test_delete_topics_by_name_only),
          TEST(test_delete_and_recreate), TEST(test_controller_answers_when_committed),
          TEST(test_controller_resigns), TEST(test_controller_bootstraps_again),
          TEST(test_controller_append_refused), TEST(test_controller_fences_later),
          TEST(test_controller_splits_large_changes), TEST(test_controller_ends_a_transaction),
          TEST(test_controller_takes_what_was_formatted), TEST(test_producer_ids),
          TEST(test_controller_out_of_memory))
