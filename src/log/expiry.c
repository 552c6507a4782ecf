/* Producer ids that nobody uses any more are forgotten (Kafka: every 10 minutes those whose last
 * batch is older than producer.id.expiration.ms). No timer while there are no producers. */
#include "log/log_impl.h"

#define EXPIRY_US (10LL * 60 * 1000 * 1000)

void log_expiry_arm(struct log *l)
{
    if (l->s.producers.n == 0 || timer_armed(&l->expiry))
        return;
    if (timer_arm(l->timers, &l->expiry, l->now.mono_us + EXPIRY_US) != ERR_NONE)
        return; /* the next write asks again */
}

/* The timer knows no wall clock: it has gone on since the last call as the monotonic one did. */
void log_expiry_fire(struct timer *t)
{
    struct log *l = CONTAINER_OF(t, struct log, expiry);
    int64_t elapsed_us = t->at_us - l->now.mono_us;
    if (elapsed_us > 0) {
        l->now.wall_ms += elapsed_us / 1000;
        l->now.mono_us += elapsed_us / 1000 * 1000;
    }
    if (!log_dirty(l)) /* an undo may name any of them */
        producer_state_expire(&l->s.producers, l->now.wall_ms, l->config.producer_id_expiration_ms);
    log_expiry_arm(l);
}
