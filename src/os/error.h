/* errno as enum err. */
#ifndef OS_ERROR_H
#define OS_ERROR_H

#include "base/err.h"

/* of a failed call, at once after it; never ERR_NONE */
enum err os_error(int errnum);

#endif
