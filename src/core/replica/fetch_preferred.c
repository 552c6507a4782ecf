/* Reading from the closest replica (KIP-392): a leader with a selector sends a consumer that tells
 * its rack to the in-sync replica there that has most. */
#include "core/replica/inside.h"

static const char rack_aware[] = "org.apache.kafka.common.replica.RackAwareReplicaSelector";

static bool in_rack(const struct image_broker *b, struct str rack)
{
    return b != NULL && b->rack != NULL && str_eq(str_of(b->rack), rack);
}

/* It has what the reader asks for, and can be reached. */
static bool serves(const struct partition *p, const struct follower *f, struct str rack,
                   int64_t offset)
{
    const struct image_broker *b = image_broker(p->rs->image, f->id);
    return in_rack(b, rack) && !b->fenced && partition_in_isr(p, f->id) && f->log_start <= offset &&
           f->end_offset >= offset;
}

static bool better(const struct follower *f, const struct follower *than)
{
    if (than == NULL || f->end_offset != than->end_offset)
        return than == NULL || f->end_offset > than->end_offset;
    return f->last_caught_up_us > than->last_caught_up_us;
}

int32_t partition_preferred_replica(const struct fetch_state *st, const struct fetch_part *part,
                                    const struct partition *p)
{
    const struct replicas *rs = p->rs;
    const struct str rack = st->op->request->rack_id;
    const struct follower *best = NULL;
    if (!rs->rack_aware || !st->any_replica || !p->leading || rack.n <= 0 ||
        in_rack(image_broker(rs->image, rs->node_id), rack))
        return -1;
    for (int32_t i = 0; i < p->followers_n; i++)
        if (serves(p, &p->followers[i], rack, part->fetch_offset) && better(&p->followers[i], best))
            best = &p->followers[i];
    return best == NULL ? -1 : best->id;
}

bool fetch_is_rack_aware(const struct config *c)
{
    const char *selector = config_text(c, "replica.selector.class");
    return selector != NULL && strcmp(selector, rack_aware) == 0;
}
