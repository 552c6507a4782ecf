/* The first pass of encoding: sizes, and every check of a message that is about to leave. Shared by
 * codec_size.c and codec_encode.c. */
#ifndef WIRE_CODEC_SIZE_H
#define WIRE_CODEC_SIZE_H

#include "wire/table.h"

/* Failure is sticky; sizes are then without meaning. */
struct sizer {
    enum err err;
    int16_t version;
    bool flexible;
    size_t by_ref_bytes; /* record sets in memory of at least this are left out of the copy */
    size_t ref_bytes;    /* bytes of those and of all slices */
    size_t refs_n;       /* pieces of those */
};

static inline bool wire_by_ref(const struct wire_records *rec, size_t by_ref_bytes)
{
    return rec->slices_n > 0 || (rec->n > 0 && (size_t)rec->n >= by_ref_bytes);
}

static inline size_t wire_uvarint_size(uint32_t v)
{
    return (size_t)(38 - __builtin_clz(v | 1)) / 7;
}

void wire_sizer_init(struct sizer *z, const struct wire_message *m, int16_t version,
                     size_t by_ref_bytes);
size_t wire_size_struct(struct sizer *z, const struct wire_struct *s, const uint8_t *p);
/* p is the struct, not the field; the version has the field. */
size_t wire_size_field(struct sizer *z, const struct wire_field *f, const uint8_t *p);
bool wire_is_default(const struct wire_struct *s, const struct wire_field *f, const uint8_t *p);

#endif
