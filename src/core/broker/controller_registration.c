/* One call at a time, without a deadline: the channel sends it to whoever leads. When it is
 * answered its record is committed, and the image shows it soon; it may show another's one day. */
#include "core/broker/controller_registration.h"

#include <stdlib.h>

#include "base/backoff.h"
#include "core/broker/talk.h"
#include "core/metadata/features.h"
#include "core/metadata/random_uuid.h"
#include "core/metadata/records.h"
#include "wire/error.h"

enum {
    RETRY_FIRST_US = 100 * 1000,
    DOUBLINGS_MAX = 7,
    TAKEN_FIRST_US = 1000 * 1000,
    TAKEN_DOUBLINGS = 6, /* 64 s at most */
};

struct controller_registration {
    struct env *env;
    struct timers *timers;
    struct channel *channel;
    const struct image *image;
    int32_t node_id;
    struct uuid incarnation_id;
    struct talk *talk;
    struct timer timer; /* of the next try */
    uint32_t failures_n;
    bool told;        /* answered; the image will show it */
    bool shown;       /* once, in this life */
    uint32_t taken_n; /* how often another took its place */
    struct controller_registration_request_listener *listeners;
    int32_t listeners_n;
    struct controller_registration_request_feature *features;
    int32_t features_n;
};

/* Another process has our id, and registers as we do: both would do so without end. A former life
 * of ours never comes after us. */
static bool is_taken(struct controller_registration *cr)
{
    const struct image_controller *own = image_controller(cr->image, cr->node_id);
    return cr->shown && own != NULL && !uuid_eq(own->incarnation_id, cr->incarnation_id);
}

static void is_taken_over(struct controller_registration *cr, struct now now)
{
    env_log(cr->env, LOG_WARN,
            "controller_id_in_use controller=%d reason=\"another process with this node.id has "
            "registered as a controller\"",
            cr->node_id);
    cr->shown = false;
    if (cr->taken_n++ == 0)
        return;
    const int64_t at_us =
        now.mono_us + backoff_us(TAKEN_FIRST_US, cr->taken_n - 2, TAKEN_DOUBLINGS);
    if (timer_arm(cr->timers, &cr->timer, at_us) != ERR_NONE)
        env_log(cr->env, LOG_ERROR, "controller_registration_timer controller=%d error=NOMEM",
                cr->node_id);
}

static bool is_registered(const struct controller_registration *cr)
{
    const struct image_controller *own = image_controller(cr->image, cr->node_id);
    return own != NULL && uuid_eq(own->incarnation_id, cr->incarnation_id);
}

static int16_t error_of(const void *response)
{
    return ((const struct controller_registration_response *)response)->error_code;
}

static void try_later(struct controller_registration *cr, const char *error)
{
    const int64_t at_us =
        cr->talk->sent_us + backoff_us(RETRY_FIRST_US, cr->failures_n++, DOUBLINGS_MAX);
    env_log(cr->env, LOG_WARN, "controller_registration_failed controller=%d error=%s", cr->node_id,
            error);
    if (timer_arm(cr->timers, &cr->timer, at_us) != ERR_NONE)
        env_log(cr->env, LOG_ERROR, "controller_registration_timer controller=%d error=NOMEM",
                cr->node_id);
}

static void registered(struct channel_call *call, enum err e, const void *response)
{
    struct controller_registration *cr = talk_landed(call);
    if (cr == NULL || e == ERR_CANCELLED)
        return;
    if (e != ERR_NONE || error_of(response) != K_NONE) {
        try_later(cr, e != ERR_NONE ? err_name(e) : kafka_error_name(error_of(response)));
        return;
    }
    cr->failures_n = 0;
    cr->told = true;
}

static void send(struct controller_registration *cr, struct now now)
{
    struct controller_registration_request *r = &cr->talk->request.controller;
    wire_default(&wire_controller_registration_request, r);
    r->controller_id = cr->node_id;
    r->incarnation_id = cr->incarnation_id;
    r->listeners.v = cr->listeners;
    r->listeners.n = cr->listeners_n;
    r->features.v = cr->features;
    r->features.n = cr->features_n;
    cr->talk->call.done = registered;
    cr->talk->call.error = error_of;
    talk_send(cr->channel, cr->talk, API_CONTROLLER_REGISTRATION, INT64_MAX, now);
}

static void register_if_missing(struct controller_registration *cr, struct now now)
{
    if (is_registered(cr)) {
        cr->told = false;
        cr->shown = true;
        timer_cancel(cr->timers, &cr->timer);
        return;
    }
    if (is_taken(cr))
        is_taken_over(cr, now);
    if (cr->talk->in_flight || cr->told || timer_armed(&cr->timer) ||
        image_metadata_version(cr->image) < METADATA_VERSION_CONTROLLERS)
        return;
    send(cr, now);
}

static void retry_due(struct timer *t)
{
    struct controller_registration *cr = CONTAINER_OF(t, struct controller_registration, timer);
    register_if_missing(cr, (struct now){.mono_us = cr->timers->floor_us});
}

void controller_registration_image_changed(struct controller_registration *cr, struct now now)
{
    register_if_missing(cr, now);
}

/* ------------------------------------------------------------------ new, free */

static bool copy_parts(struct controller_registration *cr,
                       const struct controller_registration_args *args)
{
    size_t listeners_n, features_n;
    const struct listener *ls = config_listeners(args->config, &listeners_n);
    const struct feature_range *ranges = feature_ranges(&features_n);
    cr->talk = talk_new(cr);
    cr->listeners = calloc(listeners_n + 1, sizeof *cr->listeners);
    cr->features = calloc(features_n, sizeof *cr->features);
    if (cr->talk == NULL || cr->listeners == NULL || cr->features == NULL)
        return false;
    for (size_t i = 0; i < listeners_n; i++)
        if (ls[i].controller)
            cr->listeners[cr->listeners_n++] = (struct controller_registration_request_listener){
                str_of(ls[i].name), str_of(ls[i].advertised_host), args->ports[i],
                ls[i].security_protocol};
    for (size_t i = 0; i < features_n; i++)
        cr->features[cr->features_n++] = (struct controller_registration_request_feature){
            str_of(ranges[i].name), ranges[i].min, ranges[i].max};
    return true;
}

enum err controller_registration_new(const struct controller_registration_args *args,
                                     struct controller_registration **out)
{
    struct controller_registration *cr = calloc(1, sizeof *cr);
    if (cr == NULL)
        return ERR_NOMEM;
    cr->env = args->env;
    cr->timers = args->timers;
    cr->channel = args->channel;
    cr->image = args->image;
    cr->node_id = args->node_id;
    cr->incarnation_id = uuid_random(args->env);
    cr->timer.fire = retry_due;
    if (!copy_parts(cr, args)) {
        controller_registration_free(cr);
        return ERR_NOMEM;
    }
    *out = cr;
    return ERR_NONE;
}

void controller_registration_free(struct controller_registration *cr)
{
    if (cr == NULL)
        return;
    timer_cancel(cr->timers, &cr->timer);
    talk_free(cr->talk);
    free(cr->listeners);
    free(cr->features);
    free(cr);
}
