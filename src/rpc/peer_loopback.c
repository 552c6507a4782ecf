/* To ourselves, keeping to the protocol: frames are received by a connection of our own rpc and its
 * answers decoded, so that what works here works towards another node. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "rpc/conn.h"
#include "rpc/peer_impl.h"

struct loopback {
    struct peer peer;
    struct rpc *rpc;
    struct conn *conn;
    int listener;
};

static struct loopback *of(const struct peer *p)
{
    return CONTAINER_OF(p, struct loopback, peer);
}

static enum err loopback_connect(struct peer *p, struct now now)
{
    struct loopback *lo = of(p);
    if (lo->conn == NULL)
        lo->conn = conn_new(lo->rpc, lo->listener, "self", p, now);
    return lo->conn != NULL ? ERR_NONE : ERR_NOMEM;
}

static enum err loopback_receive(struct peer *p, struct now now)
{
    struct loopback *lo = of(p);
    struct wire_part parts[8];
    size_t n;
    lo->rpc->now = now;
    if (lo->conn == NULL || lo->conn->closing)
        return ERR_NONE;
    while ((n = conn_peek(lo->conn, parts, ARRAY_N(parts))) > 0) {
        size_t bytes = 0;
        for (size_t i = 0; i < n; i++) {
            if (parts[i].p == NULL) /* no call of ours asks for record batches */
                return ERR_CORRUPT;
            enum err e = buf_append(&p->in, parts[i].p, parts[i].n);
            if (e != ERR_NONE)
                return e;
            bytes += parts[i].n;
        }
        conn_sent(lo->conn, bytes, now);
    }
    return ERR_NONE;
}

static void loopback_emptied(struct peer *p, size_t n, struct now now)
{
    (void)p, (void)n, (void)now; /* its answers are small */
}

/* What there is no room for waits for the next settle. */
static void loopback_send(struct peer *p, struct now now)
{
    struct loopback *lo = of(p);
    while (p->out_sent < p->out.n) {
        uint8_t *to;
        size_t room;
        conn_recv_space(lo->conn, &to, &room);
        const size_t left = p->out.n - p->out_sent, n = left < room ? left : room;
        if (n == 0)
            return;
        memcpy(to, p->out.p + p->out_sent, n);
        conn_recv(lo->conn, n, now);
        peer_out_gone(p, n);
    }
}

static enum err loopback_ended(const struct peer *p)
{
    const struct loopback *lo = of(p);
    return lo->conn != NULL && lo->conn->closing ? ERR_CLOSED : ERR_NONE;
}

static void loopback_disconnect(struct peer *p, struct now now)
{
    struct loopback *lo = of(p);
    (void)now;
    if (lo->conn != NULL)
        conn_closed(lo->conn, lo->rpc->now);
    lo->conn = NULL;
}

static void loopback_free(struct peer *p)
{
    buf_close(&p->in);
    buf_close(&p->out);
    free(of(p));
}

static const struct peer_way way = {loopback_connect, loopback_receive, loopback_emptied,
                                    loopback_send,    loopback_ended,   loopback_disconnect,
                                    loopback_free};

enum err peer_new_loopback(struct rpc *rpc, struct timers *timers, int listener,
                           struct str client_id, struct peer **out)
{
    struct loopback *lo = calloc(1, sizeof *lo);
    if (lo == NULL)
        return ERR_NOMEM;
    CHECK(listener < 0);
    lo->rpc = rpc;
    lo->listener = listener;
    peer_init(&lo->peer, &way, timers, rpc->answers, client_id);
    *out = &lo->peer;
    return ERR_NONE;
}
