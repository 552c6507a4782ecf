/* One line on stderr that tells how far a long work is: only on a terminal that stdout or stdin
 * does not use, gone when it ends. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "base/env.h"

struct progress {
    bool shown; /* stderr is for it */
    bool drawn; /* there is a line to be wiped */
    int64_t next_us;
    uint64_t records, bytes;
};

/* other_fd: where the user's own text is; no line when that is a terminal. */
void progress_init(struct progress *p, int other_fd);
/* Some more were done. */
void progress_add(struct progress *p, uint64_t records, uint64_t bytes, struct now now);
/* Before anything else is written to stderr, and at the end. */
void progress_wipe(struct progress *p);

#endif
