/* Which partitions are fetched, by which fetcher, in which state. */
#include <stdlib.h>

#include "base/backoff.h"
#include "core/replica/fetcher.h"
#include "core/replica/inside.h"

/* ------------------------------------------------------------------ states */

/* An entry that there is no memory for: the next fetch is a full one, which says it all. */
static void forget(struct follow *fw)
{
    struct fetcher *f = fw->fetcher;
    if (!fw->in_session)
        return;
    fw->in_session = false;
    if (f->forgotten_n == f->forgotten_cap) {
        const size_t cap = f->forgotten_cap == 0 ? 16 : 2 * f->forgotten_cap;
        struct forgotten *v = realloc(f->forgotten, cap * sizeof *v);
        if (v == NULL) {
            f->full_next = true;
            return;
        }
        f->forgotten = v;
        f->forgotten_cap = cap;
    }
    f->forgotten[f->forgotten_n++] = (struct forgotten){fw->p->topic_id, fw->p->index};
}

/* A pause of that length, by its place among all lengths. */
enum { LONGEST_PAUSE = FETCH_PAUSES - 1, FIRST_PAUSE_US = 10 * 1000 };

static struct list *list_of(const struct follow *fw)
{
    switch (fw->state) {
    case FOLLOW_FETCHING:
        return &fw->fetcher->changed;
    case FOLLOW_DELAYED:
        return &fw->fetcher->delayed[fw->pause];
    case FOLLOW_LATEST:
    case FOLLOW_EARLIEST:
        return &fw->fetcher->ranged;
    case FOLLOW_WAITING:
    case FOLLOW_FAILED:
        break;
    }
    return NULL;
}

void follow_set_state(struct follow *fw, enum follow_state state)
{
    fw->fetcher->fetching_n += (state == FOLLOW_FETCHING) - (fw->state == FOLLOW_FETCHING);
    fw->fetcher->waiting_n += (state == FOLLOW_WAITING) - (fw->state == FOLLOW_WAITING);
    fw->state = state;
    fw->asked = false;
    list_remove(&fw->link);
    if (list_of(fw) != NULL)
        list_append(list_of(fw), &fw->link);
    if (state != FOLLOW_FETCHING)
        forget(fw);
}

void follow_changed(struct follow *fw)
{
    if (fw->state == FOLLOW_FETCHING && list_empty(&fw->link))
        list_append(&fw->fetcher->changed, &fw->link);
}

int64_t follow_offset(const struct follow *fw)
{
    const int64_t end = log_end_offset(fw->p->log);
    const bool empty = log_start_offset(fw->p->log) == end;
    return empty && fw->within > end ? fw->within : end;
}

/* ------------------------------------------------------------------ delays */

int64_t fetch_pause_us(const struct replicas *rs, uint32_t failures_n)
{
    const int64_t most = rs->fetching.backoff_us;
    const int64_t us = backoff_us(FIRST_PAUSE_US, failures_n, LONGEST_PAUSE);
    return failures_n >= LONGEST_PAUSE || us > most ? most : us;
}

static void arm_delay(struct fetcher *f, int64_t at_us)
{
    if (timer_armed(&f->delay) && f->delay.at_us <= at_us)
        return;
    if (timer_arm(f->rs->timers, &f->delay, at_us) != ERR_NONE)
        env_log(f->rs->env, LOG_WARN, "fetch_delay_skipped error=NOMEM");
}

static void end_delays(struct fetcher *f, struct list *delayed)
{
    while (!list_empty(delayed)) {
        struct follow *fw = LIST_ENTRY(delayed->next, struct follow, link);
        if (fw->ready_at_us > f->rs->timers->floor_us) {
            arm_delay(f, fw->ready_at_us);
            return;
        }
        follow_set_state(fw, FOLLOW_FETCHING);
    }
}

static void delay_over(struct timer *t)
{
    struct fetcher *f = CONTAINER_OF(t, struct fetcher, delay);
    for (size_t i = 0; i < FETCH_PAUSES; i++)
        end_delays(f, &f->delayed[i]);
}

static void delay(struct follow *fw, uint32_t pause)
{
    const struct replicas *rs = fw->p->rs;
    fw->ready_at_us = rs->now.mono_us + fetch_pause_us(rs, pause);
    fw->pause = pause;
    follow_set_state(fw, FOLLOW_DELAYED);
    arm_delay(fw->fetcher, fw->ready_at_us);
}

void follow_delay(struct follow *fw)
{
    delay(fw, LONGEST_PAUSE);
}

void follow_retry(struct follow *fw)
{
    delay(fw, fw->retries_n < LONGEST_PAUSE ? fw->retries_n++ : LONGEST_PAUSE);
}

/* ------------------------------------------------------------------ fetchers */

static struct fetcher *find_fetcher(const struct replicas *rs, int32_t leader, int32_t number)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &rs->fetchers)
    {
        struct fetcher *f = LIST_ENTRY(l, struct fetcher, link);
        if (f->leader == leader && f->number == number)
            return f;
    }
    return NULL;
}

static struct fetcher *get_fetcher(struct replicas *rs, int32_t leader, int32_t number)
{
    struct fetcher *f = find_fetcher(rs, leader, number);
    if (f != NULL)
        return f;
    f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->rs = rs;
    f->leader = leader;
    f->number = number;
    f->delay.fire = delay_over;
    list_init(&f->parts);
    list_init(&f->changed);
    for (size_t i = 0; i < FETCH_PAUSES; i++)
        list_init(&f->delayed[i]);
    list_init(&f->ranged);
    list_init(&f->throttled);
    list_init(&f->link);
    fetcher_init(f);
    list_append(&rs->fetchers, &f->link);
    return f;
}

/* Which of a leader's fetchers has a partition. */
static int32_t number_of(const struct partition *p)
{
    uint32_t h = (uint32_t)p->index;
    for (size_t i = 0; i < sizeof p->topic_id.b; i++)
        h = h * 31 + p->topic_id.b[i];
    return (int32_t)(h % (uint32_t)config_int(p->rs->config, "num.replica.fetchers"));
}

/* ------------------------------------------------------------------ following */

/* In controlled shutdown what has no leader, or went on without us, is let go. */
static bool follows(const struct partition *p)
{
    const struct replicas *rs = p->rs;
    return rs->dialing != NULL && !partition_offline(p) && !rs->closing && p->log != NULL &&
           p->leader >= 0 && p->leader != rs->node_id &&
           (!rs->shutting_down || partition_in_isr(p, rs->node_id));
}

/* A log of before leader epochs has only its high watermark to go by. */
static enum err cut_without_epochs(struct partition *p)
{
    if (log_epochs(p->log)->n > 0 || log_end_offset(p->log) <= p->high_watermark)
        return ERR_NONE;
    return log_truncate_to(p->log, p->high_watermark, p->rs->now);
}

static enum err follow_begin(struct partition *p)
{
    enum err e = cut_without_epochs(p);
    if (e != ERR_NONE)
        return e;
    struct fetcher *f = get_fetcher(p->rs, p->leader, number_of(p));
    struct follow *fw = f == NULL ? NULL : calloc(1, sizeof *fw);
    if (fw == NULL)
        return ERR_NOMEM;
    fw->p = p;
    fw->fetcher = f;
    fw->state = FOLLOW_FAILED;
    fw->behind = true;
    list_init(&fw->link);
    list_init(&fw->throttled);
    list_append(&f->parts, &fw->all);
    p->follow = fw;
    follow_throttle_changed(p);
    follow_set_state(fw, FOLLOW_FETCHING);
    return ERR_NONE;
}

void follow_end(struct partition *p)
{
    struct follow *fw = p->follow;
    if (fw == NULL)
        return;
    follow_set_state(fw, FOLLOW_FAILED);
    list_remove(&fw->throttled);
    list_remove(&fw->all);
    free(fw);
    p->follow = NULL;
}

void follow_throttle_changed(struct partition *p)
{
    struct follow *fw = p->follow;
    if (fw == NULL)
        return;
    list_remove(&fw->throttled);
    if ((p->throttled & THROTTLED_FOLLOWER) != 0)
        list_append(&fw->fetcher->throttled, &fw->throttled);
}

enum err follow_update(struct partition *p, bool new_epoch)
{
    const bool wanted = follows(p);
    if (new_epoch || !wanted)
        follow_end(p);
    return wanted && p->follow == NULL ? follow_begin(p) : ERR_NONE;
}

void follow_log_moved(struct partition *p)
{
    if (p->follow != NULL && p->follow->state == FOLLOW_WAITING)
        follow_set_state(p->follow, FOLLOW_FETCHING);
}

void follow_log_start_moved(struct partition *p)
{
    if (p->follow != NULL)
        follow_changed(p->follow);
}

void replicas_begin_shutdown(struct replicas *rs)
{
    rs->shutting_down = true; /* what changes from now on is looked at so */
}
