#include "load/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/endian.h"

#define FIRST_IN 65536
#define FRAME_MAX (64 << 20)
#define PARTS_MAX 64

static bool failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return false;
}

static bool connect_to(struct connection *c, uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd == -1 || connect(c->fd, (const struct sockaddr *)&to, sizeof to) == -1)
        return failed("connect");
    return setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 ||
           failed("TCP_NODELAY");
}

bool connection_open(struct connection *c, const struct request *r, struct answers *as,
                     uint16_t port, uint32_t slots_n)
{
    *c = (struct connection){.fd = -1, .request = r, .answers = as, .slots_n = slots_n};
    if (!connect_to(c, port))
        return false;
    c->slots = calloc(slots_n, sizeof *c->slots);
    c->heads = malloc(slots_n * r->head_n);
    c->in = malloc(FIRST_IN);
    c->in_cap = FIRST_IN;
    if (c->slots == NULL || c->heads == NULL || c->in == NULL)
        return failed("memory");
    for (uint32_t i = 0; i < slots_n; i++)
        memcpy(c->heads + i * r->head_n, r->p, r->head_n);
    return true;
}

void connection_close(struct connection *c)
{
    if (c->fd != -1)
        close(c->fd);
    free(c->slots);
    free(c->heads);
    free(c->in);
}

/* ------------------------------------------------------------------ requests */

void connection_ask(struct connection *c, int64_t begin_ns, int32_t partition, int64_t offset)
{
    const struct request *r = c->request;
    uint32_t i = c->asked_n % c->slots_n;
    uint8_t *head = c->heads + i * r->head_n;
    struct asked asked = {(int32_t)c->asked_n, partition, offset};
    c->slots[i] = (struct slot){begin_ns, asked};
    c->asked_n++;
    put_be32(head + REQUEST_CORRELATION_AT, (uint32_t)asked.correlation_id);
    if (r->partition_at > 0)
        put_be32(head + r->partition_at, (uint32_t)partition);
    if (r->offset_at > 0)
        put_be64(head + r->offset_at, (uint64_t)offset);
}

/* Small requests stand side by side in the ring. */
static int gather(const struct connection *c, struct iovec *parts)
{
    const struct request *r = c->request;
    int n = 0;
    size_t skip = c->sent_of_next;
    for (uint32_t id = c->sent_n; id != c->asked_n && n + 2 <= PARTS_MAX; id++) {
        uint8_t *head = c->heads + id % c->slots_n * r->head_n;
        size_t head_skip = skip < r->head_n ? skip : r->head_n;
        struct iovec *last = n > 0 ? &parts[n - 1] : NULL;
        if (last != NULL && (uint8_t *)last->iov_base + last->iov_len == head)
            last->iov_len += r->head_n;
        else if (head_skip < r->head_n)
            parts[n++] = (struct iovec){head + head_skip, r->head_n - head_skip};
        if (r->n > r->head_n)
            parts[n++] = (struct iovec){(uint8_t *)r->p + r->head_n + (skip - head_skip),
                                        r->n - r->head_n - (skip - head_skip)};
        skip = 0;
    }
    return n;
}

bool connection_send(struct connection *c)
{
    while (c->sent_n != c->asked_n) {
        struct iovec parts[PARTS_MAX];
        struct msghdr msg = {.msg_iov = parts, .msg_iovlen = (size_t)gather(c, parts)};
        ssize_t n = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
        c->blocked = n == -1 && errno == EAGAIN;
        if (c->blocked)
            return true;
        if (n == -1)
            return failed("send");
        size_t sent = c->sent_of_next + (size_t)n;
        c->sent_n += (uint32_t)(sent / c->request->n);
        c->sent_of_next = sent % c->request->n;
    }
    return true;
}

/* ------------------------------------------------------------------ answers */

static bool wrong_answer(const struct connection *c, const char *what)
{
    fprintf(stderr, "answer %u: %s\n", c->answered_n, what);
    return false;
}

static void complete(struct connection *c, const struct connection_events *events)
{
    int64_t begin_ns = c->slots[c->answered_n % c->slots_n].begin_ns;
    c->answered_n++;
    events->answered(events->ctx, c, begin_ns);
}

/* Takes the answers that stand whole, or as far as a check needs them, in [c->in, c->in + c->in_n);
 * *used of those bytes are then done with. */
static bool take_answers(struct connection *c, const struct connection_events *events, size_t *used)
{
    size_t at = 0;
    while (c->in_n - at >= 4) {
        const uint8_t *p = c->in + at;
        size_t left = c->in_n - at, frame_n = (size_t)be32(p) + 4;
        const struct slot *s = &c->slots[c->answered_n % c->slots_n];
        if (c->answered_n == c->sent_n || frame_n > FRAME_MAX)
            return wrong_answer(c, "nobody asked, or too long");
        if (left < answers_need(c->answers, frame_n))
            break;
        const char *wrong = answers_check(c->answers, c->request, &s->asked, p, frame_n);
        if (wrong != NULL)
            return wrong_answer(c, wrong);
        at += left < frame_n ? left : frame_n;
        c->skip = left < frame_n ? frame_n - left : 0;
        if (c->skip == 0)
            complete(c, events);
    }
    *used = at;
    return true;
}

static bool make_room(struct connection *c)
{
    size_t need = c->in_n >= 4 ? (size_t)be32(c->in) + 4 : 0;
    if (need <= c->in_cap || need > FRAME_MAX)
        return true;
    uint8_t *p = realloc(c->in, need);
    if (p == NULL)
        return failed("memory");
    c->in = p;
    c->in_cap = need;
    return true;
}

/* How much to receive: of answers whose rest is skipped, no more than is looked at. */
static size_t want(const struct connection *c)
{
    size_t cap = c->in_cap - c->in_n, frame_n = c->answers->first_frame_n;
    size_t need = answers_need(c->answers, frame_n);
    return need < frame_n && c->in_n < need ? need - c->in_n : cap;
}

/* The kernel drops what it is asked to truncate, without a copy. */
static ssize_t receive(struct connection *c, size_t n)
{
    return c->skip > 0 ? recv(c->fd, NULL, n, MSG_DONTWAIT | MSG_TRUNC)
                       : recv(c->fd, c->in + c->in_n, n, MSG_DONTWAIT);
}

static bool take(struct connection *c, const struct connection_events *events, size_t n)
{
    size_t used = 0;
    if (c->skip > 0) {
        c->skip -= n;
        if (c->skip == 0)
            complete(c, events);
        return true;
    }
    c->in_n += n;
    if (!take_answers(c, events, &used))
        return false;
    memmove(c->in, c->in + used, c->in_n - used);
    c->in_n -= used;
    return make_room(c);
}

bool connection_receive(struct connection *c, const struct connection_events *events)
{
    size_t wanted;
    ssize_t n;
    do {
        wanted = c->skip > 0 ? c->skip : want(c);
        n = receive(c, wanted);
        if (n == -1 && errno == EAGAIN)
            return true;
        if (n <= 0)
            return n == 0 ? wrong_answer(c, "the connection was closed") : failed("receive");
        if (!take(c, events, (size_t)n))
            return false;
    } while ((size_t)n == wanted);
    return true;
}
