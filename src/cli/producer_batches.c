#include <limits.h>
#include <stdlib.h>

#include "base/check.h"
#include "cli/partitioner.h"
#include "cli/producer_impl.h"

/* Below the default max.message.bytes, whatever the codec does. */
enum { BATCH_BYTES = 1000 * 1000, RECORD_OVERHEAD = 40, RECORD_MAX_BYTES = 256 << 20 };

static struct producer_batch *last(struct producer_partition *part)
{
    return list_empty(&part->batches) ? NULL
                                      : LIST_ENTRY(part->batches.prev, struct producer_batch, link);
}

static void batch_free(struct producer_batch *b)
{
    list_remove(&b->link);
    batch_builder_free(b->builder);
    free(b);
}

static int32_t sequence_after(int32_t sequence, int32_t n)
{
    return (int32_t)(((uint32_t)sequence + (uint32_t)n) & INT32_MAX);
}

static struct producer_batch *batch_new(const struct producer *p, int32_t base_sequence)
{
    const struct batch_builder_args args = {
        .leader_epoch = -1,
        .attributes = (int16_t)p->args.codec,
        .producer_id = p->id,
        .producer_epoch = p->epoch,
        .base_sequence = p->id < 0 ? -1 : base_sequence,
        .level = INT_MIN,
    };
    struct producer_batch *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    list_init(&b->link);
    b->base_sequence = base_sequence;
    if (batch_builder_new(&args, &b->builder) != ERR_NONE) {
        free(b);
        return NULL;
    }
    return b;
}

static int close_batch(struct producer_batch *b)
{
    if (b->bytes.p != NULL)
        return CLI_OK;
    return batch_builder_finish(b->builder, &b->bytes) == ERR_NONE ? CLI_OK
                                                                   : client_out_of_memory();
}

struct producer_batch *producer_first(struct producer *p, struct producer_partition *part,
                                      int *status)
{
    (void)p;
    if (list_empty(&part->batches))
        return NULL;
    struct producer_batch *b = LIST_ENTRY(part->batches.next, struct producer_batch, link);
    *status = close_batch(b);
    return *status == CLI_OK ? b : NULL;
}

void producer_drop_first(struct producer *p, struct producer_partition *part)
{
    CHECK(!list_empty(&part->batches));
    struct producer_batch *b = LIST_ENTRY(part->batches.next, struct producer_batch, link);
    p->pending_bytes -= b->size;
    batch_free(b);
}

/* ------------------------------------------------------------------ adding */

static size_t size_of(const struct producer_record *r)
{
    size_t n = RECORD_OVERHEAD + (r->key.n > 0 ? (size_t)r->key.n : 0) +
               (r->value.n > 0 ? (size_t)r->value.n : 0);
    for (int32_t i = 0; i < r->headers_n; i++)
        n += 10 + (size_t)r->headers[i].key.n +
             (r->headers[i].value.n > 0 ? (size_t)r->headers[i].value.n : 0);
    return n;
}

/* n bytes more may go into b, which may be NULL. */
static bool fits(const struct producer_batch *b, size_t n)
{
    return b != NULL && b->bytes.p == NULL && b->size + n <= BATCH_BYTES;
}

static struct producer_partition *with_index(struct producer *p, int32_t index)
{
    for (int32_t low = 0, high = p->n; low < high;) {
        const int32_t middle = low + (high - low) / 2;
        if (p->v[middle].index == index)
            return &p->v[middle];
        if (p->v[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Records without a key fill one batch, then go on with the next partition that has a leader. */
static struct producer_partition *in_turn(struct producer *p, size_t n)
{
    if (fits(last(&p->v[p->turn]), n))
        return &p->v[p->turn];
    for (int32_t i = 0; i < p->n; i++) {
        p->turn = (p->turn + 1) % p->n;
        if (p->v[p->turn].leader >= 0)
            break;
    }
    return &p->v[p->turn];
}

static struct producer_partition *choose(struct producer *p, const struct producer_record *r,
                                         size_t n)
{
    if (r->partition >= 0)
        return with_index(p, r->partition);
    if (r->key.n >= 0)
        return &p->v[partitioner_choose(r->key, p->n)];
    return in_turn(p, n);
}

/* The last batch of part if n bytes more may go into it, else a new one. */
static struct producer_batch *batch_for(struct producer *p, struct producer_partition *part,
                                        size_t n)
{
    struct producer_batch *b = last(part);
    if (fits(b, n))
        return b;
    if (b != NULL && close_batch(b) != CLI_OK)
        return NULL;
    b = batch_new(p, part->next_sequence);
    if (b == NULL)
        (void)client_out_of_memory();
    else
        list_append(&part->batches, &b->link);
    return b;
}

int producer_add(struct producer *p, const struct producer_record *r)
{
    const size_t n = size_of(r);
    struct producer_partition *part = choose(p, r, n);
    if (part == NULL) {
        cli_error("topic %.*s has no partition %d", p->args.topic.n, p->args.topic.p, r->partition);
        return CLI_FAILED;
    }
    struct producer_batch *b = batch_for(p, part, n);
    if (b == NULL)
        return CLI_FAILED;
    if (batch_builder_add(b->builder, r->timestamp, r->key, r->value, r->headers, r->headers_n) !=
        ERR_NONE)
        return client_out_of_memory();
    b->size += n;
    b->own_bytes += n - RECORD_OVERHEAD;
    b->records_n++;
    p->pending_bytes += n;
    p->added_n++;
    part->next_sequence = sequence_after(part->next_sequence, 1);
    return CLI_OK;
}

/* ------------------------------------------------------------------ splitting */

/* The first half of from's records goes to a, the rest to b. */
static enum err divide(const struct batch *from, struct producer_batch *a, struct producer_batch *b)
{
    struct record_reader *reader;
    enum err e = record_reader_new(from, RECORD_MAX_BYTES, &reader);
    if (e != ERR_NONE)
        return e;
    for (bool end = false; e == ERR_NONE;) {
        struct record r;
        e = record_reader_next(reader, &r, &end);
        if (e != ERR_NONE || end)
            break;
        struct producer_batch *to = a->records_n < from->records_n / 2 ? a : b;
        e = batch_builder_add_encoded(to->builder, r.timestamp, r.key, r.value, r.headers,
                                      r.headers_n);
        to->records_n++;
    }
    record_reader_free(reader);
    return e;
}

bool producer_split_first(struct producer *p, struct producer_partition *part, int *status)
{
    struct producer_batch *whole = producer_first(p, part, status);
    struct batch facts;
    if (whole == NULL || whole->records_n < 2)
        return false;
    struct producer_batch *a = batch_new(p, whole->base_sequence);
    struct producer_batch *b =
        batch_new(p, sequence_after(whole->base_sequence, whole->records_n / 2));
    const bool done = a != NULL && b != NULL && batch_parse(whole->bytes, &facts) == ERR_NONE &&
                      divide(&facts, a, b) == ERR_NONE && close_batch(a) == CLI_OK &&
                      close_batch(b) == CLI_OK;
    if (!done) {
        if (a != NULL)
            batch_free(a);
        if (b != NULL)
            batch_free(b);
        *status = client_out_of_memory();
        return false;
    }
    a->size = whole->size / 2;
    b->size = whole->size - a->size;
    a->own_bytes = whole->own_bytes / 2;
    b->own_bytes = whole->own_bytes - a->own_bytes;
    batch_free(whole);
    list_prepend(&part->batches, &b->link);
    list_prepend(&part->batches, &a->link);
    return true;
}
