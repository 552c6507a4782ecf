/* The log directories as the controller knows them (KIP-858): which are online when the broker
 * registers, which have failed since, each time; which take no new replicas (KIP-1066). One that it
 * does not hear of in time leaves replicas leading, and in sync, that nobody can reach: the broker
 * ends. */
#include <stdlib.h>

#include "base/check.h"
#include "core/broker/inside.h"

static void unheard_due(struct timer *t);

enum err directories_new(struct broker *b, const struct broker_args *args)
{
    const size_t n = args->directories_n;
    CHECK(n > 0 && n <= 64);
    b->unheard_timer.fire = unheard_due;
    b->directories = calloc(n, sizeof *b->directories);
    b->listed = calloc(2 * n, sizeof *b->listed);
    if (b->directories == NULL || b->listed == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        b->directories[i] = (struct directory){
            .path = args->directories[i].path,
            .id = args->directories[i].id,
            .offline = args->directories[i].offline,
            .heard = args->directories[i].offline,
        };
    b->directories_n = n;
    return ERR_NONE;
}

void directories_free(struct broker *b)
{
    timer_cancel(b->timers, &b->unheard_timer);
    free(b->directories);
    free(b->listed);
}

/* ------------------------------------------------------------------ requests */

static uint64_t cordoned(const struct broker *b)
{
    const struct str list = str_of(config_text(b->config, "cordoned.log.dirs"));
    uint64_t bits = 0;
    for (size_t i = 0; i < b->directories_n; i++)
        if (!b->directories[i].offline && config_cordons(list, b->directories[i].path))
            bits |= (uint64_t)1 << i;
    return bits;
}

bool directories_cordoned_changed(const struct broker *b)
{
    return cordoned(b) != b->told_cordoned;
}

void directories_register(struct broker *b, struct broker_registration_request *r)
{
    r->log_dirs.v = b->listed;
    for (size_t i = 0; i < b->directories_n; i++) {
        struct directory *d = &b->directories[i];
        d->said = d->offline;
        if (!d->offline)
            b->listed[r->log_dirs.n++] = d->id;
    }
}

/* One whose id is not known was never registered. */
void directories_beat(struct broker *b, struct broker_heartbeat_request *r)
{
    b->told_cordoned = cordoned(b);
    r->offline_log_dirs.v = b->listed;
    r->cordoned_log_dirs.v = b->listed + b->directories_n;
    r->cordoned_log_dirs.n = 0; /* known, none */
    for (size_t i = 0; i < b->directories_n; i++) {
        struct directory *d = &b->directories[i];
        d->said = d->offline;
        if (d->offline && !uuid_is_zero(d->id))
            r->offline_log_dirs.v[r->offline_log_dirs.n++] = d->id;
        if (b->told_cordoned >> i & 1)
            r->cordoned_log_dirs.v[r->cordoned_log_dirs.n++] = d->id;
    }
}

void directories_heard(struct broker *b)
{
    for (size_t i = 0; i < b->directories_n; i++)
        b->directories[i].heard |= b->directories[i].said;
}

/* ------------------------------------------------------------------ failing */

static int64_t timeout_us(const struct broker *b)
{
    return config_int(b->config, "log.dir.failure.timeout.ms") * 1000;
}

/* Of those that the controller has not heard of: the one that failed first. */
static const struct directory *first_unheard(const struct broker *b)
{
    const struct directory *first = NULL;
    for (size_t i = 0; i < b->directories_n; i++) {
        const struct directory *d = &b->directories[i];
        if (d->offline && !d->heard && (first == NULL || d->failed_us < first->failed_us))
            first = d;
    }
    return first;
}

static void watch(struct broker *b)
{
    const struct directory *d = first_unheard(b);
    if (d == NULL)
        timer_cancel(b->timers, &b->unheard_timer);
    else if (timer_arm(b->timers, &b->unheard_timer, d->failed_us + timeout_us(b)) != ERR_NONE)
        b->unheard(b->ctx, d->path);
}

static void unheard_due(struct timer *t)
{
    struct broker *b = CONTAINER_OF(t, struct broker, unheard_timer);
    const struct directory *d = first_unheard(b);
    if (d != NULL && d->failed_us + timeout_us(b) <= b->timers->floor_us)
        b->unheard(b->ctx, d->path);
    else
        watch(b);
}

void directories_fail(struct broker *b, size_t directory, struct now now)
{
    struct directory *d = &b->directories[directory];
    if (d->offline)
        return;
    d->offline = true;
    d->failed_us = now.mono_us;
    watch(b);
}
