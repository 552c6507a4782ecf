#include "cli/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10 };

static char stdin_name[] = "-";
static char *const only_stdin[] = {stdin_name};

void lines_init(struct lines *l, char *const *files, size_t n, struct bytes delimiter)
{
    *l = (struct lines){.files = n == 0 ? only_stdin : files,
                        .files_n = n == 0 ? 1 : n,
                        .fd = -1,
                        .delimiter = delimiter};
    buf_init(&l->buf);
}

static void close_file(struct lines *l)
{
    if (l->fd > STDIN_FILENO)
        (void)close(l->fd);
    l->fd = -1;
}

void lines_close(struct lines *l)
{
    close_file(l);
    buf_close(&l->buf);
}

static bool open_file(struct lines *l)
{
    const char *name = l->files[l->at];
    const bool is_stdin = strcmp(name, "-") == 0;
    l->name = is_stdin ? "standard input" : name;
    l->fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    l->number = 0;
    l->file_ended = false;
    l->buf.n = l->begin = l->scanned = 0;
    return l->fd != -1;
}

/* ------------------------------------------------------------------ bytes in */

/* The piece at hand moves to the front when that makes room. */
static enum err make_room(struct lines *l)
{
    if (l->begin > 0 && l->buf.cap - l->buf.n < READ_BYTES) {
        memmove(l->buf.p, l->buf.p + l->begin, l->buf.n - l->begin);
        l->buf.n -= l->begin;
        l->scanned -= l->begin;
        l->begin = 0;
    }
    return buf_reserve(&l->buf, READ_BYTES);
}

static enum lines_state fail(char *message, size_t message_n, const struct lines *l,
                             const char *why)
{
    snprintf(message, message_n, "cannot read %s: %s", l->name, why);
    return LINES_FAILED;
}

/* LINES_ONE: more bytes came, or the file's end. */
static enum lines_state read_more(struct lines *l, char *message, size_t message_n)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    if (poll(&p, 1, 0) == 0)
        return LINES_WAIT;
    if (l->buf.n - l->begin > LINES_MAX_BYTES)
        return fail(message, message_n, l, "a record is too large");
    if (make_room(l) != ERR_NONE)
        return fail(message, message_n, l, "out of memory");
    const ssize_t n = read(l->fd, l->buf.p + l->buf.n, l->buf.cap - l->buf.n);
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return LINES_WAIT;
    if (n == -1)
        return fail(message, message_n, l, strerror(errno));
    l->file_ended = n == 0;
    l->buf.n += (size_t)n;
    return LINES_ONE;
}

/* ------------------------------------------------------------------ pieces */

static bool cut(struct lines *l, struct str *out)
{
    const size_t left = l->buf.n - l->scanned, d = (size_t)l->delimiter.n;
    const uint8_t *from = l->buf.p + l->scanned;
    const uint8_t *end = left < d ? NULL : memmem(from, left, l->delimiter.p, d);
    if (end == NULL) {
        const size_t unsure = d - 1; /* a delimiter may have begun there */
        if (left > unsure)
            l->scanned = l->buf.n - unsure;
        return false;
    }
    *out = (struct str){(const char *)l->buf.p + l->begin, (int32_t)(end - (l->buf.p + l->begin))};
    l->begin = l->scanned = (size_t)(end - l->buf.p) + d;
    return true;
}

/* What is left at the end of a file is a piece too. */
static bool take_rest(struct lines *l, struct str *out)
{
    *out = (struct str){(const char *)l->buf.p + l->begin, (int32_t)(l->buf.n - l->begin)};
    l->begin = l->scanned = l->buf.n;
    return out->n > 0;
}

enum lines_state lines_next(struct lines *l, struct str *out, char *message, size_t message_n)
{
    while (l->at < l->files_n) {
        if (l->fd == -1 && !open_file(l))
            return fail(message, message_n, l, strerror(errno));
        const bool one = l->buf.n > 0 && cut(l, out);
        if (one || (l->file_ended && take_rest(l, out))) {
            l->number++;
            return LINES_ONE;
        }
        if (l->file_ended) {
            close_file(l);
            l->at++;
            continue;
        }
        const enum lines_state state = read_more(l, message, message_n);
        if (state != LINES_ONE)
            return state;
    }
    return LINES_END;
}
