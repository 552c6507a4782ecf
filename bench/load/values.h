/* The record batches that are produced. */
#ifndef LOAD_VALUES_H
#define LOAD_VALUES_H

#include "base/arena.h"
#include "load/options.h"

/* A batch of o->records values of o->record_bytes bytes, always the same. They are text that lz4
 * makes a good third of. BYTES_NULL when it cannot be built. */
struct bytes values_batch(const struct options *o, struct arena *a);

#endif
