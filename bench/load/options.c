#include "load/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: bench-load KIND --port N [OPTION...]\n"
    "KIND: api-versions, produce, fetch, commit; idle holds connections until stdin ends\n"
    "  --pid N             take the CPU time of this process\n"
    "  --connections N     (4)\n"
    "  --in-flight N       per connection (16)\n"
    "  --rate N            requests per second, open loop; without it a closed loop\n"
    "  --warm S --run S    seconds before and while it counts (0.5, 3)\n"
    "  --requests N, --bytes N   end earlier; 0: do not (0)\n"
    "  --topic NAME, --partitions N, --acks N, --records N, --record-bytes N, --codec NAME\n"
    "  --batches N --batch-bytes N    fetch: what the partition holds\n"
    "  --group PREFIX      commit\n";

static const char *const kinds[] = {"api-versions", "produce", "fetch", "commit", "idle"};
static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};

static bool find(const char *const *names, size_t n, const char *name, int *out)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (int)i;
            return true;
        }
    }
    return false;
}

static bool number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= -1 && *out < 1e18;
}

enum argument {
    PORT = 1,
    PID,
    CONNECTIONS,
    IN_FLIGHT,
    RATE,
    WARM,
    RUN,
    REQUESTS,
    BYTES,
    PARTITIONS,
    ACKS,
    RECORDS,
    RECORD_BYTES,
    BATCHES,
    BATCH_BYTES,
    TOPIC, /* from here on texts */
    CODEC,
    GROUP
};

static bool set_text(struct options *o, int option, const char *text)
{
    int codec = 0;
    if (option == TOPIC)
        o->topic = text;
    else if (option == GROUP)
        o->group = text;
    else if (!find(codecs, ARRAY_N(codecs), text, &codec))
        return false;
    if (option == CODEC)
        o->codec = (enum batch_codec)codec;
    return true;
}

static bool set_number(struct options *o, int option, const char *text)
{
    double v;
    if (!number(text, &v))
        return false;
    switch ((enum argument)option) {
    case PORT:
        o->port = (uint16_t)v;
        break;
    case PID:
        o->pid = (int)v;
        break;
    case CONNECTIONS:
        o->connections = (int)v;
        break;
    case IN_FLIGHT:
        o->in_flight = (int)v;
        break;
    case RATE:
        o->rate = v;
        break;
    case WARM:
        o->warm_ns = (int64_t)(v * 1e9);
        break;
    case RUN:
        o->run_ns = (int64_t)(v * 1e9);
        break;
    case REQUESTS:
        o->requests = (uint64_t)v;
        break;
    case BYTES:
        o->bytes = (uint64_t)v;
        break;
    case PARTITIONS:
        o->partitions = (int32_t)v;
        break;
    case ACKS:
        o->acks = (int16_t)v;
        break;
    case RECORDS:
        o->records = (int32_t)v;
        break;
    case RECORD_BYTES:
        o->record_bytes = (int32_t)v;
        break;
    case BATCHES:
        o->batches = (int64_t)v;
        break;
    case BATCH_BYTES:
        o->batch_bytes = (int32_t)v;
        break;
    case TOPIC:
    case CODEC:
    case GROUP:
        return false;
    }
    return true;
}

static bool valid(const struct options *o)
{
    return o->port > 0 && o->connections > 0 && o->in_flight > 0 && o->partitions > 0 &&
           o->records > 0 && o->record_bytes >= 0 && o->acks != 0 && o->rate >= 0 &&
           (o->kind != LOAD_FETCH || (o->batches > 0 && o->batch_bytes > 0));
}

bool options_parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"port", 1, NULL, PORT},
                                          {"pid", 1, NULL, PID},
                                          {"connections", 1, NULL, CONNECTIONS},
                                          {"in-flight", 1, NULL, IN_FLIGHT},
                                          {"rate", 1, NULL, RATE},
                                          {"warm", 1, NULL, WARM},
                                          {"run", 1, NULL, RUN},
                                          {"requests", 1, NULL, REQUESTS},
                                          {"bytes", 1, NULL, BYTES},
                                          {"partitions", 1, NULL, PARTITIONS},
                                          {"acks", 1, NULL, ACKS},
                                          {"records", 1, NULL, RECORDS},
                                          {"record-bytes", 1, NULL, RECORD_BYTES},
                                          {"batches", 1, NULL, BATCHES},
                                          {"batch-bytes", 1, NULL, BATCH_BYTES},
                                          {"topic", 1, NULL, TOPIC},
                                          {"codec", 1, NULL, CODEC},
                                          {"group", 1, NULL, GROUP},
                                          {NULL, 0, NULL, 0}};
    int c, kind = 0;
    *o = (struct options){.connections = 4,
                          .in_flight = 16,
                          .warm_ns = 500000000,
                          .run_ns = 3000000000,
                          .topic = "bench",
                          .partitions = 1,
                          .acks = -1,
                          .records = 1,
                          .record_bytes = 100,
                          .group = "bench"};
    bool good = argc > 1 && find(kinds, ARRAY_N(kinds), argv[1], &kind);
    o->kind = (enum load_kind)kind;
    while (good && (c = getopt_long(argc - 1, argv + 1, "", names, NULL)) != -1)
        good = c != '?' && (c >= TOPIC ? set_text(o, c, optarg) : set_number(o, c, optarg));
    good = good && optind == argc - 1 && valid(o);
    if (!good)
        fputs(usage, stderr);
    return good;
}
