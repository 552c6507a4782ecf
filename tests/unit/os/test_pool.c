/* Run under TSan as well: both lanes under load, random delays, cancellation, the wake-up. */
#include "os/threads.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "support/rng.h"
#include "support/test.h"

#define JOBS_N 400

struct counted {
    struct job job;
    uint64_t delay_ns;
    int runs, dones;      /* runs: by the worker, read after the reap */
    bool until_cancelled; /* run() waits for that */
    const char *path;     /* written and synced, or NULL */
    enum err err;
    struct gate *gate; /* run() waits for it to open, or NULL */
};

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    int arrived;
};

static const struct os_pool_config config = {
    .sync_workers_n = 2, .bulk_workers_n = 2, .worker_fds_max = 4};

static struct counted *counted_of(struct job *j)
{
    return CONTAINER_OF(j, struct counted, job);
}

static void nap(uint64_t ns)
{
    struct timespec t = {0, (long)ns};
    nanosleep(&t, NULL);
}

static void gate_pass(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->arrived++;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void gate_await(struct gate *g, int arrived)
{
    pthread_mutex_lock(&g->mutex);
    while (g->arrived < arrived)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void gate_open(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

static enum err write_and_sync(struct disk *d, const char *path)
{
    struct file *f;
    enum err err = d->fs->ops->open(d->fs, path, FILE_WRITE, &f);
    if (err != ERR_NONE)
        return err;
    struct iov iov = {"data", 4};
    err = d->fs->ops->pwritev(f, &iov, 1, 0);
    file_unref(f);
    return err != ERR_NONE ? err : d->sync(d, path);
}

static void run(struct job *j, struct disk *d)
{
    struct counted *c = counted_of(j);
    c->runs++;
    if (c->gate != NULL)
        gate_pass(c->gate);
    if (c->path != NULL)
        c->err = write_and_sync(d, c->path);
    if (c->delay_ns > 0)
        nap(c->delay_ns);
    while (c->until_cancelled && !job_cancelled(j))
        nap(1000);
}

static void done(struct job *j)
{
    counted_of(j)->dones++;
}

static struct counted job_of(enum job_lane lane)
{
    return (struct counted){.job = {.lane = lane, .run = run, .done = done}};
}

static size_t reap(struct os_pool *p)
{
    size_t n = 0;
    struct job *j;
    while ((j = os_pool_reap(p)) != NULL) {
        j->done(j);
        n++;
    }
    return n;
}

static bool readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1;
}

static void reap_all(struct os_pool *p, size_t n)
{
    while (n > 0) {
        CU_ASSERT_TRUE_FATAL(readable(p->wake_fd, 60000));
        size_t got = reap(p);
        CU_ASSERT_FATAL(got <= n);
        n -= got;
    }
    CU_ASSERT_FALSE(readable(p->wake_fd, 0));
}

static void test_pool_runs_each_job_once(void)
{
    static struct counted jobs[JOBS_N];
    static char paths[8][300];
    struct os_pool p;
    struct rng rng = {1};
    const char *dir = test_dir();
    CU_ASSERT_EQUAL_FATAL(os_pool_init(&p, &config), ERR_NONE);
    for (size_t i = 0; i < ARRAY_N(paths); i++)
        snprintf(paths[i], sizeof paths[i], "%s/%zu", dir, i);
    size_t reaped = 0;
    for (size_t i = 0; i < JOBS_N; i++) {
        jobs[i] = job_of(rng_percent(&rng, 50) ? JOB_SYNC : JOB_BULK);
        jobs[i].delay_ns = rng_percent(&rng, 30) ? rng_below(&rng, 500000) : 0;
        jobs[i].path = rng_percent(&rng, 10) ? paths[rng_below(&rng, 8)] : NULL;
        jobs[i].until_cancelled = i % 16 == 0;
        os_pool_submit(&p, &jobs[i].job);
        if (rng_percent(&rng, 20))
            reaped += reap(&p);
        if (i % 16 == 15)
            job_cancel(&jobs[i - 15].job);
    }
    reap_all(&p, JOBS_N - reaped);
    size_t wrong = 0;
    for (size_t i = 0; i < JOBS_N; i++)
        wrong += jobs[i].runs != 1 || jobs[i].dones != 1 || jobs[i].err != ERR_NONE;
    CU_ASSERT_EQUAL(wrong, 0);
    os_pool_stop(&p);
    os_pool_close(&p);
}

/* All bulk workers are busy: a sync job runs all the same. */
static void test_pool_bulk_never_delays_sync(void)
{
    struct os_pool p;
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
    struct counted bulk[5], sync = job_of(JOB_SYNC);
    CU_ASSERT_EQUAL_FATAL(os_pool_init(&p, &config), ERR_NONE);
    for (size_t i = 0; i < ARRAY_N(bulk); i++) {
        bulk[i] = job_of(JOB_BULK);
        bulk[i].gate = &gate;
        os_pool_submit(&p, &bulk[i].job);
    }
    gate_await(&gate, 2);
    os_pool_submit(&p, &sync.job);
    reap_all(&p, 1);
    CU_ASSERT_EQUAL(sync.dones, 1);
    gate_open(&gate);
    reap_all(&p, ARRAY_N(bulk));
    os_pool_stop(&p);
    os_pool_close(&p);
}

static void test_pool_stop_runs_what_waits(void)
{
    struct os_pool p;
    struct counted jobs[50];
    CU_ASSERT_EQUAL_FATAL(os_pool_init(&p, &config), ERR_NONE);
    for (size_t i = 0; i < ARRAY_N(jobs); i++) {
        jobs[i] = job_of(i % 2 == 0 ? JOB_SYNC : JOB_BULK);
        jobs[i].delay_ns = 100000;
        os_pool_submit(&p, &jobs[i].job);
    }
    os_pool_stop(&p);
    CU_ASSERT_TRUE(readable(p.wake_fd, 0));
    CU_ASSERT_EQUAL(reap(&p), ARRAY_N(jobs));
    for (size_t i = 0; i < ARRAY_N(jobs); i++)
        CU_ASSERT(jobs[i].runs == 1 && jobs[i].dones == 1);
    os_pool_close(&p);
}

static void test_pool_workers_can_sync(void)
{
    struct os_pool p;
    char path[300], missing[300];
    const char *dir = test_dir();
    snprintf(path, sizeof path, "%s/f", dir);
    snprintf(missing, sizeof missing, "%s/none/f", dir);
    CU_ASSERT_EQUAL_FATAL(os_pool_init(&p, &config), ERR_NONE);
    struct counted good = job_of(JOB_SYNC), bad = job_of(JOB_SYNC);
    good.path = path;
    bad.path = missing;
    os_pool_submit(&p, &good.job);
    os_pool_submit(&p, &bad.job);
    reap_all(&p, 2);
    CU_ASSERT_EQUAL(good.err, ERR_NONE);
    CU_ASSERT_EQUAL(bad.err, ERR_NOENT);
    os_pool_stop(&p);
    os_pool_close(&p);
    struct os_disk own;
    os_disk_init(&own, 1);
    struct disk *d = &own.disk;
    CU_ASSERT_EQUAL(d->sync(d, path), ERR_NONE);
    CU_ASSERT_EQUAL(d->sync(d, missing), ERR_NOENT);
    CU_ASSERT_EQUAL(d->sync_dir(d, dir), ERR_NONE);
    CU_ASSERT_EQUAL(d->sync_dir(d, path), ERR_NOENT);
    struct disk_space space = {0};
    CU_ASSERT_EQUAL(d->space(d, dir, &space), ERR_NONE);
    CU_ASSERT(space.total_bytes > 0 && space.usable_bytes <= space.total_bytes);
    CU_ASSERT_EQUAL(d->space(d, missing, &space), ERR_NOENT);
    CU_ASSERT_EQUAL(d->warm(d, path, 0, 1), ERR_NONE);
    CU_ASSERT_EQUAL(d->warm(d, path, 1, 3 << 20), ERR_NONE); /* behind its end too */
    CU_ASSERT_EQUAL(d->warm(d, path, 0, 0), ERR_NONE);
    CU_ASSERT_EQUAL(d->warm(d, missing, 0, 1), ERR_NOENT);
    CU_ASSERT_EQUAL(d->warm(d, dir, 0, 1), ERR_INVALID);
    CU_ASSERT_EQUAL(d->warm(d, path, 1, INT64_MAX), ERR_INVALID);
    os_disk_close(&own);
}

TEST_MAIN(TEST(test_pool_runs_each_job_once), TEST(test_pool_bulk_never_delays_sync),
          TEST(test_pool_stop_runs_what_waits), TEST(test_pool_workers_can_sync))
