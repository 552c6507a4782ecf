/* An environment without a machine: memfs, seeded random bytes, and jobs that run when the test
 * says so. One thread. */
#ifndef SUPPORT_MEMENV_H
#define SUPPORT_MEMENV_H

#include "support/memfs.h"

struct memenv {
    struct env env;
    struct memfs *fs; /* the test's; several environments may not share it */
    struct rng rng;
    struct list waiting;  /* submitted jobs, oldest first */
    struct list finished; /* to be reaped */
    size_t waiting_n;
    uint64_t lines[LOG_ERROR + 1]; /* log lines by level */
    char last_line[256];           /* cut */
    const char *word;              /* lines that hold it are counted; NULL: none */
    uint64_t word_n;
    bool echo; /* log lines to stderr too */
};

void memenv_init(struct memenv *e, struct memfs *fs, uint64_t seed);
/* No job may wait or be unreaped: their owners would hang. */
void memenv_close(struct memenv *e);

/* Runs the oldest waiting job; false if there is none. It is then to be reaped. */
bool memenv_run_job(struct memenv *e);
/* The nth oldest, from 0: workers finish in any order. n < waiting_n. */
void memenv_run_nth_job(struct memenv *e, size_t n);
/* Runs until none waits; the number run. */
size_t memenv_run_jobs(struct memenv *e);
/* Calls done() of the finished ones, as a node's turn does; the number of them. */
size_t memenv_reap_jobs(struct memenv *e);
/* Power off: waiting and finished jobs are forgotten, done() is never called. */
void memenv_drop_jobs(struct memenv *e);

#endif
