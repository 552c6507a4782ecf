/* A connection that a broker's heartbeats came by and that ends is a signal to look at once, and no
 * more: the broker may have lost just that connection. So we try to connect to its inter-broker
 * listener. When its machine says twice in a row that nobody listens there, and no heartbeat came
 * meanwhile, the process is gone, and waiting for the end of its session would only cost its
 * partitions their leader. Whatever else happens (an answer, silence, no route) proves nothing and
 * changes nothing. A connection that ends without an answer is one of a process that is ending,
 * perhaps: the kernel may close its listening sockets last. So we look again, for a while.
 */
#include <stdlib.h>

#include "core/controller/inside.h"
#include "wire/messages.h"

enum { REFUSALS = 2, PROBE_DEADLINE_US = 2 * 1000 * 1000, ANSWER_MAX_BYTES = 64 * 1024 };

enum verdict { UNDECIDED, NOTHING_PROVEN, GONE };

struct probe {
    struct list link; /* in controller.probes */
    struct controller *c;
    int32_t broker_id;
    int64_t broker_epoch;
    uint64_t beats; /* of its session when it was begun */
    int refusals;
    enum verdict verdict;
    int64_t deadline_us;
    struct peer *peer;
    struct peer_call call;
    struct api_versions_request request;
    bool again; /* to be called once more, at the next settle */
};

static void answered(struct peer_call *call, enum err e, const void *response)
{
    struct probe *p = CONTAINER_OF(call, struct probe, call);
    (void)response;
    if (e != ERR_CLOSED) {
        p->verdict = NOTHING_PROVEN;
        return;
    }
    p->refusals = peer_was_refused(p->peer) ? p->refusals + 1 : 0;
    p->again = p->refusals < REFUSALS;
    if (!p->again)
        p->verdict = GONE;
}

static void call(struct probe *p, struct now now)
{
    wire_default(&wire_api_versions_request, &p->request);
    p->again = false;
    p->call = (struct peer_call){.api_key = API_API_VERSIONS,
                                 .max_version = -1,
                                 .fixed_version = 0,
                                 .request = &p->request,
                                 .deadline_us = p->deadline_us,
                                 .done = answered};
    peer_call(p->peer, &p->call, now);
}

static bool under_way(const struct controller *c, int32_t broker_id)
{
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &c->probes)
    if (LIST_ENTRY(it, struct probe, link)->broker_id == broker_id)
        return true;
    return false;
}

static enum err open_peer(struct controller *c, const struct image_broker *b, struct peer **out)
{
    const struct image_endpoint *e =
        image_endpoint(b, str_of(config_inter_broker_listener(c->config)));
    if (e == NULL)
        return ERR_INVALID;
    const struct dialing_args args = {.host = e->host,
                                      .port = e->port,
                                      .timers = c->timers,
                                      .client_id = STR_LIT("controller"),
                                      .answer_max_bytes = ANSWER_MAX_BYTES};
    return c->dialing->open(c->dialing, &args, out);
}

/* Without memory nobody looks, and the session decides. */
static void begin(struct controller *c, const struct image_broker *b, const struct session *s,
                  struct now now)
{
    struct probe *p = calloc(1, sizeof *p);
    if (p == NULL)
        return;
    if (open_peer(c, b, &p->peer) != ERR_NONE) {
        free(p);
        return;
    }
    p->c = c;
    p->broker_id = b->id;
    p->broker_epoch = b->epoch;
    p->beats = s->beats;
    p->deadline_us = now.mono_us + PROBE_DEADLINE_US;
    list_append(&c->probes, &p->link);
    call(p, now);
}

void controller_broker_lost(struct controller *c, int32_t broker_id, struct now now)
{
    const struct image_broker *b = image_broker(&c->ahead, broker_id);
    const struct session *s = session_find(c, broker_id);
    if (c->state == CONTROLLER_ACTIVE && c->dialing != NULL && broker_id != c->node_id &&
        b != NULL && !b->fenced && s != NULL && !under_way(c, broker_id))
        begin(c, b, s, now);
}

void probes_open(struct controller *c, struct now now)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->ahead.brokers, e)) != NULL)
        controller_broker_lost(c, ((const struct image_broker *)map_value(e))->id, now);
}

static void end(struct probe *p)
{
    list_remove(&p->link);
    p->c->dialing->close(p->c->dialing, p->peer);
    free(p);
}

void probes_close(struct controller *c)
{
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &c->probes)
    end(LIST_ENTRY(it, struct probe, link));
}

/* Its session ends now, unless it was heard since. */
static void judge(struct probe *p)
{
    struct controller *c = p->c;
    const struct image_broker *b = image_broker(&c->ahead, p->broker_id);
    struct session *s = session_find(c, p->broker_id);
    if (p->verdict != GONE || b == NULL || b->fenced || b->epoch != p->broker_epoch || s == NULL ||
        s->beats != p->beats)
        return;
    env_log(c->env, LOG_INFO, "broker_gone broker=%d epoch=%lld reason=\"nobody listens there\"",
            b->id, (long long)b->epoch);
    session_expire(s);
}

bool probes_settle(struct controller *c, struct now now)
{
    struct list *it, *tmp;
    bool moved = false;
    LIST_EACH(it, tmp, &c->probes)
    {
        struct probe *p = LIST_ENTRY(it, struct probe, link);
        moved |= peer_settle(p->peer, now);
        if (p->again)
            call(p, now);
        if (p->verdict == UNDECIDED)
            continue;
        judge(p);
        end(p);
        moved = true;
    }
    return moved;
}
