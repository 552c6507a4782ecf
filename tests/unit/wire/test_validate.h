/* What the tests of the produce validation share: a topic's configuration, one batch sent to it. */
#ifndef TEST_VALIDATE_H
#define TEST_VALIDATE_H

#include <limits.h>
#include <stdlib.h>

#include "base/arena.h"
#include "unit/wire/test_records.h"
#include "wire/validate.h"

#define NOW (T0 + 1000)
#define HOUR 3600000

/* Kafka's defaults. */
static inline struct validate_config defaults(void)
{
    return (struct validate_config){
        .timestamp_before_max_ms = INT64_MAX,
        .timestamp_after_max_ms = HOUR,
        .max_message_bytes = 1048588,
        .segment_bytes = 1 << 30,
        .max_decompressed_bytes = INT32_MAX - 8,
        .compression = -1,
        .compression_level = INT_MIN,
    };
}

/* A batch on its way through prepare and validate. Everything stays until sent_close. */
struct sent {
    struct buf request; /* the records field; changed in place by validate */
    struct arena arena;
    struct batch_facts facts;
    struct validated v;
    int16_t error;
};

/* Takes over request. */
static inline struct sent send_budgeted(struct validate_config cfg, struct buf request,
                                        struct budget *budget)
{
    struct sent s = {.request = request};
    arena_init(&s.arena, budget);
    batch_prepare(bytes_of(&s.request), &s.facts);
    s.error = batch_validate(&cfg, &s.facts, s.request.p, NOW, "topic", 3, &s.arena, &s.v);
    return s;
}

static inline struct sent send_to(struct validate_config cfg, struct buf request)
{
    return send_budgeted(cfg, request, NULL);
}

static inline void sent_close(struct sent *s)
{
    arena_close(&s->arena);
    buf_close(&s->request);
}

/* Only the error, for tests that look no further; no error leaves texts or a batch behind. */
static inline int16_t error_of(struct validate_config cfg, struct buf request)
{
    struct sent s = send_to(cfg, request);
    int16_t error = s.error;
    if (error != K_NONE) {
        CU_ASSERT_EQUAL(s.v.log_append_time_ms, -1);
        CU_ASSERT_EQUAL(s.v.batch.n, 0);
        CU_ASSERT_EQUAL(s.v.record_errors_n, 0);
        CU_ASSERT_PTR_NULL(s.v.error_message);
    }
    sent_close(&s);
    return error;
}

/* n plain records, k0: v, k1: v, ..., one millisecond apart. */
static inline struct buf plain_records(int n)
{
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < n; i++) {
        char key[16];
        key[0] = 'k';
        key[1] = (char)('0' + i % 10);
        put_record(&b, i, i, (struct bytes){(uint8_t *)key, 2}, lit("v"));
    }
    return b;
}

/* A batch of these records, through the codec that m names. Takes over records. */
static inline struct buf request_of(struct made m, struct buf records)
{
    struct buf b;
    buf_init(&b);
    put_compressed(&b, m, bytes_of(&records));
    buf_close(&records);
    return b;
}

#endif
