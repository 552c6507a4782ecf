#include "os/random.h"

#include <errno.h>
#include <sys/random.h>

#include "base/check.h"

void os_random(void *p, size_t n)
{
    char *at = p;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got == -1) {
            CHECK(errno == EINTR); /* nothing else is possible with valid arguments */
            continue;
        }
        at += got;
        n -= (size_t)got;
    }
}
