/* What a follower's fetch tells its leader (KIP-16): caught up when it asks for our end, or for
 * what was our end when it asked before; silence of an idle partition's follower does not count. */
#include "core/replica/inside.h"

struct follower *partition_follower(const struct partition *p, int32_t id)
{
    for (int32_t i = 0; i < p->followers_n; i++)
        if (p->followers[i].id == id)
            return &p->followers[i];
    return NULL;
}

struct follower follower_unheard(int32_t id)
{
    return (struct follower){
        .id = id,
        .end_offset = -1,
        .log_start = -1,
        .last_fetch_us = FOLLOWER_NEVER_US,
        .last_caught_up_us = FOLLOWER_NEVER_US,
        .broker_epoch = -1,
    };
}

void follower_fetched(struct follower *f, int64_t fetch_offset, int64_t log_start,
                      int64_t leader_end, int64_t broker_epoch, int64_t now_us)
{
    int64_t caught_up = f->last_caught_up_us;
    if (fetch_offset >= leader_end && now_us > caught_up)
        caught_up = now_us;
    else if (fetch_offset >= f->last_fetch_leader_end && f->last_fetch_us > caught_up)
        caught_up = f->last_fetch_us;
    f->last_caught_up_us = caught_up;
    f->end_offset = fetch_offset;
    f->log_start = log_start;
    if (leader_end > f->last_fetch_leader_end)
        f->last_fetch_leader_end = leader_end;
    f->last_fetch_us = now_us;
    f->broker_epoch = broker_epoch;
}

void follower_repeated(struct follower *f, int64_t now_us)
{
    if (now_us > f->last_caught_up_us)
        f->last_caught_up_us = now_us;
    if (now_us > f->last_fetch_us)
        f->last_fetch_us = now_us;
}
