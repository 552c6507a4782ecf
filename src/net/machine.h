/* os_env for a server: the process's descriptors are shared out between files and connections. */
#ifndef NET_MACHINE_H
#define NET_MACHINE_H

#include "os/env.h"

struct machine {
    struct os_env os;
    size_t conns_max; /* the connections' share of descriptors */
};

/* Raises the limit of descriptors. Two threads for sync jobs, one for bulk. Errors of os_env_init.
 */
MUST_USE enum err machine_init(struct machine *m);
/* With no job left and all files closed. */
void machine_close(struct machine *m);

#endif
