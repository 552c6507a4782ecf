/* server_run around a node that plays a script: when it is ready, how it ends, what signals do. The
 * node's functions are this file's own, so that the linker takes none of the real node. */
#include "net/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/node.h"
#include "test_net.h"

struct node {
    struct bench bench; /* its env, budgets and rpc; not its loop */
    struct env *env;
    const struct config *config;
    enum node_state state;
    uint16_t port;
};

static struct script {
    /* what the node does */
    enum err new_error;
    int ready_after_turns; /* -1: never */
    bool fail_when_ready, fail_bad_config, fail_when_stopped, hang_when_stopped;
    bool term_while_starting;
    struct job job; /* submitted when ready, unless its run is NULL */
    /* what is done when it is ready */
    bool with_client;
    bool job_submitted;
    /* what was seen */
    int turns_n, ready_n, stops_n, jobs_done_n, freed_n;
    uint16_t port_told;
    bool answered, refused_after_stop;
    int client, early_client;
} script;

/* ------------------------------------------------------------------ the node */

enum err node_new(const struct node_args *args, struct node **out, char *message, size_t message_n)
{
    if (script.new_error != ERR_NONE) {
        snprintf(message, message_n, "the directory is at fault");
        return script.new_error;
    }
    struct node *n = calloc(1, sizeof *n);
    bench_begin(&n->bench);
    n->bench.echo = true;
    n->env = args->env;
    n->config = args->config;
    n->port = args->ports[0];
    CU_ASSERT_EQUAL(args->ports_n, 1);
    *out = n;
    return ERR_NONE;
}

void node_free(struct node *n)
{
    CU_ASSERT(script.job.run == NULL || script.jobs_done_n == 1);
    bench_end(&n->bench);
    free(n);
    script.freed_n++;
}

struct rpc *node_rpc(struct node *n)
{
    return n->bench.rpc;
}

enum node_state node_state(const struct node *n)
{
    return n->state;
}

bool node_accepts(const struct node *n, size_t listener)
{
    CU_ASSERT_EQUAL(listener, 0);
    return n->state == NODE_READY;
}

const struct config *node_config(const struct node *n)
{
    return n->config;
}

const char *node_message(const struct node *n, bool *bad_config)
{
    *bad_config = script.fail_bad_config;
    return "as the script says";
}

void node_stop(struct node *n, struct now now)
{
    script.stops_n++;
    n->state = n->state == NODE_STARTING ? NODE_FAILED : NODE_STOPPING;
}

static int connect_to(uint16_t port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    close(fd);
    return -1;
}

static void when_stopping(struct node *n)
{
    int fd = connect_to(n->port);
    script.refused_after_stop = fd == -1;
    if (fd != -1)
        close(fd);
    if (script.hang_when_stopped)
        raise(SIGINT);
    else
        n->state = script.fail_when_stopped ? NODE_FAILED : NODE_STOPPED;
}

static void submit_job(struct node *n)
{
    if (script.job.run == NULL || script.job_submitted)
        return;
    script.job_submitted = true;
    n->env->submit(n->env, &script.job);
}

int64_t node_turn(struct node *n, struct now now)
{
    struct job *j;
    script.turns_n++;
    CU_ASSERT(now.mono_us > 0 && now.wall_ms > 0);
    while ((j = n->env->reap(n->env)) != NULL)
        j->done(j);
    switch (n->state) {
    case NODE_STARTING:
        if (script.with_client && script.early_client == -1) {
            script.early_client = connect_to(n->port);
            send_requests(script.early_client, API_HEARTBEAT, 0, 1);
        }
        if (script.term_while_starting)
            raise(SIGTERM);
        if (script.turns_n == script.ready_after_turns) {
            n->state = script.fail_when_ready ? NODE_FAILED : NODE_READY;
            if (script.fail_when_ready)
                submit_job(n);
        }
        return now.mono_us + 1000;
    case NODE_READY:
        submit_job(n); /* behind ready(), which connected the client */
        if (!script.with_client || script.jobs_done_n > 0)
            raise(SIGTERM);
        return now.mono_us + 1000;
    case NODE_STOPPING:
        when_stopping(n);
        return now.mono_us + 1000;
    case NODE_STOPPED:
    case NODE_FAILED:
        return INT64_MAX;
    }
    return INT64_MAX;
}

/* ------------------------------------------------------------------ the client */

static void count_answers(void)
{
    char byte[64];
    struct pollfd p[] = {{script.early_client, POLLIN, 0}, {script.client, POLLIN, 0}};
    for (size_t i = 0; i < ARRAY_N(p); i++)
        CU_ASSERT(poll(&p[i], 1, 5000) == 1 && read(p[i].fd, byte, sizeof byte) == 10);
    script.answered = true;
}

/* A worker stands in for the clients: it waits for answers while the loop runs. */
static void client_run(struct job *j, struct disk *d)
{
    count_answers();
}

static void sleep_run(struct job *j, struct disk *d)
{
    usleep(30000);
}

static void job_done(struct job *j)
{
    script.jobs_done_n++;
}

static void ready(void *ctx, const struct server_port *ports, size_t n)
{
    CU_ASSERT_PTR_EQUAL(ctx, &script);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_STRING_EQUAL(ports[0].listener, "PLAINTEXT");
    CU_ASSERT_STRING_EQUAL(ports[0].host, "127.0.0.1");
    script.ready_n++;
    script.port_told = ports[0].port;
    if (script.with_client) {
        script.client = connect_to(ports[0].port);
        send_requests(script.client, API_HEARTBEAT, 1, 1);
    }
}

/* ------------------------------------------------------------------ tests */

static char message[512];

static void begin(void)
{
    memset(&script, 0, sizeof script);
    script.ready_after_turns = 3;
    script.client = script.early_client = -1;
    message[0] = '\0';
}

static enum server_exit run_on(const char *listeners)
{
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_set(c, str_of("listeners"), str_of(listeners), CONFIG_SET, NULL,
                                     NULL, message, sizeof message),
                          ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_finish(c, message, sizeof message), ERR_NONE);
    const struct server_args args = {.config = c, .ready = ready, .ctx = &script};
    enum server_exit how = server_run(&args, message, sizeof message);
    config_free(c);
    return how;
}

static enum server_exit run(void)
{
    return run_on("PLAINTEXT://127.0.0.1:0");
}

static void test_serves_and_stops(void)
{
    begin();
    script.with_client = true;
    script.job = (struct job){.lane = JOB_BULK, .run = client_run, .done = job_done};
    CU_ASSERT_EQUAL(run(), SERVER_STOPPED);
    CU_ASSERT_EQUAL(script.ready_n, 1);
    CU_ASSERT_NOT_EQUAL(script.port_told, 0);
    CU_ASSERT(script.answered); /* who came before it was ready, too */
    CU_ASSERT(script.refused_after_stop);
    CU_ASSERT_EQUAL(script.stops_n, 1);
    CU_ASSERT_EQUAL(script.freed_n, 1);
    CU_ASSERT(client_sees_end(script.client));
    close(script.client);
    close(script.early_client);
}

static void test_fails_when_ready(void)
{
    begin();
    script.fail_when_ready = true;
    script.job = (struct job){.lane = JOB_SYNC, .run = sleep_run, .done = job_done};
    CU_ASSERT_EQUAL(run(), SERVER_FAILED);
    CU_ASSERT_STRING_EQUAL(message, "as the script says");
    CU_ASSERT_EQUAL(script.ready_n, 0);
    CU_ASSERT_EQUAL(script.jobs_done_n, 1); /* it was waited for */
    CU_ASSERT_EQUAL(script.freed_n, 1);
    begin();
    script.fail_when_ready = script.fail_bad_config = true;
    CU_ASSERT_EQUAL(run(), SERVER_BAD_CONFIG);
    begin();
    script.fail_when_stopped = true;
    CU_ASSERT_EQUAL(run(), SERVER_FAILED);
    CU_ASSERT_EQUAL(script.ready_n, 1);
}

static void test_directory_refused(void)
{
    const enum err errors[] = {ERR_BUSY, ERR_INVALID, ERR_ACCESS, ERR_IO};
    for (size_t i = 0; i < ARRAY_N(errors); i++) {
        begin();
        script.new_error = errors[i];
        CU_ASSERT_EQUAL(run(), SERVER_BAD_CONFIG);
        CU_ASSERT_STRING_EQUAL(message, "the directory is at fault");
    }
    begin();
    script.new_error = ERR_NOMEM;
    CU_ASSERT_EQUAL(run(), SERVER_FAILED);
}

static void test_port_in_use(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    char listeners[64];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    begin();
    CU_ASSERT(bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 1) == 0);
    CU_ASSERT(getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    snprintf(listeners, sizeof listeners, "PLAINTEXT://127.0.0.1:%u", ntohs(at.sin_port));
    CU_ASSERT_EQUAL(run_on(listeners), SERVER_BAD_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "is in use"));
    CU_ASSERT_EQUAL(script.turns_n, 0);
    close(fd);
}

static void test_term_while_starting(void)
{
    begin();
    script.ready_after_turns = -1;
    script.term_while_starting = true;
    CU_ASSERT_EQUAL(run(), SERVER_KILLED);
    CU_ASSERT_EQUAL(script.ready_n, 0);
    CU_ASSERT_EQUAL(script.stops_n, 1);
    CU_ASSERT_EQUAL(script.freed_n, 1);
}

/* The last one: what a killed server leaves behind is the process's. */
static void test_second_signal(void)
{
    begin();
    script.hang_when_stopped = true;
    CU_ASSERT_EQUAL(run(), SERVER_KILLED);
    CU_ASSERT_EQUAL(script.stops_n, 1);
    CU_ASSERT_EQUAL(script.freed_n, 0);
}

TEST_MAIN(TEST(test_serves_and_stops), TEST(test_fails_when_ready), TEST(test_directory_refused),
          TEST(test_port_in_use), TEST(test_term_while_starting), TEST(test_second_signal))
