/* The loop around a node. One iteration is one turn (law 2): the callbacks of the loop receive and
 * accept, the node takes job results and deadlines and settles, then answers leave.
 *
 * The listening sockets are bound before the node exists, because it advertises their ports, but
 * nobody is accepted before the node says so: clients wait in the backlog and never see half a
 * broker, while other nodes reach its controller as soon as there is one. A stopping or failed node
 * is freed when no job of it runs any more; until then the loop goes on without connections. A
 * second signal does not wait for anything. */
#include "net/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "net/acceptor.h"
#include "net/dialer.h"
#include "net/machine.h"
#include "node/node.h"

struct server {
    const struct server_args *args;
    struct loop loop;
    struct machine machine;
    struct timers timers; /* of the dialer */
    struct dialer dialer; /* to other nodes */
    struct listeners listeners;
    struct sockets sockets;
    struct acceptor acceptor;    /* of the listeners of brokers */
    struct acceptor controllers; /* and of controllers */
    struct server_port *ports;
    struct node *node;
    ev_signal term, interrupt;
    ev_io job_finished;
    int signals_n;
    bool ready;
    bool stopping;  /* node_stop was called */
    bool cut_short; /* and the node, still starting, ended by it */
    char *message;
    size_t message_n;
};

/* ------------------------------------------------------------------ watchers */

static void on_term(struct ev_loop *ev, ev_signal *w, int events)
{
    CONTAINER_OF(w, struct server, term)->signals_n++;
}

static void on_interrupt(struct ev_loop *ev, ev_signal *w, int events)
{
    CONTAINER_OF(w, struct server, interrupt)->signals_n++;
}

/* Waking up is all there is to do: the node reaps. */
static void on_job_finished(struct ev_loop *ev, ev_io *w, int events)
{
}

static void start_watching(struct server *s)
{
    ev_signal_init(&s->term, on_term, SIGTERM);
    ev_signal_init(&s->interrupt, on_interrupt, SIGINT);
    ev_io_init(&s->job_finished, on_job_finished, s->machine.os.pool.wake_fd, EV_READ);
    ev_signal_start(s->loop.ev, &s->term);
    ev_signal_start(s->loop.ev, &s->interrupt);
    ev_io_start(s->loop.ev, &s->job_finished);
}

static void stop_watching(struct server *s)
{
    ev_signal_stop(s->loop.ev, &s->term);
    ev_signal_stop(s->loop.ev, &s->interrupt);
    ev_io_stop(s->loop.ev, &s->job_finished);
}

/* ------------------------------------------------------------------ beginning and end */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Connections of controllers' listeners count apart, as in Kafka, to the same max.connections; of
 * the descriptors they have a quarter, where there are others. */
static size_t controllers_share(const struct server *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->listeners.n; i++)
        n += s->listeners.sockets[i].controller;
    if (n == s->listeners.n)
        return s->machine.conns_max;
    return n > 0 ? s->machine.conns_max / 4 : 0;
}

static size_t connections_max(const struct server *s, const struct config *config)
{
    return smaller((size_t)config_int(config, "max.connections"),
                   s->machine.conns_max - controllers_share(s));
}

static size_t controllers_max(const struct server *s, const struct config *config)
{
    return smaller((size_t)config_int(config, "max.connections"), controllers_share(s));
}

/* What ready() is told; made before the node is, so that it cannot fail when it is. */
static enum err make_ports(struct server *s)
{
    size_t n;
    const struct listener *at = config_listeners(s->args->config, &n);
    s->ports = calloc(n, sizeof *s->ports);
    if (s->ports == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        s->ports[i] =
            (struct server_port){at[i].name, at[i].advertised_host, s->listeners.ports[i]};
    return ERR_NONE;
}

static void stop_listening(struct server *s)
{
    acceptor_close(&s->acceptor);
    acceptor_close(&s->controllers);
    listeners_close(&s->listeners);
}

/* A stopping node takes no new connections sooner or later; then the sockets close. */
static void follow_listeners(struct server *s)
{
    bool any = false;
    for (size_t i = 0; i < s->listeners.ports_n; i++) {
        const bool allowed = node_accepts(s->node, i);
        acceptor_allow(&s->acceptor, (int)i, allowed);
        acceptor_allow(&s->controllers, (int)i, allowed);
        any |= allowed;
    }
    if (s->stopping && !any)
        stop_listening(s);
}

static void begin_stop(struct server *s)
{
    s->stopping = true;
    const bool starting = node_state(s->node) == NODE_STARTING;
    node_stop(s->node, s->loop.now);
    s->cut_short = starting && node_state(s->node) == NODE_FAILED;
    follow_listeners(s);
}

static bool ended(const struct server *s)
{
    const enum node_state state = node_state(s->node);
    return state == NODE_STOPPED || state == NODE_FAILED;
}

static void follow_node(struct server *s)
{
    follow_listeners(s);
    if (ended(s)) {
        stop_listening(s);
        sockets_close(&s->sockets);
    } else if (node_state(s->node) == NODE_READY && !s->ready) {
        s->ready = true;
        s->args->ready(s->args->ctx, s->ports, s->listeners.ports_n);
    }
}

/* ------------------------------------------------------------------ the turn */

struct turn_times {
    int64_t begin_us, received_us, settled_us, sent_us;
    uint64_t received_bytes, sent_bytes; /* the counters at its beginning */
};

static void tell_slow_turn(struct server *s, const struct turn_times *t)
{
    const int64_t receive_us = t->received_us - t->begin_us;
    const int64_t settle_us = t->settled_us - t->received_us;
    const int64_t send_us = t->sent_us - t->settled_us;
    const char *cause = "settle";
    if (receive_us >= settle_us && receive_us >= send_us)
        cause = "receive";
    else if (send_us >= settle_us)
        cause = "send";
    env_log(&s->machine.os.env, LOG_WARN,
            "slow_turn ms=%lld cause=%s receive_ms=%lld settle_ms=%lld send_ms=%lld "
            "received_bytes=%llu sent_bytes=%llu connections=%zu",
            (long long)(t->sent_us - t->begin_us) / 1000, cause, (long long)receive_us / 1000,
            (long long)settle_us / 1000, (long long)send_us / 1000,
            (unsigned long long)(s->sockets.received_bytes - t->received_bytes),
            (unsigned long long)(s->sockets.sent_bytes - t->sent_bytes), s->sockets.n);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One turn; waits for it until deadline_us. Returns the deadline of the next one. */
static int64_t turn(struct server *s, int64_t deadline_us)
{
    struct turn_times t = {
        .received_bytes = s->sockets.received_bytes,
        .sent_bytes = s->sockets.sent_bytes,
    };
    loop_turn(&s->loop, deadline_us);
    t.begin_us = s->loop.now.mono_us;
    t.received_us = os_now().mono_us;
    timers_run(&s->timers, s->loop.now.mono_us);
    if (s->signals_n > 0 && !s->stopping)
        begin_stop(s);
    int64_t next_us = node_turn(s->node, s->loop.now);
    t.settled_us = os_now().mono_us;
    if (dialer_settle(&s->dialer))
        next_us = s->loop.now.mono_us;
    next_us = earlier(next_us, timers_next_us(&s->timers));
    next_us = earlier(next_us, sockets_settle(&s->sockets));
    acceptor_set_max(&s->acceptor, connections_max(s, node_config(s->node)));
    acceptor_set_max(&s->controllers, controllers_max(s, node_config(s->node)));
    next_us = earlier(next_us, acceptor_settle(&s->acceptor));
    next_us = earlier(next_us, acceptor_settle(&s->controllers));
    t.sent_us = os_now().mono_us;
    if (t.sent_us - t.begin_us > LIMIT_SLOW_TURN_MS * 1000)
        tell_slow_turn(s, &t);
    return next_us;
}

static enum server_exit result(struct server *s)
{
    if (node_state(s->node) == NODE_STOPPED)
        return SERVER_STOPPED;
    bool bad_config;
    snprintf(s->message, s->message_n, "%s", node_message(s->node, &bad_config));
    if (s->cut_short)
        return SERVER_KILLED;
    return bad_config ? SERVER_BAD_CONFIG : SERVER_FAILED;
}

static enum server_exit serve(struct server *s)
{
    int64_t deadline_us = s->loop.now.mono_us;
    do {
        deadline_us = turn(s, deadline_us);
        if (s->signals_n > 1) {
            snprintf(s->message, s->message_n, "stopped at once by a second signal");
            return SERVER_KILLED;
        }
        follow_node(s);
    } while (!ended(s) || s->machine.os.pool.jobs_n > 0);
    return result(s);
}

/* ------------------------------------------------------------------ set-up */

static enum err new_node(struct server *s)
{
    const struct node_args args = {
        .env = &s->machine.os.env,
        .dialing = &s->dialer.dialing,
        .config = s->args->config,
        .ports = s->listeners.ports,
        .ports_n = s->listeners.ports_n,
        .now = s->loop.now,
    };
    return node_new(&args, &s->node, s->message, s->message_n);
}

static enum server_exit failed_setup(enum err err)
{
    const bool config = err == ERR_BUSY || err == ERR_INVALID || err == ERR_ACCESS ||
                        err == ERR_IO || err == ERR_NOENT || err == ERR_EXIST;
    return config ? SERVER_BAD_CONFIG : SERVER_FAILED;
}

/* All that can fail before the node runs. */
static enum err set_up(struct server *s)
{
    enum err err = listeners_bind(s->args->config, &s->listeners, s->message, s->message_n);
    if (err != ERR_NONE)
        return err;
    snprintf(s->message, s->message_n, "out of memory");
    err = make_ports(s);
    if (err == ERR_NONE)
        err = acceptor_init(&s->acceptor, &s->listeners, false, &s->sockets,
                            connections_max(s, s->args->config));
    if (err == ERR_NONE)
        err = acceptor_init(&s->controllers, &s->listeners, true, &s->sockets,
                            controllers_max(s, s->args->config));
    if (err == ERR_NONE)
        err = new_node(s);
    return err;
}

static enum server_exit run_node(struct server *s)
{
    enum server_exit how;
    enum err err = set_up(s);
    if (err == ERR_NONE) {
        sockets_init(&s->sockets, &s->loop, node_rpc(s->node), &s->machine.os.env);
        how = serve(s);
        if (!ended(s) || s->machine.os.pool.jobs_n > 0)
            return how; /* killed: workers still use it all, the process ends with it */
        node_free(s->node);
        dialer_close(&s->dialer);
    } else {
        how = failed_setup(err);
    }
    stop_listening(s);
    free(s->ports);
    stop_watching(s);
    timers_close(&s->timers);
    machine_close(&s->machine);
    loop_close(&s->loop);
    free(s);
    return how;
}

enum server_exit server_run(const struct server_args *args, char *message, size_t message_n)
{
    struct server *s = calloc(1, sizeof *s);
    enum err err = s == NULL ? ERR_NOMEM : loop_init(&s->loop);
    if (err != ERR_NONE) {
        snprintf(message, message_n, "no event loop: %s", err_name(err));
        free(s);
        return SERVER_FAILED;
    }
    err = machine_init(&s->machine);
    if (err != ERR_NONE) {
        snprintf(message, message_n, "no worker threads: %s", err_name(err));
        loop_close(&s->loop);
        free(s);
        return SERVER_FAILED;
    }
    s->args = args;
    s->message = message;
    s->message_n = message_n;
    timers_init(&s->timers);
    dialer_init(&s->dialer, &s->loop, &s->timers, &s->machine.os.env);
    signal(SIGPIPE, SIG_IGN);
    start_watching(s);
    return run_node(s);
}
