/* Pieces of files and pipes: every delimiter in every cut of the bytes, ends without one, files in
 * turn, and no waiting. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/lines.h"
#include "support/test.h"

static char message[400];
static char space[4][256]; /* names of files */

static char *file(int i, const char *text, size_t n)
{
    snprintf(space[i], sizeof space[i], "%s/%d", test_dir(), i);
    test_write_file(space[i], text, n);
    return space[i];
}

static struct bytes lit(const char *s)
{
    return (struct bytes){(const uint8_t *)s, (int32_t)strlen(s)};
}

static void expect(struct lines *l, const char *want, uint64_t number)
{
    struct str s;
    CU_ASSERT_EQUAL_FATAL(lines_next(l, &s, message, sizeof message), LINES_ONE);
    CU_ASSERT(str_eq(s, str_of(want)));
    CU_ASSERT_EQUAL(l->number, number);
}

static void expect_end(struct lines *l)
{
    struct str s;
    CU_ASSERT_EQUAL(lines_next(l, &s, message, sizeof message), LINES_END);
    CU_ASSERT_EQUAL(lines_next(l, &s, message, sizeof message), LINES_END);
    lines_close(l);
}

static void test_lines_of_files(void)
{
    struct lines l;
    char *files[] = {file(0, "a\n\nb", 4), file(1, "", 0), file(2, "c\n", 2)};
    lines_init(&l, files, 3, lit("\n"));
    expect(&l, "a", 1);
    expect(&l, "", 2);
    expect(&l, "b", 3);
    expect(&l, "c", 1);
    CU_ASSERT_STRING_EQUAL(l.name, files[2]);
    expect_end(&l);
}

static void test_lines_long_delimiters(void)
{
    struct lines l;
    char *files[] = {file(0, "a<<b<><<>c<<>", 13)};
    lines_init(&l, files, 1, lit("<<>"));
    expect(&l, "a<<b<>", 1);
    expect(&l, "c", 2);
    expect_end(&l);
    char zero[] = "x\0y\0";
    files[0] = file(0, zero, 4);
    lines_init(&l, files, 1, (struct bytes){(const uint8_t *)"", 1});
    expect(&l, "x", 1);
    expect(&l, "y", 2);
    expect_end(&l);
}

/* Longer than what is read at once, and the delimiter across the seam. */
static void test_lines_longer_than_a_read(void)
{
    enum { N = 200000 };
    struct lines l;
    struct str s;
    char *text = malloc(3 * N);
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        const size_t length = (size_t)(65535 + i + i * 60000);
        memset(text + n, 'a' + i, length);
        memcpy(text + n + length, "\r\n", 2);
        n += length + 2;
    }
    char *files[] = {file(0, text, n)};
    lines_init(&l, files, 1, lit("\r\n"));
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(lines_next(&l, &s, message, sizeof message), LINES_ONE);
        CU_ASSERT_EQUAL(s.n, 65535 + i + i * 60000);
        for (int32_t k = 0; k < s.n; k++)
            CU_ASSERT_FATAL(s.p[k] == 'a' + i);
    }
    expect_end(&l);
    free(text);
}

static void put(int fd, const char *text)
{
    CU_ASSERT_EQUAL_FATAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* A pipe without bytes is not waited for; a byte at a time gives the same pieces. */
static void test_lines_of_a_pipe(void)
{
    struct lines l;
    struct str s;
    int fds[2];
    CU_ASSERT_FATAL(pipe(fds) == 0);
    snprintf(space[0], sizeof space[0], "/dev/fd/%d", fds[0]);
    char *files[] = {space[0]};
    lines_init(&l, files, 1, lit("--"));
    CU_ASSERT_EQUAL(lines_next(&l, &s, message, sizeof message), LINES_WAIT);
    for (const char *p = "ab---c--"; *p != '\0'; p++) {
        CU_ASSERT_EQUAL_FATAL(write(fds[1], p, 1), 1);
        if (p[0] == '-' && p[-1] == '-' && (p[-2] != '-' || p[-3] == '-'))
            break;
        CU_ASSERT_EQUAL(lines_next(&l, &s, message, sizeof message), LINES_WAIT);
    }
    expect(&l, "ab", 1);
    put(fds[1], "-c--d");
    expect(&l, "-c", 2);
    CU_ASSERT_EQUAL(lines_next(&l, &s, message, sizeof message), LINES_WAIT);
    close(fds[1]);
    expect(&l, "d", 3);
    expect_end(&l);
    close(fds[0]);
}

static void test_lines_that_cannot_be_read(void)
{
    struct lines l;
    struct str s;
    char missing[] = "/nonexistent/file";
    char *files[] = {missing};
    lines_init(&l, files, 1, lit("\n"));
    CU_ASSERT_EQUAL(lines_next(&l, &s, message, sizeof message), LINES_FAILED);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "/nonexistent/file"));
    lines_close(&l);
    char dir[] = "/";
    files[0] = dir;
    lines_init(&l, files, 1, lit("\n"));
    CU_ASSERT_EQUAL(lines_next(&l, &s, message, sizeof message), LINES_FAILED);
    lines_close(&l);
}

TEST_MAIN(TEST(test_lines_of_files), TEST(test_lines_long_delimiters),
          TEST(test_lines_longer_than_a_read), TEST(test_lines_of_a_pipe),
          TEST(test_lines_that_cannot_be_read))
