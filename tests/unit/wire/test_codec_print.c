/* Printing: the forms that Kafka's frames do not happen to show. */
#include "test_codec.h"

#include <math.h>

static void check_value(double value, const char *text)
{
    struct client_quota_record rec;
    struct buf out = {0};
    char expected[128];

    wire_default(&wire_client_quota_record, &rec);
    rec.value = value;
    snprintf(expected, sizeof expected,
             "{\"entity\":[],\"key\":\"\",\"value\":%s,\"remove\":false}", text);
    CU_ASSERT_EQUAL(wire_print(&msg_client_quota_record, 0, &rec, &out), ERR_NONE);
    CU_ASSERT_EQUAL(out.n, strlen(expected));
    CU_ASSERT_EQUAL(memcmp(out.p, expected, out.n), 0);
    buf_close(&out);
}

/* As java.lang.Double.toString. */
static void test_codec_print_numbers(void)
{
    check_value(0, "0.0");
    check_value(-0.0, "-0.0");
    check_value(1, "1.0");
    check_value(-12.5, "-12.5");
    check_value(100, "100.0");
    check_value(0.001, "0.001");
    check_value(0.012, "0.012");
    check_value(0.5, "0.5");
    check_value(0.00099, "9.9E-4");
    check_value(9999999, "9999999.0");
    check_value(9999999.5, "9999999.5");
    check_value(1e7, "1.0E7");
    check_value(12345678, "1.2345678E7");
    check_value(0.1 + 0.2, "0.30000000000000004");
    check_value(1.7976931348623157e308, "1.7976931348623157E308");
    check_value(4.9e-324, "4.9E-324");
    check_value(INFINITY, "\"Infinity\"");
    check_value(-INFINITY, "\"-Infinity\"");
    check_value(NAN, "\"NaN\"");
}

static void test_codec_print_escapes(void)
{
    static const char expected[] =
        "{\"name\":\"a\\\"b\\\\c\\n\\t\\u0001\xc3\xa4\",\"topicId\":\"AAAAAAAAAAAAAAAAAAAAAA\"}";
    struct topic_record rec;
    struct buf out = {0};

    wire_default(&wire_topic_record, &rec);
    rec.name = STR_LIT("a\"b\\c\n\t\x01\xc3\xa4");
    CU_ASSERT_EQUAL(wire_print(&msg_topic_record, 0, &rec, &out), ERR_NONE);
    CU_ASSERT_EQUAL(out.n, sizeof expected - 1);
    CU_ASSERT_EQUAL(memcmp(out.p, expected, out.n), 0);
    buf_close(&out);
}

TEST_MAIN(TEST(test_codec_print_numbers), TEST(test_codec_print_escapes))
