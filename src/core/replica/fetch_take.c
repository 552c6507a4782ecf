/* What a leader answered a fetch: each partition is taken only when it is still what was asked for,
 * then appended and written at once, so that the answer's own memory is written from. */
#include "core/replica/fetcher.h"
#include "core/replica/inside.h"
#include "wire/error.h"

static void note(const struct follow *fw, const char *what, int code)
{
    const struct partition *p = fw->p;
    env_log(p->rs->env, LOG_INFO, "fetch_%s partition=%s-%d leader=%d epoch=%d code=%d", what,
            p->topic, p->index, p->leader, p->leader_epoch, code);
}

/* ------------------------------------------------------------------ appending */

/* What was staged and not written is taken back: its bytes are about to go. The epochs of it too.
 */
static bool unstage(struct follow *fw)
{
    struct partition *p = fw->p;
    return !log_dirty(p->log) || follow_truncate(fw, log_end_offset(p->log));
}

static void append_failed(struct follow *fw, enum err e)
{
    struct partition *p = fw->p;
    if (!unstage(fw))
        return;
    switch (e) {
    case ERR_AGAIN: /* a directory is being made, or a cut synced: the log tells */
        follow_set_state(fw, FOLLOW_WAITING);
        return;
    case ERR_CORRUPT:
    case ERR_NOMEM:
    case ERR_NOSPC:
    case ERR_NFILE:
    case ERR_EXIST:
        env_log(p->rs->env, LOG_WARN, "replica_append_failed partition=%s-%d error=%s", p->topic,
                p->index, err_name(e));
        follow_delay(fw);
        return;
    default:
        follow_set_state(fw, FOLLOW_FAILED);
        partition_log_fail(p, e, "a write failed");
    }
}

/* A leader whose log begins within a batch: an empty log begins with that batch, which is asked for
 * again once that is on disk. */
static bool begins_before(struct follow *fw, struct bytes records)
{
    struct partition *p = fw->p;
    const int64_t end = log_end_offset(p->log);
    struct batch first;
    if (log_start_offset(p->log) < end || batch_parse(records, &first) != ERR_NONE ||
        first.base_offset < 0 || first.base_offset >= end || batch_last_offset(&first) < end)
        return false;
    if (follow_restart_at(fw, first.base_offset))
        fw->within = end;
    return true;
}

/* False: the partition's state says why. */
static bool append(struct follow *fw, const struct wire_records *records)
{
    struct partition *p = fw->p;
    const struct bytes in = {records->p, records->n};
    const int64_t end = log_end_offset(p->log);
    size_t n;
    if (in.n <= 0)
        return true;
    if (begins_before(fw, in))
        return false;
    enum err e = log_stage_follower(p->log, in, p->leader_epoch, p->rs->now, &n);
    if (e == ERR_NONE && n > 0)
        e = log_write(p->log, p->rs->now);
    if (e != ERR_NONE) {
        append_failed(fw, e);
        return false;
    }
    if (log_end_offset(p->log) == end) { /* less than a batch, or all of a later epoch (S12) */
        note(fw, "nothing_taken", K_NONE);
        follow_delay(fw);
        return false;
    }
    p->rs->recovery_changed = true;
    replicas_mark_dirty(p);
    follow_changed(fw);
    return true;
}

/* ------------------------------------------------------------------ what the leader says beside */

static void take_high_watermark(struct partition *p, int64_t leaders)
{
    const int64_t hw = partition_within_log(p, leaders);
    if (hw == p->high_watermark)
        return;
    p->high_watermark = hw;
    p->rs->hws_changed = true;
    partition_changed(p); /* our own readers */
}

/* A start above our high watermark is above our end, or will be told again. */
static void take_log_start(struct follow *fw, int64_t leaders)
{
    struct partition *p = fw->p;
    if (leaders <= log_start_offset(p->log) || leaders > p->high_watermark)
        return;
    enum err e = partition_raise_start(p, leaders);
    if (e == ERR_NONE)
        return;
    env_log(p->rs->env, LOG_WARN, "log_start_failed partition=%s-%d error=%s", p->topic, p->index,
            err_name(e));
    follow_delay(fw);
}

static void take_data(struct follow *fw, const struct fetch_response_partition_data *data)
{
    struct partition *p = fw->p;
    fw->retries_n = 0;
    if (!append(fw, &data->records))
        return;
    if ((p->throttled & THROTTLED_FOLLOWER) != 0 && data->records.n > 0)
        throttle_record(&p->rs->follower_throttle, data->records.n, p->rs->now.mono_us);
    fw->behind = data->high_watermark > log_end_offset(p->log);
    take_high_watermark(fw->p, data->high_watermark);
    take_log_start(fw, data->log_start_offset);
}

/* Our last epoch ends elsewhere in the leader's log. One that we cannot follow would be told for
 * ever. */
static void take_divergence(struct follow *fw, int32_t epoch, int64_t end)
{
    struct partition *p = fw->p;
    const int64_t old_end = log_end_offset(p->log);
    const size_t old_epochs_n = log_epochs(p->log)->n;
    if (!follow_truncate(fw, follow_truncation_point(p, epoch, end)))
        return;
    if (log_end_offset(p->log) == old_end && log_epochs(p->log)->n == old_epochs_n)
        follow_delay(fw);
}

/* ------------------------------------------------------------------ errors */

static void take_error(struct follow *fw, int16_t error)
{
    note(fw, "refused", error);
    switch (error) {
    case K_OFFSET_OUT_OF_RANGE:
        follow_set_state(fw, FOLLOW_LATEST);
        return;
    case K_FENCED_LEADER_EPOCH: /* ours, which is what was asked with: newer metadata is coming */
        follow_set_state(fw, FOLLOW_FAILED);
        return;
    case K_UNKNOWN_LEADER_EPOCH: /* metadata that the leader lacks is on its way there, too */
    case K_NOT_LEADER_OR_FOLLOWER:
    case K_UNKNOWN_TOPIC_ID:
    case K_UNKNOWN_TOPIC_OR_PARTITION:
        follow_retry(fw);
        return;
    default:
        follow_delay(fw);
    }
}

/* ------------------------------------------------------------------ one partition */

/* KAFKA-18991: an answer to what was asked in an older state says nothing of this one. */
static bool asked_for(const struct follow *fw)
{
    return fw->state == FOLLOW_FETCHING && fw->asked && fw->asked_offset == follow_offset(fw) &&
           !log_dirty(fw->p->log);
}

static void take_partition(struct fetcher *f, struct uuid topic_id,
                           const struct fetch_response_partition_data *data)
{
    const struct partition *p = replicas_find(f->rs, topic_id, data->partition_index);
    struct follow *fw = p == NULL ? NULL : p->follow;
    if (fw == NULL || fw->fetcher != f)
        return;
    if (!asked_for(fw)) {
        follow_changed(fw); /* so that the session tells it again */
        return;
    }
    if (data->error_code != K_NONE)
        take_error(fw, data->error_code);
    else if (data->diverging_epoch.epoch >= 0) /* nothing beside it counts (KAFKA-14704) */
        take_divergence(fw, data->diverging_epoch.epoch, data->diverging_epoch.end_offset);
    else
        take_data(fw, data);
}

/* ------------------------------------------------------------------ the answer */

static bool session_lost(int16_t error)
{
    return error == K_FETCH_SESSION_ID_NOT_FOUND || error == K_INVALID_FETCH_SESSION_EPOCH ||
           error == K_FETCH_SESSION_TOPIC_ID_ERROR;
}

static void take_session(struct fetcher *f, int32_t session_id)
{
    if (session_id == 0)
        f->session_epoch = 0;
    else
        f->session_epoch = f->session_epoch == INT32_MAX ? 1 : f->session_epoch + 1;
    f->session_id = session_id;
}

/* Those that were asked for without a session are all to be asked for again. */
void fetcher_take_fetch(struct fetcher *f, const struct fetch_response *resp)
{
    if (session_lost(resp->error_code)) {
        f->session_id = f->session_epoch = 0;
        return;
    }
    if (resp->error_code != K_NONE) {
        f->session_epoch = 0;
        fetcher_back_off(f);
        return;
    }
    f->failures_n = 0;
    take_session(f, resp->session_id);
    for (int32_t i = 0; i < resp->responses.n; i++)
        for (int32_t k = 0; k < resp->responses.v[i].partitions.n; k++)
            take_partition(f, resp->responses.v[i].topic_id, &resp->responses.v[i].partitions.v[k]);
}
