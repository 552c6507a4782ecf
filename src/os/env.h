/* struct env on POSIX, for the one thread that owns a node: files, worker threads, random bytes,
 * log lines on stderr. */
#ifndef OS_ENV_H
#define OS_ENV_H

#include "os/clocks.h"
#include "os/log.h"
#include "os/threads.h"

struct os_env {
    struct env env;
    struct os_vfs vfs;
    struct os_pool pool; /* pool.wake_fd: for the loop, readable while reap() has something */
    struct os_log log;
};

struct os_env_config {
    size_t fds_max; /* of the owner's vfs */
    struct os_pool_config pool;
    enum log_level min_level;
};

/* Two threads for sync jobs, two for bulk (recovery of many logs waits for a sync of each), and
 * half of the process's descriptors for files. */
void os_env_config_default(struct os_env_config *c);
/* Errors of os_pool_init. */
MUST_USE enum err os_env_init(struct os_env *e, const struct os_env_config *config);
/* Runs the jobs that wait and ends the workers; what finished can still be reaped. */
void os_env_stop(struct os_env *e);
/* After os_env_stop, with all jobs reaped and all files closed. */
void os_env_close(struct os_env *e);

/* Raises the soft limit of descriptors to the hard one; the limit then. */
size_t os_raise_fd_limit(void);

#endif
