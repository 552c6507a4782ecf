/* Subscriptions and assignments begin with an int16 version; each newer one has all fields of the
 * older ones first, so that an unknown version is read as the newest that is known. */
#include "cli/member_assign.h"

#include <stdlib.h>

#include "base/endian.h"
#include "wire/error.h"

struct assignee {
    struct str id;
    struct str *topics; /* sorted */
    size_t topics_n;
    struct consumer_protocol_assignment assignment;
};

/* ------------------------------------------------------------------ the two formats */

static struct bytes encode(struct arena *a, const struct wire_message *m, const void *msg)
{
    const uint8_t version[2] = {0, 0};
    struct buf b;
    uint8_t *copy = NULL;
    buf_init(&b);
    if (buf_append(&b, version, sizeof version) == ERR_NONE &&
        wire_encode(m, 0, msg, &b) == ERR_NONE)
        copy = arena_memdup(a, b.p, b.n);
    const struct bytes out = {copy, (int32_t)b.n};
    buf_close(&b);
    return out;
}

static bool decode(struct arena *a, const struct wire_message *m, struct bytes b, void *out)
{
    if (b.n < 2)
        return false;
    int16_t version = (int16_t)be16(b.p);
    if (version > m->max_version)
        version = m->max_version;
    size_t used;
    return version >= m->min_version &&
           wire_decode_prefix(m, version, (struct bytes){b.p + 2, b.n - 2}, a, out, &used) ==
               ERR_NONE;
}

struct bytes member_subscription(struct arena *a, struct str topic)
{
    struct consumer_protocol_subscription s;
    wire_default(&wire_consumer_protocol_subscription, &s);
    s.topics.v = &topic;
    s.topics.n = 1;
    return encode(a, &msg_consumer_protocol_subscription, &s);
}

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static size_t each_once(int32_t *v, size_t n)
{
    size_t kept = 0;
    if (n > 1)
        qsort(v, n, sizeof *v, by_number);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || v[kept - 1] != v[i])
            v[kept++] = v[i];
    return kept;
}

int32_t *member_assigned(struct arena *a, struct bytes assignment, struct str topic, size_t *n)
{
    struct consumer_protocol_assignment d;
    size_t all = 0;
    *n = 0;
    if (!decode(a, &msg_consumer_protocol_assignment, assignment, &d))
        return arena_array(a, 0, sizeof(int32_t));
    for (int32_t t = 0; t < d.assigned_partitions.n; t++)
        all += (size_t)(d.assigned_partitions.v[t].partitions.n < 0
                            ? 0
                            : d.assigned_partitions.v[t].partitions.n);
    int32_t *out = arena_array(a, all, sizeof *out);
    for (int32_t t = 0; out != NULL && t < d.assigned_partitions.n; t++)
        for (int32_t p = 0; p < d.assigned_partitions.v[t].partitions.n; p++)
            if (str_eq(d.assigned_partitions.v[t].topic, topic) &&
                d.assigned_partitions.v[t].partitions.v[p] >= 0)
                out[(*n)++] = d.assigned_partitions.v[t].partitions.v[p];
    if (out != NULL)
        *n = each_once(out, *n);
    return out;
}

/* ------------------------------------------------------------------ members */

static int by_id(const void *a, const void *b)
{
    return str_cmp(((const struct assignee *)a)->id, ((const struct assignee *)b)->id);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static bool subscribes(const struct assignee *m, struct str topic)
{
    return m->topics_n > 0 &&
           bsearch(&topic, m->topics, m->topics_n, sizeof *m->topics, by_name) != NULL;
}

static struct assignee *take_members(struct arena *a, const struct join_group_response *joined,
                                     size_t *n)
{
    *n = joined->members.n < 0 ? 0 : (size_t)joined->members.n;
    struct assignee *v = arena_array(a, *n, sizeof *v);
    for (size_t i = 0; v != NULL && i < *n; i++) {
        struct consumer_protocol_subscription s;
        v[i].id = joined->members.v[i].member_id;
        wire_default(&wire_consumer_protocol_assignment, &v[i].assignment);
        if (!decode(a, &msg_consumer_protocol_subscription, joined->members.v[i].metadata, &s) ||
            s.topics.n <= 0)
            continue;
        v[i].topics = s.topics.v;
        v[i].topics_n = (size_t)s.topics.n;
        qsort(v[i].topics, v[i].topics_n, sizeof *v[i].topics, by_name);
    }
    if (v != NULL && *n > 1)
        qsort(v, *n, sizeof *v, by_id);
    return v;
}

/* Every topic that somebody wants, once. */
static struct str *all_topics(struct arena *a, const struct assignee *v, size_t n, size_t *topics_n)
{
    size_t all = 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        all += v[i].topics_n;
    struct str *topics = arena_array(a, all, sizeof *topics);
    *topics_n = 0;
    if (topics == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < v[i].topics_n; t++)
            topics[(*topics_n)++] = v[i].topics[t];
    if (*topics_n > 1)
        qsort(topics, *topics_n, sizeof *topics, by_name);
    for (size_t i = 0; i < *topics_n; i++)
        if (kept == 0 || !str_eq(topics[kept - 1], topics[i]))
            topics[kept++] = topics[i];
    *topics_n = kept;
    return topics;
}

/* ------------------------------------------------------------------ partitions */

static bool give(struct arena *a, struct assignee *m, size_t topics_n, const struct topic *t,
                 int32_t first, int32_t n)
{
    if (m->assignment.assigned_partitions.v == NULL)
        m->assignment.assigned_partitions.v =
            arena_array(a, topics_n, sizeof *m->assignment.assigned_partitions.v);
    int32_t *partitions = arena_array(a, (size_t)n, sizeof *partitions);
    if (m->assignment.assigned_partitions.v == NULL || partitions == NULL)
        return false;
    for (int32_t i = 0; i < n; i++)
        partitions[i] = t->partitions[first + i].index;
    struct consumer_protocol_assignment_topic_partition *to =
        &m->assignment.assigned_partitions.v[m->assignment.assigned_partitions.n++];
    to->topic = t->name;
    to->partitions.v = partitions;
    to->partitions.n = n;
    return true;
}

/* Neighbours to each that subscribes, one more to the first of them. */
static bool give_topic(struct arena *a, struct assignee *v, size_t n, size_t topics_n,
                       const struct topic *t)
{
    int32_t takers = 0, at = 0, i = 0;
    for (size_t k = 0; k < n; k++)
        takers += subscribes(&v[k], t->name);
    if (takers == 0)
        return true;
    for (size_t k = 0; k < n; k++) {
        if (!subscribes(&v[k], t->name))
            continue;
        const int32_t share = t->partitions_n / takers + (i < t->partitions_n % takers);
        if (share > 0 && !give(a, &v[k], topics_n, t, at, share))
            return false;
        at += share;
        i++;
    }
    return true;
}

static bool write_assignments(struct arena *a, struct assignee *v, size_t n,
                              struct sync_group_request *request)
{
    request->assignments.v = arena_array(a, n, sizeof *request->assignments.v);
    request->assignments.n = (int32_t)n;
    if (request->assignments.v == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        request->assignments.v[i].member_id = v[i].id;
        request->assignments.v[i].assignment =
            encode(a, &msg_consumer_protocol_assignment, &v[i].assignment);
        if (request->assignments.v[i].assignment.p == NULL)
            return false;
    }
    return true;
}

int member_assign(struct client *c, struct arena *a, const struct join_group_response *joined,
                  struct str topic, struct sync_group_request *request, int32_t *partitions)
{
    struct metadata m;
    size_t n, topics_n;
    struct assignee *v = take_members(a, joined, &n);
    struct str *topics = v == NULL ? NULL : all_topics(a, v, n, &topics_n);
    if (topics == NULL)
        return client_out_of_memory();
    const struct metadata_args args = {.scope = METADATA_TOPICS, .topics = topics, .n = topics_n};
    const int status = client_metadata(c, &args, &m);
    if (status != CLI_OK)
        return status;
    bool ok = true;
    for (size_t i = 0; i < m.topics_n && ok; i++)
        if (m.topics[i].error == K_NONE)
            ok = give_topic(a, v, n, m.topics_n, &m.topics[i]);
    ok = ok && write_assignments(a, v, n, request);
    const struct topic *own = metadata_topic(&m, topic);
    *partitions = own == NULL ? 0 : own->partitions_n;
    metadata_close(&m);
    return ok ? CLI_OK : client_out_of_memory();
}
