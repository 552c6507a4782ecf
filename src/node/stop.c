/* Stopping cleanly: the controller moves our leaderships away (a sole broker fences itself), then
 * the quorum's leadership goes to another voter and waiting requests end, then logs are flushed and
 * closed and the clean-shutdown marker is written. It takes as long as it gets on: thousands of
 * logs on a slow disk take their time. A stop that hangs is cut short by a timer: the next start
 * recovers.
 *
 * Without a controller nobody takes our leaderships: who stops all nodes of a cluster does not want
 * the last one to wait for it. Nor does one wait for ever whom the controller does not let go, as
 * while another broker hears nothing and keeps its place. */
#include "node/inside.h"

#include <stdio.h>

enum {
    STOP_STEP_MAX_US = 15 * 1000 * 1000,
    TELL_MAX_US = 250 * 1000,
    UNANSWERED_MAX_US = 5 * 1000 * 1000, /* longer than it takes to elect another controller */
};

static void end(struct node *n)
{
    n->phase = PHASE_END;
}

static void mark_run(struct job *j, struct disk *d)
{
    struct node *n = CONTAINER_OF(j, struct node, mark.job);
    for (size_t i = 0; i < n->directory.log_dirs_n; i++) {
        struct node_log_dir *ld = &n->directory.all[i];
        if (ld->mark)
            ld->mark_err = clean_shutdown_write(d, ld->path, n->broker_epoch_at_stop);
    }
}

static void mark_done(struct job *j)
{
    struct node *n = CONTAINER_OF(j, struct node, mark.job);
    for (size_t i = 0; i < n->directory.log_dirs_n; i++) {
        const struct node_log_dir *ld = &n->directory.all[i];
        if (ld->mark_err != ERR_NONE)
            env_log(n->env, LOG_WARN, "clean_shutdown_marker path=%s error=%s", ld->path,
                    err_name(ld->mark_err));
    }
    end(n);
}

/* Those in which all went well. */
static bool choose_marks(struct node *n)
{
    bool any = false;
    for (size_t i = 0; i < n->directory.log_dirs_n; i++) {
        n->directory.all[i].mark = replicas_closed_clean(n->replicas, i);
        any |= n->directory.all[i].mark;
    }
    return any;
}

static void logs_closed(void *ctx, bool clean)
{
    struct node *n = ctx;
    (void)clean;
    if (!choose_marks(n)) {
        end(n);
        return;
    }
    n->phase = PHASE_MARK;
    n->broker_epoch_at_stop = broker_epoch(n->broker);
    n->mark.job = (struct job){.lane = JOB_SYNC, .run = mark_run, .done = mark_done};
    n->env->submit(n->env, &n->mark.job);
}

static void raft_closed(void *ctx, enum err e)
{
    struct node *n = ctx;
    if (e != ERR_NONE)
        env_log(n->env, LOG_WARN, "metadata_log_close error=%s", err_name(e));
    n->raft = NULL;
}

/* Nobody is spoken to any more but those who are to lead the quorum. */
static void begin_drain(struct node *n)
{
    n->phase = PHASE_DRAIN;
    n->api.raft = NULL;
    timer_cancel(&n->timers, &n->answer_timer);
    timer_cancel(&n->timers, &n->tell_timer);
    for (size_t i = 0; i < NODE_CHANNELS; i++)
        if (n->channels[i] != NULL)
            channel_stop(n->channels[i]);
    if (n->is_controller)
        controller_resign(n->controller);
    rpc_stop(n->rpc, n->now);
    raft_close(n->raft, raft_closed, n);
}

static bool begin_close_logs(struct node *n)
{
    if (n->raft != NULL || rpc_running_n(n->rpc) > 0)
        return false;
    if (!n->is_broker) {
        end(n);
        return true;
    }
    n->phase = PHASE_CLOSE_LOGS;
    groups_close(n->groups, n->now);
    replicas_close(n->replicas, logs_closed, n, n->now);
    return true;
}

static void unanswered(struct timer *t);

/* Looks again later whether the controller has answered meanwhile. */
static enum err watch_answers(struct node *n)
{
    n->answers_seen_n = broker_answers_n(n->broker);
    n->answer_timer.fire = unanswered;
    return timer_arm(&n->timers, &n->answer_timer, n->now.mono_us + UNANSWERED_MAX_US);
}

static void give_up(struct node *n, const char *why)
{
    env_log(n->env, LOG_WARN, "controlled_shutdown_given_up reason=\"%s\"", why);
    begin_drain(n);
}

static void unanswered(struct timer *t)
{
    struct node *n = CONTAINER_OF(t, struct node, answer_timer);
    if (broker_answers_n(n->broker) != n->answers_seen_n && watch_answers(n) == ERR_NONE)
        return;
    give_up(n, "no controller answers");
}

static size_t closing_logs(const struct node *n)
{
    return n->replicas == NULL ? 0 : replicas_closing_n(n->replicas);
}

static void stop_late(struct timer *t);

/* Looks again later whether the stop got on. */
static enum err watch_stop(struct node *n)
{
    n->stop_seen.phase = n->phase;
    n->stop_seen.logs_n = closing_logs(n);
    n->stop_timer.fire = stop_late;
    return timer_arm(&n->timers, &n->stop_timer, n->now.mono_us + STOP_STEP_MAX_US);
}

static void stop_late(struct timer *t)
{
    struct node *n = CONTAINER_OF(t, struct node, stop_timer);
    bool moved = n->phase != n->stop_seen.phase || closing_logs(n) != n->stop_seen.logs_n;
    if (!moved && n->phase == PHASE_FENCE) {
        give_up(n, "the controller keeps this broker");
        moved = true;
    }
    if (!moved || watch_stop(n) != ERR_NONE)
        node_fail(n, false, "stopping did not get on for %d ms", STOP_STEP_MAX_US / 1000);
}

void node_stop(struct node *n, struct now now)
{
    n->now = now;
    if (n->state != NODE_STARTING && n->state != NODE_READY)
        return;
    const bool registered = n->is_broker && n->state == NODE_READY;
    n->state = NODE_STOPPING;
    if (watch_stop(n) != ERR_NONE || (registered && watch_answers(n) != ERR_NONE)) {
        node_fail(n, false, "out of memory while stopping");
        return;
    }
    if (registered) {
        n->phase = PHASE_FENCE;
        broker_stop(n->broker, now);
        replicas_begin_shutdown(n->replicas);
    } else if (n->raft == NULL) {
        /* nothing was promised yet and a worker may still read: stop as by kill */
        node_fail(n, false, "stopped while starting");
    } else {
        begin_drain(n);
    }
}

static void told_enough(struct timer *t)
{
    (void)t; /* the settle that follows looks */
}

/* Who leads the quorum lets the others hear of what was committed last, our own fence among it: of
 * the next leader they would hear it after its election, and meanwhile leaders of partitions would
 * wait for a follower that is gone. */
static bool others_know(struct node *n)
{
    if (raft_commits_known(n->raft, n->now))
        return true;
    if (n->telling)
        return !timer_armed(&n->tell_timer);
    n->telling = true;
    n->tell_timer.fire = told_enough;
    return timer_arm(&n->timers, &n->tell_timer, n->now.mono_us + TELL_MAX_US) != ERR_NONE;
}

bool node_settle_stop(struct node *n)
{
    switch (n->phase) {
    case PHASE_FENCE:
        if (broker_state(n->broker) != BROKER_STOPPED || !others_know(n))
            return false;
        begin_drain(n);
        return true;
    case PHASE_DRAIN:
        return begin_close_logs(n);
    case PHASE_END:
        timer_cancel(&n->timers, &n->stop_timer);
        n->state = NODE_STOPPED;
        return true;
    case PHASE_DIRECTORY:
    case PHASE_METADATA:
    case PHASE_REGISTER:
    case PHASE_SERVE:
    case PHASE_CLOSE_LOGS:
    case PHASE_MARK:
        return false;
    }
    return false;
}
