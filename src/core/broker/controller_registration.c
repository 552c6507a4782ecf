/* One call at a time, without a deadline: the channel sends it to whoever leads. When it is
 * answered its record is committed, and the image shows it soon; it may show another's one day. */
#include "core/broker/controller_registration.h"

#include <stdlib.h>

#include "core/metadata/features.h"
#include "core/metadata/random_uuid.h"
#include "core/metadata/records.h"
#include "wire/error.h"

enum { RETRY_FIRST_US = 100 * 1000, DOUBLINGS_MAX = 7 };

/* Apart from its owner in memory: a call in flight may outlive it. */
struct registering {
    struct channel_call call;
    struct controller_registration_request request;
    struct controller_registration
        *owner; /* NULL: it is gone; whoever completes the call frees it */
    bool in_flight;
    int64_t sent_us;
};

struct controller_registration {
    struct env *env;
    struct timers *timers;
    struct channel *channel;
    const struct image *image;
    int32_t node_id;
    struct uuid incarnation_id;
    struct registering *registering;
    struct timer timer; /* of the next try */
    uint32_t failures_n;
    bool told; /* answered; the image will show it */
    struct controller_registration_request_listener *listeners;
    int32_t listeners_n;
    struct controller_registration_request_feature *features;
    int32_t features_n;
};

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
    const uint32_t doublings = cr->failures_n < DOUBLINGS_MAX ? cr->failures_n : DOUBLINGS_MAX;
    const int64_t at_us = cr->registering->sent_us + ((int64_t)RETRY_FIRST_US << doublings);
    env_log(cr->env, LOG_WARN, "controller_registration_failed controller=%d error=%s", cr->node_id,
            error);
    cr->failures_n++;
    if (timer_arm(cr->timers, &cr->timer, at_us) != ERR_NONE)
        env_log(cr->env, LOG_ERROR, "controller_registration_timer controller=%d error=NOMEM",
                cr->node_id);
}

static void registered(struct channel_call *call, enum err e, const void *response)
{
    struct registering *g = CONTAINER_OF(call, struct registering, call);
    struct controller_registration *cr = g->owner;
    g->in_flight = false;
    if (cr == NULL) {
        free(g);
        return;
    }
    if (e == ERR_CANCELLED)
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
    struct registering *g = cr->registering;
    struct controller_registration_request *r = &g->request;
    wire_default(&wire_controller_registration_request, r);
    r->controller_id = cr->node_id;
    r->incarnation_id = cr->incarnation_id;
    r->listeners.v = cr->listeners;
    r->listeners.n = cr->listeners_n;
    r->features.v = cr->features;
    r->features.n = cr->features_n;
    g->in_flight = true;
    g->sent_us = now.mono_us;
    g->call = (struct channel_call){.api_key = API_CONTROLLER_REGISTRATION,
                                    .request = r,
                                    .deadline_us = INT64_MAX,
                                    .error = error_of,
                                    .done = registered};
    channel_call(cr->channel, &g->call, now);
}

static void register_if_missing(struct controller_registration *cr, struct now now)
{
    if (is_registered(cr)) {
        cr->told = false;
        timer_cancel(cr->timers, &cr->timer);
        return;
    }
    if (cr->registering->in_flight || cr->told || timer_armed(&cr->timer) ||
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
    cr->registering = calloc(1, sizeof *cr->registering);
    cr->listeners = calloc(listeners_n + 1, sizeof *cr->listeners);
    cr->features = calloc(features_n, sizeof *cr->features);
    if (cr->registering == NULL || cr->listeners == NULL || cr->features == NULL)
        return false;
    cr->registering->owner = cr;
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
    if (cr->registering != NULL && cr->registering->in_flight)
        cr->registering->owner = NULL;
    else
        free(cr->registering);
    free(cr->listeners);
    free(cr->features);
    free(cr);
}
