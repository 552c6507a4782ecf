/* Batches that Apache Kafka wrote, against what was sent and what its own dump tool prints. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/golden_dirs.h"
#include "unit/wire/test_records.h"

#define LINE_MAX_N 4096

/* A file of the clean directory. */
static uint8_t *read_log(const char *name, size_t *n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/clean/%s", golden_dirs(), name);
    return test_read_file(path, n);
}

/* ------------------------------------------------------------------ what the producer sent */

struct expect {
    int64_t timestamp;
    const char *key, *value;
};

/* Calls fn(ctx, i, record) for every record of a log; -1 if a batch is not sound. */
static int each_record(const char *name, void (*fn)(int i, const struct record *r),
                       enum batch_codec codec)
{
    size_t n;
    uint8_t *p = read_log(name, &n);
    int seen = 0;
    for (size_t at = 0; at < n;) {
        struct batch b = parsed((struct bytes){p + at, (int32_t)(n - at)});
        CU_ASSERT_TRUE(batch_crc_ok(&b));
        CU_ASSERT_EQUAL(batch_codec(&b), codec);
        struct record_reader *r;
        MUST(record_reader_new(&b, INT32_MAX, &r));
        struct record rec;
        bool end;
        for (MUST(record_reader_next(r, &rec, &end)); !end;
             MUST(record_reader_next(r, &rec, &end))) {
            CU_ASSERT_EQUAL(rec.offset, seen);
            fn(seen++, &rec);
        }
        record_reader_free(r);
        at += b.size_bytes;
    }
    free(p);
    return seen;
}

static void check_round(int i, const struct record *r)
{
    char key[16], value[64 * 8] = "";
    snprintf(key, sizeof key, "key%d", i % 10);
    for (int k = 0; k < 8; k++)
        snprintf(value + strlen(value), sizeof value - strlen(value), "value %d of round %d ",
                 i % 10, i / 10);
    CU_ASSERT_EQUAL(r->timestamp, T0 + i / 10 * 1000 + i % 10);
    CU_ASSERT_TRUE(bytes_eq(r->key, lit(key)));
    CU_ASSERT_TRUE(bytes_eq(r->value, lit(value)));
    CU_ASSERT_EQUAL(r->headers_n, 0);
}

static void test_golden_codecs_give_what_was_sent(void)
{
    static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    for (int c = 0; c < 5; c++) {
        char name[64];
        snprintf(name, sizeof name, "g-%s-0/00000000000000000000.log", codecs[c]);
        CU_ASSERT_EQUAL(each_record(name, check_round, (enum batch_codec)c), 30);
    }
}

static void check_headers(const struct record *r)
{
    static const char *const keys[] = {"h1", "h1", "null", ""};
    static const char *const values[] = {"v1", "again", NULL, ""};
    struct bytes in = r->headers;
    for (int i = 0; i < 4; i++) {
        struct record_header h;
        MUST(record_next_header(&in, &h));
        CU_ASSERT_TRUE(str_eq(h.key, str_of(keys[i])));
        CU_ASSERT_TRUE(bytes_eq(h.value, lit(values[i])));
    }
    CU_ASSERT_EQUAL(in.n, 0);
}

static void check_odd(int i, const struct record *r)
{
    static const struct expect expect[] = {
        {T0, NULL, "null key"}, {T0 + 5, "tombstone", NULL}, {T0 - 5000, "", ""}};
    CU_ASSERT_EQUAL(r->timestamp, expect[i].timestamp);
    CU_ASSERT_TRUE(bytes_eq(r->key, lit(expect[i].key)));
    CU_ASSERT_TRUE(bytes_eq(r->value, lit(expect[i].value)));
    CU_ASSERT_EQUAL(r->headers_n, i == 0 ? 4 : 0);
    if (i == 0)
        check_headers(r);
}

static void test_golden_null_empty_and_headers_differ(void)
{
    CU_ASSERT_EQUAL(each_record("g-headers-0/00000000000000000000.log", check_odd, CODEC_NONE), 3);
}

static void check_log_append(int i, const struct record *r)
{
    CU_ASSERT_TRUE(r->timestamp > T0 + 1000000); /* the broker's, not the producer's */
    char value[8];
    snprintf(value, sizeof value, "v%d", i);
    CU_ASSERT_TRUE(bytes_eq(r->value, lit(value)));
}

static void test_golden_log_append_time_is_every_records(void)
{
    CU_ASSERT_EQUAL(
        each_record("g-logappend-0/00000000000000000000.log", check_log_append, CODEC_NONE), 5);
}

static void check_idempotent(int i, const struct record *r)
{
    char value[8];
    snprintf(value, sizeof value, "v%d", i);
    CU_ASSERT_EQUAL(r->timestamp, T0 + i);
    CU_ASSERT_TRUE(bytes_eq(r->value, lit(value)));
}

static void test_golden_idempotent_producer(void)
{
    const char *name = "g-idempotent-0/00000000000000000000.log";
    CU_ASSERT_EQUAL(each_record(name, check_idempotent, CODEC_LZ4), 12);
    size_t n;
    uint8_t *p = read_log(name, &n);
    struct batch b = parsed((struct bytes){p, (int32_t)n});
    CU_ASSERT_EQUAL(b.producer_id, 0);
    CU_ASSERT_EQUAL(b.producer_epoch, 0);
    CU_ASSERT_EQUAL(b.base_sequence, 0);
    CU_ASSERT_EQUAL(batch_last_sequence(&b), 3);
    free(p);
}

/* ------------------------------------------------------------------ what the dump tool prints */

/* A walk through one log, in step with its section of the dump. */
struct walk {
    uint8_t *log;
    size_t log_n, at;
    struct batch b;
    struct record_reader *r;
    int batches_n, records_n;
};

static const char *truth(const struct batch *b, int bit)
{
    return (b->attributes & bit) != 0 ? "true" : "false";
}

static const char *time_type(const struct batch *b)
{
    return (b->attributes & BATCH_LOG_APPEND_TIME) != 0 ? "LogAppendTime" : "CreateTime";
}

__attribute__((format(printf, 2, 3))) static void add(char *line, const char *fmt, ...)
{
    size_t n = strlen(line);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + n, LINE_MAX_N - n, fmt, ap);
    va_end(ap);
}

static void print_batch(const struct walk *w, char *line)
{
    static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    const struct batch *b = &w->b;
    add(line, "baseOffset: %lld lastOffset: %lld count: %d baseSequence: %d lastSequence: %d ",
        (long long)b->base_offset, (long long)batch_last_offset(b), b->records_n, b->base_sequence,
        batch_last_sequence(b));
    add(line, "producerId: %lld producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %s ",
        (long long)b->producer_id, b->producer_epoch, b->leader_epoch,
        truth(b, BATCH_TRANSACTIONAL));
    add(line, "isControl: %s deleteHorizonMs: ", truth(b, BATCH_CONTROL));
    if ((b->attributes & BATCH_DELETE_HORIZON) != 0)
        add(line, "OptionalLong[%lld]", (long long)b->base_timestamp);
    else
        add(line, "OptionalLong.empty");
    add(line, " position: %zu %s: %lld size: %u magic: %d compresscodec: %s crc: %u isvalid: %s",
        w->at, time_type(b), (long long)b->max_timestamp, b->size_bytes, b->magic,
        codecs[batch_codec(b)], b->crc, batch_crc_ok(b) ? "true" : "false");
}

static void print_record(const struct walk *w, const struct record *r, char *line)
{
    const struct batch *b = &w->b;
    int64_t sequence =
        b->base_sequence < 0 ? -1 : ((int64_t)b->base_sequence + r->offset_delta) & INT32_MAX;
    add(line, "| offset: %lld %s: %lld keySize: %d valueSize: %d sequence: %lld headerKeys: [",
        (long long)r->offset, time_type(b), (long long)r->timestamp, r->key.n, r->value.n,
        (long long)sequence);
    struct bytes in = r->headers;
    for (int32_t i = 0; i < r->headers_n; i++) {
        struct record_header h;
        MUST(record_next_header(&in, &h));
        add(line, "%s%.*s", i > 0 ? "," : "", h.key.n, h.key.p);
    }
    add(line, "]");
}

static void walk_end(struct walk *w)
{
    if (w->log == NULL)
        return;
    CU_ASSERT_EQUAL(w->at + (w->r != NULL ? w->b.size_bytes : 0), w->log_n);
    record_reader_free(w->r);
    free(w->log);
    *w = (struct walk){.batches_n = w->batches_n, .records_n = w->records_n};
}

static void next_batch(struct walk *w, const char *dumped)
{
    if (w->r != NULL) {
        struct record rec;
        bool end;
        CU_ASSERT_EQUAL(record_reader_next(w->r, &rec, &end), ERR_NONE);
        CU_ASSERT_TRUE(end);
        record_reader_free(w->r);
        w->r = NULL;
        w->at += w->b.size_bytes;
    }
    w->b = parsed((struct bytes){w->log + w->at, (int32_t)(w->log_n - w->at)});
    MUST(record_reader_new(&w->b, INT32_MAX, &w->r));
    char line[LINE_MAX_N] = "";
    print_batch(w, line);
    CU_ASSERT_STRING_EQUAL(line, dumped);
    w->batches_n++;
}

static void next_record(struct walk *w, const char *dumped)
{
    struct record rec;
    bool end;
    MUST(record_reader_next(w->r, &rec, &end));
    CU_ASSERT_FALSE(end);
    char line[LINE_MAX_N] = "";
    print_record(w, &rec, line);
    CU_ASSERT_EQUAL(strncmp(line, dumped, strlen(line)), 0);
    w->records_n++;
}

static void dump_line(struct walk *w, const char *line)
{
    if (strncmp(line, "== ", 3) == 0) {
        walk_end(w);
        if (strcmp(line + strlen(line) - 4, ".log") == 0)
            w->log = read_log(line + 3, &w->log_n);
    } else if (w->log != NULL && strncmp(line, "baseOffset: ", 12) == 0) {
        next_batch(w, line);
    } else if (w->log != NULL && strncmp(line, "| offset: ", 10) == 0) {
        next_record(w, line);
    }
}

static void test_golden_logs_read_as_kafka_dumps_them(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/clean.dump.txt", golden_dirs());
    size_t n;
    char *text = (char *)test_read_file(path, &n);
    struct walk w = {0};
    for (size_t at = 0; at < n;) {
        char *line = text + at;
        char *end = memchr(line, '\n', n - at);
        CU_ASSERT_PTR_NOT_NULL_FATAL(end);
        *end = '\0';
        dump_line(&w, line);
        at = (size_t)(end - text) + 1;
    }
    walk_end(&w);
    free(text);
    CU_ASSERT_TRUE(w.batches_n > 700);
    CU_ASSERT_TRUE(w.records_n > 3000);
}

TEST_MAIN(TEST(test_golden_codecs_give_what_was_sent),
          TEST(test_golden_null_empty_and_headers_differ),
          TEST(test_golden_log_append_time_is_every_records), TEST(test_golden_idempotent_producer),
          TEST(test_golden_logs_read_as_kafka_dumps_them))
