/* Static members that come back without their id (KIP-345): the instance gets a new id and keeps
 * its assignment and its leadership; whoever still uses the old id is fenced. In a Stable group
 * whose vote does not change this is no rebalance, but the new id is stored before it is told. When
 * that fails the old id is taken back: all that it needs is kept until then. */
#include "core/group/classic_impl.h"

#include "base/check.h"

/* Leaders are told this in Stable from here on (KIP-814); older ones are given the id of nobody. */
enum { VERSION_SKIP_ASSIGNMENT = 9 };

void classic_replace_drop(struct classic *g, struct classic_store *s)
{
    if (s->member == NULL)
        return;
    classic_unindex(g, &g->by_id, s->old_id);
    classic_drop(g, &s->old_id);
    classic_support_forget(g, s->old_protocols);
    classic_protocols_free(g, s->old_protocols);
    s->member = NULL;
}

void classic_replace_forget(struct classic_member *m)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &m->group->stores)
    {
        struct classic_store *s = LIST_ENTRY(l, struct classic_store, link);
        if (s->member == m)
            classic_replace_drop(m->group, s);
    }
}

void classic_replace_forget_all(struct classic *g)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &g->stores)
    {
        classic_replace_drop(g, LIST_ENTRY(l, struct classic_store, link));
    }
}

/* ------------------------------------------------------------------ its end */

static void tell(struct classic_member *m, const struct classic_store *s)
{
    const struct classic *g = m->group;
    const bool new_client = m->join == NULL || m->join->version >= VERSION_SKIP_ASSIGNMENT;
    const bool leads = new_client && g->leader == m;
    const struct classic_joined joined = {
        .leader = new_client ? g->leader->id : s->old_leader,
        .members = leads,
        .skip_assignment = leads,
    };
    classic_answer_join(m, &joined);
    classic_session_reset(m, m->session_timeout_ms);
}

static void take_back(struct classic_store *s, int16_t error)
{
    struct classic_member *m = s->member;
    struct classic *g = m->group;
    s->member = NULL;
    classic_unindex(g, &g->by_id, m->id);
    classic_drop(g, &m->id);
    m->id = s->old_id;
    classic_support_return(g, s->old_protocols);
    classic_support_remove(g, m->protocols);
    classic_protocols_free(g, m->protocols);
    m->protocols = s->old_protocols;
    m->session_timeout_ms = s->old_session_timeout_ms;
    m->rebalance_timeout_ms = s->old_rebalance_timeout_ms;
    classic_session_reset(m, m->session_timeout_ms);
    classic_end_join(m, error, STR_LIT(""));
}

void classic_replaced(struct classic *g, struct classic_store *s, int16_t error)
{
    struct classic_member *m = s->member;
    if (m == NULL)
        return;
    CHECK(g->state == CLASSIC_STABLE && s->generation == g->generation);
    if (error != K_NONE) {
        env_log(g->args.env, LOG_WARN, "group_static_member_not_stored group=%.*s error=%d",
                (int)g->id.n, g->id.p, error);
        take_back(s, error);
        return;
    }
    tell(m, s);
}

/* ------------------------------------------------------------------ its beginning */

/* All the memory that the replacement takes, but for the protocols. */
static struct classic_store *reserve(struct classic_member *m, struct str id, struct str *new_id)
{
    struct classic *g = m->group;
    struct classic_store *s = classic_store_new(g, CLASSIC_STORE_REPLACED);
    *new_id = STR_NULL;
    if (s == NULL)
        return NULL;
    if (classic_copy(g, g->leader->id, &s->old_leader) != ERR_NONE ||
        classic_copy(g, id, new_id) != ERR_NONE ||
        classic_index(g, &g->by_id, *new_id, m) != ERR_NONE) {
        classic_drop(g, new_id);
        classic_store_free(g, s);
        return NULL;
    }
    return s;
}

static void take_over(struct classic_member *m, struct classic_store *s, struct str new_id,
                      struct classic_protocols *p)
{
    struct classic *g = m->group;
    s->member = m;
    s->old_id = m->id;
    s->old_protocols = m->protocols;
    s->old_session_timeout_ms = m->session_timeout_ms;
    s->old_rebalance_timeout_ms = m->rebalance_timeout_ms;
    classic_support_keep(g, m->protocols);
    m->id = new_id;
    m->protocols = p;
    m->fresh = false;
}

/* Is the group's protocol still what the members want? */
static bool goes_on(struct classic *g)
{
    return g->state == CLASSIC_STABLE && classic_vote(g) == g->protocol;
}

enum err classic_replace(struct classic_member *m, struct classic_join_op *op, struct str id,
                         struct classic_protocols *p, int32_t rebalance_timeout_ms)
{
    struct classic *g = m->group;
    struct str new_id;
    struct classic_store *s = reserve(m, id, &new_id);
    if (s == NULL)
        return ERR_NOMEM;
    if (classic_support_add(g, p) != ERR_NONE) {
        classic_unindex(g, &g->by_id, new_id);
        classic_drop(g, &new_id);
        classic_store_free(g, s);
        return ERR_NOMEM;
    }
    classic_replace_forget(m);
    classic_end_join(m, K_FENCED_INSTANCE_ID, m->id);
    classic_end_sync(m, K_FENCED_INSTANCE_ID);
    take_over(m, s, new_id, p);
    m->session_timeout_ms = op->request->session_timeout_ms;
    m->rebalance_timeout_ms = rebalance_timeout_ms;
    classic_park_join(m, op);
    if (!goes_on(g)) {
        classic_store_free(g, s);
        classic_rebalance(g, "static member replaced");
        return ERR_NONE;
    }
    const int16_t error = classic_store_begin(g, s);
    if (error != K_NONE) {
        take_back(s, error);
        classic_store_free(g, s);
    }
    return ERR_NONE;
}
