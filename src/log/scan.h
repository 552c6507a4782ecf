/* Walks the batches of a .log file, reading ahead into a buffer of the caller's. Never more than
 * the buffer is held: larger batches are seen by their header, their CRC is streamed (law 5).
 * Internal to log. */
#ifndef LOG_SCAN_H
#define LOG_SCAN_H

#include "base/env.h"
#include "wire/batch.h"

#define SCAN_HEAD_BYTES 4096         /* enough to walk headers between two index entries */
#define SCAN_BULK_BYTES (256u << 10) /* for a worker that reads everything */

struct scan {
    struct file *f; /* not counted */
    uint64_t at;    /* position of the batch that comes next */
    uint64_t end;   /* bytes of the file that count */
    uint8_t *buf;
    size_t cap; /* >= SCAN_HEAD_BYTES */
    uint64_t buf_at;
    size_t buf_n;
    bool now; /* ERR_AGAIN instead of a wait for the device; the scan stays where it is */
};

void scan_init(struct scan *s, struct file *f, uint64_t from, uint64_t end, uint8_t *buf,
               size_t cap);
/* The next batch's header; *position is where it begins. *more is false, and nothing else set, when
 * s->at == s->end. out->p holds the header only. ERR_TRUNCATED: not all of it is there;
 * ERR_CORRUPT: not a batch; read errors. After an error s->at is where the trouble begins. Magic 1:
 * max_timestamp is the message's. */
MUST_USE enum err scan_next(struct scan *s, struct batch *out, uint64_t *position, bool *more);
/* The whole batch that scan_next just gave: out->p until the next call. ERR_TOO_LARGE: larger than
 * the buffer. */
MUST_USE enum err scan_body(struct scan *s, struct batch *b);
/* ERR_CORRUPT if the CRC of the batch that scan_next just gave does not hold. */
MUST_USE enum err scan_crc(struct scan *s, const struct batch *b);

#endif
