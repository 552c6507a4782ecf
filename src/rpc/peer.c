/* The loopback keeps to the protocol: frames are encoded, received by a connection of our own rpc,
 * and answers decoded, so that what works here works towards another node. The first call asks
 * ApiVersions; the others wait for its answer. */
#include "rpc/peer.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/endian.h"
#include "rpc/conn.h"
#include "wire/messages.h"

enum { FRAME_LENGTH_BYTES = 4, API_VERSIONS_VERSION = 3 };

struct peer_range {
    int16_t key, min, max;
};

struct peer {
    struct rpc *rpc;
    struct timers *timers;
    struct conn *conn;
    int listener;
    char client_id[64];
    struct list queued;        /* not sent */
    struct list sent;          /* in order */
    struct list failed;        /* completes at the next settle */
    struct peer_range *ranges; /* of the other side */
    size_t ranges_n;
    bool ranges_asked;
    struct peer_call versions_call;
    struct api_versions_request versions_request;
    int32_t next_correlation_id;
    struct arena arena; /* of the answer being decoded */
    struct buf in;      /* bytes of answers */
};

static void fail_all(struct peer *p, enum err e)
{
    struct list *from[] = {&p->sent, &p->queued};
    for (size_t i = 0; i < ARRAY_N(from); i++) {
        struct list *l;
        while ((l = list_pop(from[i])) != NULL) {
            LIST_ENTRY(l, struct peer_call, link)->failed = e;
            list_append(&p->failed, l);
        }
    }
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

static void versions_done(struct peer_call *call, enum err e, const void *response)
{
    struct peer *p = CONTAINER_OF(call, struct peer, versions_call);
    const struct api_versions_response *resp = response;
    p->ranges_asked = false;
    if (e != ERR_NONE || resp->error_code != 0) {
        fail_all(p, e != ERR_NONE ? e : ERR_UNSUPPORTED);
        return;
    }
    struct peer_range *ranges = calloc((size_t)resp->api_keys.n + 1, sizeof *ranges);
    if (ranges == NULL) {
        fail_all(p, ERR_NOMEM);
        return;
    }
    free(p->ranges);
    p->ranges = ranges;
    p->ranges_n = (size_t)resp->api_keys.n;
    for (size_t i = 0; i < p->ranges_n; i++)
        ranges[i] =
            (struct peer_range){resp->api_keys.v[i].api_key, resp->api_keys.v[i].min_version,
                                resp->api_keys.v[i].max_version};
}

enum err peer_new_loopback(struct rpc *rpc, struct timers *timers, int listener,
                           struct str client_id, struct peer **out)
{
    struct peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return ERR_NOMEM;
    CHECK(client_id.n >= 0 && (size_t)client_id.n < sizeof p->client_id && listener < 0);
    memcpy(p->client_id, client_id.p, (size_t)client_id.n);
    p->rpc = rpc;
    p->timers = timers;
    p->listener = listener;
    p->versions_request.client_software_name = STR_LIT("dohle");
    p->versions_request.client_software_version = STR_LIT(DOHLE_VERSION);
    list_init(&p->queued);
    list_init(&p->sent);
    list_init(&p->failed);
    arena_init(&p->arena, rpc->answers);
    buf_init(&p->in);
    *out = p;
    return ERR_NONE;
}

static void disconnect(struct peer *p)
{
    if (p->conn == NULL)
        return;
    conn_closed(p->conn, p->rpc->now);
    p->conn = NULL;
    p->in.n = 0;
}

void peer_free(struct peer *p)
{
    if (p == NULL)
        return;
    disconnect(p);
    fail_all(p, ERR_CANCELLED);
    complete_failed(p);
    arena_close(&p->arena);
    buf_close(&p->in);
    free(p->ranges);
    free(p);
}

static void call_late(struct timer *t)
{
    struct peer_call *call = CONTAINER_OF(t, struct peer_call, timer);
    struct peer *p = call->peer;
    list_remove(&call->link);
    call->failed = ERR_TIMEOUT;
    list_append(&p->failed, &call->link);
}

void peer_call(struct peer *p, struct peer_call *call, struct now now)
{
    (void)now;
    call->peer = p;
    call->failed = ERR_NONE;
    call->timer = (struct timer){.fire = call_late};
    list_init(&call->link);
    if (timer_arm(p->timers, &call->timer, call->deadline_us) != ERR_NONE) {
        call->failed = ERR_NOMEM;
        list_append(&p->failed, &call->link);
        return;
    }
    list_append(&p->queued, &call->link);
}

/* ------------------------------------------------------------------ sending */

static enum err pick_version(const struct peer *p, struct peer_call *call)
{
    const struct wire_message *m = wire_find(WIRE_REQUEST, call->api_key);
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

static enum err feed(struct peer *p, const struct wire_parts *frame)
{
    for (size_t i = 0; i < frame->n; i++) {
        const uint8_t *src = frame->v[i].p;
        size_t left = frame->v[i].n;
        while (left > 0) {
            uint8_t *to;
            size_t room;
            conn_recv_space(p->conn, &to, &room);
            if (room == 0)
                return ERR_AGAIN;
            const size_t n = left < room ? left : room;
            memcpy(to, src, n);
            conn_recv(p->conn, n, p->rpc->now);
            src += n;
            left -= n;
        }
    }
    return ERR_NONE;
}

static enum err send_call(struct peer *p, struct peer_call *call)
{
    const struct wire_message *m = wire_find(WIRE_REQUEST, call->api_key);
    const struct request_header header = {
        .request_api_key = call->api_key,
        .request_api_version = call->version,
        .correlation_id = p->next_correlation_id,
        .client_id = str_of(p->client_id),
    };
    struct wire_parts frame;
    call->correlation_id = p->next_correlation_id++;
    enum err e = wire_encode_frame(
        &msg_request_header, wire_request_header_version(call->api_key, call->version), &header, m,
        call->version, call->request, SIZE_MAX, &p->arena, &frame);
    if (e == ERR_NONE) {
        list_append(&p->sent, &call->link);
        e = feed(p, &frame);
    }
    arena_reset(&p->arena);
    return e;
}

static bool connect_peer(struct peer *p)
{
    if (p->conn == NULL)
        p->conn = conn_new(p->rpc, p->listener, "self", p, p->rpc->now);
    return p->conn != NULL;
}

/* Asks for versions when they are not known. */
static bool ask_versions(struct peer *p, struct now now)
{
    if (p->ranges_asked)
        return false;
    struct peer_call *call = &p->versions_call;
    const struct peer_call *first = LIST_ENTRY(p->queued.next, struct peer_call, link);
    *call = (struct peer_call){.api_key = API_API_VERSIONS,
                               .version = API_VERSIONS_VERSION,
                               .request = &p->versions_request,
                               .deadline_us = first->deadline_us,
                               .done = versions_done};
    p->ranges_asked = true;
    peer_call(p, call, now);
    list_remove(&call->link);
    enum err e = send_call(p, call);
    if (e != ERR_NONE) {
        list_remove(&call->link);
        call->failed = e;
        list_append(&p->failed, &call->link);
    }
    return true;
}

static bool send_queued(struct peer *p, struct now now)
{
    if (list_empty(&p->queued))
        return false;
    if (!connect_peer(p)) {
        fail_all(p, ERR_NOMEM);
        return true;
    }
    if (p->ranges == NULL)
        return ask_versions(p, now);
    struct list *l;
    while ((l = list_pop(&p->queued)) != NULL) {
        struct peer_call *call = LIST_ENTRY(l, struct peer_call, link);
        enum err e = pick_version(p, call);
        if (e == ERR_NONE)
            e = send_call(p, call);
        if (e != ERR_NONE) {
            list_remove(&call->link);
            call->failed = e;
            list_append(&p->failed, &call->link);
        }
    }
    return true;
}

/* ------------------------------------------------------------------ answers */

static enum err take_answers(struct peer *p)
{
    struct wire_part parts[8];
    size_t n;
    while ((n = conn_peek(p->conn, parts, ARRAY_N(parts))) > 0) {
        size_t bytes = 0;
        for (size_t i = 0; i < n; i++) {
            if (parts[i].p == NULL) /* no call of ours asks for record batches */
                return ERR_CORRUPT;
            enum err e = buf_append(&p->in, parts[i].p, parts[i].n);
            if (e != ERR_NONE)
                return e;
            bytes += parts[i].n;
        }
        conn_sent(p->conn, bytes, p->rpc->now);
    }
    return ERR_NONE;
}

static enum err complete_answer(struct peer *p, struct bytes frame)
{
    if (list_empty(&p->sent)) /* of a call that timed out, or of none */
        return frame.n >= 4 && (int32_t)be32(frame.p) < p->next_correlation_id ? ERR_NONE
                                                                               : ERR_CORRUPT;
    struct peer_call *call = LIST_ENTRY(p->sent.next, struct peer_call, link);
    const struct wire_message *m = wire_find(WIRE_RESPONSE, call->api_key);
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
    void *response = arena_zalloc(&p->arena, m->body->size);
    if (response == NULL)
        return ERR_NOMEM;
    const struct bytes body = {frame.p + used, frame.n - (int32_t)used};
    e = wire_decode(m, call->version, body, &p->arena, response);
    if (e != ERR_NONE)
        return e;
    list_remove(&call->link);
    timer_cancel(p->timers, &call->timer);
    call->done(call, ERR_NONE, response);
    return ERR_NONE;
}

static enum err complete_answers(struct peer *p, bool *moved)
{
    size_t pos = 0;
    enum err e = ERR_NONE;
    while (e == ERR_NONE && p->in.n - pos >= FRAME_LENGTH_BYTES) {
        const uint32_t n = be32(p->in.p + pos);
        if (p->in.n - pos - FRAME_LENGTH_BYTES < n)
            break;
        const struct bytes frame = {p->in.p + pos + FRAME_LENGTH_BYTES, (int32_t)n};
        pos += FRAME_LENGTH_BYTES + (size_t)n;
        e = complete_answer(p, frame);
        arena_reset(&p->arena);
        *moved = true;
    }
    memmove(p->in.p, p->in.p + pos, p->in.n - pos);
    p->in.n -= pos;
    return e;
}

bool peer_settle(struct peer *p, struct now now)
{
    bool moved = false;
    p->rpc->now = now;
    if (p->conn != NULL && !p->conn->closing) {
        enum err e = take_answers(p);
        if (e == ERR_NONE && p->in.n > 0)
            e = complete_answers(p, &moved);
        if (e != ERR_NONE) {
            fail_all(p, e);
            disconnect(p);
        }
    }
    if (p->conn != NULL && p->conn->closing) {
        fail_all(p, ERR_CLOSED);
        disconnect(p);
    }
    moved |= send_queued(p, now);
    moved |= complete_failed(p);
    return moved;
}
