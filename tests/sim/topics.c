/* What clients know of the lives of topics: a name means one after the other, and a node that lags
 * may still tell of one that is gone. */
#include "base/check.h"
#include "client.h"

static bool is_gone(const struct sim_topic *t, struct uuid id)
{
    for (size_t i = 0; i < t->gone_n; i++)
        if (uuid_eq(t->gone[i], id))
            return true;
    return false;
}

void sim_topic_found(struct sim_topic *t, struct uuid id, int32_t partitions_n)
{
    if (is_gone(t, id))
        return;
    if (!uuid_eq(t->id, id))
        t->partitions_n = 0;
    t->id = id;
    if (partitions_n > t->partitions_n)
        t->partitions_n = partitions_n;
    CHECK(t->partitions_n <= PARTITIONS_MAX);
}

void sim_topic_leaves(struct sim_topic *t)
{
    CHECK(t->gone_n < TOPIC_LIVES_MAX);
    t->gone[t->gone_n++] = t->id;
    t->id = (struct uuid){{0}};
    t->partitions_n = 0;
}
