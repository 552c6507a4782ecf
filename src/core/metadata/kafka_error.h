/* The one place where internal errors become Kafka's codes (base/err.h, wire/error.h). */
#ifndef METADATA_KAFKA_ERROR_H
#define METADATA_KAFKA_ERROR_H

#include "base/err.h"
#include "wire/error.h"

/* What a client is told of an internal error: retriable where the same call may succeed later. */
int16_t kafka_error_of(enum err e);

#endif
