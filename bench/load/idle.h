/* Connections that say nothing. */
#ifndef LOAD_IDLE_H
#define LOAD_IDLE_H

#include "load/options.h"

/* Says "ready" on stdout when each connection has had the answer to one request, and holds them
 * until stdin ends. False, with a line on stderr, when one of them had none. */
bool idle_hold(const struct options *o);

#endif
