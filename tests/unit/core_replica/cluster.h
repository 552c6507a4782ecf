/* Several replica managers in one process: the bytes of their peers go by memory, the controller is
 * played here. Metadata records stand in a log that each node follows as far as the test lets it.
 */
#ifndef UNIT_CORE_REPLICA_CLUSTER_H
#define UNIT_CORE_REPLICA_CLUSTER_H

#include "base/endian.h"
#include "core/broker/channel.h"
#include "core/replica/fetcher.h"
#include "restart.h"
#include "wire/api_key.h"

enum { CLUSTER_MAX = 3, CLUSTER_PORT = 9000, CLUSTER_LAG_MS = 30000 };

struct cluster;

/* A node's way to the controller; the library's own channel is never linked here. */
struct channel {
    struct cluster *cluster;
    struct channel_call *call; /* in flight */
};

struct cluster_dialing {
    struct dialing d;
    struct cluster *cluster;
    int32_t node;
};

/* A peer of a node and the connection to another one. */
struct line {
    struct list link;
    struct cluster *cluster;
    struct peer *peer;
    int32_t from, to;
    bool up;
    struct buf in;      /* of requests */
    struct buf answers; /* on their way back */
    struct list served; /* struct served: not answered yet */
};

/* A request that a node serves. */
struct served {
    struct list link;
    struct line *line; /* NULL: its connection ended */
    struct cluster *cluster;
    struct arena arena;
    struct request_header header;
    const struct wire_message *message; /* of the answer */
    uint8_t *frame;
    void *request, *response;
    struct fetch_op fetch;
    struct list_offsets_op range;
};

struct cluster {
    struct fix nodes[CLUSTER_MAX + 1]; /* by id, from 1 */
    struct cluster_dialing dialing[CLUSTER_MAX + 1];
    struct channel channels[CLUSTER_MAX + 1];
    int32_t n;
    struct list lines;
    bool cut[CLUSTER_MAX + 1];  /* no connection to or from it */
    bool hold[CLUSTER_MAX + 1]; /* answers to it stay on their way */
    struct record_list records;
    size_t applied[CLUSTER_MAX + 1];
    bool lazy[CLUSTER_MAX + 1]; /* follows the records only when told */
    struct image truth;         /* the controller's */
    bool alter_hold;            /* the controller does not answer AlterPartition for now */
    bool alter_silent;          /* it answers without saying anything of the partitions */
    int16_t alter_error, alter_top_error; /* it answers these, and does nothing */
    int alters;                           /* requests */
    struct alter_partition_request_broker_state altered[CLUSTER_MAX]; /* of the last partition */
    int32_t altered_n;
    int fetches, fetch_parts, fetch_forgotten, ranges; /* requests, and what they named */
    struct fetch_request fetched;                      /* the scalars of the last */
    struct fetch_request_fetch_partition fetched_part; /* the last that was named */
    int16_t fetched_version;
    int refused;  /* fetches that were answered with an error as a whole */
    int connects; /* connections that were made, or could not be */
    void (*tamper)(struct cluster *c, struct fetch_response *resp);
    int32_t faulty;    /* allocations that are armed to fail are those of this node; 0: nobody's */
    bool faulty_apply; /* also those that take metadata over */
};

/* Around what a node itself does. */
static inline void faults_on(const struct cluster *c, int32_t node)
{
    if (c->faulty == node)
        fault_alloc_resume();
}

static inline void faults_off(const struct cluster *c)
{
    if (c->faulty != 0)
        fault_alloc_pause();
}

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

/* ------------------------------------------------------------------ metadata */

static inline void cluster_follow(struct cluster *c, int32_t node)
{
    struct fix *f = &c->nodes[node];
    struct image_delta d;
    struct arena a;
    if (c->applied[node] == c->records.n || f->config == NULL)
        return;
    image_delta_init(&d);
    arena_init(&a, NULL);
    for (; c->applied[node] < c->records.n; c->applied[node]++) {
        int16_t type, version;
        void *record;
        const struct bytes framed = record_list_get(&c->records, c->applied[node]);
        CU_ASSERT_EQUAL_FATAL(record_decode(framed, &a, &type, &version, &record), ERR_NONE);
        CU_ASSERT_EQUAL_FATAL(image_apply(&f->image, type, version, record, framed, &d), ERR_NONE);
    }
    arena_close(&a);
    if (c->faulty_apply)
        faults_on(c, node);
    fix_publish(f, &d);
    faults_off(c);
}

static inline void cluster_record(struct cluster *c, const struct wire_message *m, int16_t version,
                                  const void *record)
{
    int16_t type, got;
    void *decoded;
    struct arena a;
    arena_init(&a, NULL);
    CU_ASSERT_EQUAL_FATAL(record_list_add(&c->records, m, version, record), ERR_NONE);
    const struct bytes framed = record_list_get(&c->records, c->records.n - 1);
    CU_ASSERT_EQUAL_FATAL(record_decode(framed, &a, &type, &got, &decoded), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(image_apply(&c->truth, type, got, decoded, framed, NULL), ERR_NONE);
    arena_close(&a);
}

/* rack NULL: none */
static inline void cluster_register(struct cluster *c, int32_t id, int64_t epoch, const char *rack)
{
    struct register_broker_record r;
    struct register_broker_record_broker_endpoint ep = {.name = STR_LIT("PLAINTEXT"),
                                                        .host = STR_LIT("host"),
                                                        .port = (uint16_t)(CLUSTER_PORT + id)};
    wire_default(&wire_register_broker_record, &r);
    r.broker_id = id;
    r.broker_epoch = epoch;
    r.fenced = false;
    r.end_points.v = &ep;
    r.end_points.n = 1;
    if (rack != NULL)
        r.rack = str_of(rack);
    c->nodes[id].broker_epoch = epoch;
    cluster_record(c, &msg_register_broker_record, 3, &r);
}

static inline struct uuid cluster_topic(struct cluster *c, const char *name, int32_t partitions_n,
                                        int32_t *ids, int32_t n, int32_t *isr, int32_t isr_n)
{
    static uint8_t next;
    struct uuid id = {{7, ++next}};
    const struct topic_record t = {str_of(name), id};
    struct partition_record r;
    cluster_record(c, &msg_topic_record, 0, &t);
    for (int32_t i = 0; i < partitions_n; i++) {
        wire_default(&wire_partition_record, &r);
        r.partition_id = i;
        r.topic_id = id;
        r.replicas.v = ids;
        r.replicas.n = n;
        r.isr.v = isr;
        r.isr.n = isr_n;
        r.leader = ids[0];
        r.leader_epoch = r.partition_epoch = 0;
        cluster_record(c, &msg_partition_record, 1, &r);
    }
    return id;
}

/* leader -2, isr NULL, replicas NULL: as they are. A leader that is set raises the leader epoch. */
static inline void cluster_change_replicas(struct cluster *c, struct uuid id, int32_t index,
                                           int32_t leader, int32_t *isr, int32_t isr_n,
                                           int32_t *replicas, int32_t replicas_n)
{
    struct partition_change_record r;
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = id;
    r.partition_id = index;
    r.leader = leader;
    r.isr.v = isr;
    r.isr.n = isr == NULL ? -1 : isr_n;
    r.replicas.v = replicas;
    r.replicas.n = replicas == NULL ? -1 : replicas_n;
    cluster_record(c, &msg_partition_change_record, 0, &r);
}

static inline void cluster_change(struct cluster *c, struct uuid id, int32_t index, int32_t leader,
                                  int32_t *isr, int32_t isr_n)
{
    cluster_change_replicas(c, id, index, leader, isr, isr_n, NULL, 0);
}

static inline void cluster_change_broker(struct cluster *c, int32_t id, int8_t fenced,
                                         int8_t shutdown)
{
    struct broker_registration_change_record r;
    wire_default(&wire_broker_registration_change_record, &r);
    r.broker_id = id;
    r.broker_epoch = image_broker(&c->truth, id)->epoch;
    r.fenced = fenced;
    r.in_controlled_shutdown = shutdown;
    cluster_record(c, &msg_broker_registration_change_record, 1, &r);
}

static inline void cluster_topic_config(struct cluster *c, const char *topic, const char *key,
                                        const char *value)
{
    const struct config_record r = {CONFIG_RESOURCE_TOPIC, str_of(topic), str_of(key),
                                    str_of(value)};
    cluster_record(c, &msg_config_record, 0, &r);
}

static inline void cluster_metadata_version(struct cluster *c, int16_t level)
{
    const struct feature_level_record r = {STR_LIT("metadata.version"), level};
    cluster_record(c, &msg_feature_level_record, 0, &r);
}

/* ------------------------------------------------------------------ the controller */

/* In the order of replication.md 3. */
static inline int16_t alter_check(struct cluster *c, int32_t broker, struct uuid id,
                                  const struct alter_partition_request_partition_data *in)
{
    struct image_topic *t = image_topic_by_id(&c->truth, id);
    struct image_partition *ip = t == NULL ? NULL : image_partition(t, in->partition_index);
    if (c->alter_error != K_NONE)
        return c->alter_error;
    if (ip == NULL)
        return K_UNKNOWN_TOPIC_ID;
    if (in->leader_epoch > ip->leader_epoch || in->partition_epoch > ip->partition_epoch)
        return K_NOT_CONTROLLER;
    if (in->leader_epoch < ip->leader_epoch)
        return K_FENCED_LEADER_EPOCH;
    if (ip->leader != broker)
        return K_INVALID_REQUEST;
    if (in->partition_epoch < ip->partition_epoch)
        return K_INVALID_UPDATE_VERSION;
    for (int32_t i = 0; i < in->new_isr_with_epochs.n; i++) {
        const struct alter_partition_request_broker_state *m = &in->new_isr_with_epochs.v[i];
        const struct image_broker *b = image_broker(&c->truth, m->broker_id);
        if (b == NULL || b->fenced || b->in_controlled_shutdown ||
            (m->broker_epoch != -1 && m->broker_epoch != b->epoch))
            return K_INELIGIBLE_REPLICA;
    }
    return K_NONE;
}

static inline void alter_apply(struct cluster *c, struct uuid id,
                               const struct alter_partition_request_partition_data *in,
                               struct alter_partition_response_partition_data *out,
                               int32_t isr[CLUSTER_MAX])
{
    const int32_t n = in->new_isr_with_epochs.n;
    CU_ASSERT_FATAL(n <= CLUSTER_MAX);
    for (int32_t i = 0; i < n; i++)
        isr[i] = in->new_isr_with_epochs.v[i].broker_id;
    cluster_change(c, id, in->partition_index, -2, isr, n);
    const struct image_partition *ip =
        image_partition(image_topic_by_id(&c->truth, id), in->partition_index);
    out->leader_id = ip->leader;
    out->leader_epoch = ip->leader_epoch;
    out->partition_epoch = ip->partition_epoch;
    out->isr.v = isr;
    out->isr.n = n;
}

static inline void alter_answer(struct cluster *c, struct channel *ch)
{
    enum { MOST = 64 };
    struct channel_call *call = ch->call;
    const struct alter_partition_request *req = call->request;
    struct alter_partition_response resp = {.error_code = c->alter_top_error};
    struct alter_partition_response_topic_data topics[MOST];
    struct alter_partition_response_partition_data parts[MOST];
    int32_t isrs[MOST][CLUSTER_MAX], n = 0;
    CU_ASSERT_EQUAL(call->api_key, API_ALTER_PARTITION);
    CU_ASSERT_EQUAL(call->deadline_us, INT64_MAX);
    resp.topics.v = topics;
    for (int32_t i = 0; i < req->topics.n && c->alter_top_error == K_NONE && !c->alter_silent;
         i++) {
        const struct alter_partition_request_topic_data *t = &req->topics.v[i];
        for (int32_t k = 0; k < t->partitions.n && n < MOST; k++, n++) {
            const struct alter_partition_request_partition_data *in = &t->partitions.v[k];
            memset(&parts[n], 0, sizeof parts[n]);
            topics[n].topic_id = t->topic_id;
            topics[n].partitions.v = &parts[n];
            topics[n].partitions.n = 1;
            parts[n].partition_index = in->partition_index;
            parts[n].error_code = alter_check(c, req->broker_id, t->topic_id, in);
            if (parts[n].error_code == K_NONE)
                alter_apply(c, t->topic_id, in, &parts[n], isrs[n]);
        }
    }
    resp.topics.n = n;
    ch->call = NULL;
    call->done(call, ERR_NONE, &resp);
}

void channel_call(struct channel *ch, struct channel_call *call, struct now now)
{
    const struct alter_partition_request *req = call->request;
    (void)now;
    CU_ASSERT_PTR_NULL(ch->call); /* one at a time */
    ch->call = call;
    ch->cluster->alters++;
    const struct alter_partition_request_topic_data *t = &req->topics.v[req->topics.n - 1];
    const struct alter_partition_request_partition_data *p = &t->partitions.v[t->partitions.n - 1];
    ch->cluster->altered_n = p->new_isr_with_epochs.n;
    for (int32_t i = 0; i < p->new_isr_with_epochs.n && i < CLUSTER_MAX; i++)
        ch->cluster->altered[i] = p->new_isr_with_epochs.v[i];
}

void channel_cancel(struct channel_call *call)
{
    call->done(call, ERR_CANCELLED, NULL);
}

/* ------------------------------------------------------------------ turns */

static inline bool controller_turn(struct cluster *c)
{
    bool moved = false;
    for (int32_t i = 1; i <= c->n && !c->alter_hold; i++) {
        if (c->channels[i].call == NULL || c->cut[i])
            continue;
        alter_answer(c, &c->channels[i]);
        moved = true;
    }
    return moved;
}

static inline bool lines_turn(struct cluster *c)
{
    struct list *l, *tmp;
    bool moved = false;
    LIST_EACH(l, tmp, &c->lines)
    moved |= line_turn(LIST_ENTRY(l, struct line, link));
    return moved;
}

/* Invariant 1 of replication.md. */
static inline void check_ends(const struct fix *f)
{
    struct map_entry *it = NULL;
    while ((it = map_next(&f->rs->partitions, it)) != NULL) {
        const struct partition *p = map_value(it);
        if (p->log != NULL && (p->high_watermark < log_start_offset(p->log) ||
                               p->high_watermark > log_end_offset(p->log)))
            CU_FAIL("the high watermark is outside of its log");
    }
}

static inline bool node_turn(struct cluster *c, int32_t i)
{
    struct fix *f = &c->nodes[i];
    bool moved = false;
    if (f->rs == NULL)
        return false;
    if (!c->lazy[i])
        cluster_follow(c, i);
    faults_on(c, i);
    timers_run(&f->timers, f->now.mono_us);
    while (replicas_settle(f->rs, f->now))
        moved = true;
    faults_off(c);
    check_ends(f);
    moved |= memenv_run_jobs(&f->env) > 0;
    memenv_reap_jobs(&f->env);
    return moved;
}

/* Until nothing moves at this time. */
static inline void cluster_turn(struct cluster *c)
{
    bool moved;
    int rounds = 0;
    do {
        moved = false;
        for (int32_t i = 1; i <= c->n; i++)
            moved |= node_turn(c, i);
        moved |= lines_turn(c);
        moved |= controller_turn(c);
        CU_ASSERT_FATAL(rounds++ < 2000); /* nobody spins */
    } while (moved);
}

static inline void cluster_pass(struct cluster *c, int64_t ms)
{
    for (int32_t i = 1; i <= c->n; i++) {
        c->nodes[i].now.mono_us += ms * 1000;
        c->nodes[i].now.wall_ms += ms;
    }
    cluster_turn(c);
}

/* In steps in which followers fetch several times. */
static inline void cluster_wait(struct cluster *c, int64_t ms)
{
    for (; ms > 0; ms -= 100)
        cluster_pass(c, 100);
}

/* ------------------------------------------------------------------ life */

static inline void cluster_configure(struct fix *f, int32_t id)
{
    char text[32], message[256];
    snprintf(text, sizeof text, "%d", id);
    fix_set(f, "node.id", text);
    fix_set(f, "log.dirs", "/data");
    CU_ASSERT_EQUAL(config_finish(f->config, message, sizeof message), ERR_NONE);
}

/* n nodes, from 1; without replicas before cluster_begin. */
static inline void cluster_prepare(struct cluster *c, int32_t n)
{
    memset(c, 0, sizeof *c);
    c->n = n;
    list_init(&c->lines);
    record_list_init(&c->records);
    image_init(&c->truth, 5);
    for (int32_t i = 1; i <= n; i++) {
        struct fix *f = &c->nodes[i];
        fix_prepare(f);
        f->node_id = i;
        cluster_configure(f, i);
        c->dialing[i] = (struct cluster_dialing){{line_open, line_close}, c, i};
        c->channels[i] = (struct channel){c, NULL};
        f->dialing = &c->dialing[i].d;
        f->channel = &c->channels[i];
    }
    cluster_metadata_version(c, 33);
    for (int32_t i = 1; i <= n; i++)
        cluster_register(c, i, 100 * i, NULL);
}

static inline void cluster_start(struct cluster *c)
{
    const struct replicas_found none = {0};
    for (int32_t i = 1; i <= c->n; i++) {
        struct fix *f = &c->nodes[i];
        CU_ASSERT_EQUAL_FATAL(fix_start(f), ERR_NONE);
        cluster_follow(c, i);
        replicas_load(f->rs, &none, f->now);
    }
    cluster_turn(c);
}

static inline void cluster_begin(struct cluster *c, int32_t n)
{
    cluster_prepare(c, n);
    cluster_start(c);
}

/* A node stops as a process does that is stopped, or (not clean) by a test's kill -9. */
static inline void cluster_stop_node(struct cluster *c, int32_t i)
{
    struct fix *f = &c->nodes[i];
    cluster_disconnect(c, i);
    replicas_close(f->rs, fix_closed, f, f->now);
    cluster_turn(c);
    CU_ASSERT_EQUAL_FATAL(f->closed, 1);
    replicas_free(f->rs);
    f->rs = NULL;
}

static inline void cluster_start_node(struct cluster *c, int32_t i, int64_t epoch)
{
    struct fix *f = &c->nodes[i];
    cluster_register(c, i, epoch, NULL);
    cluster_follow(c, i);
    restart(f, true);
    cluster_turn(c);
}

static inline void cluster_end(struct cluster *c)
{
    for (int32_t i = 1; i <= c->n; i++)
        cluster_disconnect(c, i);
    cluster_turn(c);
    for (int32_t i = 1; i <= c->n; i++)
        if (c->nodes[i].rs != NULL)
            cluster_stop_node(c, i);
    CU_ASSERT(list_empty(&c->lines));
    for (int32_t i = 1; i <= c->n; i++)
        fix_end(&c->nodes[i]);
    image_close(&c->truth);
    record_list_close(&c->records);
}

/* ------------------------------------------------------------------ what it looks like */

static inline struct partition *cluster_part(const struct cluster *c, int32_t node,
                                             struct uuid topic, int32_t index)
{
    struct partition *p = fix_find(&c->nodes[node], topic, index);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    return p;
}

static inline int64_t cluster_leo(const struct cluster *c, int32_t node, struct uuid topic)
{
    return log_end_offset(cluster_part(c, node, topic, 0)->log);
}

static inline int64_t cluster_hw(const struct cluster *c, int32_t node, struct uuid topic)
{
    return cluster_part(c, node, topic, 0)->high_watermark;
}

static inline bool cluster_in_sync(const struct cluster *c, struct uuid topic, int32_t id)
{
    const struct image_partition *ip = image_partition(image_topic_by_id(&c->truth, topic), 0);
    for (int32_t i = 0; i < ip->isr_n; i++)
        if (ip->isr[i] == id)
            return true;
    return false;
}

/* The bytes of the partition's log, in one segment. */
static inline struct bytes cluster_bytes(struct cluster *c, int32_t node, const char *dir)
{
    char path[128];
    size_t n = 0;
    snprintf(path, sizeof path, "/data/%s/00000000000000000000.log", dir);
    const uint8_t *p = memfs_get(&c->nodes[node].fs, path, &n);
    return (struct bytes){p, (int32_t)n};
}

static inline bool cluster_same(struct cluster *c, int32_t a, int32_t b, const char *dir)
{
    const struct bytes x = cluster_bytes(c, a, dir), y = cluster_bytes(c, b, dir);
    return x.p != NULL && x.n == y.n && memcmp(x.p, y.p, (size_t)x.n) == 0;
}

/* n records with acks 1 in one batch at a node, which leads; the followers' turns too. */
static inline int16_t cluster_append(struct cluster *c, int32_t node, struct uuid topic, int32_t n)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.records_n = n;
    fix_produce(&c->nodes[node], &p, topic, 0, 1, &b);
    cluster_turn(c);
    fix_produce_close(&p);
    return p.part.error;
}

#endif
