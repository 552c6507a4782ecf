/* Pieces of files or stdin, each ended by a delimiter (the last may lack it), without waiting for
 * any. */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include "base/buf.h"

#define LINES_MAX_BYTES (256u << 20) /* one piece */

struct lines {
    char *const *files; /* "-": stdin; none: stdin alone */
    size_t files_n, at;
    int fd;           /* -1: the next file is not open */
    const char *name; /* of the file, for messages */
    struct bytes delimiter;
    struct buf buf;
    size_t begin, scanned; /* in buf: the piece at hand, how far it holds no delimiter */
    bool file_ended;
    uint64_t number; /* of the piece in its file, from 1 */
};

enum lines_state {
    LINES_ONE,
    LINES_WAIT, /* fd is to become readable */
    LINES_END,
    LINES_FAILED, /* message says why */
};

void lines_init(struct lines *l, char *const *files, size_t n, struct bytes delimiter);
void lines_close(struct lines *l);
/* out lives until the next call. message is of at least 300 bytes. */
enum lines_state lines_next(struct lines *l, struct str *out, char *message, size_t message_n);

#endif
