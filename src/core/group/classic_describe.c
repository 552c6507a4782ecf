/* What others read of a group: DescribeGroups, and the topics that its members subscribe to. */
#include "core/group/classic_impl.h"

#include <stdlib.h>

#include "base/endian.h"

/* ------------------------------------------------------------------ DescribeGroups */

static bool describe_member(const struct classic_member *m, struct arena *a,
                            struct describe_groups_response_described_group_member *out)
{
    const struct classic *g = m->group;
    struct bytes metadata = {NULL, 0};
    if (g->state == CLASSIC_STABLE)
        metadata = classic_protocols_metadata(m->protocols, classic_protocol_name(g));
    return classic_show(a, m->id, &out->member_id) &&
           classic_show(a, m->instance, &out->group_instance_id) &&
           classic_show(a, m->client_id, &out->client_id) &&
           classic_show(a, m->client_host, &out->client_host) &&
           classic_show_bytes(a, metadata, &out->member_metadata) &&
           classic_show_bytes(a, m->assignment, &out->member_assignment);
}

enum err classic_describe(const struct classic *g, struct arena *a,
                          struct describe_groups_response_described_group *out)
{
    struct list *l, *tmp;
    const struct str type = g->protocol_type.n < 0 ? STR_LIT("") : g->protocol_type;
    const struct str protocol = g->state == CLASSIC_STABLE ? classic_protocol_name(g) : STR_LIT("");
    out->group_state = str_of(classic_state_name(g->state));
    out->members.n = 0;
    out->members.v =
        wire_array(&wire_describe_groups_response_described_group_member, a, g->members_n);
    if (out->members.v == NULL || !classic_show(a, type, &out->protocol_type) ||
        !classic_show(a, protocol, &out->protocol_data))
        return ERR_NOMEM;
    LIST_EACH(l, tmp, &g->members)
    {
        if (!describe_member(LIST_ENTRY(l, struct classic_member, link), a,
                             &out->members.v[out->members.n]))
            return ERR_NOMEM;
        out->members.n++;
    }
    return ERR_NONE;
}

/* ------------------------------------------------------------------ subscriptions */

/* A subscription is the consumer protocol's version and, at first in every version, its topics. */
static enum err parse(struct bytes metadata, struct arena *a,
                      struct consumer_protocol_subscription *out)
{
    size_t used;
    if (metadata.n < 2 || (int16_t)be16(metadata.p) < 0)
        return ERR_CORRUPT;
    return wire_decode_prefix(&msg_consumer_protocol_subscription, 0,
                              (struct bytes){metadata.p + 2, metadata.n - 2}, a, out, &used);
}

static enum err add_topics(const struct classic_member *m, struct arena *a, struct buf *topics,
                           bool *all)
{
    struct consumer_protocol_subscription sub;
    enum err e =
        parse(classic_protocols_metadata(m->protocols, classic_protocol_name(m->group)), a, &sub);
    if (e == ERR_NONE)
        return buf_append(topics, sub.topics.v, (size_t)sub.topics.n * sizeof *sub.topics.v);
    if (e == ERR_NOMEM)
        return e;
    *all = true;
    return ERR_NONE;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static enum err sort_once(struct buf *topics, struct arena *a, struct classic_topics *out)
{
    const size_t n = topics->n / sizeof(struct str);
    out->v = arena_array(a, n, sizeof *out->v);
    if (out->v == NULL)
        return ERR_NOMEM;
    if (n > 0) {
        memcpy(out->v, topics->p, topics->n);
        qsort(out->v, n, sizeof *out->v, by_name);
    }
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !str_eq(out->v[i], out->v[out->n - 1]))
            out->v[out->n++] = out->v[i];
    return ERR_NONE;
}

enum err classic_subscriptions(const struct classic *g, struct arena *a, struct classic_topics *out)
{
    struct list *l, *tmp;
    struct buf topics;
    enum err e = ERR_NONE;
    *out = (struct classic_topics){.all = false};
    if (!str_eq(g->protocol_type, STR_LIT("consumer")))
        return ERR_NONE;
    buf_init(&topics);
    LIST_EACH(l, tmp, &g->members)
    {
        if (e == ERR_NONE && !out->all)
            e = add_topics(LIST_ENTRY(l, struct classic_member, link), a, &topics, &out->all);
    }
    if (e == ERR_NONE && !out->all)
        e = sort_once(&topics, a, out);
    buf_close(&topics);
    return e;
}

bool classic_topics_has(const struct classic_topics *t, struct str topic)
{
    return t->all || (t->n > 0 && bsearch(&topic, t->v, t->n, sizeof *t->v, by_name) != NULL);
}
