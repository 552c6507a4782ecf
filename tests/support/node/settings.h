#ifndef SUPPORT_NODE_SETTINGS_H
#define SUPPORT_NODE_SETTINGS_H

#include "core/config/config.h"

/* A broker's configuration from "key=value" lines; a mistake in them ends the test. */
struct config *settings_config(const char *lines);

#endif
