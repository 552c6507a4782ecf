#include "limit/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/endian.h"
#include "limit/request.h"
#include "wire/api_key.h"

#define IN_MIN 65536
#define FRAME_MAX (64 << 20)

struct client *client_new(int fd, struct answers *answers, struct files *files)
{
    struct client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (struct client){.fd = fd, .answers = answers, .files = files, .in_cap = IN_MIN};
    c->in = malloc(c->in_cap);
    if (c->in == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

void client_free(struct client *c)
{
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
}

/* ------------------------------------------------------------------ answers */

static uint8_t *answer(struct client *c, const struct answer_template *t, const struct request *r)
{
    if (c->out_n + t->n > c->out_cap) {
        size_t cap = 2 * (c->out_n + t->n);
        uint8_t *p = realloc(c->out, cap);
        if (p == NULL)
            return NULL;
        c->out = p;
        c->out_cap = cap;
    }
    uint8_t *p = c->out + c->out_n;
    memcpy(p, t->p, t->n);
    put_be32(p + TEMPLATE_CORRELATION_AT, (uint32_t)r->correlation_id);
    c->out_n += t->n;
    return p;
}

static bool serve_api_versions(struct client *c, const struct request *r)
{
    struct answers *as = c->answers;
    if (as->api_versions.p == NULL &&
        !template_api_versions(&as->arena, r->version, &as->api_versions))
        return false;
    return answer(c, &as->api_versions, r) != NULL;
}

static bool serve_produce(struct client *c, const struct request *r)
{
    struct answers *as = c->answers;
    struct file *f = files_of(c->files, r->partition);
    if (f == NULL) {
        perror("the partition's file");
        return false;
    }
    int64_t base_offset = f->next_offset;
    if (as->produce.p == NULL && !template_produce(&as->arena, r->version, as->topic, &as->produce))
        return false;
    if (!files_append(c->files, f, r->records, r->records_n)) {
        fprintf(stderr, "a batch that is none, or cannot be written\n");
        return false;
    }
    uint8_t *p = answer(c, &as->produce, r);
    if (p == NULL)
        return false;
    put_be32(p + as->produce.partition_at, (uint32_t)r->partition);
    put_be64(p + as->produce.offset_at, (uint64_t)base_offset);
    return true;
}

static bool serve_fetch(struct client *c, const struct request *r)
{
    struct answers *as = c->answers;
    const struct file *f = files_of(c->files, r->partition);
    if (f == NULL)
        return false;
    int32_t n = f->batch_bytes;
    if (as->fetch_bytes != n) {
        if (!template_fetch(&as->arena, r->version, as->topic, n, &as->fetch))
            return false;
        as->fetch_bytes = n;
    }
    c->slice_fd = f->fd;
    c->slice_at = file_position(f, r->offset);
    c->slice_n = (size_t)n;
    c->tail = true;
    return answer(c, &as->fetch, r) != NULL;
}

static bool serve(struct client *c, uint8_t *frame, size_t n)
{
    struct request r;
    if (!request_read(frame, n, &r)) {
        fprintf(stderr, "a request of another shape\n");
        return false;
    }
    if (r.api_key == API_PRODUCE)
        return serve_produce(c, &r);
    if (r.api_key == API_FETCH)
        return serve_fetch(c, &r);
    return serve_api_versions(c, &r);
}

/* Whole frames, up to one whose answer is a slice: the next waits until that is sent. */
static bool serve_all(struct client *c)
{
    size_t at = 0;
    while (c->in_n - at >= 4 && !c->tail) {
        size_t n = (size_t)be32(c->in + at) + 4;
        if (n > FRAME_MAX)
            return false;
        if (c->in_n - at < n)
            break;
        if (!serve(c, c->in + at, n))
            return false;
        at += n;
    }
    memmove(c->in, c->in + at, c->in_n - at);
    c->in_n -= at;
    return true;
}

/* ------------------------------------------------------------------ bytes */

/* A large frame is received to its end and no further, so that it is never moved. */
static size_t want(struct client *c)
{
    size_t frame_n = c->in_n >= 4 ? (size_t)be32(c->in) + 4 : 0;
    if (frame_n <= IN_MIN)
        return IN_MIN - c->in_n;
    if (frame_n > FRAME_MAX)
        return 0;
    if (frame_n > c->in_cap) {
        uint8_t *p = realloc(c->in, frame_n);
        if (p == NULL)
            return 0;
        c->in = p;
        c->in_cap = frame_n;
    }
    return frame_n - c->in_n;
}

bool client_receive(struct client *c)
{
    size_t n = want(c);
    if (n == 0)
        return c->tail; /* the buffer is full of requests that wait */
    ssize_t got = recv(c->fd, c->in + c->in_n, n, MSG_DONTWAIT);
    if (got <= 0)
        return got == -1 && errno == EAGAIN;
    c->in_n += (size_t)got;
    return serve_all(c);
}

/* >0: all of it is sent; 0: no room; <0: broken. */
static int send_memory(struct client *c, const uint8_t *p, size_t *at, size_t n, int flags)
{
    while (*at < n) {
        ssize_t sent = send(c->fd, p + *at, n - *at, MSG_DONTWAIT | MSG_NOSIGNAL | flags);
        if (sent == -1)
            return errno == EAGAIN ? 0 : -1;
        *at += (size_t)sent;
    }
    return 1;
}

static int send_slice(struct client *c)
{
    while (c->slice_n > 0) {
        off_t at = c->slice_at;
        ssize_t sent = sendfile(c->fd, c->slice_fd, &at, c->slice_n);
        if (sent <= 0)
            return sent == -1 && errno == EAGAIN ? 0 : -1;
        c->slice_at += sent;
        c->slice_n -= (size_t)sent;
    }
    return 1;
}

static int send_answered(struct client *c)
{
    static const uint8_t tail[TEMPLATE_FETCH_TAIL];
    size_t tail_sent = 0;
    int status = send_memory(c, c->out, &c->out_sent, c->out_n, c->tail ? MSG_MORE : 0);
    if (status <= 0)
        return status;
    c->out_n = c->out_sent = 0;
    status = send_slice(c);
    if (status <= 0 || !c->tail)
        return status;
    status = send_memory(c, tail, &tail_sent, sizeof tail, 0);
    if (status == 0 && tail_sent > 0)
        return -1; /* three bytes are sent whole or not at all */
    if (status > 0)
        c->tail = false;
    return status;
}

bool client_send(struct client *c)
{
    while (client_waits_for_room(c)) {
        int status = send_answered(c);
        if (status <= 0)
            return status == 0;
        if (!serve_all(c))
            return false;
    }
    return true;
}
