/* The rows that gen.py writes and the codec reads. For codec*.c, print.c, random.c and the
 * generated tables only. */
#ifndef WIRE_TABLE_H
#define WIRE_TABLE_H

#include "wire/codec.h"

enum wire_type {
    T_BOOL,
    T_INT8,
    T_INT16,
    T_UINT16,
    T_INT32,
    T_UINT32,
    T_INT64,
    T_FLOAT64,
    T_UUID,
    T_STRING,
    T_BYTES,
    T_RECORDS,
    T_STRUCT,
    T_POINTER, /* a nullable struct */
    T_ARRAY,   /* of what element says: anything above but T_RECORDS and T_POINTER */
};

#define F_IGNORABLE 1  /* dropped in versions that lack it; else only its default may be written */
#define F_INFLEXIBLE 2 /* an int16 string in flexible versions too (the request header) */

/* One field of a struct, in wire order. A field with a tag is tagged in all its versions. */
struct wire_field {
    const char *name; /* camelCase, as in JSON */
    const struct wire_struct *sub;
    uint16_t offset;
    uint8_t type;
    uint8_t element;
    uint8_t flags;
    int8_t min, max; /* versions that have it, cut to the message's */
    int8_t null_min; /* first version in which null is allowed; INT8_MAX: none */
    int8_t tag;      /* -1: in its place */
};

/* The messages of a kind by their keys; NULL where there is none. */
struct wire_index {
    const struct wire_message *const *v;
    int16_t n; /* 0: keys of this kind are not unique */
};

extern const struct wire_index wire_by_key[WIRE_KINDS_N];

/* The shape that all arrays share. Copied in and out: the generated structs are of other types. */
struct wire_any_array {
    void *v;
    int32_t n;
};

static inline bool wire_field_in(const struct wire_field *f, int16_t version)
{
    return version >= f->min && version <= f->max;
}

/* Bytes of one element of an array in C; of a scalar type also of the field. */
static inline size_t wire_c_size(uint8_t type, const struct wire_struct *sub)
{
    switch ((enum wire_type)type) {
    case T_BOOL:
    case T_INT8:
        return 1;
    case T_INT16:
    case T_UINT16:
        return 2;
    case T_INT32:
    case T_UINT32:
        return 4;
    case T_INT64:
    case T_FLOAT64:
        return 8;
    case T_UUID:
        return sizeof(struct uuid);
    case T_STRING:
        return sizeof(struct str);
    case T_BYTES:
        return sizeof(struct bytes);
    case T_RECORDS:
        return sizeof(struct wire_records);
    case T_STRUCT:
        return sub->size;
    case T_POINTER:
        return sizeof(void *);
    case T_ARRAY:
        return sizeof(struct wire_any_array);
    }
    return 0;
}

#endif
