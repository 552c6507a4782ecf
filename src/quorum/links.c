/* The nodes that we ask. Each has one request under way; what it does not answer is asked again
 * after a while. What is to be asked follows from the state alone (raft_next_message): nothing is
 * queued, so nothing of an earlier state is ever sent, and an answer to it is not looked at. */
#include <stdlib.h>

#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

static bool take_address(struct raft_address *at, struct str host, uint16_t port)
{
    if (host.n <= 0 || (size_t)host.n >= sizeof at->host)
        return false;
    memset(at, 0, sizeof *at);
    memcpy(at->host, host.p, (size_t)host.n);
    at->port = port;
    return true;
}

static struct raft_link *find(const struct raft *r, int32_t id)
{
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &r->links)
    {
        struct raft_link *l = LIST_ENTRY(it, struct raft_link, link);
        if (l->id == id)
            return l;
    }
    return NULL;
}

static bool is_of_use(const struct raft *r, const struct raft_link *l)
{
    if (l->busy || l->id < 0 || l->id == r->leader_id ||
        (r->change.phase == CHANGE_ASKS && l->id == r->change.voter.id))
        return true;
    for (int32_t i = 0; i < r->voters.n; i++)
        if (r->voters.v[i].id == l->id)
            return true;
    return false;
}

static void free_link(struct raft *r, struct raft_link *l)
{
    list_remove(&l->link);
    if (l->peer != NULL)
        r->dialing->close(r->dialing, l->peer);
    free(l);
}

/* Whoever once said to lead, or was a voter: there may be any number of them. */
static void forget_useless(struct raft *r)
{
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &r->links)
    {
        struct raft_link *l = LIST_ENTRY(it, struct raft_link, link);
        if (!is_of_use(r, l))
            free_link(r, l);
    }
}

static struct raft_link *new_link(struct raft *r, int32_t id)
{
    forget_useless(r);
    struct raft_link *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->raft = r;
    l->id = id;
    list_append(&r->links, &l->link);
    return l;
}

struct raft_link *raft_link_to(struct raft *r, int32_t id, struct str host, uint16_t port)
{
    struct raft_link *l = find(r, id);
    if (l == NULL)
        l = new_link(r, id);
    if (l == NULL || l->busy || (l->at.port == port && str_eq(str_of(l->at.host), host)))
        return l;
    l->ready_us = INT64_MIN;
    return take_address(&l->at, host, port) ? l : NULL;
}

void raft_talk_at(struct raft *r, int64_t us)
{
    if (us < r->talk_us)
        r->talk_us = us;
}

bool raft_link_ready(struct raft *r, struct raft_link *l)
{
    if (l->busy)
        return false;
    if (l->ready_us <= r->now.mono_us)
        return true;
    raft_talk_at(r, l->ready_us);
    return false;
}

struct raft_link *raft_voter_link(struct raft *r, int32_t i)
{
    const struct voter *v = &r->voters.v[i];
    if (v->host[0] == '\0' || v->id == r->node_id)
        return NULL;
    struct raft_link *l = raft_link_to(r, v->id, str_of(v->host), v->port);
    return l != NULL && raft_link_ready(r, l) ? l : NULL;
}

struct raft_message *raft_send(struct raft *r, struct raft_link *l, int16_t api_key,
                               const void *request)
{
    CHECK(!l->busy);
    l->busy = true;
    l->turn = r->turn;
    l->message = (struct raft_message){
        .to_id = l->id,
        .host = l->at.host,
        .port = l->at.port,
        .api_key = api_key,
        .request = request,
        .deadline_us = r->now.mono_us + raft_timeout_us(r->config.request_timeout_ms),
    };
    return &l->message;
}

void raft_back_off(struct raft *r, struct raft_link *l)
{
    l->ready_us = r->now.mono_us + raft_timeout_us(r->config.retry_backoff_ms);
}

/* ------------------------------------------------------------------ what is to be sent */

static struct raft_message *next(struct raft *r)
{
    switch (r->state) {
    case RAFT_PROSPECTIVE:
    case RAFT_CANDIDATE:
        return raft_next_vote(r);
    case RAFT_LEADER: {
        struct raft_message *m = raft_ask_candidate(r);
        return m != NULL ? m : raft_next_begin(r);
    }
    case RAFT_RESIGNED:
        return raft_next_end(r);
    case RAFT_UNATTACHED:
    case RAFT_FOLLOWER:
        return raft_next_fetch(r);
    }
    return NULL;
}

struct raft_message *raft_next_message(struct raft *r, struct now now)
{
    r->now = now;
    if (!raft_is_durable(r) || (raft_sole_voter(r) && r->change.phase != CHANGE_ASKS))
        return NULL;
    r->talk_us = INT64_MAX;
    struct raft_message *m = next(r);
    if (m != NULL)
        return m;
    if (r->talk_us == INT64_MAX)
        timer_cancel(r->timers, &r->talk_timer);
    else if (timer_arm(r->timers, &r->talk_timer, r->talk_us) != ERR_NONE)
        raft_fail(r, ERR_NOMEM, "no memory for a timer");
    return NULL;
}

/* False: nothing came of it; the node is left alone for a while. */
static bool take_answer(struct raft *r, struct raft_link *l, enum err e, const void *response)
{
    switch (l->message.api_key) {
    case API_VOTE:
        return raft_vote_answered(r, l, e, response);
    case API_BEGIN_QUORUM_EPOCH:
        return raft_begin_answered(r, l, e, response);
    case API_END_QUORUM_EPOCH:
        return raft_end_answered(r, l, e, response);
    case API_FETCH:
        return raft_fetch_answered(r, l, e, response);
    case API_FETCH_SNAPSHOT:
        return raft_piece_answered(r, l, e, response);
    case API_UPDATE_RAFT_VOTER:
        return raft_update_answered(r, l, e, response);
    case API_ADD_RAFT_VOTER:
    case API_REMOVE_RAFT_VOTER:
        return raft_join_answered(r, l, e, response);
    case API_API_VERSIONS:
        return raft_candidate_answered(r, l, e, response);
    default:
        CHECK(false);
        return false;
    }
}

static int16_t top_level_error(int16_t api_key, const void *response)
{
    switch (api_key) {
    case API_VOTE:
        return ((const struct vote_response *)response)->error_code;
    case API_FETCH:
        return ((const struct fetch_response *)response)->error_code;
    default: /* these come first, whatever the node is */
        return K_NONE;
    }
}

/* Those of voters, and bootstrap servers where no voters are known. */
static int32_t others_n(const struct raft *r)
{
    int32_t n = 0;
    for (int32_t i = 0; i < r->voters.n; i++)
        n += r->voters.v[i].id != r->node_id;
    return n > 0 ? n : (int32_t)r->servers_n;
}

static void tell_stranger(struct raft *r, struct raft_link *l)
{
    struct list *it, *tmp;
    int32_t n = 0;
    const bool known = l->stranger;
    l->stranger = true;
    if (known || r->events.stranger == NULL)
        return;
    LIST_EACH(it, tmp, &r->links)
    {
        n += LIST_ENTRY(it, struct raft_link, link)->stranger;
    }
    r->events.stranger(r->events.ctx, l->at.host, l->at.port, 2 * n > others_n(r));
}

void raft_answered(struct raft *r, struct raft_message *m, enum err e, const void *response,
                   struct now now)
{
    struct raft_link *l = CONTAINER_OF(m, struct raft_link, message);
    CHECK(l->busy);
    r->now = now;
    l->busy = false;
    l->failed = e != ERR_NONE;
    const bool of_now = l->turn == r->turn && !r->failed;
    if (!of_now) {
        if (l->failed && e != ERR_CANCELLED)
            raft_back_off(r, l);
        return;
    }
    if (l->message.refused && r->state == RAFT_FOLLOWER && l->id == r->leader_id &&
        raft_is_voter(r))
        raft_leader_gone(r);
    if (e == ERR_NONE && top_level_error(l->message.api_key, response) == K_INCONSISTENT_CLUSTER_ID)
        tell_stranger(r, l);
    if (!take_answer(r, l, e, response) && e != ERR_CANCELLED)
        raft_back_off(r, l);
}

void raft_links_close(struct raft *r)
{
    struct list *it;
    while ((it = list_pop(&r->links)) != NULL) {
        struct raft_link *l = LIST_ENTRY(it, struct raft_link, link);
        list_init(&l->link);
        if (l->peer != NULL)
            r->dialing->close(r->dialing, l->peer);
        free(l);
    }
}
