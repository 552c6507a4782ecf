/* Voter lists that disagree. Static voters (controller.quorum.voters) are configured on each node
 * by itself: that two lists differ shows only in what their nodes say to each other. Whoever
 * notices tells the operator, once a minute for each way of noticing. Nobody stops for it, as
 * Kafka's nodes do not: lists with majorities in common still agree on one leader, and node by node
 * is how a list is changed. With kraft.version 1 the log itself says who votes. */
#include <stdio.h>

#include "quorum/control.h"
#include "quorum/inside.h"

static const int64_t quiet_us = 60 * (int64_t)1000000;

static const char *const reasons[] = {
    [DISAGREE_CANDIDATE] = "it stands for election and is none of the voters here",
    [DISAGREE_LEADER] = "it leads and is none of the voters here",
    [DISAGREE_VOTER] = "it says that it votes and is none of the voters here",
    [DISAGREE_OURSELVES] = "this node is none of the voters there",
    [DISAGREE_LIST] = "the voters there are others than here",
    [DISAGREE_ADDRESS] = "where it should listen another node answers",
};

void raft_tell_disagreement(struct raft *r, enum raft_disagreement what, int32_t id)
{
    if (r->kraft_version > 0 || r->now.mono_us < r->disagree_us[what])
        return;
    r->disagree_us[what] = r->now.mono_us + quiet_us;
    env_log(r->env, LOG_WARN,
            "quorum_voters_differ node=%d other=%d reason=\"%s\" "
            "key=controller.quorum.voters: make it the same on all nodes",
            r->node_id, id, reasons[what]);
}

/* Their directory does not matter: static voters have none. */
static bool is_voter_id(const struct raft *r, int32_t id)
{
    for (int32_t i = 0; i < r->voters.n; i++)
        if (r->voters.v[i].id == id)
            return true;
    return false;
}

void raft_check_is_voter(struct raft *r, enum raft_disagreement what, int32_t id)
{
    if (r->voters.n > 0 && !is_voter_id(r, id))
        raft_tell_disagreement(r, what, id);
}

void raft_check_leaders_voters(struct raft *r, const struct batch *b)
{
    int32_t ids[VOTERS_MAX], n;
    if (r->kraft_version > 0 || b->leader_epoch != r->epoch || r->voters.n == 0 ||
        control_read_leader_change(b, ids, &n) != ERR_NONE || n < 0)
        return; /* of an earlier epoch it tells what the list was then */
    bool same = n == r->voters.n;
    for (int32_t i = 0; i < n; i++)
        same = same && is_voter_id(r, ids[i]);
    if (!same)
        raft_tell_disagreement(r, DISAGREE_LIST, r->leader_id);
}
