#include "base/map.h"

#include <stdio.h>

#include "support/fault.h"
#include "support/test.h"

static int values[2000];

static void put_numbers(struct map *m, int n)
{
    char key[16];
    for (int i = 0; i < n; i++) {
        int key_n = sprintf(key, "key %d", i);
        CU_ASSERT_EQUAL(map_put(m, key, (size_t)key_n, &values[i]), ERR_NONE);
    }
}

static void test_map_finds_and_removes(void)
{
    struct map m;
    map_init(&m, 42);
    CU_ASSERT_PTR_NULL(map_get(&m, "x", 1));
    CU_ASSERT_PTR_NULL(map_remove(&m, "x", 1));
    put_numbers(&m, 2000);
    CU_ASSERT_EQUAL(m.n, 2000);
    CU_ASSERT_PTR_EQUAL(map_get_str(&m, STR_LIT("key 1234")), &values[1234]);
    CU_ASSERT_PTR_NULL(map_get_str(&m, STR_LIT("key 2000")));
    CU_ASSERT_PTR_EQUAL(map_remove(&m, "key 7", 5), &values[7]);
    CU_ASSERT_PTR_NULL(map_get(&m, "key 7", 5));
    CU_ASSERT_EQUAL(m.n, 1999);
    CU_ASSERT_EQUAL(map_put(&m, "key 8", 5, &values[0]), ERR_NONE);
    CU_ASSERT_PTR_EQUAL(map_get(&m, "key 8", 5), &values[0]);
    CU_ASSERT_EQUAL(m.n, 1999);
    map_close(&m);
    CU_ASSERT_EQUAL(m.n, 0);
    CU_ASSERT_PTR_NULL(map_get(&m, "key 8", 5));
}

static void test_map_keys_are_bytes(void)
{
    struct map m;
    map_init(&m, 1);
    CU_ASSERT_EQUAL(map_put(&m, "a\0b", 3, &values[0]), ERR_NONE);
    CU_ASSERT_EQUAL(map_put(&m, "a\0c", 3, &values[1]), ERR_NONE);
    CU_ASSERT_EQUAL(map_put(&m, "", 0, &values[2]), ERR_NONE);
    CU_ASSERT_PTR_EQUAL(map_get(&m, "a\0b", 3), &values[0]);
    CU_ASSERT_PTR_EQUAL(map_get(&m, "a\0c", 3), &values[1]);
    CU_ASSERT_PTR_EQUAL(map_get(&m, NULL, 0), &values[2]);
    CU_ASSERT_PTR_NULL(map_get(&m, "a", 1));
    map_close(&m);
}

/* The order must not hang on the seed. */
static void test_map_iterates_in_insertion_order(void)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct map m;
        map_init(&m, seed);
        put_numbers(&m, 500);
        (void)map_remove(&m, "key 0", 5);
        CU_ASSERT_EQUAL(map_put(&m, "key 0", 5, &values[0]), ERR_NONE);
        CU_ASSERT_EQUAL(map_put(&m, "key 100", 7, &values[100]), ERR_NONE);
        int expected = 1;
        struct map_entry *e = NULL;
        while ((e = map_next(&m, e)) != NULL) {
            CU_ASSERT_PTR_EQUAL(map_value(e), &values[expected % 500]);
            expected++;
        }
        CU_ASSERT_EQUAL(expected, 501);
        e = map_next(&m, NULL);
        size_t n;
        CU_ASSERT_EQUAL(memcmp(map_key(e, &n), "key 1", 5), 0);
        CU_ASSERT_EQUAL(n, 5);
        map_close(&m);
    }
}

static void test_map_removes_while_iterating(void)
{
    struct map m;
    map_init(&m, 9);
    put_numbers(&m, 100);
    struct map_entry *next;
    for (struct map_entry *e = map_next(&m, NULL); e != NULL; e = next) {
        next = map_next(&m, e);
        size_t n;
        const void *key = map_key(e, &n);
        CU_ASSERT_PTR_NOT_NULL(map_remove(&m, key, n));
    }
    CU_ASSERT_EQUAL(m.n, 0);
    map_close(&m);
}

/* Each allocation of a growing map fails once; the map stays usable and loses nothing. */
static void test_map_survives_each_failed_allocation(void)
{
    long n = 0;
    bool hit;
    do {
        struct map m;
        map_init(&m, 3);
        size_t stored = 0;
        char key[16];
        n++;
        fault_alloc_arm(n, n % 2 == 0);
        for (int i = 0; i < 400; i++) {
            int key_n = sprintf(key, "key %d", i);
            stored += map_put(&m, key, (size_t)key_n, &values[i]) == ERR_NONE;
        }
        hit = fault_alloc_hit();
        CU_ASSERT(hit ? stored < 400 : stored == 400);
        CU_ASSERT_EQUAL(m.n, stored);
        size_t found = 0;
        for (int i = 0; i < 400; i++) {
            int key_n = sprintf(key, "key %d", i);
            found += map_get(&m, key, (size_t)key_n) == &values[i];
        }
        CU_ASSERT_EQUAL(found, stored);
        map_close(&m);
    } while (hit);
    CU_ASSERT(n > 400);
}

TEST_MAIN(TEST(test_map_finds_and_removes), TEST(test_map_keys_are_bytes),
          TEST(test_map_iterates_in_insertion_order), TEST(test_map_removes_while_iterating),
          TEST(test_map_survives_each_failed_allocation))
