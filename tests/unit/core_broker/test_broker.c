/* The broker against a controller played by hand: channel_call is defined here, so the linker
 * leaves the real one in its archive. */
#include "core/broker/broker.h"
#include "support/memenv.h"
#include "support/test.h"
#include "wire/error.h"

enum { CALLS_MAX = 8 };

static struct channel_call *calls[CALLS_MAX]; /* in flight */
static size_t calls_n;

void channel_call(struct channel *c, struct channel_call *call, struct now now)
{
    (void)c;
    (void)now;
    CU_ASSERT_FATAL(calls_n < CALLS_MAX);
    calls[calls_n++] = call;
}

struct fixture {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct config *config;
    struct image image;
    struct broker *broker;
    struct now now;
    enum broker_state told[8];
    int told_n;
    int16_t refused; /* K_NONE: not */
    const char *unheard;
};

static void changed(void *ctx, enum broker_state state)
{
    struct fixture *f = ctx;
    f->told[f->told_n++] = state;
}

static void refused(void *ctx, int16_t error)
{
    ((struct fixture *)ctx)->refused = error;
}

static void unheard(void *ctx, const char *path)
{
    ((struct fixture *)ctx)->unheard = path;
}

static void set(struct fixture *f, const char *key, const char *value)
{
    char message[256];
    CU_ASSERT_EQUAL_FATAL(config_set(f->config, str_of(key), str_of(value), CONFIG_SET, NULL, NULL,
                                     message, sizeof message),
                          ERR_NONE);
}

static void fixture_open_on(struct fixture *f, const struct broker_directory *dirs, size_t n)
{
    char message[256];
    *f = (struct fixture){.now = {5000000, 1}};
    calls_n = 0;
    memfs_init(&f->fs, 1);
    memenv_init(&f->env, &f->fs, 2);
    timers_init(&f->timers);
    image_init(&f->image, 3);
    CU_ASSERT_EQUAL_FATAL(config_new(&f->config), ERR_NONE);
    set(f, "process.roles", "broker,controller");
    set(f, "listeners", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093");
    set(f, "controller.listener.names", "CONTROLLER");
    set(f, "broker.rack", "r1");
    CU_ASSERT_EQUAL_FATAL(config_finish(f->config, message, sizeof message), ERR_NONE);
    const struct broker_args args = {.env = &f->env.env,
                                     .timers = &f->timers,
                                     .config = f->config,
                                     .image = &f->image,
                                     .node_id = 1,
                                     .cluster_id = "c",
                                     .directories = dirs,
                                     .directories_n = n,
                                     .previous_broker_epoch = 41,
                                     .changed = changed,
                                     .refused = refused,
                                     .unheard = unheard,
                                     .ctx = f};
    CU_ASSERT_EQUAL_FATAL(broker_new(&args, &f->broker), ERR_NONE);
}

static void fixture_open(struct fixture *f)
{
    static const struct broker_directory one = {"/data", {{9}}, false};
    fixture_open_on(f, &one, 1);
}

static void fixture_close(struct fixture *f)
{
    broker_free(f->broker);
    for (size_t i = 0; i < calls_n; i++) /* a call may end after its broker */
        calls[i]->done(calls[i], ERR_CANCELLED, NULL);
    config_free(f->config);
    image_close(&f->image);
    timers_close(&f->timers);
    memenv_close(&f->env);
    memfs_close(&f->fs);
}

static void pass(struct fixture *f, int64_t ms)
{
    f->now.mono_us += ms * 1000;
    timers_run(&f->timers, f->now.mono_us);
}

/* The only call in flight; it has to be of that API. */
static const void *request(int16_t api_key)
{
    CU_ASSERT_EQUAL_FATAL(calls_n, 1);
    CU_ASSERT_EQUAL_FATAL(calls[0]->api_key, api_key);
    return calls[0]->request;
}

static void answer(enum err e, const void *response)
{
    struct channel_call *call = calls[0];
    calls_n = 0;
    call->done(call, e, response);
}

static void answer_registration(int16_t error, int64_t epoch)
{
    const struct broker_registration_response resp = {.error_code = error, .broker_epoch = epoch};
    (void)request(API_BROKER_REGISTRATION);
    answer(ERR_NONE, &resp);
}

static void answer_heartbeat(bool caught_up, bool fenced, bool shut_down)
{
    const struct broker_heartbeat_response resp = {
        .is_caught_up = caught_up, .is_fenced = fenced, .should_shut_down = shut_down};
    (void)request(API_BROKER_HEARTBEAT);
    answer(ERR_NONE, &resp);
}

static void start(struct fixture *f)
{
    const uint16_t ports[] = {19092, 0};
    broker_start(f->broker, ports, 2, f->now);
    pass(f, 0);
}

/* Registered, logs loaded, unfenced. */
static void run(struct fixture *f)
{
    start(f);
    answer_registration(K_NONE, 7);
    pass(f, 0);
    answer_heartbeat(true, true, false);
    broker_logs_loaded(f->broker, f->now);
    pass(f, 0);
    answer_heartbeat(true, false, false);
    CU_ASSERT_EQUAL(broker_state(f->broker), BROKER_RUNNING);
}

static void test_broker_registers(void)
{
    struct fixture f;
    fixture_open(&f);
    CU_ASSERT_EQUAL(broker_epoch(f.broker), -1);
    start(&f);
    const struct broker_registration_request *r = request(API_BROKER_REGISTRATION);
    CU_ASSERT_EQUAL(r->broker_id, 1);
    CU_ASSERT_TRUE(str_eq(r->cluster_id, STR_LIT("c")));
    CU_ASSERT_TRUE(str_eq(r->rack, STR_LIT("r1")));
    CU_ASSERT_FALSE(uuid_is_zero(r->incarnation_id));
    CU_ASSERT_EQUAL(r->previous_broker_epoch, 41);
    CU_ASSERT_EQUAL(r->log_dirs.n, 1);
    CU_ASSERT_EQUAL(r->log_dirs.v[0].b[0], 9);
    CU_ASSERT_EQUAL_FATAL(r->listeners.n, 1); /* not the controller's */
    CU_ASSERT_TRUE(str_eq(r->listeners.v[0].name, STR_LIT("PLAINTEXT")));
    CU_ASSERT_EQUAL(r->listeners.v[0].port, 19092);
    CU_ASSERT_EQUAL(r->features.n, 7);
    CU_ASSERT_EQUAL(calls[0]->deadline_us, f.now.mono_us + 4500000);
    answer_registration(K_NONE, 7);
    CU_ASSERT_EQUAL(broker_epoch(f.broker), 7);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_RECOVERY);
    fixture_close(&f);
}

static void test_broker_registration_is_repeated(void)
{
    struct fixture f;
    fixture_open(&f);
    start(&f);
    const struct uuid incarnation =
        ((const struct broker_registration_request *)request(API_BROKER_REGISTRATION))
            ->incarnation_id;
    answer(ERR_TIMEOUT, NULL);
    pass(&f, 49);
    CU_ASSERT_EQUAL(calls_n, 0);
    pass(&f, 1);
    answer_registration(K_DUPLICATE_BROKER_REGISTRATION, -1);
    pass(&f, 99);
    CU_ASSERT_EQUAL(calls_n, 0);
    pass(&f, 1);
    CU_ASSERT_TRUE(
        uuid_eq(((const struct broker_registration_request *)request(API_BROKER_REGISTRATION))
                    ->incarnation_id,
                incarnation));
    for (int i = 0; i < 20; i++) {
        answer_registration(K_NOT_CONTROLLER, -1);
        pass(&f, 1600);
    }
    answer_registration(K_NONE, 3);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_RECOVERY);
    CU_ASSERT_EQUAL(f.told_n, 1);
    CU_ASSERT_EQUAL(f.env.lines[LOG_WARN], 22);
    fixture_close(&f);
}

static void test_broker_is_refused(void)
{
    static const int16_t errors[] = {K_INCONSISTENT_CLUSTER_ID, K_UNSUPPORTED_VERSION,
                                     K_INVALID_REGISTRATION, K_CLUSTER_AUTHORIZATION_FAILED};
    for (size_t i = 0; i < ARRAY_N(errors); i++) {
        struct fixture f;
        fixture_open(&f);
        start(&f);
        answer_registration(K_NOT_CONTROLLER, -1);
        CU_ASSERT_EQUAL(f.refused, K_NONE);
        pass(&f, 50);
        answer_registration(errors[i], -1);
        CU_ASSERT_EQUAL(f.refused, errors[i]);
        pass(&f, 100000);
        CU_ASSERT_EQUAL(calls_n, 0);
        fixture_close(&f);
    }
}

/* A former life of ours is forgotten after its session, another broker is not. */
static void test_broker_id_is_in_use(void)
{
    struct fixture f;
    int tries_n = 0;
    fixture_open(&f);
    set(&f, "initial.broker.registration.timeout.ms", "20000");
    start(&f);
    const int64_t begin_us = f.now.mono_us;
    for (; f.refused == K_NONE && tries_n < 100; tries_n++) {
        answer_registration(K_DUPLICATE_BROKER_REGISTRATION, -1);
        pass(&f, 1600);
    }
    CU_ASSERT_EQUAL(f.refused, K_DUPLICATE_BROKER_REGISTRATION);
    const int64_t us = f.now.mono_us - begin_us;
    CU_ASSERT(us >= 20000 * 1000 && us <= 24000 * 1000 && tries_n > 5);
    fixture_close(&f);
}

/* Somebody unregistered it: it comes back as it is. */
static void test_broker_registers_again(void)
{
    struct fixture f;
    const struct broker_heartbeat_response stale = {.error_code = K_STALE_BROKER_EPOCH};
    fixture_open(&f);
    run(&f);
    pass(&f, 2000);
    (void)request(API_BROKER_HEARTBEAT);
    answer(ERR_NONE, &stale);
    CU_ASSERT_EQUAL(broker_epoch(f.broker), -1);
    pass(&f, 50);
    const struct broker_registration_request *r = request(API_BROKER_REGISTRATION);
    CU_ASSERT_EQUAL(r->previous_broker_epoch, 7);
    answer_registration(K_NONE, 9);
    CU_ASSERT_EQUAL(broker_epoch(f.broker), 9);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_RUNNING);
    pass(&f, 0);
    const struct broker_heartbeat_request *h = request(API_BROKER_HEARTBEAT);
    CU_ASSERT(h->broker_epoch == 9 && !h->want_fence);
    fixture_close(&f);
}

static void test_broker_is_unfenced_when_loaded(void)
{
    struct fixture f;
    fixture_open(&f);
    f.image.next_offset = 31;
    start(&f);
    answer_registration(K_NONE, 7);
    pass(&f, 0);
    const struct broker_heartbeat_request *r = request(API_BROKER_HEARTBEAT);
    CU_ASSERT_EQUAL(r->broker_epoch, 7);
    CU_ASSERT_EQUAL(r->current_metadata_offset, 30);
    CU_ASSERT_TRUE(r->want_fence);
    CU_ASSERT_FALSE(r->want_shut_down);
    CU_ASSERT_EQUAL(r->cordoned_log_dirs.n, 0);
    CU_ASSERT_EQUAL(r->offline_log_dirs.n, 0);
    broker_logs_loaded(f.broker, f.now); /* while one is in flight: the next follows at once */
    answer_heartbeat(true, true, false);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_RECOVERY);
    pass(&f, 0);
    r = request(API_BROKER_HEARTBEAT);
    CU_ASSERT_FALSE(r->want_fence);
    answer_heartbeat(true, false, false);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_RUNNING);
    pass(&f, 1999);
    CU_ASSERT_EQUAL(calls_n, 0);
    pass(&f, 1);
    answer_heartbeat(true, true, false); /* fenced after a pause: it asks again, and goes on */
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_RUNNING);
    pass(&f, 2000);
    CU_ASSERT_FALSE(
        ((const struct broker_heartbeat_request *)request(API_BROKER_HEARTBEAT))->want_fence);
    fixture_close(&f);
}

/* KIP-1066: the heartbeat tells, and one is sent as soon as the configuration changes. */
static void test_broker_cordons_its_directory(void)
{
    struct fixture f;
    fixture_open(&f);
    start(&f);
    answer_registration(K_NONE, 7);
    broker_logs_loaded(f.broker, f.now);
    pass(&f, 0);
    answer_heartbeat(true, false, false);
    set(&f, "cordoned.log.dirs", "*");
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    const struct broker_heartbeat_request *r = request(API_BROKER_HEARTBEAT);
    CU_ASSERT_EQUAL_FATAL(r->cordoned_log_dirs.n, 1);
    CU_ASSERT_EQUAL(r->cordoned_log_dirs.v[0].b[0], 9);
    answer_heartbeat(true, false, false);
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    CU_ASSERT_EQUAL(calls_n, 0);
    set(&f, "cordoned.log.dirs", "");
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    r = request(API_BROKER_HEARTBEAT);
    CU_ASSERT_EQUAL(r->cordoned_log_dirs.n, 0);
    answer_heartbeat(true, false, false);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ log directories */

/* The last could not be read at the start. */
static void open_four(struct fixture *f)
{
    static const struct broker_directory four[] = {
        {"/a", {{1}}, false}, {"/b", {{2}}, false}, {"/c", {{3}}, false}, {"/d", {{0}}, true}};
    fixture_open_on(f, four, 4);
}

/* "13": the first bytes of ids. */
static const char *ids(const struct uuid *v, int32_t n)
{
    static char text[16];
    CU_ASSERT_FATAL(n < (int32_t)sizeof text);
    for (int32_t i = 0; i < n; i++)
        text[i] = (char)('0' + v[i].b[0]);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static const char *offline(void)
{
    const struct broker_heartbeat_request *r = request(API_BROKER_HEARTBEAT);
    return ids(r->offline_log_dirs.v, r->offline_log_dirs.n);
}

static void test_broker_directories_that_fail(void)
{
    struct fixture f;
    open_four(&f);
    start(&f);
    const struct broker_registration_request *r = request(API_BROKER_REGISTRATION);
    CU_ASSERT_STRING_EQUAL(ids(r->log_dirs.v, r->log_dirs.n), "123");
    answer_registration(K_NONE, 7);
    broker_logs_loaded(f.broker, f.now);
    pass(&f, 0);
    CU_ASSERT_STRING_EQUAL(offline(), "");
    broker_directory_failed(f.broker, 1, f.now); /* while one is in flight */
    answer_heartbeat(true, false, false);
    pass(&f, 0);
    CU_ASSERT_STRING_EQUAL(offline(), "2");
    answer_heartbeat(true, false, false);
    pass(&f, 2000);
    CU_ASSERT_STRING_EQUAL(offline(), "2"); /* each time */
    answer_heartbeat(true, false, false);
    broker_directory_failed(f.broker, 0, f.now);
    broker_directory_failed(f.broker, 0, f.now);
    pass(&f, 0); /* at once */
    CU_ASSERT_STRING_EQUAL(offline(), "12");
    const struct broker_heartbeat_response stale = {.error_code = K_STALE_BROKER_EPOCH};
    answer(ERR_NONE, &stale);
    pass(&f, 50);
    r = request(API_BROKER_REGISTRATION);
    CU_ASSERT_STRING_EQUAL(ids(r->log_dirs.v, r->log_dirs.n), "3");
    answer_registration(K_NONE, 9);
    pass(&f, 60000);
    CU_ASSERT_PTR_NULL(f.unheard);
    answer_heartbeat(true, false, false);
    fixture_close(&f);
}

/* log.dir.failure.timeout.ms after the failure, whatever else was heard. */
static void test_broker_failure_that_nobody_hears(void)
{
    struct fixture f;
    open_four(&f);
    set(&f, "log.dir.failure.timeout.ms", "1000");
    run(&f);
    broker_directory_failed(f.broker, 0, f.now);
    pass(&f, 0);
    CU_ASSERT_STRING_EQUAL(offline(), "1");
    pass(&f, 900);
    broker_directory_failed(f.broker, 1, f.now);
    answer_heartbeat(true, false, false); /* tells of the first */
    pass(&f, 999);
    CU_ASSERT_PTR_NULL(f.unheard);
    CU_ASSERT_STRING_EQUAL(offline(), "12");
    answer(ERR_TIMEOUT, NULL);
    pass(&f, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.unheard);
    CU_ASSERT_STRING_EQUAL(f.unheard, "/b");
    fixture_close(&f);
}

static void test_broker_cordons_some_directories(void)
{
    struct fixture f;
    open_four(&f);
    run(&f);
    set(&f, "cordoned.log.dirs", "/c/, /a,/d");
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    const struct broker_heartbeat_request *r = request(API_BROKER_HEARTBEAT);
    CU_ASSERT_STRING_EQUAL(ids(r->cordoned_log_dirs.v, r->cordoned_log_dirs.n), "13");
    answer_heartbeat(true, false, false);
    set(&f, "cordoned.log.dirs", "/a");
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    r = request(API_BROKER_HEARTBEAT);
    CU_ASSERT_STRING_EQUAL(ids(r->cordoned_log_dirs.v, r->cordoned_log_dirs.n), "1");
    answer_heartbeat(true, false, false);
    fixture_close(&f);
}

/* The controller waits for us to apply our registration; the image tells when. */
static void test_broker_catches_up(void)
{
    struct fixture f;
    struct register_broker_record own;
    fixture_open(&f);
    start(&f);
    answer_registration(K_NONE, 7);
    broker_logs_loaded(f.broker, f.now);
    pass(&f, 0);
    answer_heartbeat(false, true, false);
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    CU_ASSERT_EQUAL(calls_n, 0); /* not there yet */
    wire_default(&wire_register_broker_record, &own);
    own.broker_id = 1;
    own.broker_epoch = 7;
    CU_ASSERT_EQUAL(image_apply(&f.image, 0, 4, &own, BYTES_NULL, NULL), ERR_NONE);
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    answer_heartbeat(true, false, false);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_RUNNING);
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    CU_ASSERT_EQUAL(calls_n, 0); /* no more: each change of the image would be a heartbeat */
    fixture_close(&f);
}

/* What it heard while its heartbeat was on its way is told at once too. */
static void test_broker_caught_up_meanwhile(void)
{
    struct fixture f;
    struct register_broker_record own;
    fixture_open(&f);
    start(&f);
    answer_registration(K_NONE, 7);
    broker_logs_loaded(f.broker, f.now);
    pass(&f, 0);
    const int64_t told = ((const struct broker_heartbeat_request *)request(API_BROKER_HEARTBEAT))
                             ->current_metadata_offset;
    wire_default(&wire_register_broker_record, &own);
    own.broker_id = 1;
    own.broker_epoch = 7;
    CU_ASSERT_EQUAL(image_apply(&f.image, 0, 4, &own, BYTES_NULL, NULL), ERR_NONE);
    f.image.next_offset = told + 9;
    broker_image_changed(f.broker, true, f.now);
    answer_heartbeat(false, true, false);
    pass(&f, 0);
    CU_ASSERT_EQUAL(((const struct broker_heartbeat_request *)request(API_BROKER_HEARTBEAT))
                        ->current_metadata_offset,
                    told + 8);
    answer_heartbeat(false, true, false); /* the controller is behind: no use in telling it again */
    pass(&f, 0);
    CU_ASSERT_EQUAL(calls_n, 0);
    fixture_close(&f);
}

/* A broker that stops waits for the others' heartbeats. */
static void test_broker_tells_that_it_knows_of_a_stop(void)
{
    struct fixture f;
    struct register_broker_record other;
    fixture_open(&f);
    start(&f);
    answer_registration(K_NONE, 7);
    broker_logs_loaded(f.broker, f.now);
    pass(&f, 0);
    answer_heartbeat(true, false, false);
    wire_default(&wire_register_broker_record, &other);
    other.broker_id = 2;
    other.broker_epoch = 8;
    CU_ASSERT_EQUAL(image_apply(&f.image, 0, 4, &other, BYTES_NULL, NULL), ERR_NONE);
    broker_image_changed(f.broker, true, f.now);
    pass(&f, 0);
    CU_ASSERT_EQUAL(calls_n, 0);
    image_broker(&f.image, 2)->fenced = false;
    image_broker(&f.image, 2)->in_controlled_shutdown = true;
    broker_image_changed(f.broker, false, f.now);
    pass(&f, 0);
    CU_ASSERT_EQUAL(calls_n, 0);
    broker_image_changed(f.broker, true, f.now);
    pass(&f, 0);
    answer_heartbeat(true, false, false);
    fixture_close(&f);
}

static void test_broker_stops(void)
{
    struct fixture f;
    fixture_open(&f);
    run(&f);
    broker_stop(f.broker, f.now);
    pass(&f, 0);
    CU_ASSERT_TRUE(
        ((const struct broker_heartbeat_request *)request(API_BROKER_HEARTBEAT))->want_shut_down);
    answer_heartbeat(true, false, false);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_STOPPING);
    pass(&f, 50);
    answer(ERR_CLOSED, NULL);
    pass(&f, 50);
    answer_heartbeat(true, true, true);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_STOPPED);
    CU_ASSERT_EQUAL(f.told_n, 3);
    CU_ASSERT_EQUAL(f.told[2], BROKER_STOPPED);
    pass(&f, 100000);
    CU_ASSERT_EQUAL(calls_n, 0);
    fixture_close(&f);
}

static void test_broker_stops_before_registration(void)
{
    struct fixture f;
    fixture_open(&f);
    broker_stop(f.broker, f.now);
    CU_ASSERT_EQUAL(f.told_n, 0); /* not inside the call */
    pass(&f, 0);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_STOPPED);
    fixture_close(&f);

    fixture_open(&f);
    start(&f);
    broker_stop(f.broker, f.now);
    answer_registration(K_NONE, 7);
    pass(&f, 0);
    answer_heartbeat(true, true, true);
    CU_ASSERT_EQUAL(broker_state(f.broker), BROKER_STOPPED);
    fixture_close(&f);
}

static void test_broker_freed_with_calls_in_flight(void)
{
    struct fixture f;
    int64_t id;
    fixture_open(&f);
    run(&f);
    pass(&f, 2000);
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    CU_ASSERT_EQUAL_FATAL(calls_n, 2);
    fixture_close(&f);
}

static void answer_ids(int16_t error, int64_t first, int32_t n)
{
    const struct allocate_producer_ids_response resp = {
        .error_code = error, .producer_id_start = first, .producer_id_len = n};
    (void)request(API_ALLOCATE_PRODUCER_IDS);
    answer(ERR_NONE, &resp);
}

static void test_broker_producer_ids(void)
{
    struct fixture f;
    int64_t id;
    fixture_open(&f);
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    CU_ASSERT_EQUAL(calls_n, 0); /* not registered */
    run(&f);
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    const struct allocate_producer_ids_request *r = request(API_ALLOCATE_PRODUCER_IDS);
    CU_ASSERT_EQUAL(r->broker_id, 1);
    CU_ASSERT_EQUAL(r->broker_epoch, 7);
    answer_ids(K_NONE, 3000, 1000);
    for (int64_t i = 0; i < 1000; i++) {
        CU_ASSERT_TRUE(broker_next_producer_id(f.broker, f.now, &id));
        CU_ASSERT_EQUAL(id, 3000 + i);
        CU_ASSERT_EQUAL(calls_n, i >= 899 ? 1 : 0); /* at 90 % */
    }
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    answer_ids(K_NONE, 9000, 1000);
    CU_ASSERT_TRUE(broker_next_producer_id(f.broker, f.now, &id));
    CU_ASSERT_EQUAL(id, 9000);
    fixture_close(&f);
}

struct id_wait {
    struct producer_id_op op;
    int64_t id; /* -2: waits */
};

static void id_waited(struct producer_id_op *op, int64_t id)
{
    CONTAINER_OF(op, struct id_wait, op)->id = id;
}

static void test_broker_producer_id_waits_for_a_block(void)
{
    struct fixture f;
    struct id_wait v[4];
    int64_t id;
    for (size_t i = 0; i < ARRAY_N(v); i++)
        v[i] = (struct id_wait){{.done = id_waited}, -2};
    fixture_open(&f);
    run(&f);
    CU_ASSERT_FALSE(broker_wait_producer_id(f.broker, &v[0].op)); /* for none */
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    for (size_t i = 0; i < ARRAY_N(v); i++)
        CU_ASSERT_TRUE_FATAL(broker_wait_producer_id(f.broker, &v[i].op));
    broker_producer_id_cancel(&v[1].op);
    CU_ASSERT_EQUAL(v[1].id, -1);
    CU_ASSERT_EQUAL(v[0].id, -2);
    answer_ids(K_NONE, 50, 2);
    CU_ASSERT_EQUAL(v[0].id, 50);
    CU_ASSERT_EQUAL(v[2].id, 51);
    CU_ASSERT_EQUAL(v[3].id, -1); /* the block is used up */
    v[0].id = -2;
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    CU_ASSERT_TRUE(broker_wait_producer_id(f.broker, &v[0].op));
    answer_ids(K_NOT_CONTROLLER, 0, 0);
    CU_ASSERT_EQUAL(v[0].id, -1);
    fixture_close(&f);
}

/* Without a controller: the client is told, and asks again. */
static void test_broker_producer_id_waits_not_for_ever(void)
{
    struct fixture f;
    struct id_wait v[2] = {{{.done = id_waited}, -2}, {{.done = id_waited}, -2}};
    int64_t id;
    fixture_open(&f);
    run(&f);
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    CU_ASSERT_TRUE_FATAL(broker_wait_producer_id(f.broker, &v[0].op));
    pass(&f, 4999);
    CU_ASSERT_EQUAL(v[0].id, -2);
    pass(&f, 1);
    CU_ASSERT_EQUAL(v[0].id, -1);
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    CU_ASSERT_TRUE_FATAL(broker_wait_producer_id(f.broker, &v[1].op)); /* the same call */
    pass(&f, 1);
    CU_ASSERT_EQUAL(v[1].id, -1);
    fixture_close(&f);
}

static void test_broker_producer_ids_after_an_error(void)
{
    struct fixture f;
    int64_t id;
    fixture_open(&f);
    run(&f);
    const struct {
        int16_t error;
        int64_t first;
        int32_t n;
    } bad[] = {{K_NOT_CONTROLLER, 0, 0}, {K_NONE, -1, 5}, {K_NONE, 5, 0}, {K_NONE, INT64_MAX, 2}};
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
        answer_ids(bad[i].error, bad[i].first, bad[i].n);
        f.now.mono_us += 49000;
        CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
        CU_ASSERT_EQUAL(calls_n, 0);
        f.now.mono_us += 1000;
    }
    CU_ASSERT_FALSE(broker_next_producer_id(f.broker, f.now, &id));
    answer_ids(K_NONE, 0, 1);
    CU_ASSERT_TRUE(broker_next_producer_id(f.broker, f.now, &id));
    CU_ASSERT_EQUAL(id, 0);
    fixture_close(&f);
}

TEST_MAIN(TEST(test_broker_registers), TEST(test_broker_registration_is_repeated),
          TEST(test_broker_is_refused), TEST(test_broker_id_is_in_use),
          TEST(test_broker_registers_again), TEST(test_broker_is_unfenced_when_loaded),
          TEST(test_broker_cordons_its_directory), TEST(test_broker_directories_that_fail),
          TEST(test_broker_failure_that_nobody_hears), TEST(test_broker_cordons_some_directories),
          TEST(test_broker_catches_up), TEST(test_broker_caught_up_meanwhile),
          TEST(test_broker_tells_that_it_knows_of_a_stop), TEST(test_broker_stops),
          TEST(test_broker_stops_before_registration), TEST(test_broker_freed_with_calls_in_flight),
          TEST(test_broker_producer_ids), TEST(test_broker_producer_id_waits_for_a_block),
          TEST(test_broker_producer_id_waits_not_for_ever),
          TEST(test_broker_producer_ids_after_an_error))
