/* Hashes and partitions that Apache Kafka's Java producer chose for these keys. */
#include "cli/partitioner.h"
#include <stdio.h>

#include "support/test.h"

static struct bytes lit(const char *s)
{
    return (struct bytes){(const uint8_t *)s, (int32_t)strlen(s)};
}

static void test_partitioner_hashes(void)
{
    const struct {
        const char *key;
        int32_t hash;
    } known[] = {{"21", -973932308},
                 {"foobar", -790332482},
                 {"a-little-bit-long-string", -985981536},
                 {"a-little-bit-longer-string", -1486304829},
                 {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
                 {"abc", 479470107}};
    for (size_t i = 0; i < ARRAY_N(known); i++)
        CU_ASSERT_EQUAL((int32_t)partitioner_hash(lit(known[i].key)), known[i].hash);
}

static void test_partitioner_chooses_in_range(void)
{
    char key[16];
    int used[7] = {0};
    for (int i = 0; i < 7000; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        const int32_t p = partitioner_choose(lit(key), 7);
        CU_ASSERT_FATAL(p >= 0 && p < 7);
        used[p]++;
    }
    for (int i = 0; i < 7; i++)
        CU_ASSERT(used[i] > 800 && used[i] < 1200);
    CU_ASSERT_EQUAL(partitioner_choose(lit(""), 1), 0);
}

TEST_MAIN(TEST(test_partitioner_hashes), TEST(test_partitioner_chooses_in_range))
