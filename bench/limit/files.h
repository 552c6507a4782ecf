/* All files: one per partition, as a broker has it, in one directory. */
#ifndef LIMIT_FILES_H
#define LIMIT_FILES_H

#include "limit/file.h"

#define FILES_MAX 100000 /* partitions */

struct files {
    const char *directory;
    bool sync; /* fdatasync before a turn's answers leave */
    struct file *v[FILES_MAX];
    struct file *dirty[FILES_MAX];
    size_t dirty_n;
};

/* Makes the directory. False with errno set. */
bool files_open(struct files *fs, const char *directory, bool sync);
/* That of a partition, empty when it is asked for first; NULL when there can be none. */
struct file *files_of(struct files *fs, int32_t partition);
/* file_append, and files_settle will look at it. */
bool files_append(struct files *fs, struct file *f, uint8_t *batch, size_t n);
/* What is staged of each is written, and synced when asked for. */
bool files_settle(struct files *fs);

#endif
