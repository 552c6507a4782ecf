/* The inside of the producer: batches (producer_batches.c), requests and answers (producer.c). */
#ifndef CLI_PRODUCER_IMPL_H
#define CLI_PRODUCER_IMPL_H

#include "cli/producer.h"

/* The oldest batch, closed; NULL: there is none. CLI_FAILED in *status: told. */
struct producer_batch *producer_first(struct producer *p, struct producer_partition *part,
                                      int *status);
/* Its first batch is written, or given up. */
void producer_drop_first(struct producer *p, struct producer_partition *part);
/* Halves the first batch, which is too large for the broker. False: it holds one record only.
 * CLI_FAILED in *status: told. */
bool producer_split_first(struct producer *p, struct producer_partition *part, int *status);

#endif
