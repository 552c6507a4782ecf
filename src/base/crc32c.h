/* CRC-32C (Castagnoli), as in record batches and snapshots: hardware in three streams where the
 * processor has it, tables elsewhere. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include "base/types.h"

/* crc is 0 at first, then the value returned before. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);
/* The same by tables, on every processor. */
uint32_t crc32c_portable(uint32_t crc, const void *p, size_t n);

#endif
