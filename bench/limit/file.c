#include "limit/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "wire/batch.h"

#define SMALL 4096 /* copied and gathered; larger ones are written from where they are */
#define STAGED_MAX 262144

bool file_open(struct file *f, const char *path)
{
    f->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (f->fd == -1)
        return false;
    f->staged = malloc(STAGED_MAX); /* what is never used is never there */
    return f->staged != NULL;
}

static bool write_all(struct file *f, const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(f->fd, p, n);
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

bool file_write_staged(struct file *f)
{
    size_t n = f->staged_n;
    f->staged_n = 0;
    return write_all(f, f->staged, n);
}

bool file_append(struct file *f, uint8_t *p, size_t n)
{
    struct batch b;
    if (batch_parse((struct bytes){p, (int32_t)n}, &b) != ERR_NONE || b.size_bytes != n ||
        !batch_crc_ok(&b))
        return false;
    batch_set_base_offset(p, f->next_offset);
    f->next_offset += b.records_n;
    f->batch_bytes = (int32_t)n;
    f->batch_records = b.records_n;
    if (f->staged_n + n > STAGED_MAX || n > SMALL) {
        if (!file_write_staged(f))
            return false;
    }
    if (n > SMALL)
        return write_all(f, p, n);
    memcpy(f->staged + f->staged_n, p, n);
    f->staged_n += n;
    return true;
}

int64_t file_position(const struct file *f, int64_t offset)
{
    return f->batch_records == 0 ? 0 : offset / f->batch_records * f->batch_bytes;
}
