/* The states of KRaft (KIP-595, KIP-996) and the ways between them. quorum-state is written by a
 * job whenever epoch, leader or vote changed; until it is on disk nothing of the new state leaves
 * (raft_is_durable). A sole voter leads in the turn in which it stands: its candidacy is told to
 * nobody, and only its lead is written. Timers are random in [T, 2T) for elections. */
#include "quorum/inside.h"

/* After a leader that is gone. */
enum { STAND_FIRST_US = 25 * 1000, STAND_STEP_US = 50 * 1000 };

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
    const int64_t t = raft_timeout_us(r->config.election_timeout_ms);
    arm(r, t + (int64_t)(env_random_u64(r->env) % (uint64_t)t));
}

static void arm_fetch(struct raft *r)
{
    arm(r, raft_timeout_us(r->config.fetch_timeout_ms));
}

static void arm_check_quorum(struct raft *r)
{
    arm(r, raft_timeout_us(r->config.fetch_timeout_ms) * 3 / 2);
}

void raft_retry_later(struct raft *r)
{
    arm(r, raft_timeout_us(r->config.election_timeout_ms));
}

/* ------------------------------------------------------------------ votes */

static void own_vote_only(struct raft *r)
{
    for (int32_t i = 0; i < VOTERS_MAX; i++)
        r->votes[i] = VOTE_NONE;
    r->votes[raft_voter_index(r, r->node_id, r->directory_id)] = VOTE_GRANTED;
}

static void forget_vote(struct raft *r)
{
    r->voted_id = -1;
    r->voted_directory_id = (struct uuid){{0}};
}

/* ------------------------------------------------------------------ who leads */

bool raft_leader_address(const struct raft *r, struct str *host, uint16_t *port)
{
    *host = str_of(r->leader_at.host);
    *port = r->leader_at.port;
    for (int32_t i = 0; i < r->voters.n && host->n == 0; i++) {
        if (r->voters.v[i].id != r->leader_id)
            continue;
        *host = str_of(r->voters.v[i].host);
        *port = r->voters.v[i].port;
    }
    return r->leader_id >= 0 && r->leader_id != r->node_id && host->n > 0;
}

static bool reachable(const struct raft *r)
{
    struct str host;
    uint16_t port;
    return raft_leader_address(r, &host, &port);
}

/* ------------------------------------------------------------------ transitions */

static void leave(struct raft *r)
{
    if (r->state == RAFT_LEADER && r->claimed) {
        r->resigned_untold = true;
        r->resigned_epoch = r->epoch;
    }
    r->claimed = false;
    r->epoch_start_offset = -1;
    r->turn++; /* late answers to what was asked are ignored */
    raft_drop_download(r);
    raft_abort_change(r);
    raft_forget_told(r);
}

static void take_leader(struct raft *r, int32_t epoch, int32_t leader_id)
{
    if (epoch != r->epoch || leader_id != r->leader_id)
        r->leader_at.host[0] = '\0';
    r->epoch = epoch;
    r->leader_id = leader_id;
}

void raft_become_unattached(struct raft *r, int32_t epoch, int32_t leader_id)
{
    CHECK(epoch >= r->epoch);
    const bool keeps_timer =
        timer_armed(&r->timer) && (r->state == RAFT_UNATTACHED || r->state == RAFT_CANDIDATE ||
                                   r->state == RAFT_RESIGNED || r->state == RAFT_PROSPECTIVE);
    leave(r);
    if (epoch > r->epoch)
        forget_vote(r);
    r->state = RAFT_UNATTACHED;
    take_leader(r, epoch, leader_id);
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
    own_vote_only(r);
    arm_election(r);
    if (raft_sole_voter(r))
        raft_become_candidate(r);
}

static void stand(struct raft *r)
{
    own_vote_only(r);
    if (!raft_sole_voter(r))
        raft_persist(r);
    arm_election(r);
}

void raft_become_candidate(struct raft *r)
{
    CHECK(r->state == RAFT_PROSPECTIVE);
    leave(r);
    r->state = RAFT_CANDIDATE;
    take_leader(r, r->epoch + 1, -1);
    r->voted_id = r->node_id;
    r->voted_directory_id = r->directory_id;
    stand(r);
}

static void resume_candidate(struct raft *r)
{
    r->state = RAFT_CANDIDATE;
    r->leader_id = -1;
    r->voted_directory_id = r->directory_id; /* data_version 0 does not hold it */
    stand(r);
}

void raft_become_leader(struct raft *r)
{
    CHECK(r->state == RAFT_CANDIDATE && raft_is_durable(r));
    leave(r);
    r->state = RAFT_LEADER;
    r->leader_id = r->node_id;
    forget_vote(r); /* the lead says it all; a leader never votes in its epoch */
    r->observers_n = 0;
    for (int32_t i = 0; i < VOTERS_MAX; i++) {
        r->progress[i] = (struct voter_progress){-1, -1, -1, -1, -1};
        r->heard[i] = false;
        r->begin_us[i] = INT64_MIN;
    }
    raft_persist(r);
    if (raft_sole_voter(r))
        timer_cancel(r->timers, &r->timer); /* nobody to lose: no check-quorum (KAFKA-16144) */
    else
        arm_check_quorum(r);
}

void raft_become_follower(struct raft *r, int32_t epoch, int32_t leader_id)
{
    CHECK(leader_id >= 0 && epoch >= r->epoch);
    leave(r);
    if (epoch > r->epoch)
        forget_vote(r);
    r->state = RAFT_FOLLOWER;
    take_leader(r, epoch, leader_id);
    r->fetched = false;
    r->update_done = false;
    raft_check_is_voter(r, DISAGREE_LEADER, leader_id);
    raft_update_later(r);
    raft_persist(r);
    arm_fetch(r);
}

void raft_become_resigned(struct raft *r)
{
    r->successors_n = 0;
    if (r->state == RAFT_LEADER)
        raft_find_successors(r);
    leave(r);
    r->state = RAFT_RESIGNED;
    for (int32_t i = 0; i < VOTERS_MAX; i++)
        r->ended[i] = false;
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

void raft_end_prospective(struct raft *r)
{
    CHECK(r->state == RAFT_PROSPECTIVE);
    timer_cancel(r->timers, &r->timer); /* the next wait is drawn anew */
    if (reachable(r))
        raft_become_follower(r, r->epoch, r->leader_id);
    else
        raft_become_unattached(r, r->epoch, r->leader_id);
}

/* ------------------------------------------------------------------ what is heard */

static void set_leader_at(struct raft *r, struct str host, uint16_t port)
{
    if (host.n <= 0 || (size_t)host.n >= sizeof r->leader_at.host)
        return;
    memset(r->leader_at.host, 0, sizeof r->leader_at.host);
    memcpy(r->leader_at.host, host.p, (size_t)host.n);
    r->leader_at.port = port;
}

/* Without an address it cannot be followed yet. */
static void follow(struct raft *r, int32_t epoch, int32_t leader_id, struct str host, uint16_t port)
{
    raft_become_unattached(r, epoch, leader_id);
    set_leader_at(r, host, port);
    raft_check_is_voter(r, DISAGREE_LEADER, leader_id);
    if (reachable(r))
        raft_become_follower(r, epoch, leader_id);
}

/* A leader of this epoch is known. */
static void hear_again(struct raft *r, int32_t leader_id, struct str host, uint16_t port)
{
    if (leader_id != r->leader_id) {
        env_log(r->env, LOG_ERROR, "quorum_two_leaders epoch=%d leader=%d other=%d", r->epoch,
                r->leader_id, leader_id);
        return;
    }
    if (leader_id == r->node_id)
        return;
    set_leader_at(r, host, port);
    if (r->state == RAFT_UNATTACHED && reachable(r))
        raft_become_follower(r, r->epoch, leader_id);
}

void raft_hear(struct raft *r, int32_t epoch, int32_t leader_id, struct str host, uint16_t port)
{
    if (epoch < r->epoch || epoch > RAFT_EPOCH_MAX)
        return;
    if (leader_id == r->node_id && (epoch > r->epoch || r->leader_id != r->node_id))
        leader_id = -1; /* of an epoch that we have forgotten: it has to be followed by another */
    if (epoch > r->epoch && leader_id < 0)
        raft_become_unattached(r, epoch, -1);
    else if (leader_id >= 0 && (epoch > r->epoch || r->leader_id < 0))
        follow(r, epoch, leader_id, host, port);
    else if (leader_id >= 0)
        hear_again(r, leader_id, host, port);
}

void raft_end_fetching(struct raft *r, int64_t us)
{
    CHECK(r->state == RAFT_FOLLOWER);
    r->fetched = false; /* others may stand (KAFKA-20895) */
    arm(r, us);
}

/* Time for the other voters to see it too, and for those before us to be voted for: two that stand
 * at once share the votes. */
static int64_t stands_in_us(const struct raft *r)
{
    int64_t us = STAND_FIRST_US;
    for (int32_t i = 0; i < r->voters.n && r->voters.v[i].id != r->node_id; i++)
        us += r->voters.v[i].id == r->leader_id ? 0 : STAND_STEP_US;
    return us;
}

void raft_leader_gone(struct raft *r)
{
    const int64_t us = stands_in_us(r);
    CHECK(r->state == RAFT_FOLLOWER && raft_is_voter(r));
    r->fetched = false; /* others may stand */
    if (!timer_armed(&r->timer) || r->timer.at_us > r->now.mono_us + us)
        arm(r, us);
}

void raft_fetch_succeeded(struct raft *r)
{
    r->fetched = true;
    arm_fetch(r);
}

void raft_update_later(struct raft *r)
{
    r->update_us = r->now.mono_us + raft_timeout_us(r->config.fetch_timeout_ms);
}

void raft_fit_timer(struct raft *r)
{
    switch (r->state) {
    case RAFT_LEADER:
        if (raft_sole_voter(r))
            timer_cancel(r->timers, &r->timer);
        else if (!timer_armed(&r->timer))
            arm_check_quorum(r);
        break;
    case RAFT_UNATTACHED:
        if (!raft_is_voter(r))
            timer_cancel(r->timers, &r->timer);
        else if (!timer_armed(&r->timer))
            arm_election(r);
        break;
    case RAFT_PROSPECTIVE:
    case RAFT_CANDIDATE:
        if (!raft_is_voter(r)) /* as a snapshot says that came meanwhile */
            raft_become_unattached(r, r->epoch, r->leader_id);
        break;
    case RAFT_FOLLOWER:
    case RAFT_RESIGNED:
        break;
    }
}

void raft_voter_spoke(struct raft *r, int32_t i)
{
    r->begin_us[i] = r->now.mono_us + raft_timeout_us(r->config.fetch_timeout_ms) / 2;
}

/* ------------------------------------------------------------------ starting */

static bool voted_for_self(const struct raft *r)
{
    return r->voted_id == r->node_id &&
           (uuid_is_zero(r->voted_directory_id) || uuid_eq(r->voted_directory_id, r->directory_id));
}

/* Nobody else can answer: no reason to wait out a timer. Whatever it was before, the next epoch is
 * above all that is on disk, so never leader twice in one epoch. */
static void begin_alone(struct raft *r, int32_t last_epoch)
{
    r->state = RAFT_UNATTACHED;
    r->leader_id = -1;
    if (r->epoch < last_epoch)
        r->epoch = last_epoch;
    raft_become_prospective(r);
}

void raft_begin_state(struct raft *r)
{
    const int32_t last_epoch = raft_last_epoch(r);
    if (raft_sole_voter(r))
        begin_alone(r, last_epoch);
    else if (r->epoch < last_epoch)
        raft_become_unattached(r, last_epoch, -1);
    else if (r->leader_id == r->node_id)
        raft_become_resigned(r); /* never leader twice in one epoch (KAFKA-10527) */
    else if (voted_for_self(r) && raft_is_voter(r))
        resume_candidate(r);
    else if (reachable(r))
        raft_become_follower(r, r->epoch, r->leader_id);
    else
        raft_become_unattached(r, r->epoch, r->leader_id);
}

bool raft_hand_over_in(struct raft *r, int64_t us)
{
    return timer_arm(r->timers, &r->timer, r->now.mono_us + us) == ERR_NONE;
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
        arm_check_quorum(r);
    else
        raft_become_resigned(r);
}

void raft_timer_fired(struct timer *t)
{
    struct raft *r = CONTAINER_OF(t, struct raft, timer);
    if (r->closed != NULL) {
        r->handed_late = true;
        return;
    }
    r->now.mono_us = t->at_us > r->now.mono_us ? t->at_us : r->now.mono_us;
    switch (r->state) {
    case RAFT_UNATTACHED:
    case RAFT_CANDIDATE:
        if (raft_is_voter(r))
            raft_become_prospective(r);
        break;
    case RAFT_PROSPECTIVE:
        raft_end_prospective(r);
        break;
    case RAFT_FOLLOWER:
        if (raft_is_voter(r))
            raft_become_prospective(r);
        else
            arm_fetch(r);
        break;
    case RAFT_LEADER:
        if (!raft_sole_voter(r)) /* else: to try the first batch again */
            check_quorum(r);
        break;
    case RAFT_RESIGNED:
        raft_become_unattached(r, r->epoch + 1, -1);
        break;
    }
}
