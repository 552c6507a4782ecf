/* The listening sockets of a configuration. They listen from the start, so that clients' connects
 * succeed and wait in the backlog; who accepts, and when, is the acceptor's.
 *
 * What every accepted socket shares (buffers, no delay, keep-alive) is set here: it inherits. Send
 * buffers are socket.send.buffer.bytes; receive buffers and the backlog the kernel's own unless
 * socket.receive.buffer.bytes and socket.listen.backlog.size are set. -1 means the kernel's own, as
 * in Kafka. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "core/config/config.h"
#include "net/pacing.h"

struct listen_socket {
    int fd;
    int listener;                   /* index in config_listeners */
    bool controller;                /* of that listener */
    char pacing[PACING_NAME_BYTES]; /* for pacing_give_back */
};

struct listeners {
    struct listen_socket *sockets;
    size_t n;
    uint16_t *ports; /* the real ones, in config_listeners order */
    size_t ports_n;
};

/* Binds all. A host's name is bound on all its addresses, with the same port. ERR_INVALID: the
 * configuration is at fault (port in use, no such address); others: the machine. With a message. */
MUST_USE enum err listeners_bind(const struct config *config, struct listeners *out, char *message,
                                 size_t message_n);
/* Harmless when nothing is bound. */
void listeners_close(struct listeners *l);

#endif
