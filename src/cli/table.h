/* Columns of text on stdout. What is printed comes from brokers: no control character of it gets
 * through. Headings are bold on a terminal, unless NO_COLOR is set. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/buf.h"

struct table {
    const char *const *heads; /* ">NAME": to the right */
    size_t columns_n;
    struct buf cells;
    struct buf ends; /* size_t each: where a cell ends */
    bool failed;     /* out of memory */
};

void table_init(struct table *t, const char *const *heads, size_t n);
void table_close(struct table *t);
/* The next cell. */
__attribute__((format(printf, 2, 3))) void table_add(struct table *t, const char *fmt, ...);
void table_add_str(struct table *t, struct str s); /* "-" for null */
/* Prints all rows, nothing when there are none; closes it. CLI_FAILED: told. */
int table_print(struct table *t);

/* One line, with control characters replaced. */
__attribute__((format(printf, 1, 2))) void print_line(const char *fmt, ...);
/* fd is a terminal that moves its cursor. */
bool terminal_moves(int fd);

#endif
