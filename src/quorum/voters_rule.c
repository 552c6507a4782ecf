/* Which voters rule: the newest set of the log up to its end, committed or not (KIP-853). What is
 * known of each voter stays with it when its place in the set moves. */
#include "quorum/control.h"
#include "quorum/inside.h"

bool raft_voters_from_log(const struct raft *r)
{
    return r->history.n > 0 && r->history.v[r->history.n - 1].offset >= 0;
}

struct known {
    struct voter_progress progress;
    enum vote_result vote;
    bool heard, ended;
    int64_t begin_us;
};

static const struct known nothing_known = {
    {-1, -1, -1, -1, -1}, VOTE_NONE, false, false, INT64_MIN};

static struct known get(const struct raft *r, int32_t i)
{
    return (struct known){r->progress[i], r->votes[i], r->heard[i], r->ended[i], r->begin_us[i]};
}

static void put(struct raft *r, int32_t i, struct known k)
{
    r->progress[i] = k.progress;
    r->votes[i] = k.vote;
    r->heard[i] = k.heard;
    r->ended[i] = k.ended;
    r->begin_us[i] = k.begin_us;
}

static void move_known(struct raft *r, const struct voter_set *before)
{
    struct known old[VOTERS_MAX];
    for (int32_t i = 0; i < before->n; i++)
        old[i] = get(r, i);
    for (int32_t i = 0; i < r->voters.n; i++) {
        const struct voter *v = &r->voters.v[i];
        const struct voter *was = voter_set_find(before, v->id, v->directory_id);
        put(r, i, was == NULL ? nothing_known : old[was - before->v]);
    }
}

void raft_voters_changed(struct raft *r)
{
    const struct voter_set before = r->voters;
    if (!voter_history_at(&r->history, INT64_MAX, &r->kraft_version, &r->voters)) {
        r->voters.n = 0;
        r->kraft_version = 0;
    }
    move_known(r, &before);
    raft_note_membership(r);
    raft_fit_timer(r);
}

void raft_cut_voters(struct raft *r, int64_t x)
{
    if (voter_history_truncate(&r->history, x))
        raft_voters_changed(r);
}

enum err raft_take_control(struct raft *r, const struct batch *b)
{
    struct voter_set set = r->voters;
    int16_t version = r->kraft_version;
    bool has_set = false;
    enum err e = control_read(b, &version, &set, &has_set);
    if (e != ERR_NONE || (!has_set && version == r->kraft_version))
        return e;
    e = voter_history_add(&r->history, b->base_offset, version, &set);
    if (e == ERR_NONE)
        raft_voters_changed(r);
    return e;
}
