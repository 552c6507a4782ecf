/* ListGroups (KIP-222, KIP-518, KIP-848): the groups that this broker coordinates. Filters are
 * compared without case; a word that names nothing matches nothing. */
#include <stdlib.h>
#include <strings.h>

#include "api/api.h"
#include "wire/error.h"

struct listing {
    struct api *api;
    struct request *r;
    bool all; /* may describe the cluster, and so every group */
    struct list_groups_response resp;
    int32_t cap;
};

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

/* States are trimmed, types are not, as in Kafka. */
static struct str trimmed(struct str s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

static bool same_word(struct str s, const char *word)
{
    return s.n == (int32_t)strlen(word) && strncasecmp(s.p, word, (size_t)s.n) == 0;
}

static bool passes(const struct listing *li, const struct listed_group *g)
{
    const struct list_groups_request *req = li->r->message;
    bool state = req->states_filter.n <= 0, type = req->types_filter.n <= 0;
    for (int32_t i = 0; i < req->states_filter.n && !state; i++)
        state = same_word(trimmed(req->states_filter.v[i]), g->state);
    for (int32_t i = 0; i < req->types_filter.n && !type; i++)
        type = same_word(req->types_filter.v[i], g->type);
    return state && type &&
           (li->all || api_authorized(li->api, li->r, ACL_DESCRIBE, ACL_GROUP, g->id));
}

/* In the request's arena: what is outgrown stays until the answer has left. */
static enum err grow(struct listing *li)
{
    const int32_t cap = li->cap == 0 ? 64 : li->cap * 2;
    struct list_groups_response_listed_group *v =
        cap > li->cap
            ? wire_array(&wire_list_groups_response_listed_group, &li->r->arena, (size_t)cap)
            : NULL;
    if (v == NULL)
        return ERR_NOMEM;
    if (li->resp.groups.n > 0)
        memcpy(v, li->resp.groups.v, (size_t)li->resp.groups.n * sizeof *v);
    li->resp.groups.v = v;
    li->cap = cap;
    return ERR_NONE;
}

static enum err add(void *ctx, const struct listed_group *g)
{
    struct listing *li = ctx;
    if (!passes(li, g))
        return ERR_NONE;
    if (li->resp.groups.n == li->cap && grow(li) != ERR_NONE)
        return ERR_NOMEM;
    struct list_groups_response_listed_group *out = &li->resp.groups.v[li->resp.groups.n++];
    out->group_id = g->id;
    out->protocol_type = g->protocol_type;
    out->group_state = str_of(g->state);
    out->group_type = str_of(g->type);
    return ERR_NONE;
}

void api_list_groups_start(struct api *api, struct request *r, struct now now)
{
    struct listing li = {.api = api, .r = r};
    int16_t error;
    (void)now;
    wire_default(&wire_list_groups_response, &li.resp);
    li.all = api_authorized(api, r, ACL_DESCRIBE, ACL_CLUSTER, ACL_CLUSTER_NAME);
    if (groups_list(api->groups, add, &li, &error) != ERR_NONE) {
        request_close(r, "out of memory");
        return;
    }
    li.resp.error_code = error;
    if (error != K_NONE)
        li.resp.groups.n = 0;
    request_answer(r, &msg_list_groups_response, &li.resp);
}
