#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/text.h"

void table_init(struct table *t, const char *const *heads, size_t n)
{
    *t = (struct table){.heads = heads, .columns_n = n};
    buf_init(&t->cells);
    buf_init(&t->ends);
}

void table_close(struct table *t)
{
    buf_close(&t->cells);
    buf_close(&t->ends);
}

void table_add_str(struct table *t, struct str s)
{
    enum err e = text_clean(s.n < 0 ? STR_LIT("-") : s, &t->cells);
    if (e == ERR_NONE)
        e = buf_append(&t->ends, &t->cells.n, sizeof t->cells.n);
    t->failed |= e != ERR_NONE;
}

void table_add(struct table *t, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    const int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0) {
        t->failed = true;
        return;
    }
    table_add_str(t, (struct str){text, n});
    free(text);
}

bool terminal_moves(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

static bool bold_heads(void)
{
    const char *no_color = getenv("NO_COLOR");
    return terminal_moves(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0');
}

/* ------------------------------------------------------------------ printing */

static struct str cell(const struct table *t, size_t i)
{
    const size_t *ends = (const size_t *)(const void *)t->ends.p;
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return (struct str){(const char *)t->cells.p + begin, (int32_t)(ends[i] - begin)};
}

static const char *head(const struct table *t, size_t column)
{
    const char *name = t->heads[column];
    return name[0] == '>' ? name + 1 : name;
}

static size_t width(const struct table *t, size_t column, size_t cells_n)
{
    size_t max = strlen(head(t, column));
    for (size_t i = column; i < cells_n; i += t->columns_n) {
        const struct str s = cell(t, i);
        const size_t w = text_width(s.p, (size_t)s.n);
        max = w > max ? w : max;
    }
    return max;
}

static void append_spaces(struct table *t, struct buf *line, size_t n)
{
    for (; n > 0; n--)
        t->failed |= buf_append(line, " ", 1) != ERR_NONE;
}

static void append_cell(struct table *t, struct buf *line, size_t column, struct str s, size_t w)
{
    const size_t pad = w - text_width(s.p, (size_t)s.n);
    const bool right = t->heads[column][0] == '>';
    append_spaces(t, line, (column > 0 ? 2 : 0) + (right ? pad : 0));
    t->failed |= buf_append(line, s.p, (size_t)s.n) != ERR_NONE;
    append_spaces(t, line, right ? 0 : pad);
}

/* Without the spaces at its end. */
static void print_row(struct buf *line, const char *before, const char *after)
{
    while (line->n > 0 && line->p[line->n - 1] == ' ')
        line->n--;
    printf("%s%.*s%s\n", before, (int)line->n, (const char *)line->p, after);
    line->n = 0;
}

static void print_all(struct table *t, const size_t *widths, struct buf *line)
{
    const size_t cells_n = t->ends.n / sizeof(size_t);
    const bool bold = bold_heads();
    for (size_t i = 0; i < t->columns_n; i++)
        append_cell(t, line, i, str_of(head(t, i)), widths[i]);
    print_row(line, bold ? "\033[1m" : "", bold ? "\033[0m" : "");
    for (size_t i = 0; i < cells_n && !t->failed; i++) {
        const size_t column = i % t->columns_n;
        append_cell(t, line, column, cell(t, i), widths[column]);
        if (column + 1 == t->columns_n)
            print_row(line, "", "");
    }
}

static void measure_and_print(struct table *t)
{
    size_t *widths = calloc(t->columns_n, sizeof *widths);
    struct buf line;
    if (widths == NULL) {
        t->failed = true;
        return;
    }
    buf_init(&line);
    for (size_t i = 0; i < t->columns_n; i++)
        widths[i] = width(t, i, t->ends.n / sizeof(size_t));
    print_all(t, widths, &line);
    buf_close(&line);
    free(widths);
}

int table_print(struct table *t)
{
    if (!t->failed && t->ends.n > 0)
        measure_and_print(t);
    const bool failed = t->failed;
    table_close(t);
    return failed ? client_out_of_memory() : cli_printed();
}

void print_line(const char *fmt, ...)
{
    char line[1024];
    struct buf clean;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    buf_init(&clean);
    if (text_clean(str_of(line), &clean) == ERR_NONE)
        printf("%.*s\n", (int)clean.n, (const char *)clean.p);
    buf_close(&clean);
}
