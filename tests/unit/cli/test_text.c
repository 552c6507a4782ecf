/* What users write: every accepted form, its neighbours that are not, and what comes back. */
#include "cli/position.h"
#include "cli/text.h"
#include "support/rng.h"
#include "support/test.h"

static bool buf_is(const struct buf *b, const void *p, size_t n)
{
    return b->n == n && (n == 0 || memcmp(b->p, p, n) == 0);
}

static void test_text_int(void)
{
    int64_t n;
    CU_ASSERT(text_int("0", 0, 9, &n) && n == 0);
    CU_ASSERT(text_int("-7", -7, 9, &n) && n == -7);
    CU_ASSERT(text_int("9223372036854775807", 0, INT64_MAX, &n) && n == INT64_MAX);
    const char *bad[] = {"", "-", "x", "1x", " 1", "+1", "--1", "1 ", "9223372036854775808", "10"};
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT(!text_int(bad[i], -100, 9, &n));
}

static void test_text_pair(void)
{
    struct str key, value;
    CU_ASSERT(text_pair("k=v=w", &key, &value) && str_eq(key, STR_LIT("k")) &&
              str_eq(value, STR_LIT("v=w")));
    CU_ASSERT(text_pair("k=", &key, &value) && value.n == 0);
    CU_ASSERT(!text_pair("k", &key, &value) && !text_pair("=v", &key, &value) &&
              !text_pair("", &key, &value));
}

static void test_text_escapes(void)
{
    struct buf b;
    buf_init(&b);
    CU_ASSERT(text_unescape("a\\n\\t\\r\\0\\\\\\x41\\xfF.", &b) == ERR_NONE);
    CU_ASSERT(buf_is(&b, "a\n\t\r\0\\A\xff.", 9));
    const char *bad[] = {"\\", "\\q", "\\x", "\\x1", "\\x1g", "\\N"};
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT_EQUAL(text_unescape(bad[i], &b), ERR_INVALID);
    buf_close(&b);
}

static void test_text_utf8(void)
{
    const char *good[] = {"",
                          "a",
                          "\xc2\x80",
                          "\xdf\xbf",
                          "\xe0\xa0\x80",
                          "\xed\x9f\xbf",
                          "\xee\x80\x80",
                          "\xf0\x90\x80\x80",
                          "\xf4\x8f\xbf\xbf",
                          "K\xc3\xa4se"};
    const char *bad[] = {"\x80",         "\xc0\x80",         "\xc1\xbf",         "\xc2",
                         "\xc2g",        "\xe0\x9f\xbf",     "\xe1\x80",         "\xed\xa0\x80",
                         "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                         "\xff",         "a\xe2\x82"};
    for (size_t i = 0; i < ARRAY_N(good); i++)
        CU_ASSERT(text_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT(!text_is_utf8(bad[i], strlen(bad[i])));
    CU_ASSERT(text_is_utf8("a\0b", 3));
    CU_ASSERT_EQUAL(text_width("K\xc3\xa4se", 5), 4);
}

/* Nothing that a terminal would obey gets through. */
static void test_text_clean(void)
{
    struct buf b;
    buf_init(&b);
    const struct str s = STR_LIT("a\x1b[2J\n\x7f\xc2\x9b\xc2\xa0\xff\xe2\x82.");
    CU_ASSERT(text_clean(s, &b) == ERR_NONE);
    CU_ASSERT(buf_is(&b, "a?[2J???\xc2\xa0???.", 14));
    b.n = 0;
    CU_ASSERT(text_clean(STR_NULL, &b) == ERR_NONE && b.n == 0);
    buf_close(&b);
}

static void test_text_times(void)
{
    const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0", 0},
                {"1700000000000", 1700000000000},
                {"1970-01-01", 0},
                {"1970-01-02T00:00", 86400000},
                {"2000-02-29T12:34:56Z", 951827696000},
                {"2023-11-14T22:13:20.5Z", 1700000000500},
                {"2023-11-14 22:13:20,123456", 1700000000123},
                {"2023-11-15T00:13:20+02:00", 1700000000000},
                {"2023-11-14T20:43:20-0130", 1700000000000},
                {"2023-11-14t23:13:20+01", 1700000000000},
                {"1969-12-31T23:59:59.999z", -1},
                {"0000-03-01", -62162035200000},
                {"9999-12-31", 253402214400000}};
    const char *bad[] = {"",
                         "-1",
                         "x",
                         "2023-",
                         "2023-13-01",
                         "2023-02-29",
                         "1900-02-29",
                         "2023-00-01",
                         "2023-01-00",
                         "2023-1-1",
                         "2023-01-01T",
                         "2023-01-01T24:00",
                         "2023-01-01T00:60",
                         "2023-01-01T00:00:60",
                         "2023-01-01T00:00:00.",
                         "2023-01-01T00:00Zx",
                         "2023-01-01T00:00+24",
                         "2023-01-01T00:00+",
                         "99999999999999999999",
                         "2023-01-01X00:00"};
    int64_t ms;
    for (size_t i = 0; i < ARRAY_N(good); i++) {
        CU_ASSERT(text_time(str_of(good[i].text), &ms));
        CU_ASSERT_EQUAL(ms, good[i].ms);
    }
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT(!text_time(str_of(bad[i]), &ms));
}

/* Every printed time is read as itself. */
static void test_text_time_round_trip(void)
{
    struct rng rng = {1};
    char text[TEXT_TIME_BYTES];
    int64_t ms;
    for (int i = 0; i < 20000; i++) {
        const int64_t want =
            (int64_t)rng_below(&rng, 253402300799999 + 62167219200000) - 62167219200000;
        text_print_time(want, text);
        CU_ASSERT_FATAL(text_time(str_of(text), &ms));
        CU_ASSERT_EQUAL_FATAL(ms, want);
    }
    text_print_time(951782400000, text);
    CU_ASSERT_STRING_EQUAL(text, "2000-02-29T00:00:00.000Z");
    text_print_time(INT64_MAX, text);
    CU_ASSERT_STRING_EQUAL(text, "9223372036854775807");
    text_print_time(INT64_MIN + 86400000, text);
    CU_ASSERT_STRING_EQUAL(text, "-9223372036768375808");
}

static void test_text_durations(void)
{
    int64_t ms;
    CU_ASSERT(text_duration(STR_LIT("500ms"), &ms) && ms == 500);
    CU_ASSERT(text_duration(STR_LIT("90s"), &ms) && ms == 90000);
    CU_ASSERT(text_duration(STR_LIT("15m"), &ms) && ms == 900000);
    CU_ASSERT(text_duration(STR_LIT("2h"), &ms) && ms == 7200000);
    CU_ASSERT(text_duration(STR_LIT("7d"), &ms) && ms == 604800000);
    CU_ASSERT(!text_duration(STR_LIT("7"), &ms) && !text_duration(STR_LIT("d"), &ms));
    CU_ASSERT(!text_duration(STR_LIT("-1s"), &ms) && !text_duration(STR_LIT("1w"), &ms));
    CU_ASSERT(!text_duration(STR_LIT("9223372036854775807d"), &ms));
}

static void test_text_base64(void)
{
    const struct {
        const char *plain, *text;
    } pairs[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"\xff\xfe\xfd", "//79"}};
    const char *bad[] = {
        "Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Zm 8", "Zm-_", "=AAA"};
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < ARRAY_N(pairs); i++) {
        const size_t n = strlen(pairs[i].plain);
        b.n = 0;
        CU_ASSERT(text_base64((struct bytes){(const uint8_t *)pairs[i].plain, (int32_t)n}, &b) ==
                  ERR_NONE);
        CU_ASSERT(buf_is(&b, pairs[i].text, strlen(pairs[i].text)));
        b.n = 0;
        CU_ASSERT(text_from_base64(str_of(pairs[i].text), &b) == ERR_NONE);
        CU_ASSERT(buf_is(&b, pairs[i].plain, n));
    }
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT_EQUAL(text_from_base64(str_of(bad[i]), &b), ERR_INVALID);
    buf_close(&b);
}

static void test_position_forms(void)
{
    const int64_t now_ms = 1700000000000;
    const struct {
        const char *text;
        enum position_kind kind;
        int64_t value;
    } good[] = {{"earliest", POSITION_EARLIEST, 0},
                {"latest", POSITION_LATEST, 0},
                {"0", POSITION_OFFSET, 0},
                {"42", POSITION_OFFSET, 42},
                {"-10", POSITION_TAIL, 10},
                {"@1700000000000", POSITION_TIME, 1700000000000},
                {"@2023-11-14T22:13:20Z", POSITION_TIME, 1700000000000},
                {"@-1h", POSITION_TIME, 1700000000000 - 3600000},
                {"@-1000000d", POSITION_TIME, 0}};
    const char *bad[] = {"", "-", "@", "@-", "@-1", "x", "--1", "Earliest", "1.5", "@x", "-1h"};
    struct position p;
    for (size_t i = 0; i < ARRAY_N(good); i++)
        CU_ASSERT(position_parse(good[i].text, now_ms, &p) && p.kind == good[i].kind &&
                  p.value == good[i].value);
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT(!position_parse(bad[i], now_ms, &p));
}

TEST_MAIN(TEST(test_text_int), TEST(test_text_pair), TEST(test_text_escapes), TEST(test_text_utf8),
          TEST(test_text_clean), TEST(test_text_times), TEST(test_text_time_round_trip),
          TEST(test_text_durations), TEST(test_text_base64), TEST(test_position_forms))
