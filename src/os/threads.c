/* Two queues, one list of finished jobs, one mutex. The eventfd is written and read under the mutex
 * and only when the list of finished jobs begins or ends, so it is readable exactly while there is
 * something to reap, and a burst of jobs costs one wake-up. */
#include "os/threads.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "os/error.h"

static void lock(struct os_pool *p)
{
    CHECK(pthread_mutex_lock(&p->mutex) == 0);
}

static void unlock(struct os_pool *p)
{
    CHECK(pthread_mutex_unlock(&p->mutex) == 0);
}

/* under the mutex */
static void finish(struct os_pool *p, struct job *j)
{
    if (list_empty(&p->finished))
        CHECK(eventfd_write(p->wake_fd, 1) != -1);
    list_append(&p->finished, &j->link);
}

/* The next job, under the mutex; NULL when the pool stops and the queue is empty. */
static struct job *next_job(struct os_pool *p, enum job_lane lane)
{
    while (list_empty(&p->waiting[lane]) && !p->stopping)
        CHECK(pthread_cond_wait(&p->wanted[lane], &p->mutex) == 0);
    struct list *l = list_pop(&p->waiting[lane]);
    return l == NULL ? NULL : LIST_ENTRY(l, struct job, link);
}

static void *work(void *arg)
{
    struct os_worker *w = arg;
    struct os_pool *p = w->pool;
    struct job *j;
    lock(p);
    while ((j = next_job(p, w->lane)) != NULL) {
        unlock(p);
        j->run(j, &w->disk.disk);
        lock(p);
        finish(p, j);
    }
    unlock(p);
    return NULL;
}

/* Signals are the owner's: workers block them all. */
static enum err start(struct os_pool *p, enum job_lane lane, size_t fds_max)
{
    struct os_worker *w = &p->workers[p->workers_n];
    w->pool = p;
    w->lane = lane;
    os_disk_init(&w->disk, fds_max);
    sigset_t all, before;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int errnum = pthread_create(&w->thread, NULL, work, w);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (errnum != 0) {
        os_disk_close(&w->disk);
        return os_error(errnum);
    }
    p->workers_n++;
    return ERR_NONE;
}

enum err os_pool_init(struct os_pool *p, const struct os_pool_config *config)
{
    CHECK(config->sync_workers_n > 0 && config->bulk_workers_n > 0);
    size_t n = config->sync_workers_n + config->bulk_workers_n;
    *p = (struct os_pool){.workers = calloc(n, sizeof *p->workers)};
    if (p->workers == NULL)
        return ERR_NOMEM;
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->wake_fd == -1) {
        free(p->workers);
        return os_error(errno);
    }
    CHECK(pthread_mutex_init(&p->mutex, NULL) == 0);
    for (int lane = 0; lane < OS_LANES; lane++) {
        CHECK(pthread_cond_init(&p->wanted[lane], NULL) == 0);
        list_init(&p->waiting[lane]);
    }
    list_init(&p->finished);
    enum err err = ERR_NONE;
    for (size_t i = 0; i < n && err == ERR_NONE; i++)
        err = start(p, i < config->sync_workers_n ? JOB_SYNC : JOB_BULK, config->worker_fds_max);
    if (err != ERR_NONE) {
        os_pool_stop(p);
        os_pool_close(p);
    }
    return err;
}

void os_pool_submit(struct os_pool *p, struct job *j)
{
    p->jobs_n++;
    lock(p);
    CHECK(!p->stopping);
    list_append(&p->waiting[j->lane], &j->link);
    CHECK(pthread_cond_signal(&p->wanted[j->lane]) == 0);
    unlock(p);
}

struct job *os_pool_reap(struct os_pool *p)
{
    lock(p);
    struct list *l = list_pop(&p->finished);
    if (l != NULL && list_empty(&p->finished)) {
        eventfd_t ignored;
        CHECK(eventfd_read(p->wake_fd, &ignored) != -1);
    }
    unlock(p);
    p->jobs_n -= l != NULL;
    return l == NULL ? NULL : LIST_ENTRY(l, struct job, link);
}

void os_pool_stop(struct os_pool *p)
{
    lock(p);
    p->stopping = true;
    for (int lane = 0; lane < OS_LANES; lane++)
        CHECK(pthread_cond_broadcast(&p->wanted[lane]) == 0);
    unlock(p);
    for (size_t i = 0; i < p->workers_n; i++) {
        CHECK(pthread_join(p->workers[i].thread, NULL) == 0);
        os_disk_close(&p->workers[i].disk);
    }
    p->workers_n = 0;
}

void os_pool_close(struct os_pool *p)
{
    CHECK(p->workers_n == 0 && p->jobs_n == 0 && list_empty(&p->finished));
    for (int lane = 0; lane < OS_LANES; lane++)
        CHECK(pthread_cond_destroy(&p->wanted[lane]) == 0);
    CHECK(pthread_mutex_destroy(&p->mutex) == 0);
    CHECK(close(p->wake_fd) != -1);
    free(p->workers);
    p->workers = NULL;
}
