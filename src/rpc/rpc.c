/* All connections of a node: the lists the driver drains after a turn, memory that connections wait
 * for, the end of everything. */
#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "rpc/conn.h"

enum err rpc_new(const struct rpc_args *args, struct rpc **out)
{
    struct rpc *rpc = calloc(1, sizeof *rpc);
    if (rpc == NULL)
        return ERR_NOMEM;
    rpc->env = args->env;
    rpc->timers = args->timers;
    rpc->small = args->small;
    rpc->answers = args->answers;
    rpc->request_max_bytes = args->request_max_bytes;
    rpc->idle_max_us = args->idle_max_ms < 0 ? -1 : args->idle_max_ms * 1000;
    rpc->handler = args->handler;
    pool_init(&rpc->pool, args->frames, args->timers, &rpc->now);
    list_init(&rpc->conns);
    list_init(&rpc->output);
    list_init(&rpc->close);
    list_init(&rpc->resume);
    list_init(&rpc->starved);
    list_init(&rpc->orphans);
    list_init(&rpc->free_requests);
    /* No frame in it is large, so none is used in place and it is free after each receive. */
    rpc->reserve = pool_get_exact(&rpc->pool, args->small, LIMIT_SMALL_FRAME_BYTES);
    if (rpc->reserve == NULL) {
        free(rpc);
        return ERR_NOMEM;
    }
    *out = rpc;
    return ERR_NONE;
}

void rpc_free(struct rpc *rpc)
{
    if (rpc == NULL)
        return;
    CHECK(list_empty(&rpc->conns) && rpc->requests_n == 0);
    struct list *l;
    while ((l = list_pop(&rpc->free_requests)) != NULL) {
        struct request *r = LIST_ENTRY(l, struct request, link);
        arena_close(&r->arena);
        free(r);
    }
    pool_unref(rpc->scratch);
    pool_unref(rpc->reserve);
    pool_close(&rpc->pool);
    free(rpc);
}

struct conn *rpc_next_output(struct rpc *rpc)
{
    struct list *l = list_pop(&rpc->output);
    return l == NULL ? NULL : LIST_ENTRY(l, struct conn, output);
}

struct conn *rpc_next_close(struct rpc *rpc)
{
    struct list *l = list_pop(&rpc->close);
    return l == NULL ? NULL : LIST_ENTRY(l, struct conn, close);
}

/* The first that waits for memory is looked at before those that were paused: it gets what there is
 * or all behind it wait on. */
static void feed_starved(struct rpc *rpc)
{
    while (!list_empty(&rpc->starved)) {
        struct conn *c = LIST_ENTRY(rpc->starved.next, struct conn, starved);
        if (!conn_grow_partial(c))
            return;
        list_remove(&c->starved);
        if (!c->local && list_empty(&c->resume))
            list_append(&rpc->resume, &c->resume);
    }
}

struct conn *rpc_next_resume(struct rpc *rpc)
{
    feed_starved(rpc);
    struct list *l = list_pop(&rpc->resume);
    return l == NULL ? NULL : LIST_ENTRY(l, struct conn, resume);
}

void rpc_stop(struct rpc *rpc, struct now now)
{
    rpc->now = now;
    rpc->stopping = true;
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &rpc->conns)
    {
        struct conn *c = LIST_ENTRY(l, struct conn, all);
        struct list *rl, *rtmp;
        LIST_EACH(rl, rtmp, &c->requests)
        {
            struct request *r = LIST_ENTRY(rl, struct request, link);
            if (r->state == REQUEST_RUNNING)
                rpc->handler.cancel(rpc->handler.ctx, r);
        }
    }
}

size_t rpc_running_n(const struct rpc *rpc)
{
    return rpc->running_n;
}
