/* A wire is made by dialing's open() and stays until the opener has closed it and the other side
 * has heard of that. Its peer lives in the opener's heap, its conn in the listener's: each is
 * touched only inside its own node. */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "support/real_alloc.h"

enum {
    CONNECT_MAX_US = 10 * 1000 * 1000, /* as LIMIT_CONNECT_MS of net */
    WORST_DELAY_US = 60 * 1000,
    HOST_MAX = 32,
};

enum wire_state {
    WIRE_IDLE,
    WIRE_CONNECTING,
    WIRE_UP,
    WIRE_SILENT, /* the other side lost power: nobody will answer, nobody has said so */
};

struct wire {
    struct list all;
    struct network *net;
    struct world *from, *to; /* to NULL: no such host */
    size_t listener;
    struct peer *peer; /* NULL: closed by its owner, or gone with it */
    enum wire_state state;
    struct link link;      /* to.node's side */
    bool fin;              /* the link is to end once it has got all bytes */
    int64_t begin_us;      /* of connecting */
    int64_t in_us, out_us; /* when the bytes of a direction arrive */
};

static int64_t delay_us(struct network *net)
{
    const uint64_t most = rng_percent(&net->rng, 3) ? WORST_DELAY_US : 1500;
    return 50 + (int64_t)rng_below(&net->rng, most);
}

/* ------------------------------------------------------------------ dialing: inside the opener */

static void peer_ready(void *driver)
{
    struct world *w = driver;
    w->wants_turn = true; /* its end looks at all wires */
}

/* "node2", 9093 */
static void find_host(struct wire *wi, const struct dialing_args *args)
{
    for (size_t i = 0; i < wi->net->n; i++) {
        char host[HOST_MAX];
        snprintf(host, sizeof host, "node%zu", i + 1);
        if (strcmp(host, args->host) == 0)
            wi->to = &wi->net->worlds[i];
    }
    wi->listener = (size_t)args->port - WORLD_FIRST_PORT;
    if (wi->listener >= WORLD_LISTENERS)
        wi->to = NULL;
}

static struct wire *wire_new(struct world *w)
{
    struct wire *wi = __real_calloc(1, sizeof *wi);
    CHECK(wi != NULL && w->network != NULL);
    wi->net = w->network;
    wi->from = w;
    link_init(&wi->link);
    list_append(&w->network->wires, &wi->all);
    return wi;
}

static enum err network_open(struct dialing *d, const struct dialing_args *args, struct peer **out)
{
    struct world *w = CONTAINER_OF(d, struct world, dialing);
    const struct peer_args peer_args = {
        .timers = args->timers,
        .memory = args->memory,
        .client_id = args->client_id,
        .answer_max_bytes = args->answer_max_bytes,
        .ready = peer_ready,
        .driver = w,
    };
    struct wire *wi = wire_new(w);
    find_host(wi, args);
    wi->link.listener = (int)wi->listener;
    enum err e = peer_new(&peer_args, &wi->peer);
    CHECK(e == ERR_NONE); /* no allocation fails here */
    *out = wi->peer;
    return ERR_NONE;
}

static struct wire *wire_of(struct network *net, const struct peer *p)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &net->wires)
    if (LIST_ENTRY(l, struct wire, all)->peer == p)
        return LIST_ENTRY(l, struct wire, all);
    CHECK(false);
    return NULL;
}

/* The opener's side is down. What the other side has not heard yet goes on without the peer, which
 * gets another wire. */
static struct wire *hang_up(struct wire *wi)
{
    const bool was_up = wi->state == WIRE_UP;
    wi->state = WIRE_IDLE;
    if (wi->link.conn == NULL)
        return wi;
    struct wire *next = wire_new(wi->from);
    next->to = wi->to;
    next->listener = wi->listener;
    next->link.listener = wi->link.listener;
    next->peer = wi->peer;
    wi->peer = NULL;
    wi->fin = was_up;
    return next;
}

static void lose_peer(struct wire *wi, bool refused)
{
    wi = hang_up(wi);
    if (refused)
        peer_refused(wi->peer, wi->from->now);
    else
        peer_disconnected(wi->peer, wi->from->now);
    wi->from->wants_turn = true;
}

static void network_close_peer(struct dialing *d, struct peer *p)
{
    struct world *w = CONTAINER_OF(d, struct world, dialing);
    struct wire *wi = wire_of(w->network, p);
    if (wi->state != WIRE_IDLE)
        lose_peer(wi, false);
    wire_of(w->network, p)->peer = NULL;
    peer_free(p);
}

/* ------------------------------------------------------------------ what peers want */

static void take_bytes(struct wire *wi)
{
    struct bytes b;
    if (wi->link.in.n == 0)
        wi->in_us = wi->net->us + delay_us(wi->net);
    while ((b = peer_peek(wi->peer)).n > 0) {
        if (wi->state == WIRE_UP)
            pipe_put(&wi->link.in, b.p, (size_t)b.n);
        peer_sent(wi->peer, (size_t)b.n);
    }
}

static void drive(struct wire *wi)
{
    struct world *w = wi->from;
    const int64_t connect_at_us = peer_connect_at_us(wi->peer);
    switch (peer_wants(wi->peer)) {
    case PEER_WANTS_NOTHING:
        break;
    case PEER_WANTS_CONNECTION:
        if (wi->state != WIRE_IDLE)
            break;
        if (connect_at_us > w->now.mono_us) {
            w->next_turn_us = connect_at_us < w->next_turn_us ? connect_at_us : w->next_turn_us;
            break;
        }
        wi->state = WIRE_CONNECTING;
        wi->begin_us = wi->net->us;
        wi->in_us = wi->net->us + delay_us(wi->net);
        break;
    case PEER_WANTS_SEND:
        take_bytes(wi);
        break;
    case PEER_WANTS_END:
        lose_peer(wi, false);
        break;
    }
}

void network_drive(struct network *net, struct world *w)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &net->wires)
    {
        struct wire *wi = LIST_ENTRY(l, struct wire, all);
        if (wi->from == w && wi->peer != NULL)
            drive(wi);
    }
}

/* ------------------------------------------------------------------ what happens on a wire */

static void connect_peer(void *ctx)
{
    struct wire *wi = ctx;
    wi->state = WIRE_UP;
    peer_connected(wi->peer, wi->from->now);
}

static void end_peer(void *ctx)
{
    lose_peer(ctx, false);
}

/* Nobody listens there: the machine itself says so. */
static void refuse_peer(void *ctx)
{
    lose_peer(ctx, true);
}

static void connect_link(void *ctx)
{
    struct wire *wi = ctx;
    (void)link_connect(&wi->link, node_rpc(wi->to->node), wi->to->now);
}

static void end_link(void *ctx)
{
    struct wire *wi = ctx;
    link_disconnect(&wi->link, wi->to->now);
}

static bool cut(const struct wire *wi)
{
    const struct network *net = wi->net;
    return net->blocked[wi->from->index][wi->to->index] ||
           net->blocked[wi->to->index][wi->from->index];
}

static bool held(const struct wire *wi)
{
    return wi->listener == 0 && wi->net->held[wi->from->index][wi->to->index];
}

/* A machine whose process is down refuses; one that is off, cut off, stopped or not listening yet
 * lets us wait. */
static bool step_connecting(struct wire *wi)
{
    struct network *net = wi->net;
    struct world *to = wi->to;
    if (net->us < wi->in_us)
        return false;
    const bool refused = to == NULL || (to->node == NULL && !to->off && !cut(wi));
    if (refused || net->us - wi->begin_us > CONNECT_MAX_US) {
        world_inside(wi->from, refused ? refuse_peer : end_peer, wi);
        return true;
    }
    if (to->off || to->node == NULL || to->paused || cut(wi) ||
        !node_accepts(to->node, wi->listener))
        return false;
    world_inside(to, connect_link, wi);
    if (wi->link.conn == NULL || wi->from->node == NULL)
        return true;
    to->wants_turn = true;
    world_inside(wi->from, connect_peer, wi);
    wi->from->wants_turn = true;
    return true;
}

static void give_link(void *ctx)
{
    struct wire *wi = ctx;
    size_t max = wi->link.in.n;
    if (max > 1 && rng_percent(&wi->net->rng, 10))
        max = 1 + rng_below(&wi->net->rng, max);
    world_trace_event(wi->to, 'n', link_deliver(&wi->link, max, wi->to->now));
}

static void give_peer(void *ctx)
{
    struct wire *wi = ctx;
    struct pipe *out = &wi->link.out;
    while (out->n > 0) {
        uint8_t *to;
        size_t room;
        peer_recv_space(wi->peer, &to, &room);
        const size_t n = out->n < room ? out->n : room;
        if (n == 0)
            break;
        memcpy(to, out->p, n);
        world_trace(wi->from, out->p, n);
        pipe_drop(out, n);
        peer_recv(wi->peer, n);
    }
}

/* Bytes and ends towards the listener. */
static bool step_in(struct wire *wi)
{
    struct network *net = wi->net;
    struct world *to = wi->to;
    if (wi->link.conn == NULL || to->paused || net->us < wi->in_us ||
        net->blocked[wi->from->index][to->index])
        return false;
    if (wi->link.in.n > 0 && link_wants(&wi->link)) {
        world_inside(to, give_link, wi);
        wi->in_us = net->us + (wi->link.in.n > 0 ? 0 : delay_us(net));
    } else if (wi->fin && wi->link.in.n == 0) {
        world_inside(to, end_link, wi);
        wi->fin = false;
    } else {
        return false;
    }
    to->wants_turn = true;
    return true;
}

/* Bytes and ends towards the peer. */
static bool step_out(struct wire *wi)
{
    struct network *net = wi->net;
    struct world *from = wi->from;
    if (wi->peer == NULL || wi->state != WIRE_UP || from->node == NULL || from->paused ||
        net->us < wi->out_us || net->blocked[wi->to->index][from->index])
        return false;
    if (wi->link.out.n > 0)
        world_inside(from, give_peer, wi);
    else if (wi->link.closed && wi->link.conn == NULL)
        world_inside(from, end_peer, wi);
    else
        return false;
    wi->out_us = net->us + delay_us(net);
    from->wants_turn = true;
    return true;
}

/* It came back up: what is sent to a connection that it does not know is answered by a reset. */
static bool step_silent(struct wire *wi)
{
    if (wi->peer == NULL || wi->from->node == NULL || wi->from->paused || wi->to->off || cut(wi))
        return false;
    world_inside(wi->from, end_peer, wi);
    return true;
}

static bool step_wire(struct wire *wi)
{
    if (wi->state == WIRE_CONNECTING)
        return wi->from->paused ? false : step_connecting(wi);
    if (wi->state == WIRE_SILENT && step_silent(wi))
        return true;
    if (wi->to == NULL || held(wi))
        return false;
    if (rng_percent(&wi->net->rng, 50))
        return step_in(wi) || step_out(wi);
    return step_out(wi) || step_in(wi);
}

static void free_wire(struct wire *wi)
{
    list_remove(&wi->all);
    link_close(&wi->link);
    __real_free(wi);
}

static void sweep(struct network *net)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &net->wires)
    {
        struct wire *wi = LIST_ENTRY(l, struct wire, all);
        if (wi->link.conn == NULL)
            wi->fin = false;
        if (wi->peer == NULL && wi->link.conn == NULL)
            free_wire(wi);
    }
}

bool network_step(struct network *net)
{
    struct list *l, *tmp;
    size_t n = 0;
    sweep(net);
    LIST_EACH(l, tmp, &net->wires)
    n++;
    if (n == 0)
        return false;
    size_t skip = rng_below(&net->rng, n);
    for (int round = 0; round < 2; round++) {
        LIST_EACH(l, tmp, &net->wires)
        {
            if (round == 0 && skip > 0) {
                skip--;
                continue;
            }
            if (step_wire(LIST_ENTRY(l, struct wire, all)))
                return true;
        }
    }
    return false;
}

int64_t network_next_us(const struct network *net)
{
    int64_t next = INT64_MAX;
    for (struct list *l = net->wires.next; l != &net->wires; l = l->next) {
        const struct wire *wi = LIST_ENTRY(l, struct wire, all);
        int64_t at = INT64_MAX;
        if (wi->state == WIRE_CONNECTING)
            at = wi->in_us > net->us ? wi->in_us : wi->begin_us + CONNECT_MAX_US + 1;
        else if (wi->link.conn != NULL && (wi->link.in.n > 0 || wi->fin) && wi->in_us > net->us)
            at = wi->in_us;
        if (wi->state == WIRE_UP && (wi->link.out.n > 0 || wi->link.closed) &&
            wi->out_us > net->us && wi->out_us < at)
            at = wi->out_us;
        if (at > net->us && at < next)
            next = at;
    }
    return next;
}

void network_break(struct network *net)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &net->wires)
    {
        struct wire *wi = LIST_ENTRY(l, struct wire, all);
        if (wi->state != WIRE_UP || wi->peer == NULL || wi->from->paused || wi->to->paused ||
            !rng_percent(&net->rng, 30))
            continue;
        net->broken++;
        wi->link.in.n = wi->link.out.n = 0;
        if (wi->link.conn != NULL && world_inside(wi->to, end_link, wi))
            wi->to->wants_turn = true;
        if (wi->from->node != NULL)
            world_inside(wi->from, end_peer, wi);
        return;
    }
}

/* ------------------------------------------------------------------ processes come and go */

void network_node_ends(struct network *net, struct world *w)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &net->wires)
    {
        struct wire *wi = LIST_ENTRY(l, struct wire, all);
        if (wi->to == w && wi->link.conn != NULL) {
            link_disconnect(&wi->link, w->now);
            wi->link.closed = true;
        }
    }
}

void network_process_gone(struct network *net, struct world *w, bool power)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &net->wires)
    {
        struct wire *wi = LIST_ENTRY(l, struct wire, all);
        if (wi->to == w) {
            const bool was_up = wi->state == WIRE_UP;
            link_lost(&wi->link);
            wi->fin = false;
            if (was_up && power)
                wi->state = WIRE_SILENT;
        }
        if (wi->from == w) {
            wi->peer = NULL; /* its memory goes with the process */
            wi->fin = wi->state == WIRE_UP;
            wi->state = WIRE_IDLE;
            if (power) { /* a listener learns of it when it looks at its idle connections */
                wi->fin = wi->link.conn != NULL && rng_percent(&net->rng, 50);
                wi->in_us = net->us + (int64_t)rng_below(&net->rng, 20 * 1000 * 1000);
            }
        }
    }
}

void network_init(struct network *net, struct world *worlds, size_t n, uint64_t seed)
{
    CHECK(n <= NETWORK_MAX);
    *net = (struct network){.worlds = worlds, .n = n, .rng = {seed}};
    list_init(&net->wires);
    for (size_t i = 0; i < n; i++) {
        worlds[i].network = net;
        worlds[i].index = i;
        worlds[i].dialing = (struct dialing){network_open, network_close_peer};
    }
}

void network_close(struct network *net)
{
    sweep(net);
    CHECK(list_empty(&net->wires));
}
