/* What every unit test includes. A test is a static function `test_<unit>_<behaviour>(void)` with
 * CU_ASSERTs. The executable prints CUnit's own summary and exits 1 on a failure.
 *
 *   TEST_MAIN(TEST(test_arena_grows), TEST(test_arena_budget))
 */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#include <CUnit/CUnit.h>

#include "base/types.h"

struct test_case {
    const char *name;
    void (*run)(void);
};

#define TEST(fn)                                                                                   \
    (struct test_case)                                                                             \
    {                                                                                              \
#fn, fn                                                                                    \
    }

#define TEST_MAIN(...)                                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct test_case cases[] = {__VA_ARGS__};                                            \
        return test_run(__FILE__, cases, ARRAY_N(cases));                                          \
    }

int test_run(const char *file, const struct test_case *cases, size_t n);

/* A fresh directory, removed with all in it at exit. */
const char *test_dir(void);
/* path of a file of tests/golden; static buffer. */
const char *test_golden(const char *name);
/* Reads a whole file; the test fails and p is NULL if it cannot. Caller frees. */
uint8_t *test_read_file(const char *path, size_t *n);
void test_write_file(const char *path, const void *p, size_t n);

#endif
