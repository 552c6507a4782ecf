/* Worker threads for jobs, two lanes with threads of their own: what an acknowledgement waits for
 * never waits behind bulk work. A lane starts its jobs in the order of submission; with several
 * threads they finish in any order.
 *
 * One owner thread calls everything here. The queues are not bounded: every job is embedded in an
 * owner that has a bounded number of them. */
#ifndef OS_THREADS_H
#define OS_THREADS_H

#include <pthread.h>

#include "os/disk.h"

#define OS_LANES 2 /* enum job_lane */

struct os_pool;

struct os_worker {
    struct os_pool *pool;
    enum job_lane lane;
    pthread_t thread;
    struct os_disk disk;
};

struct os_pool {
    pthread_mutex_t mutex; /* over the lists and stopping */
    pthread_cond_t wanted[OS_LANES];
    struct list waiting[OS_LANES];
    struct list finished;
    bool stopping;
    int wake_fd;   /* eventfd; readable while a finished job is to be reaped */
    size_t jobs_n; /* submitted, not reaped; the owner's: a node is freed when there is none */
    size_t workers_n;
    struct os_worker *workers;
};

struct os_pool_config {
    size_t sync_workers_n, bulk_workers_n; /* at least one each */
    size_t worker_fds_max;                 /* descriptors that each worker keeps open */
};

/* ERR_NOMEM, ERR_NFILE, ERR_AGAIN (no thread to be had). */
MUST_USE enum err os_pool_init(struct os_pool *p, const struct os_pool_config *config);
void os_pool_submit(struct os_pool *p, struct job *j);
/* A finished job, whose done() is then due, or NULL. */
struct job *os_pool_reap(struct os_pool *p);
/* Runs what still waits (its owner may have cancelled it), then ends the threads. Finished jobs can
 * be reaped afterwards. */
void os_pool_stop(struct os_pool *p);
/* After os_pool_stop; all must be reaped. */
void os_pool_close(struct os_pool *p);

#endif
