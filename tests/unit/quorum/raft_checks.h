/* What must be true of a world of rafts after every step, and the steps that look. */
#ifndef TEST_RAFT_CHECKS_H
#define TEST_RAFT_CHECKS_H

#include "raft_world.h"

/* Q7: never lowered, never over what a majority of voters has on disk. */
static inline void check_high_watermark(struct machine *m)
{
    const int64_t hw = raft_high_watermark(m->raft);
    W_CHECK(hw >= m->hw_seen);
    if (hw == m->hw_seen)
        return;
    m->hw_seen = hw;
    if (raft_state(m->raft) != RAFT_LEADER)
        return;
    int have = 0;
    const struct voter_set *voters = raft_voters(m->raft);
    for (int i = 0; i < voters->n; i++) {
        const struct machine *v = &w.m[voters->v[i].id - 1];
        have += (v->up ? log_flushed_end(raft_log(v->raft)) : v->flushed_end) >= hw;
    }
    W_CHECK(have > voters->n / 2);
}

/* Q6: a leader has all that was ever committed. */
static inline void check_leader(const struct machine *m)
{
    const struct raft *r = m->raft;
    if (raft_state(r) != RAFT_LEADER || !raft_is_durable(r))
        return;
    const int32_t epoch = raft_epoch(r);
    W_CHECK(w.leader_of[epoch] == 0 || w.leader_of[epoch] == m->id); /* Q1 */
    w.leader_of[epoch] = m->id;
    for (int32_t e = epoch + 1; e < EPOCHS_MAX && e < epoch + 64; e++)
        if (w.leader_of[e] != 0)
            return; /* another leads already, and may have committed more */
    W_CHECK(raft_end_offset(r) >= w.committed_end);
}

static inline void world_step(int i)
{
    struct machine *m = &w.m[i];
    struct raft_message *msg;
    bool moved = true;
    for (int n = 0; n < 100 && moved && m->up; n++) {
        moved = raft_settle(m->raft, w.now);
        while ((msg = raft_next_message(m->raft, w.now)) != NULL)
            send_message(i, msg);
    }
    if (m->up && m->raft->closed != NULL && m->raft->log == NULL) {
        world_gone(i);
        return;
    }
    if (!m->up)
        return;
    W_CHECK(m->failures == 0);
    m->settled = true;
    check_high_watermark(m);
    check_leader(m);
    if (m->job_us == INT64_MAX && m->env.waiting_n > 0)
        m->job_us = w.now.mono_us + 1 + (int64_t)rng_below(&w.rng, (uint64_t)w.job_max_us);
    w.steps++;
}

static inline int64_t next_event_us(int *machine, struct packet **packet)
{
    int64_t at = INT64_MAX;
    struct list *it, *tmp;
    *machine = -1;
    *packet = NULL;
    for (int i = 0; i < w.n; i++) {
        if (!w.m[i].up)
            continue;
        const int64_t t = timers_next_us(&w.m[i].timers);
        const int64_t due = t < w.m[i].job_us ? t : w.m[i].job_us;
        if (due < at) {
            at = due;
            *machine = i;
        }
    }
    LIST_EACH(it, tmp, &w.packets)
    {
        struct packet *p = LIST_ENTRY(it, struct packet, link);
        if (p->at_us < at) {
            at = p->at_us;
            *packet = p;
        }
    }
    return at;
}

static inline void tick(int i)
{
    struct machine *m = &w.m[i];
    if (m->job_us <= w.now.mono_us) {
        m->job_us = INT64_MAX;
        if (m->env.waiting_n > 0)
            memenv_run_nth_job(&m->env, (size_t)rng_below(&w.rng, m->env.waiting_n));
        memenv_reap_jobs(&m->env);
    }
    timers_run(&m->timers, w.now.mono_us);
    world_step(i);
}

/* To the time; true as long as there is an event before it. */
static inline bool world_event(int64_t until_us)
{
    int machine;
    struct packet *packet;
    const int64_t at = next_event_us(&machine, &packet);
    if (at > until_us) {
        w.now.wall_ms += (until_us - w.now.mono_us) / 1000;
        w.now.mono_us = until_us;
        return false;
    }
    if (at > w.now.mono_us) {
        w.now.wall_ms += (at - w.now.mono_us) / 1000;
        w.now.mono_us = at;
    }
    if (packet != NULL)
        deliver(packet);
    else
        tick(machine);
    return true;
}

static inline void world_run(int64_t ms)
{
    const int64_t until = w.now.mono_us + ms * 1000;
    while (world_event(until))
        ;
}

#endif
