/* One conversation: registration until it succeeds, then a heartbeat at a time. Whatever is to be
 * said sooner (logs are loaded, the image has caught up, stop) sends the next one at once, or right
 * after the one in flight. Callbacks of calls know no time: they arm a timer in the past, which
 * fires in the next turn. */
#include "core/broker/broker.h"

#include <stdlib.h>

#include "base/backoff.h"
#include "base/check.h"
#include "core/broker/inside.h"
#include "core/metadata/features.h"
#include "core/metadata/random_uuid.h"
#include "wire/error.h"

enum {
    RETRY_FIRST_US = 50 * 1000,
    RETRY_DOUBLINGS = 5, /* 1.6 s at most */
    SHUTDOWN_POLL_US = 50 * 1000,
};

static void life_due(struct timer *t);

/* ------------------------------------------------------------------ new, free */

static enum err copy_features(struct broker *b)
{
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    b->features = calloc(n, sizeof *b->features);
    if (b->features == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        b->features[b->features_n++] = (struct broker_registration_request_feature){
            str_of(ranges[i].name), ranges[i].min, ranges[i].max};
    return ERR_NONE;
}

enum err broker_new(const struct broker_args *args, struct broker **out)
{
    struct broker *b = calloc(1, sizeof *b);
    size_t listeners_n;
    if (b == NULL)
        return ERR_NOMEM;
    (void)config_listeners(args->config, &listeners_n);
    b->env = args->env;
    b->timers = args->timers;
    b->life_channel = args->life;
    b->forwarding = args->forwarding;
    b->config = args->config;
    b->image = args->image;
    b->node_id = args->node_id;
    b->cluster_id = args->cluster_id;
    b->previous_broker_epoch = args->previous_broker_epoch;
    b->changed = args->changed;
    b->refused = args->refused;
    b->unheard = args->unheard;
    b->ctx = args->ctx;
    b->epoch = -1;
    b->in_use_us = -1;
    list_init(&b->ids_waiting);
    b->ids_timer.fire = broker_ids_late;
    b->timer.fire = life_due;
    b->incarnation_id = uuid_random(args->env);
    b->listeners = calloc(listeners_n + 1, sizeof *b->listeners);
    b->life = talk_new(b);
    b->ids = talk_new(b);
    if (b->listeners == NULL || b->life == NULL || b->ids == NULL || copy_features(b) != ERR_NONE ||
        directories_new(b, args) != ERR_NONE) {
        broker_free(b);
        return ERR_NOMEM;
    }
    *out = b;
    return ERR_NONE;
}

void broker_free(struct broker *b)
{
    if (b == NULL)
        return;
    timer_cancel(b->timers, &b->timer);
    timer_cancel(b->timers, &b->ids_timer);
    talk_free(b->life);
    talk_free(b->ids);
    CHECK(list_empty(&b->ids_waiting));
    directories_free(b);
    free(b->listeners);
    free(b->features);
    free(b);
}

enum broker_state broker_state(const struct broker *b)
{
    return b->state;
}

int64_t broker_epoch(const struct broker *b)
{
    return b->epoch;
}

uint64_t broker_answers_n(const struct broker *b)
{
    return b->answers_n;
}

/* ------------------------------------------------------------------ when */

static void become(struct broker *b, enum broker_state state)
{
    if (b->state == state)
        return;
    CHECK(state > b->state);
    b->state = state;
    b->changed(b->ctx, state);
}

/* Out of memory for a timer that was armed before cannot happen; before, the node cannot start. */
static void send_at(struct broker *b, int64_t at_us)
{
    if (timer_arm(b->timers, &b->timer, at_us) != ERR_NONE)
        env_log(b->env, LOG_ERROR, "broker_timer_failed broker=%d error=NOMEM", b->node_id);
}

static void send_soon(struct broker *b)
{
    if (b->life->in_flight)
        b->again = true;
    else if (b->started && b->state != BROKER_STOPPED && !b->refused_for_good)
        send_at(b, INT64_MIN);
}

static int64_t interval_us(const struct broker *b)
{
    return config_int(b->config, "broker.heartbeat.interval.ms") * 1000;
}

static void retry(struct broker *b)
{
    send_at(b, b->life->sent_us + backoff_us(RETRY_FIRST_US, b->failures_n++, RETRY_DOUBLINGS));
}

/* ------------------------------------------------------------------ what */

static void send_life(struct broker *b, int16_t api_key, struct now now)
{
    const int64_t timeout_us = config_int(b->config, "broker.session.timeout.ms") * 1000 / 2;
    talk_send(b->life_channel, b->life, api_key, now.mono_us + timeout_us, now);
}

static void registration_done(struct channel_call *call, enum err e, const void *response);
static void heartbeat_done(struct channel_call *call, enum err e, const void *response);

static int16_t registration_error(const void *response)
{
    return ((const struct broker_registration_response *)response)->error_code;
}

static int16_t heartbeat_error(const void *response)
{
    return ((const struct broker_heartbeat_response *)response)->error_code;
}

static void send_registration(struct broker *b, struct now now)
{
    struct broker_registration_request *r = &b->life->request.registration;
    const char *rack = config_text(b->config, "broker.rack");
    wire_default(&wire_broker_registration_request, r);
    r->broker_id = b->node_id;
    r->cluster_id = str_of(b->cluster_id);
    r->incarnation_id = b->incarnation_id;
    r->listeners.v = b->listeners;
    r->listeners.n = b->listeners_n;
    r->features.v = b->features;
    r->features.n = b->features_n;
    r->rack = str_of(rack);
    directories_register(b, r);
    r->previous_broker_epoch = b->previous_broker_epoch;
    b->life->call.done = registration_done;
    b->life->call.error = registration_error;
    send_life(b, API_BROKER_REGISTRATION, now);
}

static void send_heartbeat(struct broker *b, struct now now)
{
    struct broker_heartbeat_request *r = &b->life->request.heartbeat;
    wire_default(&wire_broker_heartbeat_request, r);
    r->broker_id = b->node_id;
    r->broker_epoch = b->epoch;
    r->current_metadata_offset = b->image->next_offset - 1;
    r->want_fence = !b->logs_loaded;
    r->want_shut_down = b->state == BROKER_STOPPING;
    directories_beat(b, r);
    b->life->call.done = heartbeat_done;
    b->life->call.error = heartbeat_error;
    send_life(b, API_BROKER_HEARTBEAT, now);
}

static void life_due(struct timer *t)
{
    struct broker *b = CONTAINER_OF(t, struct broker, timer);
    const struct now now = {.mono_us = b->timers->floor_us};
    if (b->life->in_flight)
        return;
    b->again = false;
    if (b->epoch >= 0)
        send_heartbeat(b, now);
    else if (b->state == BROKER_STOPPING)
        become(b, BROKER_STOPPED); /* was never registered: nothing to hand over */
    else
        send_registration(b, now);
}

/* ------------------------------------------------------------------ answers */

static void failed(struct broker *b, const char *what, enum err e, int16_t error)
{
    env_log(b->env, LOG_WARN, "%s broker=%d epoch=%lld error=%s", what, b->node_id,
            (long long)b->epoch, e != ERR_NONE ? err_name(e) : kafka_error_name(error));
    retry(b);
}

/* Of our own id another broker may be alive, or a former life of ours, for as long as its session.
 */
static bool in_use_for_long(struct broker *b, int16_t error)
{
    const int64_t max_us = config_int(b->config, "initial.broker.registration.timeout.ms") * 1000;
    if (error != K_DUPLICATE_BROKER_REGISTRATION) {
        b->in_use_us = -1;
        return false;
    }
    if (b->in_use_us < 0)
        b->in_use_us = b->life->sent_us;
    return b->life->sent_us - b->in_use_us >= max_us;
}

/* No later try ends otherwise. */
static bool is_refused_for_good(struct broker *b, int16_t error)
{
    return error == K_INCONSISTENT_CLUSTER_ID || error == K_UNSUPPORTED_VERSION ||
           error == K_INVALID_REGISTRATION || error == K_CLUSTER_AUTHORIZATION_FAILED ||
           in_use_for_long(b, error);
}

static void registration_failed(struct broker *b, enum err e, int16_t error)
{
    if (e != ERR_NONE)
        b->in_use_us = -1; /* while no controller answers, no session ends */
    if (e == ERR_NONE && is_refused_for_good(b, error)) {
        b->refused_for_good = true;
        b->refused(b->ctx, error);
        return;
    }
    failed(b, "broker_registration_failed", e, error);
}

static void registration_done(struct channel_call *call, enum err e, const void *response)
{
    struct broker *b = talk_landed(call);
    const struct broker_registration_response *resp = response;
    if (b == NULL || e == ERR_CANCELLED)
        return;
    b->answers_n += e == ERR_NONE;
    if (e != ERR_NONE || resp->error_code != K_NONE) {
        registration_failed(b, e, e != ERR_NONE ? K_NONE : resp->error_code);
        return;
    }
    b->failures_n = 0;
    b->in_use_us = -1;
    b->epoch = resp->broker_epoch;
    directories_heard(b);
    env_log(b->env, LOG_INFO, "broker_registered broker=%d epoch=%lld", b->node_id,
            (long long)b->epoch);
    if (b->state == BROKER_STARTING)
        become(b, BROKER_RECOVERY);
    send_soon(b);
}

/* What the controller waits for before it unfences us: the image has our registration. */
static bool has_registration(const struct broker *b)
{
    const struct image_broker *self = image_broker(b->image, b->node_id);
    return self != NULL && self->epoch == b->epoch;
}

/* The image moved on while the heartbeat was on its way. */
static bool has_news(const struct broker *b)
{
    return b->behind && b->logs_loaded && has_registration(b) &&
           b->life->request.heartbeat.current_metadata_offset < b->image->next_offset - 1;
}

static void take_heartbeat(struct broker *b, const struct broker_heartbeat_response *resp)
{
    b->behind = !resp->is_caught_up;
    if (b->state == BROKER_STOPPING) {
        if (resp->should_shut_down)
            become(b, BROKER_STOPPED);
        else
            send_at(b, b->life->sent_us + SHUTDOWN_POLL_US);
        return;
    }
    send_at(b, has_news(b) ? INT64_MIN : b->life->sent_us + interval_us(b));
    if (!resp->is_fenced && b->state == BROKER_RECOVERY)
        become(b, BROKER_RUNNING);
}

/* Somebody has unregistered us. What our logs hold is still as that registration left it. */
static void register_again(struct broker *b)
{
    env_log(b->env, LOG_WARN, "broker_unregistered broker=%d epoch=%lld", b->node_id,
            (long long)b->epoch);
    b->previous_broker_epoch = b->epoch;
    b->epoch = -1;
    retry(b);
}

static void heartbeat_done(struct channel_call *call, enum err e, const void *response)
{
    struct broker *b = talk_landed(call);
    const struct broker_heartbeat_response *resp = response;
    if (b == NULL || e == ERR_CANCELLED)
        return;
    b->answers_n += e == ERR_NONE;
    if (e == ERR_NONE && resp->error_code == K_STALE_BROKER_EPOCH) {
        register_again(b);
    } else if (e != ERR_NONE || resp->error_code != K_NONE) {
        failed(b, "broker_heartbeat_failed", e, e != ERR_NONE ? K_NONE : resp->error_code);
    } else {
        b->failures_n = 0;
        directories_heard(b);
        take_heartbeat(b, resp);
    }
    if (b->again)
        send_soon(b);
}

/* ------------------------------------------------------------------ told by the node */

void broker_start(struct broker *b, const uint16_t *ports, size_t ports_n, struct now now)
{
    size_t n;
    const struct listener *ls = config_listeners(b->config, &n);
    CHECK(!b->started && ports_n == n);
    for (size_t i = 0; i < n; i++) {
        if (ls[i].controller)
            continue;
        b->listeners[b->listeners_n++] = (struct broker_registration_request_listener){
            str_of(ls[i].name), str_of(ls[i].advertised_host),
            ports[i] != 0 ? ports[i] : ls[i].advertised_port, ls[i].security_protocol};
    }
    b->started = true;
    send_at(b, now.mono_us);
}

void broker_logs_loaded(struct broker *b, struct now now)
{
    (void)now;
    b->logs_loaded = true;
    send_soon(b);
}

static bool another_stops(const struct broker *b)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&b->image->brokers, e)) != NULL) {
        const struct image_broker *other = map_value(e);
        if (other->in_controlled_shutdown && !other->fenced && other->id != b->node_id)
            return true;
    }
    return false;
}

/* One that stops is let go when all others have told that they know of it. */
void broker_image_changed(struct broker *b, bool brokers, struct now now)
{
    (void)now;
    if (b->behind && b->logs_loaded && has_registration(b))
        send_soon(b);
    else if (b->epoch >= 0 && (directories_cordoned_changed(b) || (brokers && another_stops(b))))
        send_soon(b);
}

void broker_directory_failed(struct broker *b, size_t directory, struct now now)
{
    directories_fail(b, directory, now);
    send_soon(b);
}

void broker_stop(struct broker *b, struct now now)
{
    if (b->state >= BROKER_STOPPING)
        return;
    b->state = BROKER_STOPPING; /* asked for: not told back */
    if (b->started)
        send_soon(b);
    else
        send_at(b, now.mono_us);
}
