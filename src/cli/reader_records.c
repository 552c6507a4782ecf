/* From record batches to records. With `committed` the answer names the producers whose
 * transactions were aborted and from which offset; their records are left out until the marker that
 * ends each. */
#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"
#include "cli/reader_impl.h"

enum { RECORD_MAX_BYTES = 256 << 20, CONTROL_ABORT = 0 };

static int tell(const struct reader *r, const struct reading *reading, const char *what)
{
    cli_error("%.*s-%d: %s at offset %lld", r->topic.n, r->topic.p, reading->partition, what,
              (long long)reading->next_offset);
    return CLI_FAILED;
}

static struct bytes records_of(const struct fetch_response_partition_data *p)
{
    return p->records.n < 0 ? BYTES_NULL : (struct bytes){p->records.p, p->records.n};
}

/* The next whole batch. The answer may end within one. */
static bool next_batch(struct bytes *left, struct batch *b)
{
    return left->n > 0 && batch_take(left, b) == ERR_NONE;
}

bool reader_advance(const struct reader *r, struct reading *reading,
                    const struct fetch_response_partition_data *p)
{
    struct bytes left = records_of(p);
    struct batch b;
    int64_t end = reading->fetch_offset;
    bool first = true;
    while (next_batch(&left, &b)) {
        if (!batch_follows(&b, first ? 0 : end) || batch_next_offset(&b) <= end) {
            (void)tell(r, reading, "the broker sent records that were not asked for");
            return false;
        }
        first = false;
        end = batch_next_offset(&b);
    }
    if (first && left.n > 0) {
        (void)tell(r, reading, "the broker sent no whole record batch");
        return false;
    }
    reading->fetch_offset = end;
    return true;
}

/* ------------------------------------------------------------------ aborted transactions */

/* Those that were aborted at the place where reading is, and those still to come. */
struct aborted {
    struct fetch_response_aborted_transaction *v; /* by first offset */
    size_t n, begun_n;                            /* [0, begun_n): begun; producer -1: ended */
};

static int by_offset(const void *a, const void *b)
{
    const struct fetch_response_aborted_transaction *x = a, *y = b;
    return (x->first_offset > y->first_offset) - (x->first_offset < y->first_offset);
}

static struct aborted aborted_of(const struct reader *r,
                                 const struct fetch_response_partition_data *p)
{
    struct aborted a = {0};
    if (!r->committed || p->aborted_transactions.n <= 0)
        return a;
    a.v = p->aborted_transactions.v;
    a.n = (size_t)p->aborted_transactions.n;
    qsort(a.v, a.n, sizeof *a.v, by_offset);
    return a;
}

static bool is_aborted(struct aborted *a, const struct batch *b)
{
    while (a->begun_n < a->n && a->v[a->begun_n].first_offset <= batch_last_offset(b))
        a->begun_n++;
    if ((b->attributes & BATCH_TRANSACTIONAL) == 0)
        return false;
    for (size_t i = 0; i < a->begun_n; i++)
        if (a->v[i].producer_id == b->producer_id)
            return true;
    return false;
}

static void end_transaction(struct aborted *a, int64_t producer_id)
{
    for (size_t i = 0; i < a->begun_n; i++)
        if (a->v[i].producer_id == producer_id) {
            a->v[i].producer_id = -1;
            return;
        }
}

/* A control record's key is a version and a type. */
static void take_control(struct aborted *a, const struct batch *b, const struct record *rec)
{
    if (rec->key.n >= 4 && be16(rec->key.p + 2) == CONTROL_ABORT)
        end_transaction(a, b->producer_id);
}

/* ------------------------------------------------------------------ records */

static const char *text_of(enum err e)
{
    switch (e) {
    case ERR_NOMEM:
        return "out of memory for the records";
    case ERR_UNSUPPORTED:
        return "records in a format or compression that is not known";
    case ERR_TOO_LARGE:
        return "a record that is too large";
    default:
        return "damaged records";
    }
}

static bool is_wanted(const struct reading *reading, const struct batch *b,
                      const struct record *rec)
{
    return rec->offset >= reading->next_offset && rec->offset < reading->stop_offset &&
           rec->offset <= batch_last_offset(b);
}

static enum err give_records(struct reader *r, struct reading *reading, struct aborted *a,
                             const struct batch *b, struct record_reader *records)
{
    const bool control = (b->attributes & BATCH_CONTROL) != 0;
    const bool skip = !control && is_aborted(a, b);
    bool end = false;
    while (!skip && !r->ended) {
        struct record rec;
        enum err e = record_reader_next(records, &rec, &end);
        if (e != ERR_NONE || end)
            return e;
        if (control) {
            take_control(a, b, &rec);
        } else if (is_wanted(reading, b, &rec)) {
            r->ended = !r->events.record(r->events.ctx, reading->partition, &rec);
            reading->next_offset = rec.offset + 1;
        }
    }
    return ERR_NONE;
}

static enum err give_batch(struct reader *r, struct reading *reading, struct aborted *a,
                           const struct batch *b)
{
    struct record_reader *records;
    if (!batch_crc_ok(b))
        return ERR_CORRUPT;
    enum err e = record_reader_new(b, RECORD_MAX_BYTES, &records);
    if (e != ERR_NONE)
        return e;
    e = give_records(r, reading, a, b, records);
    record_reader_free(records);
    return e;
}

int reader_give(struct reader *r, struct reading *reading,
                const struct fetch_response_partition_data *p)
{
    struct bytes left = records_of(p);
    struct aborted a = aborted_of(r, p);
    struct batch b;
    while (!r->ended && reading->next_offset < reading->stop_offset && next_batch(&left, &b)) {
        if (batch_next_offset(&b) <= reading->next_offset)
            continue;
        enum err e = give_batch(r, reading, &a, &b);
        if (e != ERR_NONE)
            return tell(r, reading, text_of(e));
        if (!r->ended)
            reading->next_offset = batch_next_offset(&b);
    }
    return CLI_OK;
}
