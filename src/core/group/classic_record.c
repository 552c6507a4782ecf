/* The group's record (type 2 of __consumer_offsets), written and read. It holds the protocol that
 * was chosen and each member's metadata for it: of the others nothing is known after a restart. */
#include "core/group/classic_impl.h"

/* ------------------------------------------------------------------ written */

static void record_member(const struct classic *g, const struct classic_member *m,
                          struct group_metadata_value_member_metadata *out)
{
    out->member_id = m->id;
    out->group_instance_id = m->instance;
    out->client_id = m->client_id;
    out->client_host = m->client_host;
    out->rebalance_timeout = m->rebalance_timeout_ms;
    out->session_timeout = m->session_timeout_ms;
    out->subscription = classic_protocols_metadata(m->protocols, classic_protocol_name(g));
    out->assignment = g->state == CLASSIC_COMPLETING ? m->next_assignment : m->assignment;
}

enum err classic_record(const struct classic *g, struct arena *a, struct group_metadata_value *out)
{
    struct list *l, *tmp;
    wire_default(&wire_group_metadata_value, out);
    out->protocol_type = g->protocol_type.n < 0 ? STR_LIT("") : g->protocol_type;
    out->generation = g->generation;
    out->protocol = classic_protocol_name(g);
    out->leader = g->leader == NULL ? STR_NULL : g->leader->id;
    out->current_state_timestamp = g->since_ms;
    out->members.v = wire_array(&wire_group_metadata_value_member_metadata, a, g->members_n);
    if (out->members.v == NULL)
        return ERR_NOMEM;
    LIST_EACH(l, tmp, &g->members)
    {
        record_member(g, LIST_ENTRY(l, struct classic_member, link),
                      &out->members.v[out->members.n++]);
    }
    return ERR_NONE;
}

/* ------------------------------------------------------------------ read */

static bool contradicts(const struct classic *g, const struct group_metadata_value *v,
                        const struct group_metadata_value_member_metadata *in)
{
    return v->protocol.n < 0 || classic_member(g, in->member_id) != NULL ||
           classic_static_member(g, in->group_instance_id) != NULL;
}

static enum err load_member(struct classic *g, const struct group_metadata_value *v,
                            const struct group_metadata_value_member_metadata *in)
{
    const struct join_group_request_join_group_request_protocol protocol = {v->protocol,
                                                                            in->subscription};
    struct classic_member *m;
    if (contradicts(g, v, in))
        return ERR_CORRUPT;
    const struct classic_newcomer newcomer = {
        .id = in->member_id,
        .instance = in->group_instance_id,
        .client_id = in->client_id,
        .client_host = in->client_host,
        .protocol_type = v->protocol_type,
        .session_timeout_ms = in->session_timeout,
        .rebalance_timeout_ms =
            in->rebalance_timeout == -1 ? in->session_timeout : in->rebalance_timeout,
        .protocols = classic_protocols_new(g, &protocol, 1),
    };
    if (newcomer.protocols == NULL)
        return ERR_NOMEM;
    enum err e = classic_member_add(g, &newcomer, &m);
    if (e != ERR_NONE) {
        classic_protocols_free(g, newcomer.protocols);
        return e;
    }
    if (v->leader.n >= 0 && str_eq(m->id, v->leader))
        g->leader = m;
    return classic_copy_bytes(g, in->assignment, &m->assignment);
}

static enum err load_names(struct classic *g, const struct group_metadata_value *v)
{
    enum err e = ERR_NONE;
    if (v->protocol_type.n > 0 && g->protocol_type.n < 0)
        e = classic_copy(g, v->protocol_type, &g->protocol_type);
    if (e == ERR_NONE && v->protocol.n >= 0)
        e = classic_choose_named(g, v->protocol);
    return e;
}

enum err classic_load(struct classic *g, const struct group_metadata_value *v)
{
    enum err e = ERR_NONE;
    classic_clear(g);
    g->generation = v->generation;
    g->since_ms = v->current_state_timestamp;
    g->state = v->members.n > 0 ? CLASSIC_STABLE : CLASSIC_EMPTY;
    for (int32_t i = 0; i < v->members.n && e == ERR_NONE; i++)
        e = load_member(g, v, &v->members.v[i]);
    return e == ERR_NONE ? load_names(g, v) : e;
}

void classic_loaded(struct classic *g, struct now now)
{
    struct list *l, *tmp;
    const size_t max = (size_t)config_int(g->args.config, "group.max.size");
    g->now = now;
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        classic_session_reset(m, m->session_timeout_ms);
    }
    if (g->members_n > max)
        classic_rebalance(g, "group is larger than group.max.size");
}
