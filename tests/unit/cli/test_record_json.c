/* Records as lines of JSON and back: any bytes come back as they were; lines that are not such
 * records are refused. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/record_json.h"
#include "support/fault.h"
#include "support/rng.h"
#include "support/test.h"

static char message[RECORD_JSON_MESSAGE_BYTES];

static struct bytes lit(const char *s)
{
    return s == NULL ? BYTES_NULL : (struct bytes){(const uint8_t *)s, (int32_t)strlen(s)};
}

static bool same(struct bytes a, struct bytes b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

/* A record as a batch gives it; its batch and reader stay until closed. */
struct made {
    struct batch_builder *builder;
    struct record_reader *reader;
    struct record record;
};

static void make(struct made *m, int64_t timestamp, struct bytes key, struct bytes value,
                 const struct record_header *headers, int32_t headers_n)
{
    const struct batch_builder_args args = {
        .base_offset = 7, .producer_id = -1, .producer_epoch = -1, .base_sequence = -1};
    struct bytes bytes;
    struct batch batch;
    bool end;
    CU_ASSERT_FATAL(batch_builder_new(&args, &m->builder) == ERR_NONE);
    CU_ASSERT_FATAL(batch_builder_add(m->builder, timestamp, key, value, headers, headers_n) ==
                    ERR_NONE);
    CU_ASSERT_FATAL(batch_builder_finish(m->builder, &bytes) == ERR_NONE);
    CU_ASSERT_FATAL(batch_parse(bytes, &batch) == ERR_NONE);
    CU_ASSERT_FATAL(record_reader_new(&batch, 1 << 20, &m->reader) == ERR_NONE);
    CU_ASSERT_FATAL(record_reader_next(m->reader, &m->record, &end) == ERR_NONE && !end);
}

static void unmake(struct made *m)
{
    record_reader_free(m->reader);
    batch_builder_free(m->builder);
}

static void test_record_json_looks(void)
{
    const struct record_header headers[] = {{STR_LIT("h"), lit("w")}, {STR_LIT("n"), BYTES_NULL}};
    struct made m;
    struct buf out;
    buf_init(&out);
    make(&m, 1700000000000, lit("k\xc3\xa4"), lit("say \"hi\"\n"), headers, 2);
    CU_ASSERT(record_json_write(STR_LIT("t"), 3, &m.record, &out) == ERR_NONE);
    unmake(&m);
    make(&m, -1, BYTES_NULL, lit("\xff"), NULL, 0);
    CU_ASSERT(record_json_write(STR_LIT("t"), 0, &m.record, &out) == ERR_NONE);
    unmake(&m);
    const char want[] =
        "{\"topic\":\"t\",\"partition\":3,\"offset\":7,\"timestamp\":1700000000000,"
        "\"key\":\"k\xc3\xa4\",\"value\":\"say \\\"hi\\\"\\n\","
        "\"headers\":[{\"key\":\"h\",\"value\":\"w\"},{\"key\":\"n\",\"value\":null}]}\n"
        "{\"topic\":\"t\",\"partition\":0,\"offset\":7,\"timestamp\":-1,\"key\":null,"
        "\"value_base64\":\"/w==\",\"headers\":[]}\n";
    CU_ASSERT(out.n == sizeof want - 1 && memcmp(out.p, want, out.n) == 0);
    buf_close(&out);
}

static struct bytes random_bytes(struct rng *rng, uint8_t space[64])
{
    static const char *const pieces[] = {"\"",           "\\",   "\n", "\xc3\xa4",
                                         "\xe2\x82\xac", "\xff", "a",  "\xf0\x9f\x90\xa6",
                                         "\xed\xa0\x80", "\x7f", "/",  "\x01"};
    int32_t n = 0;
    if (rng_percent(rng, 15))
        return BYTES_NULL;
    while (n < 56 && rng_percent(rng, 85)) {
        const char *piece = pieces[rng_below(rng, ARRAY_N(pieces))];
        if (rng_percent(rng, 10)) {
            space[n++] = (uint8_t)rng_u64(rng);
            continue;
        }
        memcpy(space + n, piece, strlen(piece));
        n += (int32_t)strlen(piece);
    }
    return (struct bytes){space, n};
}

static void test_record_json_round_trip(void)
{
    struct rng rng = {3};
    struct arena arena;
    struct buf out;
    arena_init(&arena, NULL);
    buf_init(&out);
    for (int i = 0; i < 3000; i++) {
        uint8_t space[6][64];
        struct made m;
        struct record_line line;
        struct record_header headers[2];
        const struct bytes key = random_bytes(&rng, space[0]), value = random_bytes(&rng, space[1]);
        const int32_t headers_n = (int32_t)rng_below(&rng, 3);
        const int64_t timestamp = rng_percent(&rng, 10) ? -1 : (int64_t)(rng_u64(&rng) >> 2);
        for (int32_t h = 0; h < headers_n; h++) {
            struct bytes name = random_bytes(&rng, space[2 + 2 * h]);
            if (name.n < 0)
                name = lit("");
            headers[h] = (struct record_header){{(const char *)name.p, name.n},
                                                random_bytes(&rng, space[3 + 2 * h])};
        }
        make(&m, timestamp, key, value, headers, headers_n);
        out.n = 0;
        CU_ASSERT_FATAL(record_json_write(STR_LIT("t"), 5, &m.record, &out) == ERR_NONE);
        CU_ASSERT(memchr(out.p, '\n', out.n) == out.p + out.n - 1);
        const struct str text = {(const char *)out.p, (int32_t)out.n};
        CU_ASSERT_FATAL(record_json_read(text, &arena, &line, message) == ERR_NONE);
        CU_ASSERT(same(line.key, key) && same(line.value, value));
        CU_ASSERT(line.has_timestamp && line.timestamp == timestamp);
        CU_ASSERT(line.has_partition && line.partition == 5);
        CU_ASSERT_EQUAL_FATAL(line.headers_n, headers_n);
        for (int32_t h = 0; h < headers_n; h++)
            CU_ASSERT(str_eq(line.headers[h].key, headers[h].key) &&
                      same(line.headers[h].value, headers[h].value));
        unmake(&m);
        arena_reset(&arena);
    }
    buf_close(&out);
    arena_close(&arena);
}

static void test_record_json_short_lines(void)
{
    struct arena arena;
    struct record_line line;
    arena_init(&arena, NULL);
    CU_ASSERT(record_json_read(STR_LIT("{\"value\":\"v\"}"), &arena, &line, message) == ERR_NONE);
    CU_ASSERT(line.key.n == -1 && same(line.value, lit("v")) && line.headers_n == 0 &&
              !line.has_timestamp && !line.has_partition);
    CU_ASSERT(record_json_read(STR_LIT(" { \"value\" : null, \"key\" : \"\" } "), &arena, &line,
                               message) == ERR_NONE);
    CU_ASSERT(line.key.n == 0 && line.value.n == -1);
    CU_ASSERT(record_json_read(STR_LIT("{\"value\":\"a\\u0000b\\ud83d\\udc26\"}"), &arena, &line,
                               message) == ERR_NONE);
    CU_ASSERT(same(line.value, (struct bytes){(const uint8_t *)"a\0b\xf0\x9f\x90\xa6", 7}));
    arena_close(&arena);
}

static void test_record_json_refused(void)
{
    static const struct {
        const char *line, *says;
    } bad[] = {
        {"", "not JSON"},
        {"x", "not JSON"},
        {"{\"value\":\"v\"} x", "not JSON"},
        {"{\"value\":\"v\"", "not JSON"},
        {"{\"value\":\"\\ud800\"}", "not JSON"},
        {"{\"value\":\"\xff\"}", "not JSON"},
        {"{\"value\":\"a\",\"value\":\"b\"}", "not JSON"},
        {"[]", "not an object"},
        {"\"v\"", "not JSON"},
        {"{}", "value is missing"},
        {"{\"key\":\"k\"}", "value is missing"},
        {"{\"value\":1}", "value is neither a string nor null"},
        {"{\"value\":\"\",\"key\":{}}", "key is neither a string nor null"},
        {"{\"value\":\"\",\"value_base64\":\"\"}", "value and value_base64 are both there"},
        {"{\"value_base64\":null}", "value_base64 is not a string"},
        {"{\"value_base64\":\"Zg\"}", "value_base64 is not base64"},
        {"{\"value\":\"\",\"vaule\":\"\"}", "unknown member \"vaule\""},
        {"{\"value\":\"\",\"timestamp\":-2}", "timestamp is not a number"},
        {"{\"value\":\"\",\"timestamp\":1.5}", "timestamp is not a number"},
        {"{\"value\":\"\",\"timestamp\":99999999999999999999}", "not JSON"},
        {"{\"value\":\"\",\"partition\":2147483648}", "partition is not a number"},
        {"{\"value\":\"\",\"partition\":\"0\"}", "partition is not a number"},
        {"{\"value\":\"\",\"headers\":{}}", "headers is not an array"},
        {"{\"value\":\"\",\"headers\":[1]}", "a header is not an object"},
        {"{\"value\":\"\",\"headers\":[{\"value\":\"\"}]}", "a header has no key"},
        {"{\"value\":\"\",\"headers\":[{\"key\":null,\"value\":\"\"}]}", "a header has no key"},
        {"{\"value\":\"\",\"headers\":[{\"key\":\"k\"}]}", "a header has no value"},
        {"{\"value\":\"\",\"headers\":[{\"key\":\"k\",\"value\":\"\",\"x\":1}]}", "unknown member"},
    };
    struct arena arena;
    struct record_line line;
    arena_init(&arena, NULL);
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        CU_ASSERT_EQUAL(record_json_read(str_of(bad[i].line), &arena, &line, message), ERR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(message, bad[i].says));
    }
    char deep[8192] = "{\"value\":\"\",\"headers\":";
    memset(deep + strlen(deep), '[', 6000);
    CU_ASSERT_EQUAL(record_json_read(str_of(deep), &arena, &line, message), ERR_INVALID);
    arena_close(&arena);
}

/* The nth allocation fails: an error, nothing leaks, what was there before stays. */
static void test_record_json_out_of_memory(void)
{
    const struct record_header headers[] = {{STR_LIT("h"), lit("\xff")}};
    struct made m;
    make(&m, 1, lit("\xff"), lit("v"), headers, 1);
    for (long n = 1;; n++) {
        struct arena arena;
        struct record_line line;
        struct buf out;
        arena_init(&arena, NULL);
        buf_init(&out);
        CU_ASSERT(buf_append(&out, "before", 6) == ERR_NONE);
        fault_alloc_arm(n, false);
        enum err e = record_json_write(STR_LIT("t"), 0, &m.record, &out);
        if (e == ERR_NONE)
            e = record_json_read((struct str){(const char *)out.p + 6, (int32_t)out.n - 6}, &arena,
                                 &line, message);
        else
            CU_ASSERT_EQUAL(out.n, 6);
        const bool hit = fault_alloc_hit();
        CU_ASSERT(hit ? e == ERR_NONE || e == ERR_NOMEM || e == ERR_INVALID : e == ERR_NONE);
        buf_close(&out);
        arena_close(&arena);
        if (!hit)
            break;
    }
    unmake(&m);
}

TEST_MAIN(TEST(test_record_json_looks), TEST(test_record_json_round_trip),
          TEST(test_record_json_short_lines), TEST(test_record_json_refused),
          TEST(test_record_json_out_of_memory))
