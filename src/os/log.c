#include "os/log.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SECOND_US 1000000
#define LINE_BYTES 1200 /* env_log's lines and the time */

void os_log_init(struct os_log *l, int fd, enum log_level min_level)
{
    *l = (struct os_log){.fd = fd, .min_level = min_level};
}

static void write_line(struct os_log *l, struct now now, enum log_level level, const char *line)
{
    static const char *const levels[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    char out[LINE_BYTES];
    time_t s = (time_t)(now.wall_ms / 1000);
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%S", &tm);
    int rest = snprintf(out + n, sizeof out - n, ".%03dZ %s %s", (int)(now.wall_ms % 1000),
                        levels[level], line);
    if (rest < 0)
        return;
    n += (size_t)rest;
    if (n > sizeof out - 1)
        n = sizeof out - 1;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)out[i] < ' ' || out[i] == 0x7f)
            out[i] = '?';
    }
    out[n++] = '\n';
    if (write(l->fd, out, n) == -1)
        return; /* there is nowhere to tell it */
}

static void close_second(struct os_log *l, struct now now, struct os_log_event *e)
{
    char line[LOG_EVENT_NAME + 64];
    if (e->suppressed_n > 0) {
        snprintf(line, sizeof line, "log_suppressed event=%s count=%u", e->name, e->suppressed_n);
        write_line(l, now, LOG_WARN, line);
    }
    e->name[0] = '\0';
}

static void close_seconds(struct os_log *l, struct now now)
{
    for (size_t i = 0; i < LOG_EVENTS; i++) {
        struct os_log_event *e = &l->events[i];
        if (e->name[0] != '\0' && now.mono_us - e->since_us >= SECOND_US)
            close_second(l, now, e);
    }
}

static struct os_log_event *event_of(struct os_log *l, struct now now, const char *line)
{
    char name[LOG_EVENT_NAME];
    size_t n = strcspn(line, " ");
    if (n >= sizeof name)
        n = sizeof name - 1;
    memcpy(name, line, n);
    name[n] = '\0';
    struct os_log_event *best = NULL; /* free or oldest */
    for (size_t i = 0; i < LOG_EVENTS; i++) {
        struct os_log_event *e = &l->events[i];
        if (e->name[0] != '\0' && strcmp(e->name, name) == 0)
            return e;
        if (best == NULL ||
            (best->name[0] != '\0' && (e->name[0] == '\0' || e->since_us < best->since_us)))
            best = e;
    }
    if (best->name[0] != '\0')
        close_second(l, now, best);
    *best = (struct os_log_event){.since_us = now.mono_us};
    memcpy(best->name, name, n + 1);
    return best;
}

void os_log_line(struct os_log *l, struct now now, enum log_level level, const char *line)
{
    if (level < l->min_level)
        return;
    close_seconds(l, now);
    struct os_log_event *e = event_of(l, now, line);
    if (e->written_n >= LOG_EVENT_PER_S) {
        e->suppressed_n++;
        return;
    }
    e->written_n++;
    write_line(l, now, level, line);
}

void os_log_flush(struct os_log *l, struct now now)
{
    for (size_t i = 0; i < LOG_EVENTS; i++) {
        if (l->events[i].name[0] != '\0')
            close_second(l, now, &l->events[i]);
    }
}
