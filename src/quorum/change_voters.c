/* AddRaftVoter and RemoveRaftVoter (KIP-853): one change of the voters at a time, each by one
 * voter, and only when the one before it is committed. A node that is to become a voter must have
 * caught up and is asked first which kraft.version it knows. */
#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

static const int64_t silent_max_ms = 3600 * (int64_t)1000;

bool raft_may_change_voters(const struct raft *r)
{
    return r->change.phase == CHANGE_NONE && r->epoch_start_offset >= 0 && r->unwritten == NULL &&
           raft_known_high_watermark(r) >= 0 &&
           r->history.v[r->history.n - 1].offset < r->high_watermark;
}

/* ------------------------------------------------------------------ the end */

static void set_error(struct raft_change *c, int16_t error)
{
    if (c->adding)
        ((struct add_raft_voter_response *)c->op->out)->error_code = error;
    else
        ((struct remove_raft_voter_response *)c->op->out)->error_code = error;
}

static void end_change(struct raft *r, int16_t error)
{
    struct raft_change *c = &r->change;
    if (c->op != NULL) {
        set_error(c, error);
        raft_op_ready(r, c->op, ERR_NONE);
    }
    c->op = NULL;
    c->phase = CHANGE_NONE;
    timer_cancel(r->timers, &c->timer);
}

void raft_abort_change(struct raft *r)
{
    if (r->change.phase != CHANGE_NONE)
        end_change(r, K_NOT_LEADER_OR_FOLLOWER);
}

bool raft_finish_change(struct raft *r)
{
    struct raft_change *c = &r->change;
    if (c->phase == CHANGE_NONE)
        return false;
    const bool committed = c->phase == CHANGE_COMMITS && r->high_watermark > c->last_offset;
    if (!committed && !c->late)
        return false;
    end_change(r, committed ? K_NONE : K_REQUEST_TIMED_OUT);
    return true;
}

static void change_late(struct timer *t)
{
    CONTAINER_OF(t, struct raft_change, timer)->late = true;
}

/* ------------------------------------------------------------------ the beginning */

static void begin(struct raft *r, struct raft_op *op, bool adding, int32_t timeout_ms)
{
    struct raft_change *c = &r->change;
    memset(c, 0, sizeof *c);
    c->op = op;
    c->adding = adding;
    c->timer.fire = change_late;
    c->late =
        timer_arm(r->timers, &c->timer, r->now.mono_us + raft_timeout_us(timeout_ms)) != ERR_NONE;
}

static void write(struct raft *r, const struct voter_set *set)
{
    struct raft_change *c = &r->change;
    enum err e = raft_put_voters(r, set, &c->last_offset);
    if (e != ERR_NONE) {
        end_change(r, K_REQUEST_TIMED_OUT);
        return;
    }
    c->phase = CHANGE_COMMITS;
    if (!c->adding || c->ack_when_committed)
        return;
    set_error(c, K_NONE);
    raft_op_ready(r, c->op, ERR_NONE);
    c->op = NULL;
}

static int16_t check_leading(const struct raft *r, struct str cluster_id)
{
    if (!raft_right_cluster(r, cluster_id))
        return K_INCONSISTENT_CLUSTER_ID;
    return raft_check_leader(r, r->epoch);
}

static int16_t check_change(const struct raft *r)
{
    if (r->change.phase != CHANGE_NONE || raft_known_high_watermark(r) < 0)
        return K_REQUEST_TIMED_OUT;
    if (r->kraft_version == 0)
        return K_UNSUPPORTED_VERSION;
    return raft_may_change_voters(r) ? K_NONE : K_REQUEST_TIMED_OUT;
}

/* ------------------------------------------------------------------ AddRaftVoter */

static const struct add_raft_voter_request_listener *
default_listener(const struct raft *r, const struct add_raft_voter_request *in)
{
    for (int32_t i = 0; i < in->listeners.n; i++)
        if (str_eq(in->listeners.v[i].name, r->endpoint.listener))
            return &in->listeners.v[i];
    return NULL;
}

static bool is_voter_id(const struct raft *r, int32_t id)
{
    for (int32_t i = 0; i < r->voters.n; i++)
        if (r->voters.v[i].id == id)
            return true;
    return false;
}

static int16_t check_add(struct raft *r, const struct add_raft_voter_request *in, struct voter *v)
{
    int16_t error = check_leading(r, in->cluster_id);
    if (error != K_NONE)
        return error;
    const struct add_raft_voter_request_listener *at = default_listener(r, in);
    *v = (struct voter){.id = in->voter_id, .directory_id = in->voter_directory_id};
    if (in->voter_id < 0 || uuid_is_zero(in->voter_directory_id) || at == NULL ||
        !voter_reached_at(v, at->name, at->host, at->port))
        return K_INVALID_REQUEST;
    error = check_change(r);
    if (error != K_NONE)
        return error;
    if (is_voter_id(r, in->voter_id))
        return K_DUPLICATE_VOTER;
    return r->voters.n == VOTERS_MAX ? K_INVALID_REQUEST : K_NONE;
}

void raft_add_voter(struct raft *r, struct raft_op *op, const struct add_raft_voter_request *in,
                    struct add_raft_voter_response *out, struct now now)
{
    struct voter v;
    r->now = now;
    raft_op_begin(r, op, in, out);
    wire_default(&wire_add_raft_voter_response, out);
    out->error_code = check_add(r, in, &v);
    if (out->error_code != K_NONE) {
        raft_op_ready(r, op, ERR_NONE);
        return;
    }
    begin(r, op, true, in->timeout_ms);
    r->change.phase = CHANGE_ASKS;
    r->change.voter = v;
    r->change.ack_when_committed = in->ack_when_committed;
}

struct raft_message *raft_ask_candidate(struct raft *r)
{
    const struct raft_change *c = &r->change;
    if (c->phase != CHANGE_ASKS || c->asked)
        return NULL;
    struct raft_link *l = raft_link_to(r, c->voter.id, str_of(c->voter.host), c->voter.port);
    if (l == NULL || !raft_link_ready(r, l))
        return NULL;
    memset(&l->body, 0, sizeof l->body);
    wire_default(&wire_api_versions_request, &l->body.versions);
    l->body.versions.client_software_name = STR_LIT("dohle");
    l->body.versions.client_software_version = STR_LIT(DOHLE_VERSION);
    r->change.asked = true;
    return raft_send(r, l, API_API_VERSIONS, &l->body.versions);
}

static bool is_caught_up(struct raft *r, const struct voter *v)
{
    for (int32_t i = 0; i < r->observers_n; i++) {
        const struct raft_observer *o = &r->observers[i];
        if (o->id == v->id && uuid_eq(o->directory_id, v->directory_id))
            return o->progress.caught_up_ms >= 0 &&
                   o->progress.fetched_ms + silent_max_ms > r->now.wall_ms;
    }
    return false;
}

static void take_candidate(struct raft *r, const struct api_versions_response *resp)
{
    struct voter *v = &r->change.voter;
    for (int32_t i = 0; i < resp->supported_features.n; i++) {
        const struct api_versions_response_supported_feature_key *f =
            &resp->supported_features.v[i];
        if (!str_eq(f->name, STR_LIT("kraft.version")))
            continue;
        v->kraft_min = f->min_version;
        v->kraft_max = f->max_version;
    }
    if (r->kraft_version < v->kraft_min || r->kraft_version > v->kraft_max) {
        end_change(r, K_INVALID_REQUEST);
        return;
    }
    if (!is_caught_up(r, v)) {
        end_change(r, K_REQUEST_TIMED_OUT);
        return;
    }
    struct voter_set set = r->voters;
    set.v[set.n++] = *v;
    write(r, &set);
}

bool raft_candidate_answered(struct raft *r, struct raft_link *l, enum err e, const void *response)
{
    const struct api_versions_response *resp = response;
    if (r->change.phase != CHANGE_ASKS || l->id != r->change.voter.id)
        return true;
    if (e != ERR_NONE || resp->error_code != K_NONE)
        end_change(r, K_REQUEST_TIMED_OUT);
    else
        take_candidate(r, resp);
    return e == ERR_NONE;
}

/* ------------------------------------------------------------------ RemoveRaftVoter */

static int16_t check_remove(struct raft *r, const struct remove_raft_voter_request *in)
{
    int16_t error = check_leading(r, in->cluster_id);
    if (error != K_NONE)
        return error;
    if (in->voter_id < 0 || uuid_is_zero(in->voter_directory_id))
        return K_INVALID_REQUEST;
    error = check_change(r);
    if (error != K_NONE)
        return error;
    return raft_voter_index(r, in->voter_id, in->voter_directory_id) < 0 || r->voters.n == 1
               ? K_VOTER_NOT_FOUND
               : K_NONE;
}

void raft_remove_voter(struct raft *r, struct raft_op *op,
                       const struct remove_raft_voter_request *in,
                       struct remove_raft_voter_response *out, struct now now)
{
    r->now = now;
    raft_op_begin(r, op, in, out);
    wire_default(&wire_remove_raft_voter_response, out);
    out->error_code = check_remove(r, in);
    if (out->error_code != K_NONE) {
        raft_op_ready(r, op, ERR_NONE);
        return;
    }
    begin(r, op, false, REMOVE_TIMEOUT_MS);
    struct voter_set set = r->voters;
    const int32_t i = raft_voter_index(r, in->voter_id, in->voter_directory_id);
    memmove(&set.v[i], &set.v[i + 1], (size_t)(set.n - i - 1) * sizeof set.v[0]);
    set.n--;
    write(r, &set);
}
