#include "net/machine.h"

/* Beyond files and connections: standard streams, epoll, wake-ups, listeners, locks, directories
 * that are read or synced. */
enum { OTHER_FDS = 64, CONNS_MIN = 16, WORKER_FDS_MIN = 4 };

/* A quarter for the files of the owner, which reopens what it needs, a sixteenth at most for each
 * worker, the rest for connections, which cannot do without. */
static size_t share_fds(size_t all, struct os_env_config *c)
{
    const size_t workers_n = c->pool.sync_workers_n + c->pool.bulk_workers_n;
    if (c->fds_max > all / 4)
        c->fds_max = all / 4;
    if (c->pool.worker_fds_max > all / 16)
        c->pool.worker_fds_max = all / 16 > WORKER_FDS_MIN ? all / 16 : WORKER_FDS_MIN;
    const size_t taken = c->fds_max + workers_n * c->pool.worker_fds_max + OTHER_FDS;
    return all > taken + CONNS_MIN ? all - taken : CONNS_MIN;
}

enum err machine_init(struct machine *m)
{
    struct os_env_config config;
    os_env_config_default(&config);
    *m = (struct machine){.conns_max = share_fds(os_raise_fd_limit(), &config)};
    return os_env_init(&m->os, &config);
}

void machine_close(struct machine *m)
{
    os_env_stop(&m->os);
    os_env_close(&m->os);
}
