/* Internal error codes of base, wire, log, os. core and api speak Kafka's codes (wire/error.h);
 * one function maps, core/metadata/kafka_error.h. Results must be used. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum err {
    ERR_NONE = 0,
    ERR_NOMEM, /* an allocation or a budget refused */
    ERR_IO,    /* EIO and every file error without a name of its own */
    ERR_NOSPC, /* ENOSPC, EDQUOT */
    ERR_NOENT,
    ERR_EXIST,
    ERR_ACCESS,      /* EACCES, EPERM, EROFS */
    ERR_NFILE,       /* out of file descriptors */
    ERR_BUSY,        /* held by another process; cannot be done in this state */
    ERR_CORRUPT,     /* bytes that are not what they must be */
    ERR_TRUNCATED,   /* more bytes were promised than came */
    ERR_TRAILING,    /* bytes left over */
    ERR_RANGE,       /* a number outside its range; an offset outside the log */
    ERR_INVALID,     /* an argument or configuration value that is not valid */
    ERR_UNSUPPORTED, /* a version or codec that is not served */
    ERR_TOO_LARGE,
    ERR_OFFLINE, /* the log directory failed earlier */
    ERR_CLOSED,  /* connection or object closed meanwhile */
    ERR_CANCELLED,
    ERR_TIMEOUT,
    ERR_AGAIN, /* not now: the same call may succeed later */
    ERR_MAX
};

#define MUST_USE __attribute__((warn_unused_result))

/* "NONE", "NOMEM", ... */
const char *err_name(enum err e);

#endif
