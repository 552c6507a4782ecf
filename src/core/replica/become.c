/* Becoming leader or follower as the committed metadata says (replication.md 2 and 4). */
#include <stdlib.h>

#include "base/check.h"
#include "core/metadata/kafka_error.h"
#include "core/replica/inside.h"

static enum err copy_ids(int32_t **to, int32_t *to_n, const int32_t *from, int32_t n)
{
    int32_t *v = malloc(((size_t)n + 1) * sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    if (n > 0)
        memcpy(v, from, (size_t)n * sizeof *v);
    free(*to);
    *to = v;
    *to_n = n;
    return ERR_NONE;
}

/* The followers of a new assignment; what we know of one that stays is kept. */
static enum err rebuild_followers(struct partition *p)
{
    struct follower *v = calloc((size_t)p->replicas_n + 1, sizeof *v);
    int32_t n = 0;
    if (v == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < p->replicas_n; i++) {
        if (p->replicas[i] == p->rs->node_id)
            continue;
        const struct follower *known = partition_follower(p, p->replicas[i]);
        v[n++] = known != NULL ? *known : follower_unheard(p->replicas[i]);
    }
    free(p->followers);
    p->followers = v;
    p->followers_n = n;
    return ERR_NONE;
}

/* A new leader epoch knows nothing of its followers' logs: they may have truncated meanwhile (S32).
 */
static void forget_followers(struct partition *p, struct now now)
{
    for (int32_t i = 0; i < p->followers_n; i++) {
        struct follower *f = &p->followers[i];
        *f = follower_unheard(f->id);
        if (partition_in_isr(p, f->id))
            f->last_caught_up_us = now.mono_us;
    }
}

/* Leads leader_epoch from the log's end on; what a former epoch staged still belongs to that. */
static enum err begin_leading(struct partition *p, struct now now)
{
    p->leader_epoch_start = log_staged_end(p->log);
    enum err e = log_assign_epoch(p->log, p->leader_epoch, p->leader_epoch_start);
    if (e != ERR_NONE)
        return e;
    forget_followers(p, now);
    fetch_began_leading(p->rs, now);
    return ERR_NONE;
}

/* This life of the broker is registered, and the image has heard of it. Before that what it says of
 * us is of a former life, whose log may have been longer: an epoch that began at our end now would
 * hide from the leader where our logs part. Whoever registers leads nothing at first. */
static bool is_registered(const struct replicas *rs)
{
    const int64_t epoch = rs->broker_epoch == NULL ? 0 : rs->broker_epoch(rs->events.ctx);
    const struct image_broker *b = image_broker(rs->image, rs->node_id);
    return epoch >= 0 && (b == NULL || b->epoch >= epoch);
}

enum err partition_apply(struct partition *p, const struct image_partition *ip, struct now now)
{
    /* The same one again, after an answer of AlterPartition told it: what is pending by now was
     * decided on top of it. */
    if (ip->partition_epoch < p->partition_epoch ||
        (ip->partition_epoch == p->partition_epoch && p->change != NULL))
        return ERR_NONE;
    const bool new_epoch = ip->leader_epoch > p->leader_epoch;
    const bool leads =
        ip->leader == p->rs->node_id && ((p->leading && !new_epoch) || is_registered(p->rs));
    enum err e = copy_ids(&p->replicas, &p->replicas_n, ip->replicas, ip->replicas_n);
    if (e == ERR_NONE)
        e = copy_ids(&p->isr, &p->isr_n, ip->isr, ip->isr_n);
    if (e == ERR_NONE)
        e = rebuild_followers(p);
    if (e != ERR_NONE)
        return e;
    partition_drop_isr_change(p);
    p->partition_epoch = ip->partition_epoch;
    p->leader_epoch = ip->leader_epoch;
    p->leader = ip->leader;
    const bool was_leading = p->leading;
    p->leading = leads;
    if (was_leading && !leads)
        delete_records_fail(p, K_NOT_LEADER_OR_FOLLOWER);
    if (was_leading && (!leads || new_epoch))
        produce_step_down(p, K_NOT_LEADER_OR_FOLLOWER);
    if (leads && (new_epoch || !was_leading) && p->log != NULL)
        e = begin_leading(p, now);
    if (e == ERR_NONE)
        e = follow_update(p, new_epoch);
    isr_led_changed(p);
    partition_changed(p);
    replicas_mark_dirty(p);
    return e;
}

enum err partition_log_ready(struct partition *p, struct log *log, int64_t high_watermark,
                             struct now now)
{
    CHECK(p->log == NULL);
    p->log = log;
    p->high_watermark = partition_within_log(p, high_watermark);
    p->promised = p->seen_end = -1;
    p->saved_start = p->saving_start = log_start_offset(log);
    if (p->saved_start > log_files_start(log))
        list_append(&p->rs->raised, &p->raised);
    /* What a killed process had written and not synced was recovered: where promises count to the
     * synced end it has to be synced before anybody may read it again. */
    if (log_promised_end(log) < log_end_offset(log))
        log_flush(log, log_end_offset(log));
    replicas_mark_dirty(p);
    directory_sender_look(p);
    return p->leading ? begin_leading(p, now) : follow_update(p, true);
}

void partition_free(struct partition *p)
{
    CHECK(list_empty(&p->writing) && list_empty(&p->promising) && list_empty(&p->replicating));
    CHECK(list_empty(&p->watchers) && list_empty(&p->coordinators) && list_empty(&p->deleting));
    list_remove(&p->all);
    list_remove(&p->dirty);
    list_remove(&p->led);
    list_remove(&p->misplaced);
    list_remove(&p->raised);
    if (p->dir != NULL)
        p->dir->partitions_n--;
    follow_end(p);
    partition_drop_isr_change(p);
    free(p->leaving);
    free(p->topic);
    free(p->replicas);
    free(p->isr);
    free(p->followers);
    free(p);
}

int16_t partition_replica_error(const struct partition *p)
{
    if (partition_offline(p))
        return K_KAFKA_STORAGE_ERROR;
    if (p->log == NULL)
        return K_NOT_LEADER_OR_FOLLOWER;
    return log_is_offline(p->log) ? K_KAFKA_STORAGE_ERROR : K_NONE;
}

int16_t partition_leader_error(const struct partition *p)
{
    const int16_t error = partition_replica_error(p);
    return error == K_NONE && !p->leading ? K_NOT_LEADER_OR_FOLLOWER : error;
}

static int16_t compare_epochs(const struct partition *p, int32_t current_leader_epoch)
{
    if (partition_offline(p))
        return K_KAFKA_STORAGE_ERROR;
    if (current_leader_epoch >= 0 && current_leader_epoch < p->leader_epoch)
        return K_FENCED_LEADER_EPOCH;
    return current_leader_epoch > p->leader_epoch ? K_UNKNOWN_LEADER_EPOCH : K_NONE;
}

int16_t partition_check_epoch(const struct partition *p, int32_t current_leader_epoch)
{
    const int16_t error = compare_epochs(p, current_leader_epoch);
    return error == K_NONE ? partition_leader_error(p) : error;
}

int16_t partition_check_reader(const struct partition *p, int32_t current_leader_epoch)
{
    const int16_t error = compare_epochs(p, current_leader_epoch);
    return error == K_NONE ? partition_replica_error(p) : error;
}

int64_t partition_limit(const struct partition *p, bool read_committed)
{
    return read_committed ? log_last_stable_offset(p->log, p->high_watermark) : p->high_watermark;
}
