/* AlterConfigs and IncrementalAlterConfigs between the broker that took one in and the controller.
 */
#ifndef API_ALTER_CONFIGS_H
#define API_ALTER_CONFIGS_H

#include "api/forward.h"

struct alter_configs_state {
    struct api_forward forward;
    struct config_change *changes; /* as the request's resources */
    int32_t n;
};

/* Asks the controller on another node for what is not settled; forward.op.done() tells when all is.
 */
void alter_configs_forward(struct alter_configs_state *st);

#endif
