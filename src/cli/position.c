#include "cli/position.h"

#include "cli/text.h"

static bool parse_time(const char *text, int64_t now_ms, int64_t *out_ms)
{
    int64_t ago_ms;
    if (text[0] != '-')
        return text_time(str_of(text), out_ms);
    if (!text_duration(str_of(text + 1), &ago_ms))
        return false;
    *out_ms = ago_ms < now_ms ? now_ms - ago_ms : 0;
    return true;
}

bool position_parse(const char *text, int64_t now_ms, struct position *out)
{
    *out = (struct position){0};
    if (strcmp(text, "earliest") == 0) {
        out->kind = POSITION_EARLIEST;
        return true;
    }
    if (strcmp(text, "latest") == 0) {
        out->kind = POSITION_LATEST;
        return true;
    }
    if (text[0] == '@') {
        out->kind = POSITION_TIME;
        return parse_time(text + 1, now_ms, &out->value);
    }
    const bool tail = text[0] == '-';
    out->kind = tail ? POSITION_TAIL : POSITION_OFFSET;
    return text_int(tail ? text + 1 : text, 0, INT64_MAX, &out->value);
}
