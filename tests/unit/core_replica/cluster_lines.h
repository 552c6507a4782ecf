/* The peers of a cluster's nodes: bytes go by memory, and the other node serves them as Fetch and
 * ListOffsets. Lines are cut, and their answers held, as the test says. */
#ifndef UNIT_CORE_REPLICA_CLUSTER_LINES_H
#define UNIT_CORE_REPLICA_CLUSTER_LINES_H

#include "base/endian.h"
#include "cluster_state.h"
#include "wire/api_key.h"

/* ------------------------------------------------------------------ lines */

static inline void line_ready(void *driver)
{
    (void)driver; /* looked at in each turn */
}

static inline enum err line_open(struct dialing *d, const struct dialing_args *args,
                                 struct peer **out)
{
    struct cluster_dialing *cd = CONTAINER_OF(d, struct cluster_dialing, d);
    struct line *ln = calloc(1, sizeof *ln);
    if (ln == NULL)
        return ERR_NOMEM;
    ln->cluster = cd->cluster;
    ln->from = cd->node;
    ln->to = args->port - CLUSTER_PORT;
    CU_ASSERT_STRING_EQUAL(args->host, "host");
    const struct peer_args peer_args = {
        .timers = args->timers,
        .memory = args->memory,
        .client_id = args->client_id,
        .answer_max_bytes = args->answer_max_bytes,
        .ready = line_ready,
        .driver = ln,
    };
    enum err e = peer_new(&peer_args, &ln->peer);
    if (e != ERR_NONE) {
        free(ln);
        return e;
    }
    buf_init(&ln->in);
    buf_init(&ln->answers);
    list_init(&ln->served);
    list_append(&cd->cluster->lines, &ln->link);
    *out = ln->peer;
    return ERR_NONE;
}

/* The server hears that the connection ended, and hastens what it serves. */
static inline void line_down(struct line *ln)
{
    struct list *l;
    ln->in.n = ln->answers.n = 0;
    while ((l = list_pop(&ln->served)) != NULL) {
        struct served *sv = LIST_ENTRY(l, struct served, link);
        sv->line = NULL;
        if (sv->fetch.done != NULL)
            replicas_fetch_cancel(&sv->fetch);
    }
}

static inline void line_close(struct dialing *d, struct peer *p)
{
    struct cluster_dialing *cd = CONTAINER_OF(d, struct cluster_dialing, d);
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &cd->cluster->lines)
    {
        struct line *ln = LIST_ENTRY(l, struct line, link);
        if (ln->peer != p)
            continue;
        line_down(ln);
        list_remove(&ln->link);
        if (ln->up)
            peer_disconnected(p, cd->cluster->nodes[cd->node].now);
        peer_free(p);
        buf_close(&ln->in);
        buf_close(&ln->answers);
        free(ln);
        return;
    }
    CU_FAIL("a peer that was never opened");
}

/* ------------------------------------------------------------------ serving */

static inline void answer_bytes(struct served *sv)
{
    struct wire_parts parts;
    const struct response_header header = {.correlation_id = sv->header.correlation_id};
    const int16_t key = sv->header.request_api_key, version = sv->header.request_api_version;
    CU_ASSERT_EQUAL_FATAL(
        wire_encode_frame(&msg_response_header, wire_response_header_version(key, version), &header,
                          sv->message, version, sv->response, 1 << 30, &sv->arena, &parts),
        ERR_NONE);
    for (size_t i = 0; i < parts.n; i++) {
        const struct wire_part *part = &parts.v[i];
        struct buf *to = &sv->line->answers;
        CU_ASSERT_EQUAL_FATAL(buf_reserve(to, part->n), ERR_NONE);
        if (part->s.f == NULL) {
            memcpy(to->p + to->n, part->p, part->n);
        } else {
            size_t got = 0;
            CU_ASSERT_EQUAL(
                part->s.f->fs->ops->pread(part->s.f, to->p + to->n, part->s.n, part->s.off, &got),
                ERR_NONE);
            CU_ASSERT_EQUAL(got, part->s.n);
        }
        to->n += part->n;
    }
}

static inline void release_slices(const struct fetch_response *resp)
{
    for (int32_t i = 0; i < resp->responses.n; i++)
        for (int32_t k = 0; k < resp->responses.v[i].partitions.n; k++) {
            const struct wire_records *rec = &resp->responses.v[i].partitions.v[k].records;
            for (int32_t s = 0; s < rec->slices_n; s++)
                file_unref(rec->slices[s].f);
        }
}

static inline void served_done(struct served *sv)
{
    const bool fetch = sv->header.request_api_key == API_FETCH;
    if (fetch && sv->cluster->tamper != NULL)
        sv->cluster->tamper(sv->cluster, sv->response);
    if (fetch && ((struct fetch_response *)sv->response)->error_code != K_NONE)
        sv->cluster->refused++;
    if (sv->line != NULL)
        answer_bytes(sv);
    if (fetch)
        release_slices(sv->response);
    list_remove(&sv->link);
    arena_close(&sv->arena);
    free(sv->frame);
    free(sv);
}

static inline void served_fetch(struct fetch_op *op)
{
    served_done(CONTAINER_OF(op, struct served, fetch));
}

static inline void served_range(struct list_offsets_op *op)
{
    served_done(CONTAINER_OF(op, struct served, range));
}

static inline void note_fetch(struct cluster *c, const struct served *sv)
{
    const struct fetch_request *req = sv->request;
    c->fetches++;
    c->fetched = *req;
    c->fetched_version = sv->header.request_api_version;
    for (int32_t i = 0; i < req->topics.n; i++) {
        c->fetch_parts += req->topics.v[i].partitions.n;
        c->fetched_part = req->topics.v[i].partitions.v[req->topics.v[i].partitions.n - 1];
    }
    c->fetch_forgotten += req->forgotten_topics_data.n;
}

/* Serves one frame, without its length. */
static inline void serve(struct line *ln, struct bytes frame)
{
    struct cluster *c = ln->cluster;
    struct fix *f = &c->nodes[ln->to];
    struct served *sv = calloc(1, sizeof *sv);
    const int16_t key = (int16_t)be16(frame.p), version = (int16_t)be16(frame.p + 2);
    size_t used;
    sv->line = ln;
    sv->cluster = c;
    list_append(&ln->served, &sv->link);
    arena_init(&sv->arena, NULL);
    sv->frame = malloc((size_t)frame.n);
    memcpy(sv->frame, frame.p, (size_t)frame.n);
    frame.p = sv->frame;
    CU_ASSERT_EQUAL_FATAL(wire_decode_prefix(&msg_request_header,
                                             wire_request_header_version(key, version), frame,
                                             &sv->arena, &sv->header, &used),
                          ERR_NONE);
    const struct wire_message *m = wire_find(WIRE_REQUEST, key);
    sv->message = wire_find(WIRE_RESPONSE, key);
    sv->request = arena_zalloc(&sv->arena, m->body->size);
    sv->response = arena_zalloc(&sv->arena, sv->message->body->size);
    const struct bytes body = {frame.p + used, frame.n - (int32_t)used};
    CU_ASSERT_EQUAL_FATAL(wire_decode(m, version, body, &sv->arena, sv->request), ERR_NONE);
    wire_default(sv->message->body, sv->response);
    if (key == API_FETCH) {
        note_fetch(c, sv);
        sv->fetch = (struct fetch_op){.arena = &sv->arena,
                                      .request = sv->request,
                                      .version = version,
                                      .response = sv->response,
                                      .done = served_fetch};
        CU_ASSERT_EQUAL_FATAL(replicas_fetch(f->rs, &sv->fetch, f->now), ERR_NONE);
    } else {
        CU_ASSERT_EQUAL_FATAL(key, API_LIST_OFFSETS);
        c->ranges++;
        sv->range = (struct list_offsets_op){.arena = &sv->arena,
                                             .request = sv->request,
                                             .version = version,
                                             .response = sv->response,
                                             .done = served_range};
        CU_ASSERT_EQUAL_FATAL(replicas_list_offsets(f->rs, &sv->range, f->now), ERR_NONE);
    }
}

static inline bool serve_frames(struct line *ln)
{
    size_t pos = 0;
    while (ln->in.n - pos >= 4 && ln->in.n - pos - 4 >= be32(ln->in.p + pos)) {
        const struct bytes frame = {ln->in.p + pos + 4, (int32_t)be32(ln->in.p + pos)};
        serve(ln, frame);
        pos += 4 + (size_t)frame.n;
    }
    if (pos > 0)
        memmove(ln->in.p, ln->in.p + pos, ln->in.n - pos);
    ln->in.n -= pos;
    return pos > 0;
}

static inline bool deliver(struct line *ln)
{
    uint8_t *to;
    size_t room, sent = 0;
    while (sent < ln->answers.n) {
        peer_recv_space(ln->peer, &to, &room);
        const size_t left = ln->answers.n - sent, n = left < room ? left : room;
        if (n == 0)
            break;
        memcpy(to, ln->answers.p + sent, n);
        peer_recv(ln->peer, n);
        sent += n;
    }
    if (sent > 0)
        memmove(ln->answers.p, ln->answers.p + sent, ln->answers.n - sent);
    ln->answers.n -= sent;
    return sent > 0;
}

static inline bool line_connects(struct line *ln)
{
    struct cluster *c = ln->cluster;
    const struct now now = c->nodes[ln->from].now;
    const bool up = !c->cut[ln->from] && !c->cut[ln->to] && c->nodes[ln->to].rs != NULL;
    if (now.mono_us < peer_connect_at_us(ln->peer))
        return false;
    ln->up = up;
    c->connects++;
    if (up)
        peer_connected(ln->peer, now);
    else
        peer_disconnected(ln->peer, now);
    return true;
}

static inline bool line_turn(struct line *ln)
{
    struct cluster *c = ln->cluster;
    bool moved = false;
    switch (peer_wants(ln->peer)) {
    case PEER_WANTS_CONNECTION:
        moved = line_connects(ln);
        break;
    case PEER_WANTS_SEND: {
        const struct bytes out = peer_peek(ln->peer);
        CU_ASSERT_EQUAL_FATAL(buf_append(&ln->in, out.p, (size_t)out.n), ERR_NONE);
        peer_sent(ln->peer, (size_t)out.n);
        moved = true;
        break;
    }
    case PEER_WANTS_END:
        line_down(ln);
        peer_disconnected(ln->peer, c->nodes[ln->from].now);
        ln->up = false;
        moved = true;
        break;
    case PEER_WANTS_NOTHING:
        break;
    }
    if (c->nodes[ln->to].rs != NULL)
        moved |= serve_frames(ln);
    if (!c->hold[ln->from]) {
        faults_on(c, ln->from);
        moved |= deliver(ln);
        faults_off(c);
    }
    return moved;
}

/* Ends every connection to or from a node. */
static inline void cluster_disconnect(struct cluster *c, int32_t node)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->lines)
    {
        struct line *ln = LIST_ENTRY(l, struct line, link);
        if (ln->from != node && ln->to != node)
            continue;
        line_down(ln);
        if (ln->up)
            peer_disconnected(ln->peer, c->nodes[ln->from].now);
        ln->up = false;
    }
}

/* No connection to or from a node until cluster_heal. */
static inline void cluster_cut(struct cluster *c, int32_t node)
{
    c->cut[node] = true;
    cluster_disconnect(c, node);
}

static inline bool lines_turn(struct cluster *c)
{
    struct list *l, *tmp;
    bool moved = false;
    LIST_EACH(l, tmp, &c->lines)
    moved |= line_turn(LIST_ENTRY(l, struct line, link));
    return moved;
}

#endif
