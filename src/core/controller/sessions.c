/* Sessions of brokers: one timer each, armed again by every heartbeat. A timer that fires puts its
 * session on a list; the settle of the same turn fences the broker. */
#include <stdlib.h>

#include "core/controller/inside.h"

static int64_t timeout_us(const struct controller *c)
{
    return config_int(c->config, "broker.session.timeout.ms") * 1000;
}

static void session_fired(struct timer *t)
{
    struct session *s = CONTAINER_OF(t, struct session, timer);
    list_remove(&s->expired);
    list_append(&s->controller->expired, &s->expired);
}

struct session *session_find(const struct controller *c, int32_t broker_id)
{
    return map_get(&c->sessions, &broker_id, sizeof broker_id);
}

static struct session *find_or_new(struct controller *c, int32_t broker_id)
{
    struct session *s = session_find(c, broker_id);
    if (s != NULL)
        return s;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->controller = c;
    s->broker_id = broker_id;
    s->timer.fire = session_fired;
    s->metadata_offset = s->shutdown_offset = -1;
    list_init(&s->expired);
    if (map_put(&c->sessions, &broker_id, sizeof broker_id, s) != ERR_NONE) {
        free(s);
        return NULL;
    }
    return s;
}

struct session *session_touch(struct controller *c, int32_t broker_id, struct now now)
{
    struct session *s = find_or_new(c, broker_id);
    if (s == NULL || timer_arm(c->timers, &s->timer, now.mono_us + timeout_us(c)) != ERR_NONE)
        return NULL;
    list_remove(&s->expired);
    s->heard = true;
    s->beats++;
    return s;
}

enum err sessions_open(struct controller *c, struct now now)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->ahead.brokers, e)) != NULL) {
        const struct image_broker *b = map_value(e);
        struct session *s = b->fenced ? find_or_new(c, b->id) : session_touch(c, b->id, now);
        if (s == NULL)
            return ERR_NOMEM;
        s->heard = false;
        s->register_offset = b->epoch;
    }
    return ERR_NONE;
}

static void end(struct session *s)
{
    timer_cancel(s->controller->timers, &s->timer);
    list_remove(&s->expired);
    free(s);
}

void sessions_close(struct controller *c)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->sessions, e)) != NULL)
        end(map_value(e));
    map_close(&c->sessions);
    map_init(&c->sessions, c->ahead.seed);
}

void session_expire(struct session *s)
{
    timer_cancel(s->controller->timers, &s->timer);
    session_fired(&s->timer);
}

void session_leave(struct session *s)
{
    timer_cancel(s->controller->timers, &s->timer);
}

void session_forget(struct controller *c, int32_t broker_id)
{
    struct session *s = map_remove(&c->sessions, &broker_id, sizeof broker_id);
    if (s != NULL)
        end(s);
}

/* As a fence, then the record of it. */
static enum err fence(struct controller *c, const struct image_broker *b, struct now now)
{
    struct record_list rl;
    const struct broker_change change = {
        .removed = b->id, .unclean = CONTROLLER_NO_BROKER, .added = CONTROLLER_NO_BROKER};
    record_list_init(&rl);
    enum err e = election_broker_change(c, &change, &rl);
    if (e == ERR_NONE)
        e = brokers_add_fenced(&rl, b, 1);
    if (e == ERR_NONE)
        e = controller_append(c, &rl, false, now);
    record_list_close(&rl);
    return e;
}

bool sessions_settle(struct controller *c, struct now now)
{
    bool moved = false;
    struct list *l;
    while (c->state == CONTROLLER_ACTIVE && (l = list_pop(&c->expired)) != NULL) {
        struct session *s = LIST_ENTRY(l, struct session, expired);
        const struct image_broker *b = image_broker(&c->ahead, s->broker_id);
        s->heard = false;
        if (b == NULL || b->fenced)
            continue;
        arena_reset(&c->scratch);
        env_log(c->env, LOG_INFO, "broker_session_expired broker=%d epoch=%lld", b->id,
                (long long)b->epoch);
        enum err e = fence(c, b, now);
        moved = true;
        if (e == ERR_NONE)
            continue;
        /* again at the next settle */
        env_log(c->env, LOG_WARN, "broker_fence_failed broker=%d error=%s", b->id, err_name(e));
        list_prepend(&c->expired, l);
        return false;
    }
    return moved;
}

int64_t sessions_lowest_active_offset(const struct controller *c)
{
    int64_t lowest = INT64_MAX;
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->ahead.brokers, e)) != NULL) {
        const struct image_broker *b = map_value(e);
        const struct session *s = session_find(c, b->id);
        if (election_broker_active(&c->ahead, b->id) && s != NULL && s->metadata_offset < lowest)
            lowest = s->metadata_offset;
    }
    return lowest;
}
