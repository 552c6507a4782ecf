/* The controller is told in which log directory replicas are (KIP-858), and plays along as told. */
#include "core/broker/channel.h"
#include "restart.h"
#include "wire/api_key.h"

/* The library's own channel is never linked here. */
struct channel {
    struct channel_call *call; /* in flight */
    int calls;
};

static struct channel channel;
static const struct uuid own = {{4, 4, 4}}, other = {{5, 5, 5}};

void channel_call(struct channel *ch, struct channel_call *call, struct now now)
{
    (void)now;
    CU_ASSERT_PTR_NULL(ch->call); /* one at a time */
    CU_ASSERT_EQUAL(call->api_key, API_ASSIGN_REPLICAS_TO_DIRS);
    ch->call = call;
    ch->calls++;
}

void channel_cancel(struct channel_call *call)
{
    channel.call = NULL;
    call->done(call, ERR_CANCELLED, NULL);
}

/* ------------------------------------------------------------------ the controller */

static const struct assign_replicas_to_dirs_request *request(void)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(channel.call);
    return channel.call->request;
}

static size_t asked_n(void)
{
    const struct assign_replicas_to_dirs_request *req = request();
    size_t n = 0;
    CU_ASSERT_EQUAL_FATAL(req->directories.n, 1);
    CU_ASSERT(uuid_eq(req->directories.v[0].id, own));
    for (int32_t i = 0; i < req->directories.v[0].topics.n; i++)
        n += (size_t)req->directories.v[0].topics.v[i].partitions.n;
    return n;
}

static void complete(struct fix *f, enum err e, const void *response)
{
    struct channel_call *call = channel.call;
    channel.call = NULL;
    call->done(call, e, response);
    fix_turn(f);
}

/* Each with an error; or said of the first `said_n` topics only. */
static void answer(struct fix *f, int16_t error, int32_t said_n)
{
    const struct assign_replicas_to_dirs_request_directory_data *in = &request()->directories.v[0];
    struct assign_replicas_to_dirs_response resp = {0};
    struct assign_replicas_to_dirs_response_directory_data dir = {.id = in->id};
    struct arena a;
    arena_init(&a, NULL);
    resp.directories.v = &dir;
    resp.directories.n = 1;
    dir.topics.v = arena_array(&a, (size_t)in->topics.n, sizeof *dir.topics.v);
    for (int32_t i = 0; i < in->topics.n && i < said_n; i++) {
        struct assign_replicas_to_dirs_response_topic_data *t = &dir.topics.v[dir.topics.n++];
        const int32_t n = in->topics.v[i].partitions.n;
        t->topic_id = in->topics.v[i].topic_id;
        t->partitions.n = n;
        t->partitions.v = arena_array(&a, (size_t)n, sizeof *t->partitions.v);
        for (int32_t k = 0; k < n; k++) {
            t->partitions.v[k].partition_index = in->topics.v[i].partitions.v[k].partition_index;
            t->partitions.v[k].error_code = error;
        }
    }
    complete(f, ERR_NONE, &resp);
    arena_close(&a);
}

static void answer_all(struct fix *f)
{
    answer(f, K_NONE, INT32_MAX);
}

static void answer_top(struct fix *f, int16_t error)
{
    const struct assign_replicas_to_dirs_response resp = {.error_code = error};
    complete(f, ERR_NONE, &resp);
}

static void metadata_version(struct fix *f, int16_t level)
{
    const struct feature_level_record r = {STR_LIT("metadata.version"), level};
    struct image_delta d;
    image_delta_init(&d);
    fix_record(f, &msg_feature_level_record, 0, &r, &d);
    fix_publish(f, &d);
}

/* The metadata say that our replica is in dir. */
static void record_directory(struct fix *f, struct uuid topic, int32_t index, struct uuid dir)
{
    struct partition_change_record r;
    struct image_delta d;
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = topic;
    r.partition_id = index;
    r.directories.v = &dir;
    r.directories.n = 1;
    image_delta_init(&d);
    fix_record(f, &msg_partition_change_record, 1, &r, &d);
    fix_publish(f, &d);
    fix_turn(f);
}

static void begin_at(struct fix *f, int16_t version)
{
    channel = (struct channel){0};
    fix_prepare(f);
    f->directories = &channel;
    f->dirs[0].id = own;
    metadata_version(f, version);
    fix_begin(f);
}

static void begin(struct fix *f)
{
    begin_at(f, 33);
}

static struct uuid topic(struct fix *f, const char *name, int32_t partitions_n)
{
    const struct uuid id = fix_topic(f, name, partitions_n);
    fix_turn(f);
    return id;
}

/* ------------------------------------------------------------------ tests */

static void test_sender_tells_where_replicas_are(void)
{
    struct fix f;
    begin(&f);
    struct image_delta d;
    const struct uuid first = fix_topic(&f, "a", 2), second = fix_topic(&f, "b", 1);
    image_delta_init(&d);
    fix_publish(&f, &d);
    fix_turn(&f);
    const struct assign_replicas_to_dirs_request *req = request();
    CU_ASSERT_EQUAL(channel.call->deadline_us, INT64_MAX);
    CU_ASSERT_EQUAL(req->broker_id, 1);
    CU_ASSERT_EQUAL(req->broker_epoch, 100);
    CU_ASSERT_EQUAL(asked_n(), 3);
    const struct assign_replicas_to_dirs_request_topic_data *t = req->directories.v[0].topics.v;
    CU_ASSERT_EQUAL_FATAL(req->directories.v[0].topics.n, 2);
    CU_ASSERT(uuid_eq(t[0].topic_id, first));
    CU_ASSERT_EQUAL_FATAL(t[0].partitions.n, 2);
    CU_ASSERT_EQUAL(t[0].partitions.v[0].partition_index, 0);
    CU_ASSERT_EQUAL(t[0].partitions.v[1].partition_index, 1);
    CU_ASSERT(uuid_eq(t[1].topic_id, second));
    answer_all(&f);
    for (int32_t i = 0; i < 2; i++)
        record_directory(&f, first, i, own);
    record_directory(&f, second, 0, own);
    fix_wait(&f, 60000);
    CU_ASSERT_EQUAL(channel.calls, 1);
    fix_end(&f);
}

/* What the metadata say is looked at again when it changes: the controller may lose its lead with
 * what it had answered. */
static void test_sender_again_when_it_is_not_so(void)
{
    struct fix f;
    begin(&f);
    const struct uuid t = topic(&f, "a", 1);
    answer_all(&f);
    record_directory(&f, t, 0, own);
    CU_ASSERT_PTR_NULL(channel.call);
    record_directory(&f, t, 0, other);
    CU_ASSERT_EQUAL(asked_n(), 1);
    answer_all(&f);
    fix_end(&f);
}

/* Told meanwhile: what is queued is looked at when it is sent. */
static void test_sender_not_what_is_in_order(void)
{
    struct fix f;
    begin(&f);
    const struct uuid t = topic(&f, "a", 1);
    answer_top(&f, K_STALE_BROKER_EPOCH);
    CU_ASSERT_PTR_NULL(channel.call);
    record_directory(&f, t, 0, own);
    fix_wait(&f, 60000);
    CU_ASSERT_EQUAL(channel.calls, 1);
    fix_end(&f);
}

static void test_sender_only_when_registered(void)
{
    struct fix f;
    begin(&f);
    f.broker_epoch = -1;
    (void)topic(&f, "a", 1);
    CU_ASSERT_PTR_NULL(channel.call);
    f.broker_epoch = 7;
    fix_turn(&f);
    CU_ASSERT_EQUAL(request()->broker_epoch, 7);
    answer_all(&f);
    fix_end(&f);
}

static void test_sender_not_before_directories_are_known(void)
{
    struct fix f;
    begin_at(&f, METADATA_VERSION_DIRECTORIES - 1);
    (void)topic(&f, "a", 1);
    CU_ASSERT_PTR_NULL(channel.call);
    metadata_version(&f, METADATA_VERSION_DIRECTORIES);
    (void)topic(&f, "b", 1);
    CU_ASSERT_EQUAL(asked_n(), 1);
    answer_all(&f);
    fix_end(&f);
}

/* Again after 100 ms, 200 ms, ...; with the epoch of then. */
static void test_sender_backs_off(void)
{
    struct fix f;
    begin(&f);
    (void)topic(&f, "a", 1);
    for (int64_t pause_ms = 100, i = 0; i < 9; i++) {
        answer_top(&f, K_STALE_BROKER_EPOCH);
        f.broker_epoch++;
        fix_wait(&f, pause_ms - 1);
        CU_ASSERT_PTR_NULL(channel.call);
        fix_wait(&f, 1);
        CU_ASSERT_EQUAL(request()->broker_epoch, f.broker_epoch);
        pause_ms = pause_ms == 6400 ? 6400 : 2 * pause_ms;
    }
    complete(&f, ERR_UNSUPPORTED, NULL);
    CU_ASSERT_PTR_NULL(channel.call);
    fix_wait(&f, 6400);
    answer_all(&f);
    (void)topic(&f, "b", 1);
    answer_top(&f, K_UNKNOWN_SERVER_ERROR);
    fix_wait(&f, 100); /* the first failure again */
    CU_ASSERT_EQUAL(asked_n(), 1);
    answer_all(&f);
    fix_end(&f);
}

/* One that is refused, or of which nothing is said, is tried again; the others are not. */
static void test_sender_tries_single_ones_again(void)
{
    struct fix f;
    begin(&f);
    const struct uuid a = fix_topic(&f, "a", 2);
    (void)topic(&f, "b", 1);
    CU_ASSERT_EQUAL(asked_n(), 3);
    answer(&f, K_UNKNOWN_TOPIC_OR_PARTITION, 1); /* and nothing of the other one */
    fix_wait(&f, 99);
    CU_ASSERT_PTR_NULL(channel.call);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(asked_n(), 3);
    answer(&f, K_NONE, 1);
    fix_wait(&f, 100);
    CU_ASSERT_EQUAL(asked_n(), 1);
    CU_ASSERT(!uuid_eq(request()->directories.v[0].topics.v[0].topic_id, a));
    answer_all(&f);
    fix_wait(&f, 10000);
    CU_ASSERT_PTR_NULL(channel.call);
    fix_end(&f);
}

/* An answer that names what was never asked for. */
static void test_sender_strange_answer(void)
{
    struct fix f;
    struct assign_replicas_to_dirs_response_partition_data part = {.partition_index = 9};
    struct assign_replicas_to_dirs_response_topic_data t = {.topic_id = other};
    struct assign_replicas_to_dirs_response_directory_data dir = {.id = other};
    struct assign_replicas_to_dirs_response resp = {0};
    begin(&f);
    (void)topic(&f, "a", 1);
    resp.directories.v = &dir;
    resp.directories.n = dir.topics.n = t.partitions.n = 1;
    dir.topics.v = &t;
    t.partitions.v = &part;
    complete(&f, ERR_NONE, &resp);
    fix_wait(&f, 100);
    CU_ASSERT_EQUAL(asked_n(), 1);
    answer_all(&f);
    fix_end(&f);
}

static void test_sender_a_request_has_an_end(void)
{
    enum { MOST = 2250 };
    struct fix f;
    begin(&f);
    (void)fix_topic(&f, "a", 2000);
    const struct uuid b = topic(&f, "b", 2501);
    CU_ASSERT_EQUAL(asked_n(), MOST);
    answer_all(&f);
    CU_ASSERT_EQUAL(asked_n(), MOST);
    CU_ASSERT(uuid_eq(request()->directories.v[0].topics.v[0].topic_id, b));
    answer_all(&f);
    CU_ASSERT_EQUAL(asked_n(), 1);
    answer_all(&f);
    CU_ASSERT_PTR_NULL(channel.call);
    fix_end(&f);
}

/* Queued, and while its answer is under way. */
static void test_sender_deleted_meanwhile(void)
{
    struct fix f;
    begin(&f);
    const struct uuid a = topic(&f, "a", 1);
    const struct uuid b = topic(&f, "b", 1);
    CU_ASSERT_EQUAL(asked_n(), 1);
    fix_delete(&f, a);
    fix_delete(&f, b);
    fix_turn(&f);
    answer(&f, K_UNKNOWN_TOPIC_ID, 1);
    fix_wait(&f, 10000);
    CU_ASSERT_EQUAL(channel.calls, 1);
    fix_end(&f);
}

/* The directory was given another id, as a disk that was copied is. */
static void test_sender_loaded_logs(void)
{
    struct fix f;
    begin(&f);
    const struct uuid a = topic(&f, "a", 1);
    answer_all(&f);
    record_directory(&f, a, 0, other);
    answer_all(&f);
    CU_ASSERT_EQUAL(fix_append(&f, a, 0, 1), K_NONE);
    fix_stop(&f);
    restart(&f, true);
    CU_ASSERT_EQUAL(asked_n(), 1);
    CU_ASSERT(uuid_eq(request()->directories.v[0].topics.v[0].topic_id, a));
    answer_all(&f);
    fix_end(&f);
}

static void test_sender_stopped_while_it_asks(void)
{
    struct fix f;
    begin(&f);
    (void)topic(&f, "a", 1);
    CU_ASSERT_EQUAL(asked_n(), 1);
    fix_end(&f);
    CU_ASSERT_PTR_NULL(channel.call);
}

/* Each allocation fails once: it is told nevertheless. */
static void test_sender_without_memory(void)
{
    for (long n = 1, hit = 1; hit; n++) {
        struct fix f;
        begin(&f);
        f.broker_epoch = -1;
        (void)topic(&f, "a", 2);
        f.broker_epoch = 1;
        fault_alloc_arm(n, false);
        fix_settle(&f);
        hit = fault_alloc_hit();
        fix_wait(&f, 200);
        CU_ASSERT_EQUAL(asked_n(), 2);
        answer_all(&f);
        fix_end(&f);
    }
}

TEST_MAIN(TEST(test_sender_tells_where_replicas_are), TEST(test_sender_again_when_it_is_not_so),
          TEST(test_sender_not_what_is_in_order), TEST(test_sender_only_when_registered),
          TEST(test_sender_not_before_directories_are_known), TEST(test_sender_backs_off),
          TEST(test_sender_tries_single_ones_again), TEST(test_sender_strange_answer),
          TEST(test_sender_a_request_has_an_end), TEST(test_sender_deleted_meanwhile),
          TEST(test_sender_loaded_logs), TEST(test_sender_stopped_while_it_asks),
          TEST(test_sender_without_memory))
