/* A fetcher's life: it finds its leader, has one request in flight, and waits when that fails. */
#include "core/replica/fetcher.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/replica/inside.h"
#include "wire/api_key.h"

enum { ANSWER_MAX_BYTES = INT32_MAX - 4 }; /* the budget is what bounds it */

/* ------------------------------------------------------------------ versions */

/* Between brokers versions are not asked for: they follow from metadata.version (Kafka's
 * MetadataVersion). */
struct version_since {
    int16_t metadata_version, version;
};

static int16_t version_at(const struct version_since *v, size_t n, int16_t metadata_version)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (metadata_version >= v[i].metadata_version)
            return v[i].version;
    return v[n - 1].version;
}

static int16_t fetch_version(const struct replicas *rs)
{
    static const struct version_since since[] = {{27, 18}, {21, 17}, {19, 16},
                                                 {10, 15}, {9, 14},  {7, 13}};
    return version_at(since, ARRAY_N(since), image_metadata_version(rs->image));
}

static int16_t list_offsets_version(const struct replicas *rs)
{
    static const struct version_since since[] = {{29, 11}, {25, 10}, {21, 9}, {9, 8}, {7, 7}};
    return version_at(since, ARRAY_N(since), image_metadata_version(rs->image));
}

/* ------------------------------------------------------------------ where the leader is */

static void close_peer(struct fetcher *f)
{
    if (f->peer != NULL)
        f->rs->dialing->close(f->rs->dialing, f->peer);
    f->peer = NULL;
    free(f->host);
    f->host = NULL;
}

static enum err open_peer(struct fetcher *f, const struct image_endpoint *ep)
{
    struct replicas *rs = f->rs;
    char client_id[64];
    snprintf(client_id, sizeof client_id, "broker-%d-fetcher-%d", rs->node_id, f->number);
    const struct dialing_args args = {
        .host = ep->host,
        .port = ep->port,
        .timers = rs->timers,
        .memory = rs->answers,
        .client_id = str_of(client_id),
        .answer_max_bytes = ANSWER_MAX_BYTES,
    };
    f->host = strdup(ep->host);
    if (f->host == NULL)
        return ERR_NOMEM;
    f->port = ep->port;
    enum err e = rs->dialing->open(rs->dialing, &args, &f->peer);
    if (e != ERR_NONE) {
        f->peer = NULL;
        close_peer(f);
    }
    return e;
}

/* A peer to where the leader is now. ERR_NOENT: nowhere that we know. */
static enum err find_leader(struct fetcher *f)
{
    const struct replicas *rs = f->rs;
    const struct image_broker *b = image_broker(rs->image, f->leader);
    const struct image_endpoint *ep =
        b == NULL ? NULL : image_endpoint(b, str_of(config_inter_broker_listener(rs->config)));
    if (ep == NULL)
        return ERR_NOENT;
    if (f->peer != NULL && f->port == ep->port && strcmp(f->host, ep->host) == 0)
        return ERR_NONE;
    close_peer(f);
    f->session_id = f->session_epoch = 0;
    return open_peer(f, ep);
}

/* ------------------------------------------------------------------ calls */

void fetcher_back_off(struct fetcher *f)
{
    struct replicas *rs = f->rs;
    const int64_t pause_us = fetch_pause_us(rs, f->failures_n++);
    if (timer_arm(rs->timers, &f->backoff, rs->now.mono_us + pause_us) != ERR_NONE)
        env_log(rs->env, LOG_WARN, "fetch_backoff_skipped error=NOMEM");
}

static void backoff_over(struct timer *t)
{
    (void)t; /* the settle that follows sends */
}

static void call_done(struct peer_call *call, enum err e, const void *response)
{
    struct fetcher *f = CONTAINER_OF(call, struct fetcher, call);
    const enum fetcher_call was = f->in_flight;
    f->in_flight = FETCHER_IDLE;
    if (e == ERR_CANCELLED)
        return; /* we ended it */
    if (e != ERR_NONE) {
        env_log(f->rs->env, LOG_INFO, "fetch_failed leader=%d error=%s", f->leader, err_name(e));
        if (was == FETCHER_FETCH)
            f->session_epoch = 0; /* a full one, which closes the session that there may be */
        else
            fetcher_range_failed(f);
        fetcher_back_off(f);
    } else if (was == FETCHER_FETCH) {
        fetcher_take_fetch(f, response);
    } else {
        fetcher_take_range(f, response);
    }
}

static void send(struct fetcher *f, enum fetcher_call kind)
{
    struct replicas *rs = f->rs;
    f->call = (struct peer_call){
        .api_key = kind == FETCHER_FETCH ? API_FETCH : API_LIST_OFFSETS,
        .max_version = -1,
        .fixed_version = kind == FETCHER_FETCH ? fetch_version(rs) : list_offsets_version(rs),
        .request = &f->request,
        .deadline_us = rs->now.mono_us + rs->fetching.timeout_us,
        .done = call_done,
    };
    f->in_flight = kind;
    peer_call(f->peer, &f->call, rs->now);
}

static enum err send_next(struct fetcher *f, bool *sent)
{
    bool any = true;
    enum fetcher_call kind = list_empty(&f->ranged) ? FETCHER_FETCH : FETCHER_RANGE;
    enum err e = find_leader(f);
    if (e != ERR_NONE)
        return e;
    arena_reset(&f->arena);
    e = kind == FETCHER_FETCH ? fetcher_make_fetch(f, fetch_version(f->rs), &any)
                              : fetcher_make_range(f);
    if (e != ERR_NONE || !any)
        return e;
    send(f, kind);
    *sent = true;
    return ERR_NONE;
}

/* Before that a leader would take what we have for what the last life of this broker had, and let
 * us into the ISR by its registration (KIP-903). */
static bool is_registered(const struct replicas *rs)
{
    return rs->broker_epoch == NULL || rs->broker_epoch(rs->events.ctx) >= 0;
}

static bool settle_fetcher(struct fetcher *f)
{
    bool moved = f->peer != NULL && peer_settle(f->peer, f->rs->now);
    if (list_empty(&f->parts)) { /* as Kafka's, it goes when nobody needs it */
        fetcher_free(f);
        return true;
    }
    if (f->in_flight != FETCHER_IDLE || timer_armed(&f->backoff) ||
        (f->fetching_n == 0 && list_empty(&f->ranged)) || !is_registered(f->rs))
        return moved;
    if (send_next(f, &moved) != ERR_NONE)
        fetcher_back_off(f);
    return moved;
}

bool fetchers_settle(struct replicas *rs)
{
    struct list *l, *tmp;
    bool moved = false;
    LIST_EACH(l, tmp, &rs->fetchers)
    moved |= settle_fetcher(LIST_ENTRY(l, struct fetcher, link));
    return moved;
}

/* ------------------------------------------------------------------ life */

void fetchers_init(struct replicas *rs)
{
    const struct config *c = rs->config;
    list_init(&rs->fetchers);
    rs->fetching = (struct fetch_settings){
        .backoff_us = config_int(c, "replica.fetch.backoff.ms") * 1000,
        .timeout_us = config_int(c, "replica.socket.timeout.ms") * 1000,
        .response_max_bytes = config_int(c, "replica.fetch.response.max.bytes"),
        .partition_max_bytes = (int32_t)config_int(c, "replica.fetch.max.bytes"),
        .min_bytes = (int32_t)config_int(c, "replica.fetch.min.bytes"),
        .wait_max_ms = (int32_t)config_int(c, "replica.fetch.wait.max.ms"),
    };
}

void fetcher_init(struct fetcher *f)
{
    f->backoff.fire = backoff_over;
    arena_init(&f->arena, f->rs->budget);
}

void fetcher_free(struct fetcher *f)
{
    close_peer(f);
    timer_cancel(f->rs->timers, &f->backoff);
    timer_cancel(f->rs->timers, &f->delay);
    list_remove(&f->link);
    arena_close(&f->arena);
    free(f->forgotten);
    free(f);
}

/* Those that found no leader look again. */
void fetchers_brokers_changed(struct replicas *rs)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &rs->fetchers)
    {
        struct fetcher *f = LIST_ENTRY(l, struct fetcher, link);
        if (f->peer == NULL)
            timer_cancel(rs->timers, &f->backoff);
    }
}

void fetchers_stop(struct replicas *rs)
{
    while (!list_empty(&rs->fetchers)) {
        struct fetcher *f = LIST_ENTRY(rs->fetchers.next, struct fetcher, link);
        while (!list_empty(&f->parts))
            follow_end(LIST_ENTRY(f->parts.next, struct follow, all)->p);
        fetcher_free(f);
    }
}
