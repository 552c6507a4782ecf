/* A controller's registration against an active controller played by hand: channel_call is defined
 * here, so the linker leaves the real one in its archive. */
#include "core/broker/controller_registration.h"

#include "support/memenv.h"
#include "support/test.h"
#include "wire/error.h"

static struct channel_call *in_flight; /* or NULL */

void channel_call(struct channel *c, struct channel_call *call, struct now now)
{
    (void)c;
    (void)now;
    CU_ASSERT_FATAL(in_flight == NULL);
    CU_ASSERT_EQUAL(call->api_key, API_CONTROLLER_REGISTRATION);
    CU_ASSERT_EQUAL(call->deadline_us, INT64_MAX);
    in_flight = call;
}

static struct {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct config *config;
    struct image image;
    struct controller_registration *registration;
    struct now now;
} b;

static void begin(void)
{
    const uint16_t ports[] = {19092, 19093};
    char message[256];
    memset(&b, 0, sizeof b);
    b.now = (struct now){5000000, 1};
    in_flight = NULL;
    memfs_init(&b.fs, 1);
    memenv_init(&b.env, &b.fs, 2);
    timers_init(&b.timers);
    image_init(&b.image, 3);
    CU_ASSERT_EQUAL_FATAL(config_new(&b.config), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_set(b.config, STR_LIT("listeners"),
                                     STR_LIT("PLAINTEXT://h:9092,CONTROLLER://c:0"), CONFIG_SET,
                                     NULL, NULL, message, sizeof message),
                          ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_set(b.config, STR_LIT("controller.listener.names"),
                                     STR_LIT("CONTROLLER"), CONFIG_SET, NULL, NULL, message,
                                     sizeof message),
                          ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_finish(b.config, message, sizeof message), ERR_NONE);
    const struct controller_registration_args args = {.env = &b.env.env,
                                                      .timers = &b.timers,
                                                      .config = b.config,
                                                      .image = &b.image,
                                                      .node_id = 4,
                                                      .ports = ports};
    CU_ASSERT_EQUAL_FATAL(controller_registration_new(&args, &b.registration), ERR_NONE);
}

static void end(void)
{
    controller_registration_free(b.registration);
    if (in_flight != NULL) /* a call may end after its owner */
        in_flight->done(in_flight, ERR_CANCELLED, NULL);
    config_free(b.config);
    image_close(&b.image);
    CU_ASSERT_EQUAL(b.timers.n, 0);
    timers_close(&b.timers);
    memenv_close(&b.env);
    memfs_close(&b.fs);
}

static void publish(void)
{
    controller_registration_image_changed(b.registration, b.now);
}

static void pass(int64_t ms)
{
    b.now.mono_us += ms * 1000;
    timers_run(&b.timers, b.now.mono_us);
}

static void set_level(int16_t level)
{
    const struct feature_level_record r = {.name = STR_LIT("metadata.version"),
                                           .feature_level = level};
    CU_ASSERT_EQUAL_FATAL(image_apply(&b.image, 12, 0, &r, BYTES_NULL, NULL), ERR_NONE);
}

static const struct controller_registration_request *request(void)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(in_flight);
    return in_flight->request;
}

static void answer(enum err e, int16_t error)
{
    const struct controller_registration_response r = {.error_code = error};
    struct channel_call *call = in_flight;
    in_flight = NULL;
    call->done(call, e, e == ERR_NONE ? &r : NULL);
}

/* The record of a registration, committed. */
static void commit(struct uuid incarnation_id)
{
    struct register_controller_record r;
    wire_default(&wire_register_controller_record, &r);
    r.controller_id = 4;
    r.incarnation_id = incarnation_id;
    CU_ASSERT_EQUAL_FATAL(image_apply(&b.image, 27, 0, &r, BYTES_NULL, NULL), ERR_NONE);
    publish();
}

static void test_registration_says_who_we_are(void)
{
    begin();
    publish();
    CU_ASSERT_PTR_NULL(in_flight); /* no metadata.version */
    set_level(14);
    publish();
    CU_ASSERT_PTR_NULL(in_flight); /* one that knows no controllers */
    set_level(33);
    publish();
    const struct controller_registration_request *r = request();
    CU_ASSERT(r->controller_id == 4 && !uuid_is_zero(r->incarnation_id));
    CU_ASSERT_EQUAL_FATAL(r->listeners.n, 1);
    CU_ASSERT_TRUE(str_eq(r->listeners.v[0].name, STR_LIT("CONTROLLER")));
    CU_ASSERT_TRUE(str_eq(r->listeners.v[0].host, STR_LIT("c")));
    CU_ASSERT_EQUAL(r->listeners.v[0].port, 19093);
    CU_ASSERT_EQUAL(r->features.n, 7);
    publish(); /* one at a time */
    end();
}

static void test_registration_until_the_image_shows_it(void)
{
    begin();
    set_level(33);
    publish();
    const struct uuid own = request()->incarnation_id;
    commit((struct uuid){{1}}); /* a former life's */
    answer(ERR_NONE, K_NONE);
    publish();
    CU_ASSERT_PTR_NULL(in_flight); /* its record is on its way */
    commit(own);
    publish();
    CU_ASSERT_PTR_NULL(in_flight);
    commit((struct uuid){{2}}); /* it was replaced */
    CU_ASSERT_TRUE(uuid_eq(request()->incarnation_id, own));
    end();
}

/* Two processes of one id must not register against each other at the speed of the log. */
static void test_registration_of_an_id_in_use(void)
{
    begin();
    b.env.word = "controller_id_in_use";
    set_level(33);
    publish();
    const struct uuid own = request()->incarnation_id;
    for (uint8_t i = 1; i < 5; i++) {
        commit(own);
        answer(ERR_NONE, K_NONE);
        publish();
        CU_ASSERT_EQUAL(b.env.word_n, i - 1);
        commit((struct uuid){{i}});
        publish();
        CU_ASSERT_EQUAL(b.env.word_n, i);
        if (i > 1) {
            CU_ASSERT_PTR_NULL(in_flight);
            pass((1000 << (i - 2)) - 1);
            CU_ASSERT_PTR_NULL(in_flight);
            pass(1);
        }
        CU_ASSERT_TRUE(uuid_eq(request()->incarnation_id, own));
    }
    end();
}

static void test_registration_is_repeated(void)
{
    begin();
    set_level(33);
    publish();
    answer(ERR_NONE, K_UNKNOWN_SERVER_ERROR);
    publish();
    CU_ASSERT_PTR_NULL(in_flight);
    pass(99);
    CU_ASSERT_PTR_NULL(in_flight);
    pass(1);
    (void)request();
    answer(ERR_TOO_LARGE, K_NONE);
    pass(200);
    (void)request();
    CU_ASSERT_EQUAL(b.env.lines[LOG_WARN], 2);
    answer(ERR_CANCELLED, K_NONE);
    pass(100000);
    CU_ASSERT_PTR_NULL(in_flight);
    end();
}

TEST_MAIN(TEST(test_registration_says_who_we_are), TEST(test_registration_until_the_image_shows_it),
          TEST(test_registration_of_an_id_in_use), TEST(test_registration_is_repeated))
