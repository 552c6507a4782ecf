#include "core/metadata/kafka_error.h"

int16_t kafka_error_of(enum err e)
{
    switch (e) {
    case ERR_NONE:
        return K_NONE;
    case ERR_IO:
    case ERR_NOSPC:
    case ERR_NOENT:
    case ERR_EXIST:
    case ERR_ACCESS:
    case ERR_NFILE:
    case ERR_OFFLINE:
        return K_KAFKA_STORAGE_ERROR;
    case ERR_CORRUPT:
    case ERR_TRUNCATED:
    case ERR_TRAILING:
        return K_CORRUPT_MESSAGE;
    case ERR_RANGE:
        return K_OFFSET_OUT_OF_RANGE;
    case ERR_INVALID:
        return K_INVALID_REQUEST;
    case ERR_UNSUPPORTED:
        return K_UNSUPPORTED_VERSION;
    case ERR_TOO_LARGE:
        return K_MESSAGE_TOO_LARGE;
    case ERR_TIMEOUT:
    case ERR_AGAIN:
        return K_REQUEST_TIMED_OUT;
    case ERR_NOMEM:
    case ERR_BUSY:
    case ERR_CLOSED:
    case ERR_CANCELLED:
    case ERR_MAX:
        return K_UNKNOWN_SERVER_ERROR;
    }
    return K_UNKNOWN_SERVER_ERROR;
}
