/* Calls in the order of their requests, over bytes that a way brings and takes. The first call on a
 * connection to another node is ApiVersions, and the others wait for its answer; a call of a fixed
 * version does not. A broker too old for
 * our ApiVersions says so in version 0, which is then asked again. */
#include "rpc/peer.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/endian.h"
#include "rpc/peer_impl.h"
#include "wire/error.h"

static void fail_list(struct peer *p, struct list *from, enum err e)
{
    struct list *l;
    while ((l = list_pop(from)) != NULL) {
        LIST_ENTRY(l, struct peer_call, link)->failed = e;
        list_append(&p->failed, l);
    }
}

static void fail_all(struct peer *p, enum err e)
{
    fail_list(p, &p->leaving, e);
    fail_list(p, &p->sent, e);
    fail_list(p, &p->queued, e);
}

static void fail_call(struct peer *p, struct peer_call *call, enum err e)
{
    list_remove(&call->link);
    call->failed = e;
    list_append(&p->failed, &call->link);
}

static bool complete_failed(struct peer *p)
{
    struct list *l;
    bool moved = false;
    while ((l = list_pop(&p->failed)) != NULL) {
        struct peer_call *call = LIST_ENTRY(l, struct peer_call, link);
        timer_cancel(p->timers, &call->timer);
        call->done(call, call->failed, NULL);
        moved = true;
    }
    return moved;
}

static void take_versions(struct peer *p, const struct api_versions_response *resp)
{
    struct peer_range *ranges = calloc((size_t)resp->api_keys.n + 1, sizeof *ranges);
    if (ranges == NULL) {
        fail_all(p, ERR_NOMEM);
        return;
    }
    free(p->ranges);
    p->ranges = ranges;
    p->ranges_turn++;
    p->ranges_n = (size_t)resp->api_keys.n;
    p->failures_n = 0;
    for (size_t i = 0; i < p->ranges_n; i++)
        ranges[i] =
            (struct peer_range){resp->api_keys.v[i].api_key, resp->api_keys.v[i].min_version,
                                resp->api_keys.v[i].max_version};
}

static void versions_done(struct peer_call *call, enum err e, const void *response)
{
    struct peer *p = CONTAINER_OF(call, struct peer, versions_call);
    const struct api_versions_response *resp = response;
    p->ranges_asked = false;
    if (e != ERR_NONE)
        fail_all(p, e);
    else if (resp->error_code == K_UNSUPPORTED_VERSION && call->version > 0)
        p->versions_version = 0;
    else if (resp->error_code != K_NONE || resp->api_keys.n < 0)
        fail_all(p, ERR_UNSUPPORTED);
    else
        take_versions(p, resp);
}

void peer_init(struct peer *p, const struct peer_way *way, struct timers *timers,
               struct budget *memory, struct str client_id)
{
    CHECK(client_id.n >= 0 && (size_t)client_id.n < sizeof p->client_id);
    memcpy(p->client_id, client_id.p, (size_t)client_id.n);
    p->way = way;
    p->timers = timers;
    p->versions_version = PEER_API_VERSIONS;
    p->versions_request.client_software_name = STR_LIT("dohle");
    p->versions_request.client_software_version = STR_LIT(DOHLE_VERSION);
    list_init(&p->queued);
    list_init(&p->sent);
    list_init(&p->leaving);
    list_init(&p->failed);
    arena_init(&p->arena, memory);
    buf_init(&p->in);
    buf_init(&p->out);
}

static void disconnect(struct peer *p, struct now now)
{
    p->way->disconnect(p, now);
    p->in.n = 0;
    p->gone_bytes += p->out.n;
    p->out.n = p->out_sent = 0;
}

void peer_free(struct peer *p)
{
    if (p == NULL)
        return;
    disconnect(p, (struct now){0});
    fail_all(p, ERR_CANCELLED);
    complete_failed(p);
    arena_close(&p->arena);
    free(p->ranges);
    p->way->free(p);
}

static void call_late(struct timer *t)
{
    struct peer_call *call = CONTAINER_OF(t, struct peer_call, timer);
    fail_call(call->peer, call, ERR_TIMEOUT);
}

void peer_call(struct peer *p, struct peer_call *call, struct now now)
{
    (void)now;
    call->peer = p;
    call->failed = ERR_NONE;
    call->sent = false;
    call->timer = (struct timer){.fire = call_late};
    list_init(&call->link);
    if (timer_arm(p->timers, &call->timer, call->deadline_us) != ERR_NONE)
        fail_call(p, call, ERR_NOMEM);
    else
        list_append(&p->queued, &call->link);
}

bool peer_range(const struct peer *p, int16_t api_key, bool *told, int16_t *min, int16_t *max)
{
    *told = p->ranges != NULL;
    for (size_t i = 0; i < p->ranges_n; i++) {
        if (p->ranges[i].key != api_key)
            continue;
        *min = p->ranges[i].min;
        *max = p->ranges[i].max;
        return true;
    }
    return false;
}

uint32_t peer_ranges_turn(const struct peer *p)
{
    return p->ranges_turn;
}

bool peer_was_refused(const struct peer *p)
{
    return p->refused;
}

void peer_cancel(struct peer_call *call)
{
    fail_call(call->peer, call, ERR_CANCELLED);
}

/* ------------------------------------------------------------------ sending */

static enum err take_fixed_version(const struct wire_message *m, struct peer_call *call)
{
    if (m == NULL || call->fixed_version < m->min_version || call->fixed_version > m->max_version)
        return ERR_UNSUPPORTED;
    call->version = call->fixed_version;
    return ERR_NONE;
}

static enum err pick_version(const struct peer *p, struct peer_call *call)
{
    const struct wire_message *m = wire_find(WIRE_REQUEST, call->api_key);
    if (call->fixed_version >= 0)
        return take_fixed_version(m, call);
    for (size_t i = 0; i < p->ranges_n && m != NULL; i++) {
        if (p->ranges[i].key != call->api_key)
            continue;
        int16_t max = p->ranges[i].max < m->max_version ? p->ranges[i].max : m->max_version;
        if (call->max_version >= 0 && call->max_version < max)
            max = call->max_version;
        if (max < m->min_version || max < p->ranges[i].min)
            return ERR_UNSUPPORTED;
        call->version = max;
        return ERR_NONE;
    }
    return ERR_UNSUPPORTED;
}

/* Appends the call's frame to out; after an error out is as it was. */
static enum err encode(struct peer *p, const struct peer_call *call)
{
    const struct wire_message *m = wire_find(WIRE_REQUEST, call->api_key);
    const struct request_header header = {
        .request_api_key = call->api_key,
        .request_api_version = call->version,
        .correlation_id = call->correlation_id,
        .client_id = str_of(p->client_id),
    };
    const uint8_t length[PEER_LENGTH_BYTES] = {0};
    const size_t begin = p->out.n;
    enum err e = buf_append(&p->out, length, sizeof length);
    if (e == ERR_NONE)
        e = wire_encode(&msg_request_header,
                        wire_request_header_version(call->api_key, call->version), &header,
                        &p->out);
    if (e == ERR_NONE)
        e = wire_encode(m, call->version, call->request, &p->out);
    if (e == ERR_NONE && p->out.n - begin - sizeof length > INT32_MAX)
        e = ERR_TOO_LARGE;
    if (e == ERR_NONE)
        put_be32(p->out.p + begin, (uint32_t)(p->out.n - begin - sizeof length));
    else
        p->out.n = begin;
    return e;
}

static void send_call(struct peer *p, struct peer_call *call)
{
    call->correlation_id = p->next_correlation_id++;
    enum err e = encode(p, call);
    if (e != ERR_NONE) {
        fail_call(p, call, e);
        return;
    }
    call->sent = true;
    call->end_bytes = p->gone_bytes + p->out.n;
    list_append(call->no_answer ? &p->leaving : &p->sent, &call->link);
}

/* Asks for versions when they are not known. */
static bool ask_versions(struct peer *p, struct now now)
{
    if (p->ranges_asked)
        return false;
    struct peer_call *call = &p->versions_call;
    const struct peer_call *first = LIST_ENTRY(p->queued.next, struct peer_call, link);
    *call = (struct peer_call){.api_key = API_API_VERSIONS,
                               .fixed_version = -1,
                               .version = p->versions_version,
                               .request = &p->versions_request,
                               .deadline_us = first->deadline_us,
                               .done = versions_done};
    p->ranges_asked = true;
    peer_call(p, call, now);
    if (call->failed == ERR_NONE) {
        list_remove(&call->link);
        send_call(p, call);
    }
    return true;
}

static bool send_queued(struct peer *p, struct now now)
{
    if (list_empty(&p->queued))
        return false;
    enum err e = p->way->connect(p, now);
    if (e == ERR_AGAIN)
        return false;
    if (e != ERR_NONE) {
        fail_all(p, e);
        return true;
    }
    bool moved = false;
    while (!list_empty(&p->queued)) {
        struct peer_call *call = LIST_ENTRY(p->queued.next, struct peer_call, link);
        if (p->ranges == NULL && call->fixed_version < 0)
            return ask_versions(p, now) || moved;
        list_remove(&call->link);
        moved = true;
        e = pick_version(p, call);
        if (e == ERR_NONE)
            send_call(p, call);
        else
            fail_call(p, call, e);
    }
    return moved;
}

void peer_out_gone(struct peer *p, size_t n)
{
    p->out_sent += n;
    CHECK(p->out_sent <= p->out.n);
    if (p->out_sent < p->out.n)
        return;
    p->gone_bytes += p->out.n;
    p->out.n = p->out_sent = 0;
}

/* Calls without an answer are done when their bytes are gone. */
static bool complete_gone(struct peer *p)
{
    bool moved = false;
    while (!list_empty(&p->leaving)) {
        struct peer_call *call = LIST_ENTRY(p->leaving.next, struct peer_call, link);
        if (call->end_bytes > p->gone_bytes + p->out_sent)
            break;
        list_remove(&call->link);
        timer_cancel(p->timers, &call->timer);
        call->done(call, ERR_NONE, NULL);
        moved = true;
    }
    return moved;
}

/* ------------------------------------------------------------------ answers */

/* The answer to an ApiVersions of a version that the other side does not know is of version 0. */
static int16_t body_version(const struct peer_call *call, struct bytes body)
{
    const bool refused =
        call->api_key == API_API_VERSIONS && body.n >= 2 && be16(body.p) == K_UNSUPPORTED_VERSION;
    return refused ? 0 : call->version;
}

/* Decodes the answer in *frame; for a call that keeps it, from a copy of the frame. */
static enum err decode_answer(struct peer *p, const struct peer_call *call, struct bytes body,
                              const void **out)
{
    const struct wire_message *m = wire_find(WIRE_RESPONSE, call->api_key);
    struct arena *arena = call->keep != NULL ? call->keep : &p->arena;
    void *response = arena_zalloc(arena, m->body->size);
    if (response == NULL)
        return ERR_NOMEM;
    if (call->keep != NULL) {
        body.p = arena_memdup(arena, body.p, (size_t)body.n);
        if (body.p == NULL)
            return ERR_NOMEM;
    }
    *out = response;
    return wire_decode(m, body_version(call, body), body, arena, response);
}

static enum err complete_answer(struct peer *p, struct bytes frame)
{
    if (list_empty(&p->sent)) /* of a call that timed out, or of none */
        return frame.n >= 4 && (int32_t)be32(frame.p) < p->next_correlation_id ? ERR_NONE
                                                                               : ERR_CORRUPT;
    struct peer_call *call = LIST_ENTRY(p->sent.next, struct peer_call, link);
    struct response_header header;
    size_t used;
    enum err e = wire_decode_prefix(&msg_response_header,
                                    wire_response_header_version(call->api_key, call->version),
                                    frame, &p->arena, &header, &used);
    if (e != ERR_NONE)
        return e;
    if (header.correlation_id < call->correlation_id) /* of a call that timed out */
        return ERR_NONE;
    if (header.correlation_id != call->correlation_id)
        return ERR_CORRUPT;
    const void *response;
    e = decode_answer(p, call, (struct bytes){frame.p + used, frame.n - (int32_t)used}, &response);
    if (e != ERR_NONE)
        return e;
    list_remove(&call->link);
    timer_cancel(p->timers, &call->timer);
    if (call->fixed_version >= 0)
        p->failures_n = 0;
    call->done(call, ERR_NONE, response);
    return ERR_NONE;
}

static enum err complete_answers(struct peer *p, struct now now, bool *moved)
{
    size_t pos = 0;
    enum err e = ERR_NONE;
    while (e == ERR_NONE && p->in.n - pos >= PEER_LENGTH_BYTES) {
        const uint32_t n = be32(p->in.p + pos);
        if (p->in.n - pos - PEER_LENGTH_BYTES < n)
            break;
        const struct bytes frame = {p->in.p + pos + PEER_LENGTH_BYTES, (int32_t)n};
        pos += PEER_LENGTH_BYTES + (size_t)n;
        e = complete_answer(p, frame);
        arena_reset(&p->arena);
        *moved = true;
    }
    memmove(p->in.p, p->in.p + pos, p->in.n - pos);
    p->in.n -= pos;
    if (p->in.n == 0)
        p->way->emptied(p, pos, now);
    return e == ERR_NONE || e == ERR_NOMEM ? e : ERR_CORRUPT;
}

bool peer_settle(struct peer *p, struct now now)
{
    bool moved = false;
    enum err e = p->way->receive(p, now);
    if (e == ERR_NONE && p->in.n > 0)
        e = complete_answers(p, now, &moved);
    if (e == ERR_NONE)
        e = p->way->ended(p);
    if (e != ERR_NONE) {
        fail_all(p, e);
        disconnect(p, now);
    }
    moved |= complete_gone(p);
    moved |= send_queued(p, now);
    p->way->send(p, now);
    moved |= complete_failed(p);
    return moved;
}
