/* Reads the partitions of one topic from their leaders: one fetch per leader under way while what
 * came before is given out. A leader that moves or goes away is looked for again, for as long as
 * the client's timeout without a success; so long too it may take until the next records come when
 * there is an end to be reached. */
#ifndef CLI_READER_H
#define CLI_READER_H

#include "cli/offsets.h"
#include "wire/batch.h"

struct reader_events {
    void *ctx;
    /* One record, in order within its partition. False: no more are wanted. */
    bool (*record)(void *ctx, int32_t partition, const struct record *r);
    /* Between answers and before waiting. False: no more are wanted. */
    bool (*pause)(void *ctx);
};

struct reading {
    int32_t partition;
    int32_t leader, leader_epoch; /* leader -1: to be found */
    int64_t fetch_offset;         /* of the next fetch */
    int64_t next_offset;          /* of the next record to be given out */
    int64_t stop_offset;          /* INT64_MAX: never */
    int64_t stalled_us;           /* with a stop: since when nothing came; INT64_MAX: it comes */
    bool in_flight;
};

struct reader {
    struct client *client;
    struct str topic;
    struct reader_events events;
    bool committed; /* leave out aborted transactions */
    bool new_ones;  /* partitions that are added meanwhile are read too */
    struct reading *v;
    size_t n, cap;
    size_t turn;               /* who is first in the next fetch */
    struct list fetches;       /* oldest first */
    bool ended;                /* no more are wanted */
    const struct broker *told; /* that it failed, and it has not answered since; or NULL */
    int64_t refresh_us;        /* when leaders are looked for again */
    int64_t failing_us;        /* since when something did not succeed; INT64_MAX: all is well */
    int32_t failed_partition;  /* what it was */
    int16_t failed_code;
};

/* places: where each partition begins, and with `stop` its end, at which reading stops. */
int reader_open(struct reader *r, struct client *c, struct str topic, const struct place *places,
                size_t n, bool stop, const struct reader_events *events);
/* Until all partitions are at their end or no more is wanted. CLI_FAILED: told. */
int reader_run(struct reader *r);
void reader_close(struct reader *r);

#endif
