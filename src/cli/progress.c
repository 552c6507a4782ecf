#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/table.h"

enum { DRAW_EACH_US = 250 * 1000 };

void progress_init(struct progress *p, int other_fd)
{
    *p = (struct progress){.shown = terminal_moves(STDERR_FILENO) && !isatty(other_fd)};
}

void progress_add(struct progress *p, uint64_t records, uint64_t bytes, struct now now)
{
    p->records += records;
    p->bytes += bytes;
    if (!p->shown || now.mono_us < p->next_us)
        return;
    p->next_us = now.mono_us + DRAW_EACH_US;
    p->drawn = true;
    fprintf(stderr, "\r%llu records, %.1f MB\033[K", (unsigned long long)p->records,
            (double)p->bytes / 1e6);
}

void progress_wipe(struct progress *p)
{
    if (p->drawn)
        fprintf(stderr, "\r\033[K");
    p->drawn = false;
}
