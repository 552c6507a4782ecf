/* The node on a real machine: libev loop, listening sockets, signals. One call runs it all. */
#ifndef NET_SERVER_H
#define NET_SERVER_H

#include "core/config/config.h"

struct server_port {
    const char *listener; /* its name */
    const char *host;     /* as advertised */
    uint16_t port;        /* the real one */
};

struct server_args {
    const struct config *config;
    /* Every listener serves and the broker is unfenced. ports in config_listeners order. */
    void (*ready)(void *ctx, const struct server_port *ports, size_t n);
    void *ctx;
};

enum server_exit {
    SERVER_STOPPED,    /* TERM or INT, clean */
    SERVER_KILLED,     /* a second TERM or INT, or one while starting: stopped at once. Workers may
                          still run: the process must end now */
    SERVER_FAILED,     /* message says why (no log directory left, ...) */
    SERVER_BAD_CONFIG, /* cannot start: port in use, another process on the data, ids that differ */
};

/* Runs until a signal or a failure. Raises the descriptor limit, ignores SIGPIPE. */
enum server_exit server_run(const struct server_args *args, char *message, size_t message_n);

#endif
