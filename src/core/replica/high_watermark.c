/* The high watermark rule (replication.md 2):
 *
 *     min(LEO, { LEO_r : r in maximal ISR, or r caught up and eligible })
 *
 * set only if greater, and not at all while the committed ISR is under the effective minimum
 * (KIP-966). Counting the maximal ISR is what makes a pending expansion safe (KAFKA-8836), counting
 * caught-up outsiders lets them join at all (KAFKA-9672's other side). */
#include "core/replica/inside.h"

int32_t partition_effective_min_isr(const struct partition *p)
{
    const int32_t min = p->config.min_insync_replicas;
    return min < p->replicas_n ? min : p->replicas_n;
}

bool follower_caught_up(const struct follower *f, int64_t leader_end, int64_t now_us,
                        int64_t lag_max_us)
{
    return f->end_offset >= leader_end || now_us - f->last_caught_up_us <= lag_max_us;
}

static bool assigned(const struct partition *p, int32_t id)
{
    for (int32_t i = 0; i < p->replicas_n; i++)
        if (p->replicas[i] == id)
            return true;
    return false;
}

bool partition_eligible(const struct partition *p, const struct follower *f)
{
    const struct image_broker *b = image_broker(p->rs->image, f->id);
    return assigned(p, f->id) && b != NULL && !b->fenced && !b->in_controlled_shutdown &&
           (f->broker_epoch == -1 || f->broker_epoch == b->epoch);
}

bool partition_in_maximal_isr(const struct partition *p, int32_t id)
{
    if (p->isr_state == ISR_PENDING_EXPAND && p->pending_member == id)
        return true;
    return partition_in_isr(p, id);
}

int32_t partition_maximal_isr_n(const struct partition *p)
{
    return p->isr_n + (p->isr_state == ISR_PENDING_EXPAND ? 1 : 0);
}

int64_t partition_within_log(const struct partition *p, int64_t hw)
{
    const int64_t end = log_end_offset(p->log), start = log_start_offset(p->log);
    if (hw > end)
        hw = end;
    return hw < start ? start : hw;
}

bool partition_advance_high_watermark(struct partition *p, int64_t own_end, int64_t now_us,
                                      int64_t lag_max_us)
{
    if (p->isr_n < partition_effective_min_isr(p))
        return false;
    int64_t hw = own_end;
    for (int32_t i = 0; i < p->followers_n; i++) {
        const struct follower *f = &p->followers[i];
        const bool counts =
            partition_in_maximal_isr(p, f->id) ||
            (follower_caught_up(f, own_end, now_us, lag_max_us) && partition_eligible(p, f));
        if (counts && f->end_offset < hw)
            hw = f->end_offset;
    }
    if (hw <= p->high_watermark)
        return false;
    p->high_watermark = hw;
    return true;
}
