/* sim [--seed N] [--seeds K] [--minutes M] [--nodes 1|3]: runs under seeded faults and clients;
 * every acknowledged record is checked, and after each turn the invariants of the specifications. A
 * seed reproduces a run to the byte: `trace HASH` is over all that crossed the nodes' borders.
 *
 * sim --script NAME|all [--seed N] [--blind 1]: a scripted scenario (script.h). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run.h"
#include "script.h"
#include "support/node/model.h"

static int usage(void)
{
    fprintf(stderr, "usage: sim [--seed N] [--seeds K] [--minutes M] [--nodes 1|3]\n"
                    "       sim --script NAME|all [--seed N] [--blind 1]\n");
    return 2;
}

static bool read_number(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    return text[0] != '\0' && *end == '\0';
}

/* A CHECK, or a node that gave up. */
static void aborted(int number)
{
    (void)number;
    fflush(stdout);
    fprintf(stderr, "aborted with %s\n", violation_place());
    _exit(1);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, seeds = 1, minutes = 0, nodes = 0, blind = 0, trace = 0;
    const char *script = NULL;
    struct run_totals t = {0};
    for (int i = 1; i < argc; i += 2) {
        uint64_t *to = strcmp(argv[i], "--seed") == 0      ? &seed
                       : strcmp(argv[i], "--seeds") == 0   ? &seeds
                       : strcmp(argv[i], "--minutes") == 0 ? &minutes
                       : strcmp(argv[i], "--nodes") == 0   ? &nodes
                       : strcmp(argv[i], "--blind") == 0   ? &blind
                                                           : NULL;
        if (strcmp(argv[i], "--script") == 0 && i + 1 < argc) {
            script = argv[i + 1];
            continue;
        }
        if (to == NULL || i + 1 >= argc || !read_number(argv[i + 1], to))
            return usage();
    }
    if (getenv("DOHLE_SIM_CORE") == NULL)
        signal(SIGABRT, aborted);
    if (script != NULL)
        return script_run(script, seed, blind != 0) ? 0 : usage();
    const time_t until = time(NULL) + (time_t)minutes * 60;
    while (t.seeds < seeds || (minutes > 0 && time(NULL) < until)) {
        const uint64_t n = seed + t.seeds;
        if (nodes == 1 || (nodes == 0 && n % 2 == 0))
            run_single(n, &t, &trace);
        else
            run_cluster(n, &t, &trace);
        if (seeds == 1 && minutes == 0)
            printf("trace %016llx\n", (unsigned long long)trace);
    }
    printf("seeds %llu, steps %llu, simulated %lld s, faults injected %llu (crashes %llu), "
           "acknowledged writes checked %llu, records read %llu\n",
           (unsigned long long)t.seeds, (unsigned long long)t.steps,
           (long long)(t.simulated_us / 1000000), (unsigned long long)(t.faults + t.crashes),
           (unsigned long long)t.crashes, (unsigned long long)t.acked,
           (unsigned long long)t.checked);
    if (t.seeds > 1 && (t.acked == 0 || t.checked == 0)) {
        printf("no record was acknowledged or none read: nothing was tested\n");
        return 1;
    }
    return 0;
}
