/* Java's properties format, character by character. The values are read back from keys of type
 * string that take any text. */
#include "core/config/config.h"

#include <stdio.h>

#include "support/fault.h"
#include "support/test.h"

static char message[512];
static char unknown[64];

static void note_unknown(void *ctx, struct str key)
{
    snprintf(unknown, sizeof unknown, "%.*s", key.n, key.p);
}

static enum err parse(struct config *c, struct str text)
{
    message[0] = unknown[0] = '\0';
    return config_parse_properties(c, text, "f.properties", note_unknown, NULL, message,
                                   sizeof message);
}

static void check_rack(const char *text, const char *rack)
{
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    CU_ASSERT_EQUAL(parse(c, str_of(text)), ERR_NONE);
    const char *got = config_text(c, "broker.rack");
    if (got == NULL || strcmp(got, rack) != 0)
        fprintf(stderr, "[%s] gives [%s], not [%s]\n", text, got == NULL ? "(null)" : got, rack);
    CU_ASSERT(got != NULL && strcmp(got, rack) == 0);
    CU_ASSERT_EQUAL(config_source(c, "broker.rack"), CONFIG_FILE);
    config_free(c);
}

static void test_properties_separators(void)
{
    check_rack("broker.rack=a", "a");
    check_rack("broker.rack:a", "a");
    check_rack("broker.rack a", "a");
    check_rack("broker.rack\ta\n", "a");
    check_rack("  broker.rack = a", "a");
    check_rack("broker.rack :a", "a");
    check_rack("broker.rack==a", "=a");
    check_rack("broker.rack= :a", ":a");
    check_rack("broker.rack=", "");
    check_rack("broker.rack", "");
    check_rack("broker.rack=a b=c ", "a b=c");
    check_rack("broker.rack=\fa", "a");
}

static void test_properties_lines_and_comments(void)
{
    check_rack("# c\n! c\n\n  # c = d \\\nbroker.rack=a", "a");
    check_rack("broker.rack=a\r\nnode.id=1\r\n", "a");
    check_rack("broker.rack=a\rnode.id=1", "a");
    check_rack("broker.rack=a#b!c", "a#b!c");
    check_rack("broker.rack=a\nbroker.rack=b", "b");
    check_rack("broker.rack=a\\\n   b\\\n\tc", "abc");
    check_rack("broker.rack=a\\\r\n   b", "ab");
    check_rack("broker.rack=\\\n#a", "#a"); /* a continuation is no comment */
    check_rack("brok\\\n  er.rack=a", "a");
    check_rack("broker.rack=a\\", "a"); /* nothing to continue with */
    check_rack("broker.rack=a\\\\", "a\\");
    check_rack("broker.rack=a\\\\\nnode.id=1", "a\\");
}

static void test_properties_escapes(void)
{
    check_rack("broker.rack=\\t\\n\\r\\fx", "\t\n\r\fx");
    check_rack("broker.rack=\\q\\:\\=\\ \\#", "q:= #"); /* the last blank is escaped, not the end */
    check_rack("b\\u0072oker.rack=\\u0041\\u00e4\\u20ac", "A\xc3\xa4\xe2\x82\xac");
    check_rack("broker.rack=\\ud83d\\ude00", "\xf0\x9f\x98\x80");
    check_rack("broker.rack=\\ud83dx", "\xef\xbf\xbdx");
    check_rack("broker.rack=\\ud83d\\u0041", "\xef\xbf\xbd"
                                             "A");
    check_rack("broker.rack=\\ude00", "\xef\xbf\xbd");
    check_rack("broker.rack=\\ude00\\ude00", "\xef\xbf\xbd\xef\xbf\xbd");
    check_rack("broker.rack=\xc3\xa4", "\xc3\xa4");
    check_rack("broker\\.rack=a", "a");
}

static void test_properties_escaped_separators_belong_to_the_key(void)
{
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    CU_ASSERT_EQUAL(parse(c, STR_LIT("a\\=b\\:c\\ d=1")), ERR_NONE);
    CU_ASSERT_STRING_EQUAL(unknown, "a=b:c d");
    CU_ASSERT_EQUAL(parse(c, STR_LIT("=1")), ERR_NONE);
    CU_ASSERT_STRING_EQUAL(unknown, "");
    config_free(c);
}

static void test_properties_errors_name_file_and_line(void)
{
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    CU_ASSERT_EQUAL(parse(c, STR_LIT("# one\nbroker.rack=a\\\n b\nnum.partitions=0\n")),
                    ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "f.properties:4: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "num.partitions"));
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "[1,...]"));
    CU_ASSERT_EQUAL(parse(c, STR_LIT("broker.rack=\\u00g0")), ERR_INVALID);
    CU_ASSERT_EQUAL(parse(c, STR_LIT("broker.rack=\\u00")), ERR_INVALID);
    CU_ASSERT_EQUAL(parse(c, STR_LIT("\\u=1")), ERR_INVALID);
    CU_ASSERT_EQUAL(parse(c, STR_LIT("broker.rack=\\u0000")), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "f.properties:1: "));
    config_free(c);
}

static void test_properties_empty_files(void)
{
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    CU_ASSERT_EQUAL(parse(c, STR_LIT("")), ERR_NONE);
    CU_ASSERT_EQUAL(parse(c, STR_LIT("\n\r\n \t\n\\\n\\")), ERR_NONE);
    CU_ASSERT_EQUAL(parse(c, STR_LIT("#")), ERR_NONE);
    config_free(c);
}

static void test_properties_out_of_memory(void)
{
    bool done = false;
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    for (long n = 1; !done; n++) {
        fault_alloc_arm(n, false);
        const enum err e = parse(c, STR_LIT("broker.rack=a\nnode.id=3\n"));
        done = !fault_alloc_hit();
        CU_ASSERT_EQUAL(e, done ? ERR_NONE : ERR_NOMEM);
    }
    config_free(c);
}

TEST_MAIN(TEST(test_properties_separators), TEST(test_properties_lines_and_comments),
          TEST(test_properties_escapes), TEST(test_properties_escaped_separators_belong_to_the_key),
          TEST(test_properties_errors_name_file_and_line), TEST(test_properties_empty_files),
          TEST(test_properties_out_of_memory))
