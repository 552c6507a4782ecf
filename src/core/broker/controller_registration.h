/* A controller makes itself known to the others (KIP-919): it registers with the active one, until
 * the image shows this incarnation of it. */
#ifndef BROKER_CONTROLLER_REGISTRATION_H
#define BROKER_CONTROLLER_REGISTRATION_H

#include "base/timer.h"
#include "core/broker/channel.h"
#include "core/config/config.h"
#include "core/metadata/image.h"

struct controller_registration;

struct controller_registration_args {
    struct env *env;
    struct timers *timers;
    struct channel *channel;
    const struct config *config; /* static */
    const struct image *image;   /* committed */
    int32_t node_id;
    const uint16_t *ports; /* of the listeners, in config_listeners order; copied */
};

MUST_USE enum err controller_registration_new(const struct controller_registration_args *args,
                                              struct controller_registration **out);
/* Before the channel: a call in flight ends without it. */
void controller_registration_free(struct controller_registration *cr);
/* After each publication: registers when the image has a metadata.version that knows controllers
 * and does not show us. */
void controller_registration_image_changed(struct controller_registration *cr, struct now now);

#endif
