/* A follower's log gives way to its leader's (KIP-101, KIP-279, KIP-595): it is cut where the two
 * part, also below the high watermark that we knew, or begins anew where the leader's starts. */
#include "core/replica/fetcher.h"
#include "core/replica/inside.h"
#include "wire/error.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The leader's epoch and end may be of an epoch that we do not have: then our own largest one below
 * it ends where we cut, and the next fetch, which names it, finds out more (S3). */
int64_t follow_truncation_point(const struct partition *p, int32_t epoch, int64_t end)
{
    const int64_t own_end = log_end_offset(p->log);
    int32_t own_epoch;
    int64_t own_epoch_end;
    if (end < 0)
        return p->high_watermark;
    if (epoch < 0)
        return smaller(end, own_end);
    log_end_offset_for_epoch(p->log, epoch, &own_epoch, &own_epoch_end);
    if (own_epoch < 0)
        return smaller(end, own_end);
    if (own_epoch == epoch)
        return smaller(smaller(own_epoch_end, end), own_end);
    return smaller(own_epoch_end, own_end);
}

/* Nothing of p is what it was. */
static void log_cut(struct partition *p)
{
    struct replicas *rs = p->rs;
    const int64_t start = log_start_offset(p->log);
    produce_cut(p, K_NOT_LEADER_OR_FOLLOWER); /* of an old leadership, never written */
    p->high_watermark = partition_within_log(p, p->high_watermark);
    if (p->saved_start > start)
        p->saved_start = start;
    rs->hws_changed = rs->recovery_changed = rs->starts_changed = true;
    replicas_mark_dirty(p);
    partition_changed(p);
}

/* Without memory nothing was cut: later. Anything else took the log directory with it. */
static bool cut_ended(struct follow *fw, enum err e)
{
    struct partition *p = fw->p;
    log_cut(p);
    if (e == ERR_NONE) {
        follow_set_state(fw, FOLLOW_FETCHING);
        return true;
    }
    env_log(p->rs->env, LOG_WARN, "truncation_failed partition=%s-%d error=%s", p->topic, p->index,
            err_name(e));
    if (e == ERR_NOMEM) {
        follow_delay(fw);
        return false;
    }
    follow_set_state(fw, FOLLOW_FAILED);
    partition_log_fail(p, e, "a log cannot be truncated");
    return false;
}

bool follow_truncate(struct follow *fw, int64_t x)
{
    struct partition *p = fw->p;
    const bool unsafe = x < p->high_watermark;
    env_log(p->rs->env, unsafe ? LOG_WARN : LOG_INFO,
            "truncated partition=%s-%d from=%lld to=%lld high_watermark=%lld", p->topic, p->index,
            (long long)log_end_offset(p->log), (long long)x, (long long)p->high_watermark);
    return cut_ended(fw, log_truncate_to(p->log, x, p->rs->now));
}

bool follow_restart_at(struct follow *fw, int64_t x)
{
    struct partition *p = fw->p;
    env_log(p->rs->env, LOG_WARN, "log_restarted partition=%s-%d from=%lld at=%lld", p->topic,
            p->index, (long long)log_end_offset(p->log), (long long)x);
    const enum err e = log_reset(p->log, x, p->rs->now);
    if (e == ERR_NONE)
        p->saved_start = p->saving_start = x; /* its file's name says so */
    fw->within = 0;
    return cut_ended(fw, e);
}
