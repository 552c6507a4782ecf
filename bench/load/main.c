/* bench-load: one kind of request, many times, to one broker. Prints one line of JSON. Exits with 1
 * when any answer was not what it must be, with 2 when called wrongly. */
#include <stdio.h>
#include <sys/resource.h>

#include "load/idle.h"
#include "load/loop.h"

static void raise_fd_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void print(const struct result *r)
{
    const struct histogram *h = &r->latency;
    printf("{\"requests\": %llu, \"bytes\": %llu, \"seconds\": %.6f, \"broker_cpu_seconds\": %.3f, "
           "\"own_cpu_seconds\": %.3f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, "
           "\"max_us\": %.1f}\n",
           (unsigned long long)r->requests, (unsigned long long)r->bytes, r->seconds,
           r->broker_cpu_seconds, r->own_cpu_seconds, histogram_at_us(h, 0.5),
           histogram_at_us(h, 0.99), histogram_at_us(h, 0.999), (double)h->max_ns / 1000);
}

int main(int argc, char **argv)
{
    static struct result result;
    struct options o;
    if (!options_parse(argc, argv, &o))
        return 2;
    raise_fd_limit();
    if (o.kind == LOAD_IDLE)
        return idle_hold(&o) ? 0 : 1;
    if (!load_run(&o, &result))
        return 1;
    print(&result);
    return 0;
}
