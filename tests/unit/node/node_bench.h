/* A node on a machine of memory: its disk, its clock, one connection. Armed allocation faults count
 * only inside the node. */
#ifndef TEST_NODE_BENCH_H
#define TEST_NODE_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "node/node.h"
#include "support/fault.h"
#include "support/memenv.h"
#include "support/node/frames.h"
#include "support/node/link.h"
#include "support/node/model.h"
#include "support/node/settings.h"
#include "support/test.h"

enum { SECOND_US = 1000 * 1000, TURNS_MAX = 20000 };

static struct {
    struct memfs fs;
    struct memenv env;
    struct config *config;
    struct now now;
    struct node *node; /* NULL: down */
    int64_t next_us;   /* as its last turn said */
    struct link link;
    int32_t correlation_id;
    char message[512]; /* of the last failure */
    int failed_n;      /* nodes that ended by themselves, or could not be made */
} b;

/* ------------------------------------------------------------------ the machine */

static inline void machine_new(uint64_t seed, const char *settings)
{
    memset(&b, 0, sizeof b);
    b.now = (struct now){SECOND_US, 1700000000000};
    memfs_init(&b.fs, seed);
    memenv_init(&b.env, &b.fs, seed);
    b.env.echo = getenv("DOHLE_TEST_ECHO") != NULL;
    b.config = settings_config(settings);
    link_init(&b.link);
    fault_alloc_pause();
}

static inline void machine_free(void)
{
    link_close(&b.link);
    config_free(b.config);
    memenv_close(&b.env);
    memfs_close(&b.fs);
}

static inline bool ended(void)
{
    return node_state(b.node) == NODE_FAILED || node_state(b.node) == NODE_STOPPED;
}

/* As net does: receive, turn, send. */
static inline void turn(void)
{
    size_t n;
    fault_alloc_resume();
    if (link_wants(&b.link))
        link_deliver(&b.link, SIZE_MAX, b.now);
    memenv_run_jobs(&b.env);
    b.next_us = node_turn(b.node, b.now);
    while (link_next_output(node_rpc(b.node), &n, b.now) != NULL)
        ;
    (void)links_settle(node_rpc(b.node), b.now);
    fault_alloc_pause();
}

static inline bool busy(void)
{
    return b.env.waiting_n > 0 || !list_empty(&b.env.finished) || link_wants(&b.link) ||
           b.next_us <= b.now.mono_us;
}

/* Turns until it is so, the node ended, or the time is over; the clock goes on when nothing else
 * does. False: the time was over. */
static inline bool pass_until(bool (*so)(void), int64_t within_us)
{
    const int64_t end_us = b.now.mono_us + within_us;
    for (int i = 0; i < TURNS_MAX; i++) {
        turn();
        if (so() || ended())
            return true;
        if (busy())
            continue;
        if (b.now.mono_us >= end_us)
            return false;
        b.now.mono_us = b.next_us < end_us ? b.next_us : end_us;
        b.now.wall_ms = 1700000000000 + b.now.mono_us / 1000;
        b.fs.wall_ms = b.now.wall_ms;
    }
    violation("the node does not come to rest");
}

static inline bool never(void)
{
    return false;
}

static inline void pass(int64_t us)
{
    (void)pass_until(never, us);
}

/* ------------------------------------------------------------------ a life */

static inline bool node_ready(void)
{
    return node_state(b.node) == NODE_READY;
}

/* The node has ended: as net does, its connections go, then its jobs, then itself. */
static inline void node_bury(void)
{
    bool bad_config;
    snprintf(b.message, sizeof b.message, "%s", node_message(b.node, &bad_config));
    if ((node_state(b.node) == NODE_FAILED) != (b.message[0] != '\0'))
        violation("a node ended with the message \"%s\"", b.message);
    b.failed_n += node_state(b.node) == NODE_FAILED;
    fault_alloc_resume();
    link_disconnect(&b.link, b.now);
    while (b.env.waiting_n > 0 || !list_empty(&b.env.finished)) {
        memenv_run_jobs(&b.env);
        (void)node_turn(b.node, b.now);
    }
    fault_alloc_pause();
    node_free(b.node);
    b.node = NULL;
}

static inline void node_bury_if_ended(void)
{
    if (b.node != NULL && ended())
        node_bury();
}

/* Asks for a clean stop; true if it was one. */
static inline bool node_halt(void)
{
    fault_alloc_resume();
    node_stop(b.node, b.now);
    fault_alloc_pause();
    if (!pass_until(never, 60LL * SECOND_US))
        violation("the node did not stop");
    const bool clean = node_state(b.node) == NODE_STOPPED;
    node_bury();
    return clean;
}

/* False: it did not start, and is down. */
static inline bool node_begin(void)
{
    const uint16_t port = 9092;
    const struct node_args args = {
        .env = &b.env.env, .config = b.config, .ports = &port, .ports_n = 1, .now = b.now};
    b.message[0] = '\0';
    fault_alloc_resume();
    const enum err e = node_new(&args, &b.node, b.message, sizeof b.message);
    fault_alloc_pause();
    if (e != ERR_NONE) {
        if (b.message[0] == '\0')
            violation("no message tells why there is no node");
        b.node = NULL;
        b.failed_n++;
        return false;
    }
    return pass_until(node_ready, 30LL * SECOND_US);
}

/* The machine dies during the next turns; what the node can still do does not reach the disk. */
static inline void node_kill(void)
{
    memfs_unplug(&b.fs);
    pass(SECOND_US);
    if (ended())
        node_bury();
    else
        (void)node_halt();
    memfs_plug_in(&b.fs);
}

/* ------------------------------------------------------------------ requests */

static struct frame_of asked;
static struct arena *answer_arena;
static const void *answer;

static inline bool answered(void)
{
    if (frame_take(&b.link.out, asked, answer_arena, &answer) == FRAME_ALIEN)
        violation("what was sent is no answer to api %d", asked.api_key);
    return answer != NULL || b.link.conn == NULL;
}

static inline bool send_request(int16_t api_key, int16_t version, const void *body)
{
    if (b.link.conn == NULL) {
        fault_alloc_resume();
        const bool connected = link_connect(&b.link, node_rpc(b.node), b.now);
        fault_alloc_pause();
        if (!connected)
            return false;
    }
    asked = (struct frame_of){api_key, version, ++b.correlation_id};
    frame_put(&b.link.in, asked, body);
    return true;
}

/* The answer, in a; NULL: none came, because the connection or the node ended. */
static inline const void *ask(int16_t api_key, int16_t version, const void *body, struct arena *a)
{
    answer = NULL;
    answer_arena = a;
    if (!send_request(api_key, version, body))
        return NULL;
    if (!pass_until(answered, 120LL * SECOND_US))
        violation("api %d was not answered", api_key);
    return answer;
}

#endif
