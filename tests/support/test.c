#include "support/test.h"

#include <CUnit/Basic.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/fault.h"
#include "support/real_alloc.h"

struct temp_dir {
    struct temp_dir *next;
    char path[];
};

static struct temp_dir *temp_dirs;
static pid_t temp_owner; /* a forked child removes nothing */

_Noreturn static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* A fault that a failed test left armed must not spread. */
static void disarm(void)
{
    (void)fault_alloc_hit();
}

int test_run(const char *file, const struct test_case *cases, size_t n)
{
    const char *slash = strrchr(file, '/');
    if (CU_initialize_registry() != CUE_SUCCESS)
        die("CU_initialize_registry");
    CU_pSuite suite = CU_add_suite_with_setup_and_teardown(slash == NULL ? file : slash + 1, NULL,
                                                           NULL, disarm, disarm);
    if (suite == NULL)
        die("CU_add_suite");
    for (size_t i = 0; i < n; i++) {
        if (CU_add_test(suite, cases[i].name, cases[i].run) == NULL)
            die(cases[i].name);
    }
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    /* A test without a single assertion that ran has not been seen to pass. */
    bool ok = CU_get_number_of_failure_records() == 0 && CU_get_number_of_asserts() > 0;
    CU_cleanup_registry();
    return ok ? 0 : 1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)remove(path);
    return 0;
}

static void remove_temp_dirs(void)
{
    if (temp_owner != getpid())
        return;
    while (temp_dirs != NULL) {
        struct temp_dir *next = temp_dirs->next;
        (void)nftw(temp_dirs->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(temp_dirs);
        temp_dirs = next;
    }
}

const char *test_dir(void)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || *base == '\0')
        base = "/tmp";
    static const char tail[] = "/dohle-test-XXXXXX";
    struct temp_dir *d = __real_malloc(sizeof *d + strlen(base) + sizeof tail);
    if (d == NULL)
        die("test_dir");
    sprintf(d->path, "%s%s", base, tail);
    if (mkdtemp(d->path) == NULL)
        die(d->path);
    if (temp_owner == 0) {
        temp_owner = getpid();
        atexit(remove_temp_dirs);
    }
    d->next = temp_dirs;
    temp_dirs = d;
    return d->path;
}

const char *test_golden(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", TEST_GOLDEN, name);
    return path;
}

static uint8_t *read_all(FILE *f, size_t *n)
{
    size_t cap = 4096;
    uint8_t *p = __real_malloc(cap);
    *n = 0;
    while (p != NULL) {
        size_t got = fread(p + *n, 1, cap - *n, f);
        *n += got;
        if (*n < cap)
            break;
        cap *= 2;
        p = __real_realloc(p, cap);
    }
    return p;
}

uint8_t *test_read_file(const char *path, size_t *n)
{
    *n = 0;
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        CU_FAIL("cannot read file");
        return NULL;
    }
    uint8_t *p = read_all(f, n);
    if (p == NULL || ferror(f) != 0)
        die(path);
    fclose(f);
    return p;
}

void test_write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(p, 1, n, f) != n || fclose(f) != 0)
        die(path);
}
