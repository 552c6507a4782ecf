/* Arbitrary bytes as a produced batch, as the records of one, and as a compressed stream. The first
 * bytes choose which, and the topic's configuration; headers can be mended, so that the fuzzer gets
 * past length and CRC.
 *
 * What holds: memory stays in the budget and comes back; what is accepted has a CRC, reads back to
 * its end, and is accepted again, unchanged (unless LogAppendTime was set before or after, which
 * gives the records other timestamps); skimming, reading and rebuilding agree on what is a record.
 */
#include <limits.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "wire/compress.h"
#include "wire/validate.h"

#define BUDGET_BYTES (16u << 20)
#define OUTPUT_MAX_BYTES (16u << 20) /* of a stream: enough to see a bomb, not all of it */
#define RECORD_MAX_BYTES (1 << 20)
#define NOW_MS INT64_C(1700000000000)
#define CHOICES_N 8

enum mode { MODE_RAW, MODE_MENDED, MODE_RECORDS, MODE_STREAM, MODES_N };

struct choices {
    enum mode mode;
    int16_t codec;     /* 0..7 */
    int32_t records_n; /* of MODE_RECORDS */
    int16_t attributes;
    struct validate_config cfg;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct choices choose(const uint8_t *p)
{
    static const int levels[] = {INT_MIN, 1, 9, 5};
    return (struct choices){
        .mode = (enum mode)(p[0] % MODES_N),
        .codec = p[1] & BATCH_CODEC_MASK,
        .attributes = (int16_t)((p[2] & 0x1f) << 3),
        .records_n = p[3],
        .cfg =
            {
                .compacted = (p[4] & 1) != 0,
                .log_append_time = (p[4] & 2) != 0,
                .timestamp_before_max_ms = (p[4] & 4) != 0 ? INT64_MAX : 1000,
                .timestamp_after_max_ms = (p[4] & 8) != 0 ? INT64_MAX : 1000,
                .max_message_bytes = (p[4] & 16) != 0 ? 1048588 : 500,
                .segment_bytes = (p[4] & 32) != 0 ? INT32_MAX : 400,
                .max_decompressed_bytes = RECORD_MAX_BYTES,
                .compression = p[5] % (CODEC_MAX + 1) - 1,
                .compression_level = levels[p[6] % 4],
            },
    };
}

static void read_to_the_end(const struct batch *b)
{
    struct record_reader *r;
    CHECK(record_reader_new(b, RECORD_MAX_BYTES, &r) == ERR_NONE);
    int32_t n = 0;
    for (bool end = false;; n++) {
        struct record rec;
        CHECK(record_reader_next(r, &rec, &end) == ERR_NONE);
        if (end)
            break;
        for (int32_t i = 0; i < rec.headers_n; i++) {
            struct record_header h;
            CHECK(record_next_header(&rec.headers, &h) == ERR_NONE);
        }
        CHECK(rec.headers.n == 0);
    }
    CHECK(n == b->records_n);
    record_reader_free(r);
}

static int16_t validate(const struct validate_config *cfg, uint8_t *p, int32_t n,
                        struct arena *arena, struct validated *v)
{
    struct batch_facts facts;
    batch_prepare((struct bytes){p, n}, &facts);
    CHECK(!facts.malformed || facts.error != K_NONE);
    return batch_validate(cfg, &facts, p, NOW_MS, "topic", 0, arena, v);
}

static void check_accepted(const struct validate_config *cfg, const struct validated *v,
                           bool other_times, struct arena *arena)
{
    CHECK(batch_crc_ok(&v->facts));
    CHECK(v->record_errors_n == 0 && v->error_message == NULL);
    CHECK(v->batch.n <= cfg->max_message_bytes && v->batch.n <= cfg->segment_bytes);
    read_to_the_end(&v->facts);
    uint8_t *copy = arena_alloc(arena, (size_t)v->batch.n);
    if (copy == NULL)
        return;
    memcpy(copy, v->batch.p, (size_t)v->batch.n);
    struct validated again;
    int16_t error = validate(cfg, copy, v->batch.n, arena, &again);
    CHECK(error == K_NONE || error == K_UNKNOWN_SERVER_ERROR /* the budget ran out */ ||
          (error == K_INVALID_TIMESTAMP && other_times));
    if (error == K_NONE && !other_times)
        CHECK(!again.owned_copy && memcmp(copy, v->batch.p, (size_t)v->batch.n) == 0);
}

static void produce(const struct choices *c, uint8_t *p, int32_t n)
{
    struct budget budget;
    struct arena arena;
    struct validated v;
    budget_init(&budget, NULL, BUDGET_BYTES);
    arena_init(&arena, &budget);
    bool other_times = c->cfg.log_append_time || (n > 22 && (p[22] & BATCH_LOG_APPEND_TIME) != 0);
    int16_t error = validate(&c->cfg, p, n, &arena, &v);
    if (error == K_NONE)
        check_accepted(&c->cfg, &v, other_times, &arena);
    else
        CHECK(v.batch.n == 0 && v.log_append_time_ms == -1);
    arena_close(&arena);
    CHECK(budget.used_bytes == 0);
}

/* The bytes as a batch; mended, with length, magic and CRC that hold. */
static void produce_bytes(const struct choices *c, const uint8_t *data, size_t size, bool mended)
{
    struct buf b;
    buf_init(&b);
    CHECK(buf_append(&b, data, size) == ERR_NONE);
    if (mended && size >= BATCH_OVERHEAD) {
        put_be64(b.p, 0);
        put_be32(b.p + 8, (uint32_t)(size - BATCH_LOG_OVERHEAD));
        b.p[16] = 2;
        put_be32(b.p + 17, crc32c(0, b.p + 21, size - 21));
    }
    produce(c, b.p, (int32_t)b.n);
    buf_close(&b);
}

/* The bytes as the records of a batch, through a codec. */
static void produce_records(const struct choices *c, const uint8_t *data, size_t size)
{
    enum batch_codec codec = (enum batch_codec)(c->codec % CODEC_MAX);
    struct buf b;
    buf_init(&b);
    CHECK(buf_reserve(&b, BATCH_OVERHEAD) == ERR_NONE);
    memset(b.p, 0, BATCH_OVERHEAD);
    b.n = BATCH_OVERHEAD;
    CHECK(compress_append(codec, INT_MIN, (struct bytes){data, (int32_t)size}, &b) == ERR_NONE);
    put_be16(b.p + 21, (uint16_t)(c->attributes | (int16_t)codec));
    put_be32(b.p + 23, (uint32_t)c->records_n - 1);
    put_be64(b.p + 27, NOW_MS);
    put_be64(b.p + 35, NOW_MS);
    put_be64(b.p + 43, UINT64_MAX);
    put_be16(b.p + 51, UINT16_MAX);
    put_be32(b.p + 53, UINT32_MAX);
    put_be32(b.p + 57, (uint32_t)c->records_n);
    produce_bytes(c, b.p, b.n, true);
    buf_close(&b);
}

static void decompress(const struct choices *c, const uint8_t *data, size_t size)
{
    struct budget budget;
    struct decompressor *d;
    budget_init(&budget, NULL, BUDGET_BYTES);
    enum err err = decompressor_new((enum batch_codec)c->codec, (struct bytes){data, (int32_t)size},
                                    &budget, &d);
    if (err != ERR_NONE) {
        CHECK(err == ERR_UNSUPPORTED);
        return;
    }
    static uint8_t to[10000];
    size_t sum = 0;
    for (size_t got = 1; err == ERR_NONE && got > 0 && sum < OUTPUT_MAX_BYTES; sum += got) {
        err = decompressor_read(d, to, 1 + (size_t)c->records_n * 39, &got);
        CHECK(err == ERR_NONE || err == ERR_INVALID || err == ERR_NOMEM);
    }
    decompressor_free(d);
    CHECK(budget.used_bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CHOICES_N)
        return 0;
    struct choices c = choose(data);
    data += CHOICES_N;
    size -= CHOICES_N;
    switch (c.mode) {
    case MODE_RAW:
        produce_bytes(&c, data, size, false);
        break;
    case MODE_MENDED:
        produce_bytes(&c, data, size, true);
        break;
    case MODE_RECORDS:
        produce_records(&c, data, size);
        break;
    case MODE_STREAM:
    case MODES_N:
        decompress(&c, data, size);
        break;
    }
    return 0;
}
