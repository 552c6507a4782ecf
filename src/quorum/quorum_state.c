/* The reader takes what the writer and Kafka's JSON writer give: one object of numbers, strings and
 * one array of objects. It looks for each key by name, so order and blanks do not matter. */
#include "quorum/quorum_state.h"

#include <stdio.h>

#include "log/checkpoint.h"

enum { FILE_MAX = 64 << 10 };

/* Behind "name": and blanks; NULL when the key is not there. */
static const char *find_value(const char *text, const char *end, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = text; p + n + 3 <= end; p++) {
        if (*p != '"' || memcmp(p + 1, name, n) != 0 || p[n + 1] != '"')
            continue;
        p += n + 2;
        while (p < end && (*p == ' ' || *p == ':'))
            p++;
        return p < end ? p : NULL;
    }
    return NULL;
}

static bool read_number(const char *p, const char *end, int64_t *out)
{
    const bool negative = p != NULL && p < end && *p == '-';
    int64_t v = 0;
    const char *q = p + negative;
    if (p == NULL || q >= end || *q < '0' || *q > '9')
        return false;
    for (; q < end && *q >= '0' && *q <= '9'; q++) {
        v = v * 10 + (*q - '0');
        if (v > INT32_MAX)
            return false;
    }
    *out = negative ? -v : v;
    return true;
}

static bool read_key(const char *text, const char *end, const char *name, int32_t *out)
{
    int64_t v;
    if (!read_number(find_value(text, end, name), end, &v))
        return false;
    *out = (int32_t)v;
    return true;
}

static enum err read_voters(const char *text, const char *end, struct quorum_state *out)
{
    const char *p = find_value(text, end, "currentVoters");
    if (p == NULL || *p != '[')
        return ERR_CORRUPT;
    const char *close = memchr(p, ']', (size_t)(end - p));
    if (close == NULL)
        return ERR_CORRUPT;
    while ((p = find_value(p, close, "voterId")) != NULL) {
        int64_t id;
        if (out->voters_n == VOTERS_MAX || !read_number(p, close, &id))
            return ERR_CORRUPT;
        out->voters[out->voters_n++] = (int32_t)id;
    }
    return ERR_NONE;
}

static enum err read_directory(const char *text, const char *end, struct quorum_state *out)
{
    const char *p = find_value(text, end, "votedDirectoryId");
    if (p == NULL || *p != '"' || end - p < UUID_TEXT_N + 2 ||
        !uuid_parse((struct str){p + 1, UUID_TEXT_N}, &out->voted_directory_id))
        return ERR_CORRUPT;
    return ERR_NONE;
}

static enum err parse(const char *text, const char *end, struct quorum_state *out)
{
    int32_t version;
    if (!read_key(text, end, "data_version", &version) ||
        !read_key(text, end, "leaderId", &out->leader_id) ||
        !read_key(text, end, "leaderEpoch", &out->epoch) ||
        !read_key(text, end, "votedId", &out->voted_id) || out->epoch < 0)
        return ERR_CORRUPT;
    if (version != 0 && version != 1)
        return ERR_UNSUPPORTED;
    out->data_version = (int16_t)version;
    return version == 0 ? read_voters(text, end, out) : read_directory(text, end, out);
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
        e = b.n == 0 ? ERR_CORRUPT : parse((char *)b.p, (char *)b.p + b.n, out);
    buf_close(&b);
    return e;
}

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
