/* The reader is strict: one JSON object of the members that Kafka writes, in any order and spacing,
 * each once and in its range, and nothing behind it. A file that is nearly right holds somebody's
 * vote that is nearly right, so it is refused. Members that it does not know are passed over, to
 * tell a newer data_version from damage. */
#include "quorum/quorum_state.h"

#include <stdio.h>

#include "log/checkpoint.h"

enum { FILE_MAX = 64 << 10 };

enum member {
    CLUSTER_ID = 1,
    LEADER_ID = 2,
    LEADER_EPOCH = 4,
    VOTED_ID = 8,
    APPLIED_OFFSET = 16,
    CURRENT_VOTERS = 32,
    VOTED_DIRECTORY_ID = 64,
    DATA_VERSION = 128,
    UNKNOWN = 256,
};

/* ------------------------------------------------------------------ reading */

/* Sticky: after the first fault nothing is taken any more. */
struct scan {
    const char *p, *end;
    bool bad;
};

static void blanks(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static char peek(struct scan *s)
{
    blanks(s);
    return s->bad || s->p == s->end ? '\0' : *s->p;
}

static bool skip(struct scan *s, char c)
{
    if (peek(s) != c)
        return false;
    s->p++;
    return true;
}

static void expect(struct scan *s, char c)
{
    s->bad |= !skip(s, c);
}

/* No escapes: no text of ours needs one. */
static struct str text(struct scan *s)
{
    expect(s, '"');
    const char *from = s->p;
    while (s->p < s->end && *s->p != '"' && *s->p != '\\')
        s->p++;
    const struct str out = {from, (int32_t)(s->p - from)};
    expect(s, '"');
    return out;
}

static int64_t number(struct scan *s, int64_t min, int64_t max)
{
    int64_t v = 0;
    const bool negative = skip(s, '-');
    const char *from = s->p;
    if (s->bad)
        return 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9' && s->p - from < 18; s->p++)
        v = v * 10 + (*s->p - '0');
    if (negative)
        v = -v;
    s->bad |= s->p == from || (*from == '0' && s->p - from > 1) || v < min || v > max;
    return v;
}

static void current_voters(struct scan *s, struct quorum_state *out)
{
    expect(s, '[');
    if (skip(s, ']'))
        return;
    do {
        expect(s, '{');
        s->bad |= !str_eq(text(s), STR_LIT("voterId")) || out->voters_n == VOTERS_MAX;
        expect(s, ':');
        const int64_t id = number(s, 0, INT32_MAX);
        expect(s, '}');
        if (!s->bad)
            out->voters[out->voters_n++] = (int32_t)id;
    } while (skip(s, ','));
    expect(s, ']');
}

/* Any value: up to the comma or brace that ends the member. */
static void pass_over(struct scan *s)
{
    int depth = 0;
    while (!s->bad) {
        const char c = peek(s);
        if (depth == 0 && (c == ',' || c == '}'))
            return;
        if (c == '\0') {
            s->bad = true;
        } else if (c == '"') {
            (void)text(s);
        } else {
            depth += (c == '[' || c == '{') - (c == ']' || c == '}');
            s->p++;
        }
    }
}

static enum member member_of(struct str name)
{
    static const struct {
        struct str name;
        enum member member;
    } members[] = {
        {STR_LIT("clusterId"), CLUSTER_ID},
        {STR_LIT("leaderId"), LEADER_ID},
        {STR_LIT("leaderEpoch"), LEADER_EPOCH},
        {STR_LIT("votedId"), VOTED_ID},
        {STR_LIT("appliedOffset"), APPLIED_OFFSET},
        {STR_LIT("currentVoters"), CURRENT_VOTERS},
        {STR_LIT("votedDirectoryId"), VOTED_DIRECTORY_ID},
        {STR_LIT("data_version"), DATA_VERSION},
    };
    for (size_t i = 0; i < ARRAY_N(members); i++)
        if (str_eq(members[i].name, name))
            return members[i].member;
    return UNKNOWN;
}

static void value(struct scan *s, enum member m, struct quorum_state *out)
{
    switch (m) {
    case CLUSTER_ID:
        (void)text(s); /* Kafka leaves it empty */
        break;
    case LEADER_ID:
        out->leader_id = (int32_t)number(s, -1, INT32_MAX);
        break;
    case LEADER_EPOCH:
        out->epoch = (int32_t)number(s, 0, INT32_MAX);
        break;
    case VOTED_ID:
        out->voted_id = (int32_t)number(s, -1, INT32_MAX);
        break;
    case APPLIED_OFFSET:
        (void)number(s, INT64_MIN, INT64_MAX);
        break;
    case CURRENT_VOTERS:
        current_voters(s, out);
        break;
    case VOTED_DIRECTORY_ID:
        s->bad |= !uuid_parse(text(s), &out->voted_directory_id);
        break;
    case DATA_VERSION:
        out->data_version = (int16_t)number(s, 0, INT16_MAX);
        break;
    case UNKNOWN:
        pass_over(s);
        break;
    }
}

static enum err parse(const char *p, size_t n, struct quorum_state *out)
{
    struct scan s = {.p = p, .end = p + n};
    const unsigned always = LEADER_ID | LEADER_EPOCH | VOTED_ID | DATA_VERSION;
    unsigned seen = 0;
    expect(&s, '{');
    do {
        const enum member m = member_of(text(&s));
        expect(&s, ':');
        s.bad |= m != UNKNOWN && (seen & m) != 0;
        seen |= m;
        value(&s, m, out);
    } while (skip(&s, ','));
    expect(&s, '}');
    blanks(&s);
    if (s.bad || s.p != s.end || (seen & DATA_VERSION) == 0)
        return ERR_CORRUPT;
    if (out->data_version > 1)
        return ERR_UNSUPPORTED;
    const unsigned only_0 = CLUSTER_ID | APPLIED_OFFSET | CURRENT_VOTERS;
    const unsigned need = always | (out->data_version == 0 ? CURRENT_VOTERS : VOTED_DIRECTORY_ID);
    const unsigned may = need | (out->data_version == 0 ? only_0 : 0);
    return (seen & need) == need && (seen & ~may) == 0 ? ERR_NONE : ERR_CORRUPT;
}

enum err quorum_state_read(struct vfs *fs, const char *dir, struct quorum_state *out)
{
    char path[4300];
    struct buf b;
    *out = (struct quorum_state){.leader_id = -1, .voted_id = -1};
    snprintf(path, sizeof path, "%s/quorum-state", dir);
    buf_init(&b);
    enum err e = file_slurp(fs, path, FILE_MAX, &b);
    if (e == ERR_NONE)
        e = b.n == 0 ? ERR_CORRUPT : parse((char *)b.p, b.n, out);
    buf_close(&b);
    return e;
}

/* ------------------------------------------------------------------ writing */

static enum err print_voters(struct buf *b, const struct quorum_state *s)
{
    enum err e = ERR_NONE;
    for (int32_t i = 0; i < s->voters_n && e == ERR_NONE; i++)
        e = buf_printf(b, "%s{\"voterId\":%d}", i == 0 ? "" : ",", s->voters[i]);
    return e;
}

static enum err print(struct buf *b, const struct quorum_state *s)
{
    char directory[UUID_TEXT_N + 1];
    uuid_print(s->voted_directory_id, directory);
    if (s->data_version == 1)
        return buf_printf(b,
                          "{\"leaderId\":%d,\"leaderEpoch\":%d,\"votedId\":%d,"
                          "\"votedDirectoryId\":\"%s\",\"data_version\":1}",
                          s->leader_id, s->epoch, s->voted_id, directory);
    enum err e = buf_printf(b,
                            "{\"clusterId\":\"\",\"leaderId\":%d,\"leaderEpoch\":%d,\"votedId\":%d,"
                            "\"appliedOffset\":0,\"currentVoters\":[",
                            s->leader_id, s->epoch, s->voted_id);
    if (e == ERR_NONE)
        e = print_voters(b, s);
    return e == ERR_NONE ? buf_printf(b, "],\"data_version\":0}") : e;
}

enum err quorum_state_write(struct disk *d, const char *dir, const struct quorum_state *s)
{
    struct buf b;
    buf_init(&b);
    enum err e = print(&b, s);
    if (e == ERR_NONE)
        e = file_replace(d, dir, "quorum-state", b.p, b.n);
    buf_close(&b);
    return e;
}
