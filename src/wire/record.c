/* One parser for both uses. A record is parsed from the window; reading whole records first makes
 * the window hold all of it, so that pointers into it stand, while skimming steps over keys and
 * values and refills the window on the way. `position` counts bytes of the decompressed stream, so
 * the end of a record is a number that refills do not move. */
#include "wire/record.h"

#include <stdlib.h>

#include "wire/compress.h"
#include "wire/varint.h"

#define WINDOW_MIN (16u << 10)
/* A block of the clients' 64 kB, and what is left of the last one. */
#define WINDOW_LZ4 (80u << 10)

/* Bytes of the stream before s->pos. */
static uint64_t position(const struct record_stream *s)
{
    return s->begun - (uint64_t)(s->end - s->pos);
}

enum err record_stream_open(struct record_stream *s, const struct batch *b,
                            uint32_t max_record_bytes, struct budget *budget)
{
    if (b->magic < 2)
        return ERR_UNSUPPORTED;
    const uint8_t *p = b->p + BATCH_OVERHEAD;
    size_t n = b->size_bytes - BATCH_OVERHEAD;
    *s =
        (struct record_stream){.batch = *b, .max_record_bytes = max_record_bytes, .budget = budget};
    if (batch_codec(b) == CODEC_NONE) {
        s->pos = p;
        s->end = p + n;
        s->begun = n;
        return ERR_NONE;
    }
    enum err err = decompressor_new(batch_codec(b), (struct bytes){p, (int32_t)n}, budget, &s->d);
    if (err != ERR_NONE)
        return err;
    const size_t cap = batch_codec(b) == CODEC_LZ4 ? WINDOW_LZ4 : WINDOW_MIN;
    if (!budget_take(budget, cap)) {
        decompressor_free(s->d);
        return ERR_NOMEM;
    }
    s->window = malloc(cap);
    if (s->window == NULL) {
        budget_give(budget, cap);
        decompressor_free(s->d);
        return ERR_NOMEM;
    }
    s->cap = cap;
    s->pos = s->end = s->window;
    return ERR_NONE;
}

void record_stream_close(struct record_stream *s)
{
    decompressor_free(s->d);
    free(s->window);
    budget_give(s->budget, s->cap);
}

static enum err grow(struct record_stream *s)
{
    size_t cap = s->cap * 2;
    if (!budget_take(s->budget, cap - s->cap))
        return ERR_NOMEM;
    size_t at = (size_t)(s->pos - s->window), end = (size_t)(s->end - s->window);
    uint8_t *p = realloc(s->window, cap);
    if (p == NULL) {
        budget_give(s->budget, cap - s->cap);
        return ERR_NOMEM;
    }
    s->window = p;
    s->cap = cap;
    s->pos = p + at;
    s->end = p + end;
    return ERR_NONE;
}

/* More bytes behind the unread ones; none at the end of the stream. */
static enum err refill(struct record_stream *s, size_t *got)
{
    *got = 0;
    if (s->d == NULL)
        return ERR_NONE;
    size_t kept = (size_t)(s->end - s->pos);
    if (s->pos != s->window) {
        memmove(s->window, s->pos, kept);
        s->pos = s->window;
        s->end = s->window + kept;
    }
    if (kept == s->cap) {
        enum err err = grow(s);
        if (err != ERR_NONE)
            return err;
    }
    uint8_t *to = s->window + kept;
    enum err err = decompressor_read(s->d, to, s->cap - kept, got);
    s->end += *got;
    s->begun += *got;
    return err;
}

/* n unread bytes in the window. */
static enum err want(struct record_stream *s, size_t n)
{
    while ((size_t)(s->end - s->pos) < n) {
        size_t got;
        enum err err = refill(s, &got);
        if (err != ERR_NONE)
            return err;
        if (got == 0)
            return ERR_TRUNCATED;
    }
    return ERR_NONE;
}

static enum err skip(struct record_stream *s, uint64_t n)
{
    for (;;) {
        size_t here = (size_t)(s->end - s->pos);
        if (n <= here) {
            s->pos += n;
            return ERR_NONE;
        }
        n -= here;
        s->pos = s->end;
        enum err err = want(s, 1);
        if (err != ERR_NONE)
            return err;
    }
}

/* Nearly all numbers of a record are one byte or two: worth half of the time of skimming. */
static inline bool take_short(struct record_stream *s, uint64_t *raw)
{
    const uint8_t *p = s->pos;
    if (s->end - p < 2 || (p[0] > 0x7f && p[1] > 0x7f))
        return false;
    const bool one = p[0] <= 0x7f;
    *raw = one ? p[0] : (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
    s->pos += one ? 1 : 2;
    return true;
}

static enum err take_varint(struct record_stream *s, int max, uint64_t *raw)
{
    int used;
    while ((used = varint_get(s->pos, s->end, max, raw)) == 0) {
        enum err err = want(s, (size_t)(s->end - s->pos) + 1);
        if (err != ERR_NONE)
            return err;
    }
    if (used < 0)
        return ERR_CORRUPT;
    s->pos += used;
    return ERR_NONE;
}

static inline enum err take_i32(struct record_stream *s, int32_t *out)
{
    uint64_t raw;
    enum err err = take_short(s, &raw) ? ERR_NONE : take_varint(s, VARINT_MAX, &raw);
    if (err == ERR_NONE)
        *out = (int32_t)varint_unzigzag((uint32_t)raw);
    return err;
}

static inline enum err take_i64(struct record_stream *s, int64_t *out)
{
    uint64_t raw;
    enum err err = take_short(s, &raw) ? ERR_NONE : take_varint(s, VARLONG_MAX, &raw);
    if (err == ERR_NONE)
        *out = varint_unzigzag(raw);
    return err;
}

/* Length and bytes; a negative length is null (Kafka: any, not only -1). limit is the position
 * where the record ends. */
static enum err take_bytes(struct record_stream *s, uint64_t limit, bool whole, struct bytes *out)
{
    int32_t n;
    enum err err = take_i32(s, &n);
    if (err != ERR_NONE)
        return err;
    *out = BYTES_NULL;
    if (n < 0)
        return ERR_NONE;
    uint64_t at = position(s);
    if (at > limit || (uint64_t)n > limit - at)
        return ERR_CORRUPT;
    *out = (struct bytes){whole ? s->pos : NULL, n};
    return skip(s, (uint64_t)n);
}

static enum err take_headers(struct record_stream *s, uint64_t limit, bool whole,
                             struct record *out)
{
    enum err err = take_i32(s, &out->headers_n);
    if (err != ERR_NONE)
        return err;
    uint64_t at = position(s);
    if (out->headers_n < 0 || at > limit || (uint64_t)out->headers_n > limit - at)
        return ERR_CORRUPT;
    out->headers = (struct bytes){whole ? s->pos : NULL, (int32_t)(limit - at)};
    for (int32_t i = 0; i < out->headers_n; i++) {
        struct bytes key, value;
        err = take_bytes(s, limit, false, &key);
        if (err == ERR_NONE && key.n < 0)
            err = ERR_CORRUPT;
        if (err == ERR_NONE)
            err = take_bytes(s, limit, false, &value);
        if (err != ERR_NONE)
            return err;
    }
    return ERR_NONE;
}

static enum err take_body(struct record_stream *s, uint64_t limit, bool whole, struct record *out)
{
    enum err err = want(s, 1);
    if (err != ERR_NONE)
        return err;
    out->attributes = (int8_t)*s->pos++;
    int64_t timestamp_delta;
    err = take_i64(s, &timestamp_delta);
    if (err == ERR_NONE)
        err = take_i32(s, &out->offset_delta);
    if (err == ERR_NONE)
        err = take_bytes(s, limit, whole, &out->key);
    if (err == ERR_NONE)
        err = take_bytes(s, limit, whole, &out->value);
    if (err != ERR_NONE)
        return err;
    const struct batch *b = &s->batch;
    out->offset = (int64_t)((uint64_t)b->base_offset + (uint64_t)(int64_t)out->offset_delta);
    out->timestamp = (b->attributes & BATCH_LOG_APPEND_TIME) != 0
                         ? b->max_timestamp
                         : (int64_t)((uint64_t)b->base_timestamp + (uint64_t)timestamp_delta);
    return take_headers(s, limit, whole, out);
}

static enum err take_record(struct record_stream *s, bool whole, struct record *out)
{
    int32_t n;
    enum err err = take_i32(s, &n);
    if (err != ERR_NONE)
        return err;
    if (n < 0)
        return ERR_CORRUPT;
    if (s->d != NULL && (uint32_t)n > s->max_record_bytes)
        return ERR_TOO_LARGE;
    if (whole || s->d == NULL) {
        err = want(s, (size_t)n);
        if (err != ERR_NONE)
            return err;
    }
    uint64_t limit = position(s) + (uint64_t)n;
    err = take_body(s, limit, whole, out);
    if (err != ERR_NONE)
        return err;
    return position(s) == limit ? ERR_NONE : ERR_CORRUPT;
}

/* The stream must end with the last record. */
static enum err take_end(struct record_stream *s)
{
    size_t got = (size_t)(s->end - s->pos);
    enum err err = got > 0 ? ERR_NONE : refill(s, &got);
    if (err != ERR_NONE)
        return err;
    return got > 0 ? ERR_TRAILING : ERR_NONE;
}

enum err record_stream_next(struct record_stream *s, bool whole, struct record *out, bool *end)
{
    *end = false;
    if (s->read_n >= s->batch.records_n) {
        *end = true;
        return take_end(s);
    }
    enum err err = take_record(s, whole, out);
    if (err == ERR_NONE)
        s->read_n++;
    return err;
}
