#include "net/pacing.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

/* There is no flag that tells; of Linux's own only bbr and its successors pace. */
static bool paces(const char *name)
{
    return strncmp(name, "bbr", 3) == 0;
}

static bool choose(int fd, const char *name)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

void pacing_stop(int fd, char was[PACING_NAME_BYTES])
{
    char name[PACING_NAME_BYTES + 1] = "";
    socklen_t n = PACING_NAME_BYTES;
    was[0] = '\0';
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) == -1 || !paces(name))
        return;
    if (choose(fd, "reno")) /* in every kernel, allowed to everybody */
        memcpy(was, name, PACING_NAME_BYTES);
}

void pacing_give_back(int fd, const char *was)
{
    if (was[0] != '\0')
        (void)choose(fd, was); /* the system's own choice is allowed to everybody */
}

static bool is_loopback_v4(uint32_t host_order)
{
    return host_order >> 24 == IN_LOOPBACKNET;
}

bool pacing_is_needless(const struct sockaddr_storage *peer)
{
    if (peer->ss_family == AF_INET)
        return is_loopback_v4(ntohl(((const struct sockaddr_in *)peer)->sin_addr.s_addr));
    if (peer->ss_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)peer)->sin6_addr;
    uint32_t four;
    memcpy(&four, &six->s6_addr[12], sizeof four);
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && is_loopback_v4(ntohl(four)));
}
