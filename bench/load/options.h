/* What one run of the load generator does, from its arguments. */
#ifndef LOAD_OPTIONS_H
#define LOAD_OPTIONS_H

#include "base/types.h"
#include "wire/batch.h"

enum load_kind { LOAD_API_VERSIONS, LOAD_PRODUCE, LOAD_FETCH, LOAD_COMMIT, LOAD_IDLE };

struct options {
    enum load_kind kind;
    uint16_t port; /* on 127.0.0.1 */
    int pid;       /* whose CPU time is taken; 0: nobody's */
    int connections;
    int in_flight;     /* per connection; open loop: at most */
    double rate;       /* requests per second; 0: a closed loop */
    int64_t warm_ns;   /* before anything is counted */
    int64_t run_ns;    /* counted at most as long */
    uint64_t requests; /* counted at most; also ends the run */
    uint64_t bytes;    /* of record batches, likewise */

    const char *topic;
    int32_t partitions; /* produces go to them in turn */
    int16_t acks;
    int32_t records;      /* per batch */
    int32_t record_bytes; /* of each value */
    enum batch_codec codec;
    int64_t batches; /* fetch: in the partition, each of `records` records and batch_bytes */
    int32_t batch_bytes;
    const char *group; /* commit: each connection has a group of its own, with this prefix */
};

/* False, with a line on stderr, when called wrongly. */
bool options_parse(int argc, char **argv, struct options *out);

#endif
