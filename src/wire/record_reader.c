/* record_stream for those that need it on the heap, and the headers of one record. */
#include <stdlib.h>

#include "wire/record.h"
#include "wire/varint.h"

struct record_reader {
    struct record_stream stream;
};

enum err record_reader_new(const struct batch *b, uint32_t max_record_bytes,
                           struct record_reader **out)
{
    struct record_reader *r = malloc(sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    enum err err = record_stream_open(&r->stream, b, max_record_bytes, NULL);
    if (err != ERR_NONE) {
        free(r);
        return err;
    }
    *out = r;
    return ERR_NONE;
}

enum err record_reader_next(struct record_reader *r, struct record *out, bool *end)
{
    return record_stream_next(&r->stream, true, out, end);
}

void record_reader_free(struct record_reader *r)
{
    if (r == NULL)
        return;
    record_stream_close(&r->stream);
    free(r);
}

/* Length and bytes from the front of *in; negative is null. */
static enum err take_bytes(struct bytes *in, struct bytes *out)
{
    if (in->n <= 0)
        return ERR_TRUNCATED;
    uint64_t raw;
    int used = varint_get(in->p, in->p + in->n, VARINT_MAX, &raw);
    if (used <= 0)
        return used == 0 ? ERR_TRUNCATED : ERR_CORRUPT;
    int32_t n = (int32_t)varint_unzigzag((uint32_t)raw);
    if (n > in->n - used)
        return ERR_TRUNCATED;
    *out = n < 0 ? BYTES_NULL : (struct bytes){in->p + used, n};
    int32_t all = used + (n > 0 ? n : 0);
    in->p += all;
    in->n -= all;
    return ERR_NONE;
}

enum err record_next_header(struct bytes *in, struct record_header *out)
{
    struct bytes key;
    enum err err = take_bytes(in, &key);
    if (err != ERR_NONE)
        return err;
    if (key.n < 0)
        return ERR_CORRUPT;
    out->key = (struct str){(const char *)key.p, key.n};
    return take_bytes(in, &out->value);
}
