/* From the metadata log to the image: takes committed batches and snapshots in order, applies their
 * records to the image and tells what changed (Kafka's MetadataLoader, quorum.md 6).
 *
 * Each delivery is one publication. Metadata transactions (KIP-868): BeginTransaction first
 * publishes what came before it; its records are held back until EndTransaction applies them, or
 * AbortTransaction drops them and publishes an empty delta. */
#ifndef METADATA_LOADER_H
#define METADATA_LOADER_H

#include "core/metadata/image.h"
#include "wire/batch.h"

struct loader;

/* The image holds what d says. Called from inside loader_snapshot and loader_committed. */
typedef void (*loader_publish_fn)(void *ctx, const struct image_delta *d);

/* img: initialised, stays the owner's; nobody else changes it. */
MUST_USE enum err loader_new(struct image *img, loader_publish_fn publish, void *ctx,
                             struct loader **out);
void loader_free(struct loader *l); /* NULL is fine */

/* The state starts over from a snapshot before `offset`: its record batches, control batches
 * included. Errors as below, and after one the image must not be used: the node stops. */
MUST_USE enum err loader_snapshot(struct loader *l, int64_t offset, int32_t epoch,
                                  struct bytes batches);
/* One committed batch. Control batches only move the image's offset. ERR_NOMEM; ERR_CORRUPT: a
 * record that is none, names what is not there, or breaks the rules of transactions;
 * ERR_UNSUPPORTED: a record or feature level of a later Kafka than ours. */
MUST_USE enum err loader_committed(struct loader *l, const struct batch *b);

#endif
