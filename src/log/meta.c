/* The small files that name things: partition.metadata, meta.properties, the clean-shutdown marker
 * (Kafka: PartitionMetadataFile, MetaProperties, CleanShutdownFileHandler). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/checkpoint.h"
#include "log/path.h"

#define SMALL_MAX_BYTES (64u << 10)
#define PARTITION_METADATA "partition.metadata"
#define META_PROPERTIES "meta.properties"
#define CLEAN_SHUTDOWN ".kafka_cleanshutdown"

static enum err slurp_named(struct vfs *fs, const char *dir, const char *name, struct buf *out)
{
    char path[LOG_PATH_MAX];
    buf_init(out);
    enum err err = path_join(path, dir, name);
    if (err == ERR_NONE)
        err = file_slurp(fs, path, SMALL_MAX_BYTES, out);
    if (err == ERR_NONE)
        err = buf_append(out, "", 1); /* a string from here on */
    return err == ERR_TOO_LARGE ? ERR_CORRUPT : err;
}

static const char *skip_space(const char *p)
{
    while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
        p++;
    return p;
}

static bool parse_digits(struct str s, int64_t *out)
{
    char text[24], *end;
    if (s.n < 1 || s.n >= (int32_t)sizeof text)
        return false;
    memcpy(text, s.p, (size_t)s.n);
    text[s.n] = '\0';
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
        return false;
    *out = strtoll(text, &end, 10);
    return *end == '\0';
}

/* ------------------------------------------------------------------ partition.metadata */

/* The value behind "key:" at *p, up to the end of the line; *p moves past the line. */
static bool metadata_line(const char **p, const char *key, struct str *value)
{
    size_t key_n = strlen(key);
    if (strncmp(*p, key, key_n) != 0 || (*p)[key_n] != ':')
        return false;
    const char *from = *p + key_n + 1;
    while (*from == ' ')
        from++;
    size_t n = strcspn(from, "\r\n");
    *value = (struct str){from, (int32_t)n};
    *p = from + n + strspn(from + n, "\r\n");
    return true;
}

enum err partition_metadata_read(struct vfs *fs, const char *dir, struct uuid *topic_id)
{
    struct buf text;
    enum err err = slurp_named(fs, dir, PARTITION_METADATA, &text);
    if (err == ERR_NONE) {
        const char *p = (const char *)text.p;
        struct str version, id;
        int64_t v;
        if (!metadata_line(&p, "version", &version) || !parse_digits(version, &v) || v != 0 ||
            !metadata_line(&p, "topic_id", &id) || !uuid_parse(id, topic_id) ||
            uuid_is_zero(*topic_id))
            err = ERR_CORRUPT;
    }
    buf_close(&text);
    return err;
}

enum err partition_metadata_begin(struct disk *d, const char *dir, struct uuid topic_id)
{
    char id[UUID_TEXT_N + 1], text[64];
    uuid_print(topic_id, id);
    int n = snprintf(text, sizeof text, "version: 0\ntopic_id: %s", id);
    return file_replace_begin(d, dir, PARTITION_METADATA, text, (size_t)n);
}

enum err partition_metadata_end(struct disk *d, const char *dir)
{
    return file_replace_end(d, dir, PARTITION_METADATA);
}

/* ------------------------------------------------------------------ meta.properties */

struct property {
    struct str key, value;
};

/* One "key=value" line of Java's properties; separators are '=', ':' or blanks. Continuation lines
 * and \u are not needed for what Kafka writes here; a backslash stands for the next character. */
static bool next_property(char **p, struct property *out)
{
    for (;;) {
        char *line = (char *)skip_space(*p);
        if (*line == '\0')
            return false;
        size_t n = strcspn(line, "\r\n");
        *p = line + n;
        if (*line == '#' || *line == '!')
            continue;
        size_t key_n = 0;
        while (key_n < n && strchr("=: \t", line[key_n]) == NULL)
            key_n++;
        size_t at = key_n;
        while (at < n && (line[at] == ' ' || line[at] == '\t'))
            at++;
        if (at < n && (line[at] == '=' || line[at] == ':'))
            at++;
        while (at < n && (line[at] == ' ' || line[at] == '\t'))
            at++;
        int32_t value_n = 0;
        for (size_t i = at; i < n; i++) {
            if (line[i] == '\\' && i + 1 < n)
                i++;
            line[at + (size_t)value_n++] = line[i];
        }
        out->key = (struct str){line, (int32_t)key_n};
        out->value = (struct str){line + at, value_n};
        return true;
    }
}

struct meta_found {
    bool version, cluster_id, node_id, directory_id;
};

/* False if the value is not one that the key can have. */
static bool take_property(const struct property *p, struct meta_properties *out,
                          struct meta_found *found)
{
    int64_t v;
    if (str_eq(p->key, STR_LIT("version"))) {
        found->version = true;
        return parse_digits(p->value, &v) && v == 1;
    }
    if (str_eq(p->key, STR_LIT("cluster.id"))) {
        if (p->value.n < 1 || p->value.n >= (int32_t)sizeof out->cluster_id)
            return false;
        memcpy(out->cluster_id, p->value.p, (size_t)p->value.n);
        out->cluster_id[p->value.n] = '\0';
        found->cluster_id = true;
    } else if (str_eq(p->key, STR_LIT("node.id"))) {
        if (!parse_digits(p->value, &v) || v < 0 || v > INT32_MAX)
            return false;
        out->node_id = (int32_t)v;
        found->node_id = true;
    } else if (str_eq(p->key, STR_LIT("directory.id"))) {
        found->directory_id = true;
        return uuid_parse(p->value, &out->directory_id) && !uuid_is_zero(out->directory_id);
    }
    return true;
}

static enum err read_properties(char *text, const char *dir, struct meta_properties *out,
                                char *message, size_t message_n)
{
    struct meta_found found = {false, false, false, false};
    struct property p;
    while (next_property(&text, &p)) {
        if (!take_property(&p, out, &found)) {
            snprintf(message, message_n, "%s/" META_PROPERTIES ": bad value of %.*s: '%.*s'", dir,
                     p.key.n, p.key.p, p.value.n, p.value.p);
            return ERR_CORRUPT;
        }
    }
    const char *missing = !found.version        ? "version"
                          : !found.cluster_id   ? "cluster.id"
                          : !found.node_id      ? "node.id"
                          : !found.directory_id ? "directory.id"
                                                : NULL;
    if (missing == NULL)
        return ERR_NONE;
    snprintf(message, message_n, "%s/" META_PROPERTIES ": %s is missing", dir, missing);
    return ERR_CORRUPT;
}

enum err meta_properties_read(struct vfs *fs, const char *dir, struct meta_properties *out,
                              char *message, size_t message_n)
{
    struct buf text;
    *out = (struct meta_properties){.node_id = -1};
    if (message_n > 0)
        message[0] = '\0';
    enum err err = slurp_named(fs, dir, META_PROPERTIES, &text);
    if (err == ERR_NONE)
        err = read_properties((char *)text.p, dir, out, message, message_n);
    else if (err != ERR_NOENT)
        snprintf(message, message_n, "%s/" META_PROPERTIES ": cannot be read", dir);
    buf_close(&text);
    return err;
}

enum err meta_properties_begin(struct disk *d, const char *dir, const struct meta_properties *m)
{
    char text[512], id[UUID_TEXT_N + 1];
    uuid_print(m->directory_id, id);
    int n = snprintf(text, sizeof text,
                     "version=1\ncluster.id=%s\nnode.id=%" PRId32 "\ndirectory.id=%s\n",
                     m->cluster_id, m->node_id, id);
    return file_replace_begin(d, dir, META_PROPERTIES, text, (size_t)n);
}

enum err meta_properties_end(struct disk *d, const char *dir)
{
    return file_replace_end(d, dir, META_PROPERTIES);
}

/* ------------------------------------------------------------------ clean shutdown */

/* The number behind "key": in a JSON object without nesting. */
static bool json_number(const char *text, const char *key, int64_t *out)
{
    const char *p = strstr(text, key);
    if (p == NULL)
        return false;
    p = skip_space(p + strlen(key));
    if (*p++ != ':')
        return false;
    p = skip_space(p);
    int32_t n = (int32_t)strspn(p, "-0123456789");
    return parse_digits((struct str){p, n}, out);
}

enum err clean_shutdown_read(struct vfs *fs, const char *dir, int64_t *broker_epoch)
{
    struct buf text;
    *broker_epoch = -1;
    enum err err = slurp_named(fs, dir, CLEAN_SHUTDOWN, &text);
    /* Kafka: a marker that cannot be understood is a marker without an epoch. */
    if (err == ERR_CORRUPT)
        err = ERR_NONE;
    else if (err == ERR_NONE && !json_number((const char *)text.p, "\"brokerEpoch\"", broker_epoch))
        *broker_epoch = -1;
    buf_close(&text);
    return err;
}

enum err clean_shutdown_write(struct disk *d, const char *dir, int64_t broker_epoch)
{
    char text[64];
    int n =
        snprintf(text, sizeof text, "{\"version\":0,\"brokerEpoch\":%" PRId64 "}", broker_epoch);
    return file_replace(d, dir, CLEAN_SHUTDOWN, text, (size_t)n);
}

enum err clean_shutdown_remove(struct disk *d, const char *dir)
{
    char path[LOG_PATH_MAX];
    enum err err = path_join(path, dir, CLEAN_SHUTDOWN);
    if (err == ERR_NONE)
        err = d->fs->ops->unlink(d->fs, path);
    if (err == ERR_NOENT)
        return ERR_NONE;
    return err == ERR_NONE ? d->sync_dir(d, dir) : err;
}
