/* What users write on the command line and read on the terminal: numbers, KEY=VALUE, escapes,
 * times, base64. Pure functions of text. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include "base/buf.h"

/* All of text is a decimal number in [min, max]. */
bool text_int(const char *text, int64_t min, int64_t max, int64_t *out);
/* "KEY=VALUE": the key is not empty. */
bool text_pair(const char *text, struct str *key, struct str *value);
/* Appends text with \n \t \r \0 \\ and \xHH replaced. ERR_INVALID: another escape, or half of one;
 * ERR_NOMEM. */
MUST_USE enum err text_unescape(const char *text, struct buf *out);
/* Appends s for a terminal: control characters and what is not UTF-8 become '?'. ERR_NOMEM. */
MUST_USE enum err text_clean(struct str s, struct buf *out);
bool text_is_utf8(const void *p, size_t n);
/* Characters of valid UTF-8. */
size_t text_width(const char *p, size_t n);

/* Milliseconds since 1970 of an ISO 8601 date ("2026-01-31") or time ("2026-01-31T10:20:30.5Z",
 * "...+02:00"; without an offset UTC; a blank for the T), or of a count of them. */
bool text_time(struct str text, int64_t *out_ms);
/* "2026-01-31T10:20:30.500Z"; a plain number beyond the year 9999 and before 0. */
#define TEXT_TIME_BYTES 32
void text_print_time(int64_t ms, char out[TEXT_TIME_BYTES]);
/* "90s", "15m", "2h", "7d", "500ms" as milliseconds. */
bool text_duration(struct str text, int64_t *out_ms);

/* Appends RFC 4648's base64, with padding. ERR_NOMEM. */
MUST_USE enum err text_base64(struct bytes in, struct buf *out);
/* Appends what text encodes. ERR_INVALID: not base64 with padding; ERR_NOMEM. */
MUST_USE enum err text_from_base64(struct str text, struct buf *out);

#endif
