/* Arbitrary bytes as a line of JSON. What is taken as a record is written to a batch, read back,
 * written as JSON and read again: the same record. */
#include <limits.h>
#include <stdlib.h>

#include "base/check.h"
#include "cli/record_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(struct bytes a, struct bytes b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

static void check_same(const struct record_line *a, const struct record_line *b)
{
    CHECK(same(a->key, b->key) && same(a->value, b->value) && a->headers_n == b->headers_n);
    CHECK(!a->has_timestamp || a->timestamp == b->timestamp);
    for (int32_t i = 0; i < a->headers_n; i++)
        CHECK(str_eq(a->headers[i].key, b->headers[i].key) &&
              same(a->headers[i].value, b->headers[i].value));
}

static void round_trip(const struct record_line *line)
{
    const struct batch_builder_args args = {
        .producer_id = -1, .producer_epoch = -1, .base_sequence = -1, .level = INT_MIN};
    struct batch_builder *builder;
    struct record_reader *reader;
    struct batch batch;
    struct bytes bytes;
    struct record r;
    struct record_line again;
    struct arena arena;
    struct buf out;
    char message[RECORD_JSON_MESSAGE_BYTES];
    bool end;
    CHECK(batch_builder_new(&args, &builder) == ERR_NONE);
    CHECK(batch_builder_add(builder, line->timestamp, line->key, line->value, line->headers,
                            line->headers_n) == ERR_NONE);
    CHECK(batch_builder_finish(builder, &bytes) == ERR_NONE);
    CHECK(batch_parse(bytes, &batch) == ERR_NONE);
    CHECK(record_reader_new(&batch, 1 << 20, &reader) == ERR_NONE);
    CHECK(record_reader_next(reader, &r, &end) == ERR_NONE && !end);
    arena_init(&arena, NULL);
    buf_init(&out);
    CHECK(record_json_write((struct str){"t", 1}, line->partition, &r, &out) == ERR_NONE);
    const struct str text = {(const char *)out.p, (int32_t)out.n};
    CHECK(record_json_read(text, &arena, &again, message) == ERR_NONE);
    check_same(line, &again);
    buf_close(&out);
    arena_close(&arena);
    record_reader_free(reader);
    batch_builder_free(builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[RECORD_JSON_MESSAGE_BYTES] = "";
    struct record_line line;
    struct arena arena;
    arena_init(&arena, NULL);
    const enum err e =
        record_json_read((struct str){(const char *)data, (int32_t)size}, &arena, &line, message);
    CHECK(e == ERR_NONE || (e == ERR_INVALID && message[0] != '\0'));
    if (e == ERR_NONE)
        round_trip(&line);
    arena_close(&arena);
    return 0;
}
