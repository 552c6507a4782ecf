/* Log lines: "2026-01-01T00:00:00.000Z LEVEL event key=value ...", one write(2) each. An event (the
 * line's first word) that comes more than LOG_EVENT_PER_S times within a second is not written for
 * the rest of it; how often is told by "log_suppressed event=... count=..." with a later line or at
 * the end. Control characters become '?', long lines are cut. Lines that cannot be written are
 * lost. */
#ifndef OS_LOG_H
#define OS_LOG_H

#include "base/env.h"

#define LOG_EVENT_PER_S 20
#define LOG_EVENTS 64     /* events that are counted at a time; the oldest makes room */
#define LOG_EVENT_NAME 48 /* longer names are compared by their beginning */

struct os_log_event {
    char name[LOG_EVENT_NAME]; /* "" : free */
    int64_t since_us;          /* beginning of its second */
    uint32_t written_n, suppressed_n;
};

struct os_log {
    int fd;
    enum log_level min_level;
    struct os_log_event events[LOG_EVENTS];
};

void os_log_init(struct os_log *l, int fd, enum log_level min_level);
void os_log_line(struct os_log *l, struct now now, enum log_level level, const char *line);
/* Tells what was suppressed and not yet told. */
void os_log_flush(struct os_log *l, struct now now);

#endif
