#include "os/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/error.h"
#include "support/test.h"

struct captured {
    struct os_log log;
    char path[300];
};

/* 2026-01-01T00:00:00.007Z */
static const struct now start = {.mono_us = 1000, .wall_ms = 1767225600007};

static void capture(struct captured *c, enum log_level min_level)
{
    snprintf(c->path, sizeof c->path, "%s/log", test_dir());
    int fd = open(c->path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    CU_ASSERT_FATAL(fd != -1);
    os_log_init(&c->log, fd, min_level);
}

/* What was written since the last call. */
static char *written(struct captured *c)
{
    static char text[100000];
    size_t n;
    uint8_t *p = test_read_file(c->path, &n);
    CU_ASSERT_FATAL(n < sizeof text);
    memcpy(text, p, n);
    text[n] = '\0';
    free(p);
    CU_ASSERT_EQUAL(ftruncate(c->log.fd, 0), 0);
    return text;
}

static size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static struct now later(int64_t us)
{
    return (struct now){start.mono_us + us, start.wall_ms + us / 1000};
}

static void test_log_line_format(void)
{
    struct captured c;
    capture(&c, LOG_INFO);
    os_log_line(&c.log, start, LOG_INFO, "started node=1");
    CU_ASSERT_STRING_EQUAL(written(&c), "2026-01-01T00:00:00.007Z INFO started node=1\n");
    os_log_line(&c.log, start, LOG_DEBUG, "noise");
    CU_ASSERT_STRING_EQUAL(written(&c), "");
    os_log_line(&c.log, later(1500000), LOG_ERROR, "bad name=a\nb\x1b[0m");
    CU_ASSERT_STRING_EQUAL(written(&c), "2026-01-01T00:00:01.507Z ERROR bad name=a?b?[0m\n");
    char line[5000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    os_log_line(&c.log, start, LOG_WARN, line);
    CU_ASSERT_EQUAL(lines_of(written(&c)), 1);
    close(c.log.fd);
}

static void test_log_suppresses_floods(void)
{
    struct captured c;
    capture(&c, LOG_INFO);
    char line[64];
    for (int i = 0; i < 500; i++) {
        sprintf(line, "garbage client=%d", i);
        os_log_line(&c.log, later(i), LOG_WARN, line);
    }
    os_log_line(&c.log, later(500), LOG_INFO, "other");
    CU_ASSERT_EQUAL(lines_of(written(&c)), LOG_EVENT_PER_S + 1);
    os_log_line(&c.log, later(1000000), LOG_INFO, "other");
    CU_ASSERT_STRING_EQUAL(written(&c),
                           "2026-01-01T00:00:01.007Z WARN log_suppressed event=garbage count=480\n"
                           "2026-01-01T00:00:01.007Z INFO other\n");
    os_log_line(&c.log, later(1000001), LOG_WARN, "garbage client=9");
    CU_ASSERT_EQUAL(lines_of(written(&c)), 1);
    close(c.log.fd);
}

static void test_log_flush_tells_the_rest(void)
{
    struct captured c;
    capture(&c, LOG_INFO);
    for (int i = 0; i < LOG_EVENT_PER_S + 3; i++)
        os_log_line(&c.log, start, LOG_WARN, "flood");
    (void)written(&c);
    os_log_flush(&c.log, start);
    CU_ASSERT_STRING_EQUAL(written(&c),
                           "2026-01-01T00:00:00.007Z WARN log_suppressed event=flood count=3\n");
    os_log_flush(&c.log, start);
    CU_ASSERT_STRING_EQUAL(written(&c), "");
    close(c.log.fd);
}

/* More events than are counted at a time: none is lost, the oldest count is told at once. */
static void test_log_many_events(void)
{
    struct captured c;
    capture(&c, LOG_INFO);
    for (int i = 0; i < LOG_EVENT_PER_S + 1; i++)
        os_log_line(&c.log, start, LOG_WARN, "first");
    (void)written(&c);
    char line[64];
    for (int i = 0; i < 3 * LOG_EVENTS; i++) {
        sprintf(line, "event%d", i);
        os_log_line(&c.log, later(1 + i), LOG_INFO, line);
    }
    char *text = written(&c);
    CU_ASSERT_EQUAL(lines_of(text), 3 * LOG_EVENTS + 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "log_suppressed event=first count=1\n"));
    close(c.log.fd);
}

struct touch {
    struct job job;
    bool ran, done;
};

static void touch_run(struct job *j, struct disk *d)
{
    CONTAINER_OF(j, struct touch, job)->ran = true;
}

static void touch_done(struct job *j)
{
    CONTAINER_OF(j, struct touch, job)->done = true;
}

static void test_env_serves_a_node(void)
{
    struct os_env e;
    struct os_env_config config;
    os_env_config_default(&config);
    CU_ASSERT(config.fds_max > 0 && config.pool.sync_workers_n == 2);
    CU_ASSERT_EQUAL_FATAL(os_env_init(&e, &config), ERR_NONE);
    CU_ASSERT_NOT_EQUAL(env_random_u64(&e.env), env_random_u64(&e.env));
    struct file_stat st;
    CU_ASSERT_EQUAL(e.env.fs->ops->stat(e.env.fs, "/", &st), ERR_NONE);
    struct touch t = {.job = {.lane = JOB_BULK, .run = touch_run, .done = touch_done}};
    e.env.submit(&e.env, &t.job);
    os_env_stop(&e);
    struct job *j = e.env.reap(&e.env);
    CU_ASSERT_PTR_EQUAL_FATAL(j, &t.job);
    j->done(j);
    CU_ASSERT(t.ran && t.done);
    CU_ASSERT_PTR_NULL(e.env.reap(&e.env));
    os_env_close(&e);
}

static void test_clocks_run(void)
{
    struct now a = os_now(), b = os_now();
    CU_ASSERT(a.mono_us > 0 && b.mono_us >= a.mono_us);
    CU_ASSERT(a.wall_ms > 1600000000000);
}

static void test_errors_are_mapped(void)
{
    CU_ASSERT_EQUAL(os_error(ENOSPC), ERR_NOSPC);
    CU_ASSERT_EQUAL(os_error(EDQUOT), ERR_NOSPC);
    CU_ASSERT_EQUAL(os_error(EROFS), ERR_ACCESS);
    CU_ASSERT_EQUAL(os_error(EMFILE), ERR_NFILE);
    CU_ASSERT_EQUAL(os_error(EIO), ERR_IO);
    CU_ASSERT_EQUAL(os_error(0), ERR_IO);
    for (int e = 0; e < 200; e++)
        CU_ASSERT(os_error(e) > ERR_NONE && os_error(e) < ERR_MAX);
}

TEST_MAIN(TEST(test_log_line_format), TEST(test_log_suppresses_floods),
          TEST(test_log_flush_tells_the_rest), TEST(test_log_many_events),
          TEST(test_env_serves_a_node), TEST(test_clocks_run), TEST(test_errors_are_mapped))
