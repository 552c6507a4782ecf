/* The states of quorum.md section 1 and the ways between them. quorum-state is written by a job
 * whenever epoch, leader or vote changed; until it is on disk nothing of the new state leaves
 * (raft_is_durable). Timers are random in [T, 2T) for elections. */
#include <stdlib.h>

#include "quorum/inside.h"
#include "wire/api_key.h"

/* ------------------------------------------------------------------ durability */

void raft_fail(struct raft *r, enum err e, const char *what)
{
    if (r->failed)
        return;
    r->failed = true;
    r->failed_err = e;
    r->failed_what = what;
}

static void persist_run(struct job *j, struct disk *d)
{
    struct raft_persist *p = CONTAINER_OF(j, struct raft_persist, job);
    p->err = quorum_state_write(d, p->dir, &p->state);
}

static void persist_done(struct job *j);

static void submit_persist(struct raft *r)
{
    struct quorum_state *s = &r->persist.state;
    *s = (struct quorum_state){
        .data_version = r->kraft_version > 0 ? 1 : 0,
        .leader_id = r->leader_id,
        .epoch = r->epoch,
        .voted_id = r->voted_id,
        .voted_directory_id = r->voted_directory_id,
        .voters_n = r->voters.n,
    };
    for (int32_t i = 0; i < r->voters.n; i++)
        s->voters[i] = r->voters.v[i].id;
    r->persisting = true;
    r->persist.job = (struct job){.lane = JOB_SYNC, .run = persist_run, .done = persist_done};
    r->env->submit(r->env, &r->persist.job);
}

static void persist_done(struct job *j)
{
    struct raft *r = CONTAINER_OF(j, struct raft, persist.job);
    r->persisting = false;
    if (r->log == NULL) {
        r->persist_again = false;
        raft_job_ended(r);
        return;
    }
    if (r->persist.err != ERR_NONE)
        raft_fail(r, r->persist.err, "quorum-state cannot be written");
    else if (r->persist_again)
        submit_persist(r);
    r->persist_again = false;
}

void raft_persist(struct raft *r)
{
    if (r->persisting)
        r->persist_again = true;
    else
        submit_persist(r);
}

bool raft_is_durable(const struct raft *r)
{
    return !r->persisting && !r->failed;
}

/* ------------------------------------------------------------------ timers */

static void arm(struct raft *r, int64_t us)
{
    if (timer_arm(r->timers, &r->timer, r->now.mono_us + us) != ERR_NONE)
        raft_fail(r, ERR_NOMEM, "no memory for a timer");
}

static void arm_election(struct raft *r)
{
    const uint64_t t = (uint64_t)r->config.election_timeout_ms * 1000;
    arm(r, (int64_t)(t + env_random_u64(r->env) % t));
}

static void clear_votes(struct raft *r)
{
    for (int32_t i = 0; i < VOTERS_MAX; i++)
        r->votes[i] = VOTE_NONE;
}

/* ------------------------------------------------------------------ messages to other voters */

static void drop_outbox(struct raft *r)
{
    struct list *l;
    while ((l = list_pop(&r->outbox)) != NULL)
        free(LIST_ENTRY(l, struct raft_message, link));
}

static void ask_votes(struct raft *r, bool pre_vote)
{
    for (int32_t i = 0; i < r->voters.n; i++) {
        const struct voter *v = &r->voters.v[i];
        if (i == raft_voter_index(r, r->node_id, r->directory_id))
            continue;
        struct raft_message *m = calloc(1, sizeof *m);
        if (m == NULL) {
            raft_fail(r, ERR_NOMEM, "no memory for a vote request");
            return;
        }
        m->to_id = v->id;
        m->to_directory_id = v->directory_id;
        m->api_key = API_VOTE;
        m->pre_vote = pre_vote;
        m->epoch = r->epoch;
        list_append(&r->outbox, &m->link);
    }
}

/* ------------------------------------------------------------------ transitions */

static void leave(struct raft *r)
{
    if (r->state == RAFT_LEADER) {
        r->resigned_untold |= r->claimed;
        r->claimed = false;
        r->epoch_start_offset = -1;
    }
    drop_outbox(r); /* late answers to what was asked are ignored */
    clear_votes(r);
}

void raft_become_unattached(struct raft *r, int32_t epoch, int32_t leader_id)
{
    CHECK(epoch >= r->epoch);
    const bool keeps_timer =
        timer_armed(&r->timer) && (r->state == RAFT_UNATTACHED || r->state == RAFT_CANDIDATE ||
                                   r->state == RAFT_RESIGNED || r->state == RAFT_PROSPECTIVE);
    leave(r);
    if (epoch > r->epoch) {
        r->voted_id = -1;
        r->voted_directory_id = (struct uuid){{0}};
    }
    r->state = RAFT_UNATTACHED;
    r->epoch = epoch;
    r->leader_id = leader_id;
    raft_persist(r);
    if (!raft_is_voter(r))
        timer_cancel(r->timers, &r->timer);
    else if (!keeps_timer)
        arm_election(r);
}

void raft_become_prospective(struct raft *r)
{
    CHECK(r->state != RAFT_LEADER && raft_is_voter(r));
    leave(r);
    r->state = RAFT_PROSPECTIVE; /* the epoch stays, nothing is written */
    r->votes[raft_voter_index(r, r->node_id, r->directory_id)] = VOTE_GRANTED;
    arm_election(r);
    if (raft_sole_voter(r))
        raft_become_candidate(r);
    else
        ask_votes(r, true);
}

void raft_become_candidate(struct raft *r)
{
    CHECK(r->state == RAFT_PROSPECTIVE);
    leave(r);
    r->state = RAFT_CANDIDATE;
    r->epoch++;
    r->leader_id = -1;
    r->voted_id = r->node_id;
    r->voted_directory_id = r->directory_id;
    r->votes[raft_voter_index(r, r->node_id, r->directory_id)] = VOTE_GRANTED;
    raft_persist(r);
    arm_election(r);
    ask_votes(r, false);
}

void raft_resume_candidate(struct raft *r)
{
    CHECK(raft_is_voter(r));
    r->state = RAFT_CANDIDATE;
    r->votes[raft_voter_index(r, r->node_id, r->directory_id)] = VOTE_GRANTED;
    arm_election(r);
    ask_votes(r, false);
}

void raft_become_leader(struct raft *r)
{
    CHECK(r->state == RAFT_CANDIDATE && raft_is_durable(r));
    leave(r);
    r->state = RAFT_LEADER;
    r->leader_id = r->node_id;
    r->epoch_start_offset = -1;
    for (int32_t i = 0; i < VOTERS_MAX; i++) {
        r->ends[i] = -1;
        r->heard[i] = false;
    }
    raft_persist(r);
    if (raft_sole_voter(r))
        timer_cancel(r->timers, &r->timer); /* nobody to lose: no check-quorum (KAFKA-16144) */
    else
        arm(r, (int64_t)r->config.fetch_timeout_ms * 1500);
}

void raft_become_follower(struct raft *r, int32_t epoch, int32_t leader_id)
{
    CHECK(leader_id >= 0 && epoch >= r->epoch);
    leave(r);
    if (epoch > r->epoch) {
        r->voted_id = -1;
        r->voted_directory_id = (struct uuid){{0}};
    }
    r->state = RAFT_FOLLOWER;
    r->epoch = epoch;
    r->leader_id = leader_id;
    r->fetched = false;
    raft_persist(r);
    arm(r, (int64_t)r->config.fetch_timeout_ms * 1000);
}

void raft_become_resigned(struct raft *r)
{
    leave(r);
    r->state = RAFT_RESIGNED;
    arm_election(r);
}

void raft_add_vote(struct raft *r, int32_t candidate_id, struct uuid directory_id)
{
    CHECK(r->state == RAFT_UNATTACHED || r->state == RAFT_PROSPECTIVE);
    r->voted_id = candidate_id;
    r->voted_directory_id = directory_id;
    raft_persist(r);
    arm_election(r);
}

/* ------------------------------------------------------------------ time passes */

/* Check-quorum: a majority must have been heard of, ourselves counted. */
static void check_quorum(struct raft *r)
{
    int32_t heard = 0;
    for (int32_t i = 0; i < r->voters.n; i++) {
        heard += r->heard[i] || i == raft_voter_index(r, r->node_id, r->directory_id);
        r->heard[i] = false;
    }
    if (raft_majority(r, heard))
        arm(r, (int64_t)r->config.fetch_timeout_ms * 1500);
    else
        raft_become_resigned(r);
}

void raft_timer_fired(struct timer *t)
{
    struct raft *r = CONTAINER_OF(t, struct raft, timer);
    r->now.mono_us = t->at_us > r->now.mono_us ? t->at_us : r->now.mono_us;
    switch (r->state) {
    case RAFT_UNATTACHED:
    case RAFT_CANDIDATE:
        if (raft_is_voter(r))
            raft_become_prospective(r);
        break;
    case RAFT_PROSPECTIVE:
        if (r->leader_id >= 0 && r->leader_endpoint_known)
            raft_become_follower(r, r->epoch, r->leader_id);
        else
            raft_become_unattached(r, r->epoch, r->leader_id);
        break;
    case RAFT_FOLLOWER:
        if (raft_is_voter(r))
            raft_become_prospective(r);
        else
            arm(r, (int64_t)r->config.fetch_timeout_ms * 1000);
        break;
    case RAFT_LEADER:
        check_quorum(r);
        break;
    case RAFT_RESIGNED:
        raft_become_unattached(r, r->epoch + 1, -1);
        break;
    }
}
