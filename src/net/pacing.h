/* Congestion control by pacing (bbr) sends by a timer of its own for each connection: good for a
 * network, and twice the CPU time of a large fetch between two processes of one machine
 * (docs/PERFORMANCE.md), where nothing is congested. So connections over the loopback device do
 * without; all others keep what the system has chosen.
 *
 * A connection that has begun with pacing never loses its timers. A listening socket does not know
 * who will come, so it begins without, and gives those from elsewhere the system's choice back. */
#ifndef NET_PACING_H
#define NET_PACING_H

#include <stdbool.h>
#include <sys/socket.h>

#define PACING_NAME_BYTES 16 /* of a congestion control, as the kernel has it */

/* Of a socket without a connection. was: what the system has chosen, empty if it does not pace. */
void pacing_stop(int fd, char was[PACING_NAME_BYTES]);
/* was: of the listening socket that fd comes from. */
void pacing_give_back(int fd, const char *was);
/* Of a peer's address: it is on the loopback device. */
bool pacing_is_needless(const struct sockaddr_storage *peer);

#endif
