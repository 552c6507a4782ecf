/* The file of one partition. Small batches of a turn leave by one write. */
#ifndef LIMIT_FILE_H
#define LIMIT_FILE_H

#include "base/types.h"

struct file {
    int fd;
    bool dirty; /* in files.dirty: something was staged or written in this turn */
    int64_t next_offset;
    int32_t batch_bytes, batch_records; /* of the last batch */
    size_t staged_n;
    uint8_t *staged;
};

/* False with errno set. */
bool file_open(struct file *f, const char *path);
/* Checks the CRC, gives the batch its offset, writes or stages it. False when it is no batch, or
 * cannot be written. */
bool file_append(struct file *f, uint8_t *batch, size_t n);
/* All that is staged is written. */
bool file_write_staged(struct file *f);
/* Where the batch with this offset is, when all are of the last one's size. */
int64_t file_position(const struct file *f, int64_t offset);

#endif
