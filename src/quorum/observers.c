/* Who fetches from this leader and is no voter: for DescribeQuorum, and for a node that is to
 * become one. Forgotten when silent for 5 minutes. */
#include <stdlib.h>

#include "quorum/inside.h"

enum { OBSERVERS_MAX = 4096 };
static const int64_t silent_max_us = 300 * (int64_t)1000000;

static void forget_silent(struct raft *r)
{
    int32_t n = 0;
    for (int32_t i = 0; i < r->observers_n; i++)
        if (r->observers[i].seen_us + silent_max_us > r->now.mono_us)
            r->observers[n++] = r->observers[i];
    r->observers_n = n;
}

static bool make_room(struct raft *r)
{
    if (r->observers_n < r->observers_cap)
        return true;
    forget_silent(r);
    if (r->observers_n < r->observers_cap || r->observers_cap == OBSERVERS_MAX)
        return r->observers_n < r->observers_cap;
    const int32_t cap = r->observers_cap == 0 ? 8 : 2 * r->observers_cap;
    struct raft_observer *v = realloc(r->observers, (size_t)cap * sizeof *v);
    if (v == NULL)
        return false;
    r->observers = v;
    r->observers_cap = cap;
    return true;
}

struct voter_progress *raft_observer(struct raft *r, int32_t id, struct uuid directory_id)
{
    for (int32_t i = 0; i < r->observers_n; i++) {
        struct raft_observer *o = &r->observers[i];
        if (o->id != id || !uuid_eq(o->directory_id, directory_id))
            continue;
        o->seen_us = r->now.mono_us;
        return &o->progress;
    }
    if (!make_room(r))
        return NULL;
    struct raft_observer *o = &r->observers[r->observers_n++];
    *o = (struct raft_observer){id, directory_id, {-1, -1, -1, -1, -1}, r->now.mono_us};
    return &o->progress;
}

int32_t raft_observers_n(struct raft *r, struct now now)
{
    r->now = now;
    forget_silent(r);
    return r->observers_n;
}

struct raft_replica raft_observer_at(const struct raft *r, int32_t i)
{
    CHECK(i >= 0 && i < r->observers_n);
    const struct raft_observer *o = &r->observers[i];
    return (struct raft_replica){o->id, o->directory_id, o->progress.end, o->progress.fetched_ms,
                                 o->progress.caught_up_ms};
}
