/* A produced batch is read once, record by record, without holding its records: uncompressed where
 * it lies, compressed through a window. Only a batch whose codec is to change is also rebuilt on
 * the way, straight into the other codec, and given up as soon as it is over the limit; the reading
 * goes on all the same, since a bad record outranks the size.
 *
 * The order of errors is Kafka's: header; then what breaks the reading; then the records' own
 * errors, all of them together; then what only the end shows (offsets of a compressed batch that
 * stays as it is, values that a rebuilt batch cannot carry, sizes). Three of those are accidents of
 * its code that clients can see, so they are kept: a compressed batch with odd offsets, and
 * negative timestamps or half a producer's identity in a batch to be rebuilt, answer
 * UNKNOWN_SERVER_ERROR.
 *
 * Two differences, on purpose: a record must fill its length in compressed batches too (Kafka
 * stores such a batch, which no consumer can read), and at most LISTED_MAX offenders are listed. */
#include "wire/validate.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "base/endian.h"
#include "wire/batch_layout.h"
#include "wire/record.h"

#define LISTED_MAX 10000
#define MESSAGE_MAX 400 /* a topic name and numbers */

#define TIMESTAMP_SUMMARY "One or more records have been rejected due to invalid timestamp"
#define KEY_MESSAGE "Compacted topic cannot accept message without key in topic partition %s-%d"

struct run {
    const struct validate_config *cfg;
    struct batch b;
    int64_t now_ms;
    const char *topic;
    int32_t partition;
    struct arena *arena;
    struct validated *out;

    int64_t max_timestamp;   /* of the records; -1 if none is larger */
    bool offsets_odd;        /* not 0, 1, 2... */
    bool timestamp_negative; /* other than -1 */
    bool timestamp_error;    /* in some record */
    int32_t errors_n;        /* offenders; the first LISTED_MAX are listed */
    int32_t listed_cap;
    const char *key_message;  /* the same for all records */
    bool rebuild;             /* the codec changes */
    struct batch_builder *bb; /* the batch being rebuilt; NULL: not, or not any more */
    bool too_large;           /* the reason why not any more */
};

/* ------------------------------------------------------------------ prepare */

/* The first batch's facts, as far as its size allows. */
static void read_first(struct bytes in, uint64_t size, struct batch *out)
{
    struct bytes batch = {in.p, (int32_t)size};
    if (batch_parse(batch, out) == ERR_NONE)
        return;
    *out = (struct batch){
        .p = in.p,
        .size_bytes = (uint32_t)size,
        .base_offset = (int64_t)be64(in.p + AT_BASE_OFFSET),
        .magic = (int8_t)in.p[AT_MAGIC],
        .attributes = (int16_t)be16(in.p + AT_ATTRIBUTES),
    };
}

/* Size of the batch at the start of in, 0 if it is not all there. ERR_CORRUPT: not a batch. */
static enum err complete_size(struct bytes in, uint64_t *size)
{
    *size = 0;
    uint64_t claimed;
    enum err err = batch_peek_size(in, &claimed);
    if (err != ERR_NONE || in.n < BATCH_MIN)
        return err == ERR_CORRUPT ? err : ERR_NONE;
    if (in.p[AT_MAGIC] > 2)
        return ERR_CORRUPT;
    if (claimed <= (uint64_t)in.n)
        *size = claimed;
    return ERR_NONE;
}

void batch_prepare(struct bytes records, struct batch_facts *out)
{
    *out = (struct batch_facts){.error = K_INVALID_RECORD};
    uint64_t size;
    if (complete_size(records, &size) != ERR_NONE) {
        out->malformed = true;
        out->error = K_CORRUPT_MESSAGE;
        return;
    }
    if (size == 0)
        return;
    read_first(records, size, &out->first);
    if (out->first.magic < 2)
        return;
    out->transactional = (out->first.attributes & BATCH_TRANSACTIONAL) != 0;
    struct bytes behind = {records.p + size, records.n - (int32_t)size};
    uint64_t second;
    if (complete_size(behind, &second) != ERR_NONE) {
        out->error = K_CORRUPT_MESSAGE;
        return;
    }
    if (second > 0)
        return;
    out->error = K_NONE;
    out->crc_ok = size >= BATCH_OVERHEAD && batch_crc_ok(&out->first);
}

/* ------------------------------------------------------------------ record errors */

__attribute__((format(printf, 2, 3))) static const char *message(struct arena *a, const char *fmt,
                                                                 ...)
{
    char text[MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return arena_strdup(a, str_of(text));
}

static bool listed_reserve(struct run *r)
{
    struct validated *out = r->out;
    if (out->record_errors_n < r->listed_cap)
        return true;
    int32_t cap = r->listed_cap == 0 ? 8 : r->listed_cap * 2;
    struct record_error *v = arena_array(r->arena, (size_t)cap, sizeof *v);
    if (v == NULL)
        return false;
    if (out->record_errors_n > 0)
        memcpy(v, out->record_errors, (size_t)out->record_errors_n * sizeof *v);
    out->record_errors = v;
    r->listed_cap = cap;
    return true;
}

/* The record at hand is refused. text is NULL when memory ran out for it. */
static enum err refuse(struct run *r, int32_t idx, const char *text)
{
    if (text == NULL || !listed_reserve(r))
        return ERR_NOMEM;
    struct validated *out = r->out;
    out->record_errors[out->record_errors_n++] = (struct record_error){idx, text};
    return ERR_NONE;
}

static bool lists_more(struct run *r)
{
    return r->errors_n++ < LISTED_MAX;
}

static enum err check_key(struct run *r, int32_t idx)
{
    if (!lists_more(r))
        return ERR_NONE;
    if (r->key_message == NULL)
        r->key_message = message(r->arena, KEY_MESSAGE, r->topic, r->partition);
    return refuse(r, idx, r->key_message);
}

static enum err check_timestamp(struct run *r, const struct record *rec, int32_t idx)
{
    const struct validate_config *cfg = r->cfg;
    if (!cfg->log_append_time && rec->timestamp != -1) {
        int64_t min, max;
        if (__builtin_sub_overflow(r->now_ms, cfg->timestamp_before_max_ms, &min))
            min = INT64_MIN;
        if (__builtin_add_overflow(r->now_ms, cfg->timestamp_after_max_ms, &max))
            max = INT64_MAX;
        if (rec->timestamp >= min && rec->timestamp <= max)
            return ERR_NONE;
        r->timestamp_error = true;
        if (!lists_more(r))
            return ERR_NONE;
        return refuse(r, idx,
                      message(r->arena, "Timestamp %lld of record %d is not in [%lld, %lld]",
                              (long long)rec->timestamp, idx, (long long)min, (long long)max));
    }
    if ((r->b.attributes & BATCH_LOG_APPEND_TIME) == 0)
        return ERR_NONE;
    r->timestamp_error = true;
    if (!lists_more(r))
        return ERR_NONE;
    return refuse(r, idx, "A producer must not set the timestamp type LogAppendTime");
}

static int16_t finish_record_errors(struct run *r)
{
    struct validated *out = r->out;
    if (r->timestamp_error) {
        out->error_message = TIMESTAMP_SUMMARY;
        return K_INVALID_TIMESTAMP;
    }
    out->error_message = message(
        r->arena,
        "One or more records have been rejected due to %d record errors in total, the first: %s",
        r->errors_n, out->record_errors[0].message);
    return K_INVALID_RECORD;
}

/* ------------------------------------------------------------------ reading */

static int16_t check_header(const struct run *r, const struct batch_facts *facts)
{
    const struct batch *b = &r->b;
    if (b->base_offset != 0)
        return K_INVALID_RECORD;
    if (b->size_bytes > (uint32_t)r->cfg->max_message_bytes)
        return K_MESSAGE_TOO_LARGE;
    if (!facts->crc_ok)
        return K_CORRUPT_MESSAGE;
    if (batch_codec(b) >= CODEC_MAX)
        return K_UNKNOWN_SERVER_ERROR;
    if (b->last_offset_delta < 0 || b->records_n <= 0 ||
        b->records_n != (int64_t)b->last_offset_delta + 1)
        return K_INVALID_RECORD;
    if ((b->attributes & BATCH_CONTROL) != 0 || (b->producer_id >= 0 && b->base_sequence < 0))
        return K_INVALID_RECORD;
    return K_NONE;
}

static enum err rebuild_begin(struct run *r)
{
    const struct batch *b = &r->b;
    int16_t attributes = (int16_t)(r->cfg->compression | (b->attributes & BATCH_TRANSACTIONAL));
    if (r->cfg->log_append_time)
        attributes |= BATCH_LOG_APPEND_TIME;
    struct batch_builder_args args = {
        .leader_epoch = b->leader_epoch,
        .attributes = attributes,
        .producer_id = b->producer_id,
        .producer_epoch = b->producer_epoch,
        .base_sequence = b->base_sequence,
        .level = r->cfg->compression_level,
    };
    return batch_builder_new(&args, &r->bb);
}

static void rebuild_drop(struct run *r)
{
    batch_builder_free(r->bb);
    r->bb = NULL;
}

static enum err rebuild_add(struct run *r, const struct record *rec)
{
    /* Nothing will come of a batch with a bad record. */
    if (r->errors_n > 0) {
        rebuild_drop(r);
        return ERR_NONE;
    }
    enum err err = batch_builder_add_encoded(r->bb, rec->timestamp, rec->key, rec->value,
                                             rec->headers, rec->headers_n);
    if (err != ERR_NONE)
        return err;
    if (batch_builder_written_bytes(r->bb) > (size_t)r->cfg->max_message_bytes) {
        r->too_large = true;
        rebuild_drop(r);
    }
    return ERR_NONE;
}

static enum err check_record(struct run *r, const struct record *rec, int32_t idx)
{
    enum err err =
        r->cfg->compacted && rec->key.n < 0 ? check_key(r, idx) : check_timestamp(r, rec, idx);
    if (err != ERR_NONE)
        return err;
    if (rec->timestamp > r->max_timestamp)
        r->max_timestamp = rec->timestamp;
    if (rec->timestamp < -1)
        r->timestamp_negative = true;
    if (rec->offset_delta != idx)
        r->offsets_odd = true;
    return r->bb != NULL ? rebuild_add(r, rec) : ERR_NONE;
}

static enum err check_records(struct run *r)
{
    struct record_stream s;
    uint32_t max = (uint32_t)r->cfg->max_decompressed_bytes;
    enum err err = record_stream_open(&s, &r->b, max, r->arena->budget);
    if (err != ERR_NONE)
        return err;
    bool end = false;
    for (int32_t idx = 0; err == ERR_NONE && !end; idx++) {
        struct record rec;
        err = record_stream_next(&s, r->bb != NULL, &rec, &end);
        if (err == ERR_NONE && !end)
            err = check_record(r, &rec, idx);
    }
    record_stream_close(&s);
    return err;
}

static int16_t reading_error(enum err err)
{
    switch (err) {
    case ERR_CORRUPT:
    case ERR_TRUNCATED:
    case ERR_TRAILING:
    case ERR_TOO_LARGE:
        return K_INVALID_RECORD;
    default:
        return K_UNKNOWN_SERVER_ERROR;
    }
}

/* ------------------------------------------------------------------ results */

static int16_t finish_in_place(struct run *r, uint8_t *p)
{
    if (batch_codec(&r->b) != CODEC_NONE && r->offsets_odd)
        return K_UNKNOWN_SERVER_ERROR;
    bool append_time = r->cfg->log_append_time;
    int64_t max = append_time ? r->now_ms : r->max_timestamp;
    bool was_append_time = (r->b.attributes & BATCH_LOG_APPEND_TIME) != 0;
    if (append_time != was_append_time || max != r->b.max_timestamp)
        batch_set_max_timestamp(p, append_time, max);
    r->out->batch = (struct bytes){p, (int32_t)r->b.size_bytes};
    return K_NONE;
}

static bool producer_can_be_rebuilt(const struct batch *b)
{
    if (b->producer_id == -1)
        return (b->attributes & BATCH_TRANSACTIONAL) == 0;
    return b->producer_epoch != -1 && b->base_sequence >= 0;
}

static int16_t finish_rebuild(struct run *r)
{
    if (r->timestamp_negative || !producer_can_be_rebuilt(&r->b))
        return K_UNKNOWN_SERVER_ERROR;
    if (r->too_large)
        return K_MESSAGE_TOO_LARGE;
    struct bytes made;
    enum err err = batch_builder_finish(r->bb, &made);
    if (err != ERR_NONE)
        return err == ERR_TOO_LARGE ? K_MESSAGE_TOO_LARGE : K_UNKNOWN_SERVER_ERROR;
    if (made.n > r->cfg->max_message_bytes)
        return K_MESSAGE_TOO_LARGE;
    uint8_t *copy = arena_memdup(r->arena, made.p, (size_t)made.n);
    if (copy == NULL)
        return K_UNKNOWN_SERVER_ERROR;
    if (r->cfg->log_append_time)
        batch_set_max_timestamp(copy, true, r->now_ms);
    r->out->batch = (struct bytes){copy, made.n};
    r->out->owned_copy = true;
    return K_NONE;
}

static int16_t finish(struct run *r, uint8_t *p)
{
    if (r->errors_n > 0)
        return finish_record_errors(r);
    int16_t error = r->rebuild ? finish_rebuild(r) : finish_in_place(r, p);
    if (error != K_NONE)
        return error;
    struct validated *out = r->out;
    if (out->batch.n > r->cfg->segment_bytes) {
        out->batch = (struct bytes){NULL, 0};
        out->owned_copy = false;
        return K_RECORD_LIST_TOO_LARGE;
    }
    CHECK(batch_parse(out->batch, &out->facts) == ERR_NONE);
    out->max_timestamp = out->facts.max_timestamp;
    out->log_append_time_ms = r->cfg->log_append_time ? r->now_ms : -1;
    return K_NONE;
}

int16_t batch_validate(const struct validate_config *cfg, const struct batch_facts *facts,
                       uint8_t *p, int64_t now_ms, const char *topic, int32_t partition,
                       struct arena *a, struct validated *out)
{
    *out = (struct validated){.log_append_time_ms = -1, .max_timestamp = -1};
    struct run r = {
        .cfg = cfg,
        .b = facts->first,
        .now_ms = now_ms,
        .topic = topic,
        .partition = partition,
        .arena = a,
        .out = out,
        .max_timestamp = -1,
    };
    int16_t error = facts->error != K_NONE ? facts->error : check_header(&r, facts);
    if (error != K_NONE)
        return error;
    r.b.p = p;
    r.rebuild = cfg->compression >= 0 && cfg->compression != (int)batch_codec(&r.b);
    enum err err = r.rebuild ? rebuild_begin(&r) : ERR_NONE;
    if (err == ERR_NONE)
        err = check_records(&r);
    error = err != ERR_NONE ? reading_error(err) : finish(&r, p);
    rebuild_drop(&r);
    return error;
}
