#include "support/node/link.h"

#include "base/check.h"

void link_init(struct link *l)
{
    *l = (struct link){.address = "test"};
    pipe_init(&l->in);
    pipe_init(&l->out);
}

void link_close(struct link *l)
{
    CHECK(l->conn == NULL);
    pipe_close(&l->in);
    pipe_close(&l->out);
}

bool link_connect(struct link *l, struct rpc *rpc, struct now now)
{
    CHECK(l->conn == NULL);
    l->in.n = l->out.n = 0;
    l->closed = false;
    l->conn = conn_new(rpc, l->listener, l->address, l, now);
    return l->conn != NULL;
}

void link_disconnect(struct link *l, struct now now)
{
    if (l->conn == NULL)
        return;
    conn_closed(l->conn, now);
    l->conn = NULL;
}

void link_lost(struct link *l)
{
    l->closed |= l->conn != NULL;
    l->conn = NULL;
    l->in.n = l->out.n = 0;
}

bool link_wants(const struct link *l)
{
    return l->conn != NULL && l->in.n > 0 && conn_wants_recv(l->conn);
}

size_t link_deliver(struct link *l, size_t max, struct now now)
{
    uint8_t *to;
    size_t n;
    conn_recv_space(l->conn, &to, &n);
    if (n > max)
        n = max;
    if (n > l->in.n)
        n = l->in.n;
    if (n > 0)
        memcpy(to, l->in.p, n);
    pipe_drop(&l->in, n);
    conn_recv(l->conn, n, now);
    return n;
}

static bool take_part(struct link *l, const struct wire_part *part)
{
    uint8_t *to = pipe_grow(&l->out, part->n);
    size_t got = 0;
    if (part->p != NULL) {
        memcpy(to, part->p, part->n);
        return true;
    }
    struct file *f = part->s.f;
    return f->fs->ops->pread(f, to, part->n, part->s.off, &got) == ERR_NONE && got == part->n;
}

struct link *link_next_output(struct rpc *rpc, size_t *n, struct now now)
{
    struct conn *conn = rpc_next_output(rpc);
    if (conn == NULL)
        return NULL;
    struct link *l = conn_driver(conn);
    struct wire_part part;
    *n = 0;
    while (conn_peek(conn, &part, 1) > 0) {
        if (!take_part(l, &part)) {
            pipe_drop(&l->out, l->out.n);
            link_disconnect(l, now);
            l->closed = true;
            break;
        }
        *n += part.n;
        conn_sent(conn, part.n, now);
    }
    return l;
}

bool links_settle(struct rpc *rpc, struct now now)
{
    struct conn *conn;
    bool any = false;
    while ((conn = rpc_next_close(rpc)) != NULL) {
        struct link *l = conn_driver(conn);
        link_disconnect(l, now);
        l->closed = true;
        any = true;
    }
    while (rpc_next_resume(rpc) != NULL)
        ;
    return any;
}
