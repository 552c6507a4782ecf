/* The peers of the links: a connection for each node that is asked, made with its first request,
 * made anew when its address is another one. */
#include <stdio.h>

#include "quorum/inside.h"

/* Beyond what is asked for: a Fetch may answer with one batch of the largest size. */
enum { ANSWER_SLACK_BYTES = 9 << 20 };

static void call_done(struct peer_call *call, enum err e, const void *response)
{
    struct raft_link *l = CONTAINER_OF(call, struct raft_link, call);
    l->message.refused = e == ERR_CLOSED && peer_was_refused(l->peer);
    raft_answered(l->raft, &l->message, e, response, l->raft->now);
}

static bool same_peer(const struct raft_link *l)
{
    return l->peer_at.port == l->at.port && strcmp(l->peer_at.host, l->at.host) == 0;
}

/* As much as a frame may hold, however much is configured. */
static uint32_t answer_max_bytes(const struct raft_config *c)
{
    const int32_t most = c->fetch_max_bytes > c->fetch_snapshot_max_bytes
                             ? c->fetch_max_bytes
                             : c->fetch_snapshot_max_bytes;
    return most < PEER_ANSWER_MAX_BYTES - ANSWER_SLACK_BYTES ? (uint32_t)(most + ANSWER_SLACK_BYTES)
                                                             : PEER_ANSWER_MAX_BYTES;
}

static enum err open_peer(struct raft *r, struct raft_link *l)
{
    char client_id[32];
    snprintf(client_id, sizeof client_id, "raft-client-%d", r->node_id);
    const struct dialing_args args = {
        .host = l->at.host,
        .port = l->at.port,
        .timers = r->timers,
        .memory = r->answers,
        .client_id = str_of(client_id),
        .answer_max_bytes = answer_max_bytes(&r->config),
    };
    l->peer_at = l->at;
    return r->dialing->open(r->dialing, &args, &l->peer);
}

static void send(struct raft *r, struct raft_link *l)
{
    enum err e = ERR_NONE;
    if (l->peer != NULL && !same_peer(l)) {
        r->dialing->close(r->dialing, l->peer);
        l->peer = NULL;
    }
    if (l->peer == NULL)
        e = open_peer(r, l);
    if (e != ERR_NONE) {
        l->peer = NULL;
        raft_answered(r, &l->message, e, NULL, r->now);
        return;
    }
    l->call = (struct peer_call){
        .api_key = l->message.api_key,
        .max_version = -1,
        .fixed_version = -1,
        .request = l->message.request,
        .deadline_us = l->message.deadline_us,
        .done = call_done,
    };
    peer_call(l->peer, &l->call, r->now);
}

static bool settle_peers(struct raft *r)
{
    bool moved = false;
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &r->links)
    {
        struct raft_link *l = LIST_ENTRY(it, struct raft_link, link);
        if (l->peer != NULL)
            moved |= peer_settle(l->peer, r->now);
    }
    return moved;
}

bool raft_talk(struct raft *r)
{
    if (r->dialing == NULL)
        return false;
    bool moved = settle_peers(r);
    struct raft_message *m;
    while ((m = raft_next_message(r, r->now)) != NULL) {
        send(r, CONTAINER_OF(m, struct raft_link, message));
        moved = true;
    }
    return moved;
}
