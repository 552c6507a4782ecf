/* Metadata records as the metadata log holds them: frame version 1 (varint), record type (varint),
 * version (varint), body (Kafka's MetadataRecordSerde). */
#ifndef METADATA_RECORDS_H
#define METADATA_RECORDS_H

#include "base/buf.h"
#include "wire/codec.h"

/* A list of framed records for raft_append. */
struct record_list {
    struct buf bytes;
    uint32_t *ends; /* end of each in bytes */
    size_t n, cap;
};

void record_list_init(struct record_list *rl);
void record_list_close(struct record_list *rl);
/* Appends record (a struct of m) at version. */
MUST_USE enum err record_list_add(struct record_list *rl, const struct wire_message *m,
                                  int16_t version, const void *record);
struct bytes record_list_get(const struct record_list *rl, size_t i);

/* Opens a frame: type, version and the decoded struct (in a). ERR_UNSUPPORTED: unknown type or
 * version. */
MUST_USE enum err record_decode(struct bytes framed, struct arena *a, int16_t *type,
                                int16_t *version, void **record);

#endif
