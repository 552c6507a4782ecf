#include "support/node/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/endian.h"
#include "wire/batch.h"
#include "wire/record.h"

static char where[128];

void violation_where(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
}

const char *violation_place(void)
{
    return where;
}

void violation(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("violation with %s: ", where);
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
    exit(1);
}

void model_key(uint8_t out[MODEL_KEY_BYTES], struct model_value v)
{
    put_be32(out, v.producer);
    put_be32(out + 4, v.sequence);
}

struct model_partition *model_partition(struct model *m, struct uuid topic_id, int32_t index)
{
    for (size_t i = 0; i < m->partitions_n; i++)
        if (uuid_eq(m->partitions[i].topic_id, topic_id) && m->partitions[i].index == index)
            return &m->partitions[i];
    CHECK(m->partitions_n < MODEL_PARTITIONS);
    struct model_partition *p = &m->partitions[m->partitions_n++];
    p->topic_id = topic_id;
    p->index = index;
    p->end.epoch = -1;
    return p;
}

static struct model_slot *slot(struct model_partition *p, int64_t offset)
{
    CHECK(offset >= 0);
    if ((size_t)offset >= p->cap) {
        size_t cap = p->cap == 0 ? 256 : p->cap;
        while (cap <= (size_t)offset)
            cap *= 2;
        p->slots = realloc(p->slots, cap * sizeof *p->slots);
        CHECK(p->slots != NULL);
        memset(p->slots + p->cap, 0, (cap - p->cap) * sizeof *p->slots);
        p->cap = cap;
    }
    if ((size_t)offset >= p->n)
        p->n = (size_t)offset + 1;
    return &p->slots[offset];
}

static void settle(struct model_partition *p, int64_t offset, struct model_value v,
                   const char *what)
{
    struct model_slot *s = slot(p, offset);
    if (s->known && !p->lossy &&
        (s->value.producer != v.producer || s->value.sequence != v.sequence))
        violation("partition %d offset %lld held record %u/%u, %s %u/%u", p->index,
                  (long long)offset, s->value.producer, s->value.sequence, what, v.producer,
                  v.sequence);
    s->known = true;
    s->value = v;
}

void model_acked(struct model *m, struct model_partition *p, int64_t offset, struct model_value v)
{
    settle(p, offset, v, "acknowledged is");
    p->slots[offset].acked = true;
    m->acked++;
}

void model_read(struct model *m, struct model_partition *p, int64_t offset, struct model_value v)
{
    settle(p, offset, v, "read is");
    m->checked++;
}

/* The offset behind it. */
static int64_t read_batch(struct model *m, struct model_partition *p, const struct batch *b,
                          int64_t high_watermark)
{
    struct record_reader *r;
    struct record rec;
    bool end = false;
    if (!batch_crc_ok(b))
        violation("a batch at offset %lld was served with a bad CRC", (long long)b->base_offset);
    if (batch_last_offset(b) >= high_watermark)
        violation("offset %lld was served at a high watermark of %lld",
                  (long long)batch_last_offset(b), (long long)high_watermark);
    const enum err opened = record_reader_new(b, INT32_MAX, &r);
    if (opened != ERR_NONE)
        violation("the batch at offset %lld cannot be opened: %s (attributes %d, %d records)",
                  (long long)b->base_offset, err_name(opened), b->attributes, b->records_n);
    while (record_reader_next(r, &rec, &end) == ERR_NONE && !end) {
        if (rec.key.n != MODEL_KEY_BYTES)
            violation("offset %lld has no key of ours", (long long)rec.offset);
        model_read(m, p, rec.offset, (struct model_value){be32(rec.key.p), be32(rec.key.p + 4)});
    }
    if (!end)
        violation("the records at offset %lld cannot be read", (long long)b->base_offset);
    record_reader_free(r);
    return batch_next_offset(b);
}

int64_t model_fetched(struct model *m, struct model_partition *p,
                      const struct fetch_response_partition_data *data, int64_t position)
{
    struct bytes in = {data->records.p, data->records.n};
    struct batch b;
    while (in.n > 0 && batch_parse(in, &b) == ERR_NONE) {
        if (b.base_offset > position)
            violation("partition %d: offsets %lld to %lld are not served", p->index,
                      (long long)position, (long long)b.base_offset);
        if (batch_last_offset(&b) >= position)
            position = read_batch(m, p, &b, data->high_watermark);
        in.p += b.size_bytes;
        in.n -= (int32_t)b.size_bytes;
    }
    return position;
}

void model_producer_id(struct model *m, int64_t id)
{
    for (size_t i = 0; i < m->producer_ids_n; i++)
        if (m->producer_ids[i] == id)
            violation("producer id %lld was given out twice", (long long)id);
    if (m->producer_ids_n == m->producer_ids_cap) {
        m->producer_ids_cap = m->producer_ids_cap == 0 ? 64 : m->producer_ids_cap * 2;
        m->producer_ids = realloc(m->producer_ids, m->producer_ids_cap * sizeof *m->producer_ids);
        CHECK(m->producer_ids != NULL);
    }
    m->producer_ids[m->producer_ids_n++] = id;
}

void model_delete_asked(struct model_partition *p, int64_t offset)
{
    if (offset < 0)
        offset = INT64_MAX;
    if (offset > p->delete_asked)
        p->delete_asked = offset;
}

void model_deleted(struct model_partition *p, int64_t offset)
{
    if (offset > p->deleted_to)
        p->deleted_to = offset;
    model_start(p, offset);
}

void model_start(const struct model_partition *p, int64_t offset)
{
    if (offset < p->deleted_to)
        violation("partition %d begins at %lld, but was deleted to %lld", p->index,
                  (long long)offset, (long long)p->deleted_to);
    if (offset > p->delete_asked)
        violation("partition %d begins at %lld, but nobody deleted beyond %lld", p->index,
                  (long long)offset, (long long)p->delete_asked);
}

void model_end_told(struct model_partition *p, const struct model_told *asked,
                    struct model_told told)
{
    if (!p->lossy && told.epoch >= asked->epoch && told.offset < asked->offset)
        violation("partition %d ended at %lld in epoch %d and ends at %lld in epoch %d (26)",
                  p->index, (long long)asked->offset, asked->epoch, (long long)told.offset,
                  told.epoch);
    if (told.epoch > p->end.epoch || (told.epoch == p->end.epoch && told.offset > p->end.offset))
        p->end = told;
}

void model_end(const struct model_partition *p, int64_t start, int64_t end)
{
    uint32_t next[MODEL_PRODUCERS] = {0};
    for (size_t i = (size_t)start; i < (size_t)end; i++) {
        if (i >= p->n || !p->slots[i].known)
            violation("partition %d ends at %lld, but offset %zu was never served", p->index,
                      (long long)end, i);
        const struct model_value v = p->slots[i].value;
        CHECK(v.producer < MODEL_PRODUCERS);
        if (v.sequence < next[v.producer])
            violation("partition %d offset %zu holds record %u/%u again or too late", p->index, i,
                      v.producer, v.sequence);
        next[v.producer] = v.sequence + 1;
    }
    for (size_t i = (size_t)end; i < p->n && !p->lossy; i++)
        if (p->slots[i].known)
            violation("partition %d ends at %lld, but offset %zu was %s", p->index, (long long)end,
                      i, p->slots[i].acked ? "acknowledged" : "read");
}

/* ------------------------------------------------------------------ numbers */

void model_number_asked(struct model_number *n, int64_t value)
{
    CHECK(value > n->most);
    n->most = value;
}

void model_number_set(struct model_number *n, int64_t value)
{
    n->least = value;
    n->may_go = false;
}

void model_number_deletion_asked(struct model_number *n, int64_t first)
{
    n->least = first;
    n->may_go = true;
}

void model_number_deleted(struct model_number *n, int64_t first)
{
    n->least = n->most = first;
    n->may_go = false;
}

void model_number_told(struct model *m, struct model_number *n, int64_t value, const char *what)
{
    if (value < n->least || value > n->most)
        violation("%s is told to be %lld, but is %lld to %lld", what, (long long)value,
                  (long long)n->least, (long long)n->most);
    if (!n->may_go)
        n->least = value;
    m->checked++;
}

void model_close(struct model *m)
{
    for (size_t i = 0; i < m->partitions_n; i++)
        free(m->partitions[i].slots);
    free(m->producer_ids);
    memset(m, 0, sizeof *m);
}
