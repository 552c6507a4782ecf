#include "os/env.h"

#include <sys/resource.h>
#include <unistd.h>

#include "os/random.h"

#define WORKER_FDS 64
/* An unlimited process need not keep every file of a large broker open. */
#define FDS_MAX 65536

static struct os_env *os_env_of(struct env *e)
{
    return CONTAINER_OF(e, struct os_env, env);
}

static void env_random(struct env *e, void *p, size_t n)
{
    os_random(p, n);
}

static void env_submit(struct env *e, struct job *j)
{
    os_pool_submit(&os_env_of(e)->pool, j);
}

static struct job *env_reap(struct env *e)
{
    return os_pool_reap(&os_env_of(e)->pool);
}

static void env_line(struct env *e, enum log_level level, const char *line)
{
    os_log_line(&os_env_of(e)->log, os_now(), level, line);
}

size_t os_raise_fd_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
        return 256; /* what every system grants */
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == -1)
        limit.rlim_cur = before;
    return limit.rlim_cur;
}

void os_env_config_default(struct os_env_config *c)
{
    size_t fds = os_raise_fd_limit() / 2;
    *c = (struct os_env_config){
        .fds_max = fds < FDS_MAX ? fds : FDS_MAX,
        .pool = {.sync_workers_n = 2, .bulk_workers_n = 2, .worker_fds_max = WORKER_FDS},
        .min_level = LOG_INFO,
    };
}

enum err os_env_init(struct os_env *e, const struct os_env_config *config)
{
    e->env = (struct env){&e->vfs.vfs, env_random, env_submit, env_reap, env_line};
    enum err err = os_pool_init(&e->pool, &config->pool);
    if (err != ERR_NONE)
        return err;
    os_vfs_init(&e->vfs, config->fds_max);
    os_log_init(&e->log, STDERR_FILENO, config->min_level);
    return ERR_NONE;
}

void os_env_stop(struct os_env *e)
{
    os_pool_stop(&e->pool);
}

void os_env_close(struct os_env *e)
{
    os_log_flush(&e->log, os_now());
    os_vfs_close(&e->vfs);
    os_pool_close(&e->pool);
}
