/* os_env for a server: its jobs are counted, because a node may only be freed when none runs, and
 * the process's descriptors are shared out between files and connections. */
#ifndef NET_MACHINE_H
#define NET_MACHINE_H

#include "os/env.h"

struct machine {
    struct env env; /* the node's; os's with submit and reap counted */
    struct os_env os;
    size_t jobs_n;    /* submitted, not reaped */
    size_t conns_max; /* the connections' share of descriptors */
};

/* Raises the limit of descriptors. Two threads for sync jobs, one for bulk. Errors of os_env_init.
 */
MUST_USE enum err machine_init(struct machine *m);
/* With no job left and all files closed. */
void machine_close(struct machine *m);

#endif
