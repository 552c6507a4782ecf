/* The codec: one description per message (src/wire/schema, turned into structs and tables at build
 * time by gen.py), read by decode, encode, size, print and random generation (law 4).
 *
 * C shapes, generated into "wire/messages.h": message FetchRequest is `struct fetch_request`; its
 * array type FetchTopic is `struct fetch_request_fetch_topic`; fields in snake_case:
 *   bool, intN        bool, intN_t (uint16: uint16_t, float64: double)
 *   string, bytes     struct str, struct bytes, slices of the frame; n < 0 is null
 *   uuid              struct uuid
 *   []T               struct { T *v; int32_t n; }, n < 0 is null
 *   records           struct wire_records
 *   struct            by value; nullable struct: pointer, NULL is null (a default that is not null
 *                     points to a constant)
 * Tables: `wire_fetch_request` and `wire_fetch_request_fetch_topic` (struct wire_struct), and the
 * message `msg_fetch_request` (struct wire_message).
 *
 * A field that a version lacks decodes to its default. Encoding a non-default value into a version
 * that lacks the field is ERR_UNSUPPORTED unless the field is ignorable. */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/env.h"

struct wire_field; /* wire/table.h, for the codec itself */

struct wire_struct {
    const char *name;
    uint32_t size; /* of the C struct */
    uint16_t fields_n;
    uint8_t tags_n;     /* how many of the fields are tagged */
    int8_t least_first; /* version of least_bytes[0] */
    const struct wire_field *fields;
    const void *defaults;        /* a C struct to copy */
    const uint16_t *least_bytes; /* the smallest encoded size, by version */
};

/* Records of the metadata log have a kind of their own, found by their type; keys and values of
 * other logs, and what else is not a request, are data, found by name. */
enum wire_kind { WIRE_REQUEST, WIRE_RESPONSE, WIRE_HEADER, WIRE_RECORD, WIRE_DATA, WIRE_KINDS_N };

struct wire_message {
    const char *name; /* Kafka's: "FetchRequest" */
    enum wire_kind kind;
    int16_t api_key; /* or record type; -1 without */
    int16_t min_version, max_version;
    int16_t flexible_min; /* first flexible version; INT16_MAX if none */
    const struct wire_struct *body;
};

/* Record batches in a message. Decoding gives p; an answer may give slices instead of memory, which
 * are sent from their files (the sum of their n is n). n < 0 is null. */
struct wire_records {
    const uint8_t *p;
    int32_t n;
    struct slice *slices;
    int32_t slices_n;
};

/* Decodes all of in (ERR_TRAILING if bytes are left). Strings, bytes, records point into in; arrays
 * come from a. ERR_CORRUPT, ERR_TRUNCATED, ERR_NOMEM. No allocation exceeds what the bytes present
 * could hold: an array count is at most remaining bytes / minimum element size. */
MUST_USE enum err wire_decode(const struct wire_message *m, int16_t version, struct bytes in,
                              struct arena *a, void *out);
/* Decodes a prefix (a header) and says how long it was. */
MUST_USE enum err wire_decode_prefix(const struct wire_message *m, int16_t version, struct bytes in,
                                     struct arena *a, void *out, size_t *used);

/* Sets every field of a struct (and its embedded structs) to its default. */
void wire_default(const struct wire_struct *s, void *out);
/* n structs, at their defaults; NULL when out of memory. */
void *wire_array(const struct wire_struct *s, struct arena *a, size_t n);

/* Bytes of the encoded form, slices included. ERR_UNSUPPORTED, ERR_TOO_LARGE (over 2^31-1),
 * ERR_INVALID (null where null is not allowed). */
MUST_USE enum err wire_size(const struct wire_message *m, int16_t version, const void *msg,
                            size_t *out);
/* The whole in memory; slices are ERR_INVALID here. */
MUST_USE enum err wire_encode(const struct wire_message *m, int16_t version, const void *msg,
                              struct buf *out);

/* One piece of an outgoing frame: memory, or bytes of a file when s.f is not NULL. */
struct wire_part {
    const uint8_t *p; /* NULL for a slice */
    size_t n;
    struct slice s;
};

struct wire_parts {
    struct wire_part *v;
    size_t n;
    size_t bytes; /* sum */
};

/* A frame: int32 length, header (may have none: NULL), body. Memory comes from a; record sets of at
 * least by_ref_bytes and all slices become parts of their own, uncopied. */
MUST_USE enum err wire_encode_frame(const struct wire_message *header, int16_t header_version,
                                    const void *header_msg, const struct wire_message *body,
                                    int16_t version, const void *body_msg, size_t by_ref_bytes,
                                    struct arena *a, struct wire_parts *out);
/* The same of a body that is encoded already; it is copied. header may be NULL too. */
MUST_USE enum err wire_frame_body(const struct wire_message *header, int16_t header_version,
                                  const void *header_msg, struct bytes body, struct arena *a,
                                  struct wire_parts *out);

/* Kafka's JSON form of a message (field names camelCase, bytes base64, records left out, as its
 * JsonConverters write); for tests, logs of errors and tools. */
MUST_USE enum err wire_print(const struct wire_message *m, int16_t version, const void *msg,
                             struct buf *out);

/* A random message that is valid at version; next() gives random bits. For tests and fuzzers. */
MUST_USE enum err wire_random(const struct wire_message *m, int16_t version, struct arena *a,
                              uint64_t (*next)(void *), void *ctx, void *out);

/* Every request, response and metadata record by its key; NULL when there is none. */
const struct wire_message *wire_find(enum wire_kind kind, int16_t api_key);
/* Any message. For tools and tests: it looks through all of them. */
const struct wire_message *wire_find_name(const char *name);
extern const struct wire_message *const wire_messages[]; /* NULL-terminated */

/* Header versions of a request and of its response (ApiVersions' response: always 0). -1: no such
 * API. */
int16_t wire_request_header_version(int16_t api_key, int16_t version);
int16_t wire_response_header_version(int16_t api_key, int16_t version);

#endif
