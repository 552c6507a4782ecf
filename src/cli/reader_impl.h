/* The inside of the reader: which fetches there are (reader.c), what is in them (reader_records.c).
 */
#ifndef CLI_READER_IMPL_H
#define CLI_READER_IMPL_H

#include "cli/reader.h"

/* Moves fetch_offset behind the whole batches of p, which came for reading. False, told: they are
 * not what was asked for. */
bool reader_advance(const struct reader *r, struct reading *reading,
                    const struct fetch_response_partition_data *p);
/* Gives out the records of p. CLI_FAILED: told. */
int reader_give(struct reader *r, struct reading *reading,
                const struct fetch_response_partition_data *p);

#endif
