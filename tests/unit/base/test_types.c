/* The small ones: types, buf, list, endian, error names, checks. */
#include "base/types.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/endian.h"
#include "base/list.h"
#include "support/fault.h"
#include "support/rng.h"
#include "support/test.h"

static void test_uuid_text(void)
{
    struct uuid id = {{0}}, back;
    char text[UUID_TEXT_N + 1];
    uuid_print(id, text);
    CU_ASSERT_STRING_EQUAL(text, "AAAAAAAAAAAAAAAAAAAAAA");
    id.b[15] = 1; /* Kafka's id of the metadata topic */
    uuid_print(id, text);
    CU_ASSERT_STRING_EQUAL(text, "AAAAAAAAAAAAAAAAAAAAAQ");
    memset(id.b, 0xff, sizeof id.b);
    uuid_print(id, text);
    CU_ASSERT_STRING_EQUAL(text, "_____________________w");
    struct rng rng = {1};
    for (int i = 0; i < 200; i++) {
        rng_fill(&rng, id.b, sizeof id.b);
        uuid_print(id, text);
        CU_ASSERT_TRUE(uuid_parse(str_of(text), &back) && uuid_eq(id, back));
    }
}

static void test_uuid_parse_refuses(void)
{
    struct uuid id;
    CU_ASSERT_FALSE(uuid_parse(STR_NULL, &id));
    CU_ASSERT_FALSE(uuid_parse(STR_LIT(""), &id));
    CU_ASSERT_FALSE(uuid_parse(STR_LIT("AAAAAAAAAAAAAAAAAAAAA"), &id));
    CU_ASSERT_FALSE(uuid_parse(STR_LIT("AAAAAAAAAAAAAAAAAAAAAAA"), &id));
    CU_ASSERT_FALSE(uuid_parse(STR_LIT("AAAAAAAAAA+AAAAAAAAAAA"), &id));
    CU_ASSERT_FALSE(uuid_parse(STR_LIT("AAAAAAAAAAAAAAAAAAAA=="), &id));
    CU_ASSERT_TRUE(uuid_parse(STR_LIT("AAAAAAAAAAAAAAAAAAAAAA"), &id) && uuid_is_zero(id));
}

static void test_str_order(void)
{
    CU_ASSERT(str_cmp(STR_LIT("a"), STR_LIT("b")) < 0);
    CU_ASSERT(str_cmp(STR_LIT("b"), STR_LIT("ab")) > 0);
    CU_ASSERT(str_cmp(STR_LIT("ab"), STR_LIT("a")) > 0);
    CU_ASSERT(str_cmp(STR_LIT("\xff"), STR_LIT("a")) > 0);
    CU_ASSERT(str_cmp(STR_NULL, STR_LIT("")) < 0);
    CU_ASSERT(str_cmp(STR_LIT("same"), STR_LIT("same")) == 0);
    CU_ASSERT_TRUE(str_eq(STR_NULL, str_of(NULL)));
    CU_ASSERT_FALSE(str_eq(STR_NULL, STR_LIT("")));
}

static void test_buf_grows(void)
{
    struct buf b;
    buf_init(&b);
    CU_ASSERT_EQUAL(buf_append(&b, NULL, 0), ERR_NONE);
    for (int i = 0; i < 1000; i++)
        CU_ASSERT_EQUAL(buf_append(&b, "0123456789", 10), ERR_NONE);
    CU_ASSERT_EQUAL(b.n, 10000);
    CU_ASSERT(memcmp(b.p, "0123", 4) == 0 && b.p[9999] == '9');
    b.n = 0;
    CU_ASSERT_EQUAL(buf_printf(&b, "%s=%d", "a", 1), ERR_NONE);
    CU_ASSERT_EQUAL(buf_printf(&b, "%100d", 2), ERR_NONE);
    CU_ASSERT_EQUAL(b.n, 103);
    CU_ASSERT_EQUAL(memcmp(b.p, "a=1  ", 5), 0);
    CU_ASSERT_EQUAL(buf_reserve(&b, SIZE_MAX), ERR_NOMEM);
    CU_ASSERT_EQUAL(buf_reserve(&b, SIZE_MAX - 110), ERR_NOMEM);
    buf_close(&b);
    CU_ASSERT(b.p == NULL && b.n == 0 && b.cap == 0);
}

static void test_buf_without_memory(void)
{
    struct buf b;
    buf_init(&b);
    CU_ASSERT_EQUAL(buf_append(&b, "abc", 3), ERR_NONE);
    fault_alloc_arm(1, true);
    char large[200] = "";
    CU_ASSERT_EQUAL(buf_append(&b, large, sizeof large), ERR_NOMEM);
    CU_ASSERT_EQUAL(buf_printf(&b, "%200d", 1), ERR_NOMEM);
    CU_ASSERT_TRUE(fault_alloc_hit());
    CU_ASSERT(b.n == 3 && memcmp(b.p, "abc", 3) == 0);
    buf_close(&b);
}

static void test_list_order(void)
{
    struct list head, a, b, c, *it, *tmp;
    list_init(&head);
    list_init(&c);
    CU_ASSERT_TRUE(list_empty(&head));
    CU_ASSERT_PTR_NULL(list_pop(&head));
    list_append(&head, &a);
    list_append(&head, &b);
    list_prepend(&head, &c);
    size_t n = 0;
    LIST_EACH(it, tmp, &head)
    {
        CU_ASSERT(it == (n == 0 ? &c : n == 1 ? &a : &b));
        list_remove(it);
        n++;
    }
    CU_ASSERT(n == 3 && list_empty(&head));
    list_remove(&a); /* harmless */
    list_append(&head, &b);
    CU_ASSERT_PTR_EQUAL(list_pop(&head), &b);
}

static void test_endian(void)
{
    uint8_t p[9] = {0};
    put_be64(p + 1, 0x0102030405060708);
    CU_ASSERT(p[1] == 1 && p[8] == 8);
    CU_ASSERT_EQUAL(be64(p + 1), 0x0102030405060708);
    CU_ASSERT_EQUAL(be32(p + 3), 0x03040506);
    CU_ASSERT_EQUAL(be16(p + 7), 0x0708);
    put_be32(p, 0xaabbccdd);
    put_be16(p + 4, 0xeeff);
    CU_ASSERT_EQUAL(be32(p + 2), 0xccddeeff);
}

static void test_err_names(void)
{
    CU_ASSERT_STRING_EQUAL(err_name(ERR_NONE), "NONE");
    for (int e = 0; e < ERR_MAX; e++) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(err_name((enum err)e));
        for (int other = 0; other < e; other++)
            CU_ASSERT_STRING_NOT_EQUAL(err_name((enum err)e), err_name((enum err)other));
    }
}

static void test_check_aborts(void)
{
    CHECK(1 + 1 == 2);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        fclose(stderr);
        CHECK(1 + 1 == 3);
        _exit(0);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST_MAIN(TEST(test_uuid_text), TEST(test_uuid_parse_refuses), TEST(test_str_order),
          TEST(test_buf_grows), TEST(test_buf_without_memory), TEST(test_list_order),
          TEST(test_endian), TEST(test_err_names), TEST(test_check_aborts))
