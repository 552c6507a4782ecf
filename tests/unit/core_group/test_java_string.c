/* Hashes and lengths as Kafka's own language has them. */
#include "core/group/java_string.h"
#include "support/test.h"

#define S(s) STR_LIT(s)

static void test_java_hash(void)
{
    CU_ASSERT_EQUAL(java_hash(S("")), 0);
    CU_ASSERT_EQUAL(java_hash(STR_NULL), 0);
    CU_ASSERT_EQUAL(java_hash(S("a")), 97);
    CU_ASSERT_EQUAL(java_hash(S("hello")), 99162322);
    CU_ASSERT_EQUAL(java_hash(S("polygenelubricants")), INT32_MIN);
    CU_ASSERT_EQUAL(java_hash(S("\xC3\xA9")), 0xE9);       /* two bytes, one unit */
    CU_ASSERT_EQUAL(java_hash(S("\xE2\x82\xAC")), 0x20AC); /* three bytes, one unit */
    CU_ASSERT_EQUAL(java_hash(S("\xF0\x9F\x90\xA6")), 0xD83D * 31 + 0xDC26); /* four, two units */
}

static void test_java_length(void)
{
    CU_ASSERT_EQUAL(java_length(S("")), 0);
    CU_ASSERT_EQUAL(java_length(STR_NULL), 0);
    CU_ASSERT_EQUAL(java_length(S("abc")), 3);
    CU_ASSERT_EQUAL(java_length(S("\xC3\xA9\xE2\x82\xAC")), 2);
    CU_ASSERT_EQUAL(java_length(S("\xF0\x9F\x90\xA6x")), 3);
}

/* Each maximal part of what is no character is one replacement character. */
static void test_java_malformed(void)
{
    static const struct {
        struct str s;
        int32_t n;
    } cases[] = {
        {{"\x80", 1}, 1},             /* alone */
        {{"\xC3", 1}, 1},             /* cut */
        {{"\xC3x", 2}, 2},            /* broken off */
        {{"\xC0\x80", 2}, 2},         /* overlong */
        {{"\xE0\x80\x80", 3}, 3},     /* overlong */
        {{"\xED\xA0\x80", 3}, 3},     /* a surrogate */
        {{"\xF0\x9F\x90", 3}, 1},     /* cut in its last byte */
        {{"\xF4\x90\x80\x80", 4}, 4}, /* beyond the last character */
        {{"\xFF\xFE", 2}, 2},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++)
        CU_ASSERT_EQUAL(java_length(cases[i].s), cases[i].n);
    CU_ASSERT_EQUAL(java_hash(S("\x80")), 0xFFFD);
}

TEST_MAIN(TEST(test_java_hash), TEST(test_java_length), TEST(test_java_malformed))
