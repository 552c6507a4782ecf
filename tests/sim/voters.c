/* An operator adds controllers that are no voters, and takes away voters: above all those whose
 * disks are gone (KIP-853). */
#include <stdio.h>

#include "base/check.h"
#include "client.h"
#include "node/inside.h"
#include "quorum/inside.h"

enum { TIMEOUT_MS = 5000, VOTERS_LEAST = 2 };

static const struct raft *raft_of(const struct fleet *f, size_t i)
{
    const struct node *n = f->worlds[i].node;
    return fleet_is_controller(f, i) && n != NULL && n->state == NODE_READY ? n->raft : NULL;
}

/* As node w knows them. */
static const struct voter_set *voters_of(const struct world *w)
{
    return raft_voters(w->node->raft);
}

static bool add_voter(struct client *c, struct world *w, struct cluster *cl, size_t i)
{
    const struct fleet *f = cl->fleet;
    const struct raft *r = raft_of(f, i);
    struct add_raft_voter_request req;
    struct add_raft_voter_request_listener listener = {
        .name = STR_LIT("CONTROLLER"),
        .port = (uint16_t)(WORLD_FIRST_PORT + fleet_is_broker(f, i)),
    };
    char host[32];
    if (r == NULL || voter_set_find(voters_of(w), (int32_t)i + 1, r->directory_id) != NULL)
        return false;
    wire_default(&wire_add_raft_voter_request, &req);
    snprintf(host, sizeof host, "node%zu", i + 1);
    listener.host = str_of(host);
    req.cluster_id = STR_NULL;
    req.timeout_ms = TIMEOUT_MS;
    req.voter_id = (int32_t)i + 1;
    req.voter_directory_id = r->directory_id;
    req.listeners.v = &listener;
    req.listeners.n = 1;
    client_send(c, w, API_ADD_RAFT_VOTER, client_version(cl, API_ADD_RAFT_VOTER, 0), &req);
    return true;
}

static bool is_stale(const struct fleet *f, const struct voter *v)
{
    const struct raft *r = raft_of(f, (size_t)v->id - 1);
    return r != NULL && !uuid_eq(r->directory_id, v->directory_id);
}

static bool remove_voter(struct client *c, struct world *w, struct cluster *cl)
{
    const struct voter_set *set = voters_of(w);
    const struct voter *v = &set->v[rng_below(&cl->rng, (uint64_t)set->n)];
    struct remove_raft_voter_request req;
    const bool spare = cl->operations.fewer_voters && set->n > VOTERS_LEAST;
    if (!spare && !is_stale(cl->fleet, v))
        return false;
    wire_default(&wire_remove_raft_voter_request, &req);
    req.cluster_id = STR_NULL;
    req.voter_id = v->id;
    req.voter_directory_id = v->directory_id;
    client_send(c, w, API_REMOVE_RAFT_VOTER, 0, &req);
    return true;
}

bool operator_change_voters(struct client *c, struct world *w, struct cluster *cl)
{
    if (!cl->fleet->shape.dynamic || w->node->raft == NULL || voters_of(w)->n == 0)
        return false; /* it is about to end, or knows nobody */
    return rng_percent(&cl->rng, 40) ? remove_voter(c, w, cl)
                                     : add_voter(c, w, cl, rng_below(&cl->rng, cl->fleet->n));
}
