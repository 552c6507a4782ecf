#include "client.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "ghost.h"
#include "support/node/frames.h"
#include "wire/batch.h"
#include "wire/error.h"

enum { ANSWER_MAX_US = 120 * 1000 * 1000, VERIFY_STEPS = 400000 };
enum { VERIFY_TRIES = 20, VERIFY_PAUSE_STEPS = 2000 };

void cluster_init(struct cluster *cl, uint64_t seed)
{
    memset(cl, 0, sizeof *cl);
    cl->rng.state = seed;
    for (size_t i = 0; i < TOPICS; i++)
        snprintf(cl->topics[i].name, sizeof cl->topics[i].name, "topic%zu", i);
    admin_init(cl);
    offsets_init(cl);
}

void client_init(struct client *c, enum client_kind kind, size_t conn, struct rng *rng)
{
    memset(c, 0, sizeof *c);
    c->kind = kind;
    c->conn = conn;
    c->id = (uint32_t)conn;
    c->producer_id = c->generation = -1;
    c->group = kind == CLIENT_MEMBER ? GROUP_OF_MEMBERS : GROUP_SIMPLE;
    c->rack = kind == CLIENT_CONSUMER ? (int32_t)rng_below(rng, 4) : 0;
    c->acks = (int16_t)((int)rng_below(rng, 3) - 1);
    c->idempotent = rng_percent(rng, 50);
    if (c->idempotent)
        c->acks = -1;
    c->codec = (enum batch_codec)rng_below(rng, CODEC_MAX);
}

void client_close(struct client *c)
{
    buf_close(&c->batch);
}

/* ------------------------------------------------------------------ frames */

static struct frame_of in_flight(const struct client *c)
{
    return (struct frame_of){c->api_key, c->version, c->correlation_id};
}

void client_send(struct client *c, struct world *w, int16_t key, int16_t version, const void *body)
{
    c->api_key = key;
    c->version = version;
    c->correlation_id++;
    frame_put(&w->links[c->conn].in, in_flight(c), body);
    c->waiting = true;
    c->sent_us = w->now.mono_us;
}

/* A whole answer, decoded into a; NULL: none yet. */
static const void *take_answer(struct client *c, struct world *w, struct arena *a)
{
    const void *body = NULL;
    if (frame_take(&w->links[c->conn].out, in_flight(c), a, &body) == FRAME_ALIEN)
        violation("what was sent is no answer to api %d version %d", c->api_key, c->version);
    return body;
}

int16_t client_version(struct cluster *cl, int16_t key, int16_t min)
{
    const struct wire_message *m = wire_find(WIRE_REQUEST, key);
    const int16_t max = key == API_INIT_PRODUCER_ID ? 5 : m->max_version;
    const int16_t low = min > m->min_version ? min : m->min_version;
    return (int16_t)(low + (int16_t)rng_below(&cl->rng, (uint64_t)(max - low) + 1));
}

struct model_partition *client_model(const struct client *c, struct cluster *cl)
{
    struct model_partition *p = model_partition(&cl->model, c->topic_id, c->partition);
    p->lossy |= cl->fleet != NULL && ghost_is_lossy(c->topic_id, c->partition);
    return p;
}

/* ------------------------------------------------------------------ producers */

static struct batch_builder *build(struct client *c, struct world *w, struct cluster *cl,
                                   struct bytes *out)
{
    static uint8_t filler[40000];
    struct batch_builder *bb;
    const bool idempotent = c->idempotent && c->producer_id >= 0;
    const struct batch_builder_args args = {
        .leader_epoch = -1,
        .attributes = (int16_t)c->codec,
        .producer_id = idempotent ? c->producer_id : -1,
        .producer_epoch = idempotent ? 0 : -1,
        .base_sequence = idempotent ? c->next_sequence[c->topic][c->partition] : -1,
        .level = INT32_MIN,
    };
    CHECK(batch_builder_new(&args, &bb) == ERR_NONE);
    c->first_sequence = c->next_value;
    c->records_n = (int32_t)rng_below(&cl->rng, 5) + 1;
    const bool large = rng_percent(&cl->rng, 10);
    for (int32_t i = 0; i < c->records_n; i++) {
        uint8_t key[MODEL_KEY_BYTES];
        model_key(key, (struct model_value){c->id, c->next_value++});
        const struct bytes value = {filler,
                                    (int32_t)rng_below(&cl->rng, large ? sizeof filler : 200)};
        CHECK(batch_builder_add(bb, w->now.wall_ms, (struct bytes){key, MODEL_KEY_BYTES}, value,
                                NULL, 0) == ERR_NONE);
    }
    CHECK(batch_builder_finish(bb, out) == ERR_NONE);
    return bb;
}

/* As the node believes itself. */
static bool leads(const struct world *w, struct uuid topic_id, int32_t index)
{
    struct image_topic *t = image_topic_by_id(node_image(w->node), topic_id);
    const struct image_partition *p = t == NULL ? NULL : image_partition(t, index);
    return p != NULL && p->leader == node_id(w->node);
}

static bool asks_coordinators(const struct client *c)
{
    return c->kind == CLIENT_COMMITTER || c->kind == CLIENT_MEMBER;
}

/* Offsets are committed for the first ones alone. */
static int32_t partitions_n(const struct client *c, const struct cluster *cl)
{
    const int32_t n = cl->topics[c->topic].partitions_n;
    return asks_coordinators(c) || n < PARTITIONS_PER_TOPIC ? PARTITIONS_PER_TOPIC : n;
}

bool client_pick_partition(struct client *c, struct world *w, struct cluster *cl)
{
    const bool anywhere = cl->fleet == NULL || asks_coordinators(c) || rng_percent(&cl->rng, 5);
    for (int tries = 0; tries < (anywhere ? 1 : 8); tries++) {
        c->topic = (int32_t)rng_below(&cl->rng, TOPICS);
        c->partition = (int32_t)rng_below(&cl->rng, (uint64_t)partitions_n(c, cl));
        c->topic_id = cl->topics[c->topic].id;
        if (!uuid_is_zero(c->topic_id) && (anywhere || leads(w, c->topic_id, c->partition)))
            return true;
    }
    c->moves = true;
    return false;
}

void client_refused(struct client *c, int16_t error)
{
    c->moves |= error == K_NOT_LEADER_OR_FOLLOWER || error == K_NOT_COORDINATOR ||
                error == K_UNKNOWN_TOPIC_OR_PARTITION || error == K_UNKNOWN_TOPIC_ID ||
                error == K_NOT_CONTROLLER || error == K_COORDINATOR_NOT_AVAILABLE;
}

/* Sends what c->batch holds. */
static void send_batch(struct client *c, struct world *w, struct cluster *cl)
{
    struct produce_request_partition_produce_data part = {
        .index = c->partition, .records = {.p = c->batch.p, .n = (int32_t)c->batch.n}};
    struct produce_request_topic_produce_data topic = {.name = str_of(cl->topics[c->topic].name),
                                                       .topic_id = c->topic_id};
    topic.partition_data.v = &part;
    topic.partition_data.n = 1;
    struct produce_request req;
    wire_default(&wire_produce_request, &req);
    req.acks = c->acks;
    req.timeout_ms = 5000;
    req.topic_data.v = &topic;
    req.topic_data.n = 1;
    /* by id always: a name may mean another topic by the time it arrives */
    client_send(c, w, API_PRODUCE, 13, &req);
    if (c->acks == 0)
        c->waiting = false;
}

static void produce(struct client *c, struct world *w, struct cluster *cl)
{
    if (!client_pick_partition(c, w, cl))
        return;
    if (!uuid_eq(c->sequence_topic[c->topic], c->topic_id)) {
        c->sequence_topic[c->topic] = c->topic_id;
        memset(c->next_sequence[c->topic], 0, sizeof c->next_sequence[c->topic]);
    }
    struct bytes batch;
    struct batch_builder *bb = build(c, w, cl, &batch);
    c->batch.n = 0;
    CHECK(buf_append(&c->batch, batch.p, (size_t)batch.n) == ERR_NONE);
    batch_builder_free(bb);
    send_batch(c, w, cl);
}

/* A client that begins anew: another id, sequences from 0. What had no answer is nobody's. */
static void forget_producer(struct client *c)
{
    c->producer_id = -1;
    c->retry = false;
}

/* The sequence follows what was acknowledged, so that no batch may be missing before it; the epoch
 * is the only one there is. */
static void refused(struct client *c, struct cluster *cl, int16_t error)
{
    if (!c->idempotent)
        return;
    /* in a fleet it may be a leader that has not heard yet that it is none */
    c->moves |= error == K_OUT_OF_ORDER_SEQUENCE_NUMBER;
    if ((error == K_OUT_OF_ORDER_SEQUENCE_NUMBER && cl->fleet == NULL) ||
        error == K_INVALID_PRODUCER_EPOCH || error == K_DUPLICATE_SEQUENCE_NUMBER)
        violation("partition %d refuses sequence %d of producer id %lld with error %d",
                  c->partition, c->next_sequence[c->topic][c->partition], (long long)c->producer_id,
                  error);
    c->retry = true;
    if (rng_percent(&cl->rng, 20))
        forget_producer(c);
}

static void produced(struct client *c, struct cluster *cl, const struct produce_response *resp)
{
    if (resp->responses.n != 1 || resp->responses.v[0].partition_responses.n != 1)
        violation("a Produce of one partition is answered by %d topics", resp->responses.n);
    const struct produce_response_partition_produce_response *p =
        &resp->responses.v[0].partition_responses.v[0];
    if (p->error_code != K_NONE) {
        client_refused(c, p->error_code);
        refused(c, cl, p->error_code);
        return;
    }
    c->retry = false;
    struct model_partition *mp = client_model(c, cl);
    const bool promised = cl->fleet == NULL || c->acks == -1;
    for (int32_t i = 0; promised && i < c->records_n; i++)
        model_acked(&cl->model, mp, p->base_offset + i,
                    (struct model_value){c->id, c->first_sequence + (uint32_t)i});
    c->next_sequence[c->topic][c->partition] += c->records_n;
}

static void ask_producer_id(struct client *c, struct world *w, struct cluster *cl)
{
    struct init_producer_id_request req;
    wire_default(&wire_init_producer_id_request, &req);
    req.transactional_id = STR_NULL;
    client_send(c, w, API_INIT_PRODUCER_ID, client_version(cl, API_INIT_PRODUCER_ID, 0), &req);
}

static void got_producer_id(struct client *c, struct cluster *cl,
                            const struct init_producer_id_response *resp)
{
    if (resp->error_code != K_NONE)
        return;
    model_producer_id(&cl->model, resp->producer_id);
    c->producer_id = resp->producer_id;
    memset(c->next_sequence, 0, sizeof c->next_sequence);
}

/* ------------------------------------------------------------------ one step */

static void handle_records(struct client *c, struct cluster *cl, const void *answer)
{
    switch (c->api_key) {
    case API_PRODUCE:
        produced(c, cl, answer);
        break;
    case API_FETCH:
    case API_LIST_OFFSETS:
        consumer_handle(c, cl, answer);
        break;
    case API_INIT_PRODUCER_ID:
        got_producer_id(c, cl, answer);
        break;
    default:
        CHECK(false);
    }
}

static void handle(struct client *c, struct cluster *cl, const void *answer)
{
    c->waiting = false;
    switch (c->kind) {
    case CLIENT_PRODUCER:
    case CLIENT_CONSUMER:
        handle_records(c, cl, answer);
        break;
    case CLIENT_ADMIN:
        admin_handle(c, cl, answer);
        break;
    case CLIENT_OPERATOR:
        operator_handle(c, cl, answer);
        break;
    case CLIENT_COMMITTER:
        committer_handle(c, cl, answer);
        break;
    case CLIENT_MEMBER:
        member_handle(c, cl, answer);
        break;
    }
}

static void begin_request(struct client *c, struct world *w, struct cluster *cl)
{
    switch (c->kind) {
    case CLIENT_PRODUCER:
        if (c->idempotent && c->producer_id < 0)
            ask_producer_id(c, w, cl);
        else if (c->retry)
            send_batch(c, w, cl);
        else
            produce(c, w, cl);
        break;
    case CLIENT_CONSUMER:
        consumer_begin(c, w, cl);
        break;
    case CLIENT_ADMIN:
        admin_begin(c, w, cl);
        break;
    case CLIENT_OPERATOR:
        operator_begin(c, w, cl);
        break;
    case CLIENT_COMMITTER:
        committer_begin(c, w, cl);
        break;
    case CLIENT_MEMBER:
        member_begin(c, w, cl);
        break;
    }
}

/* What was asked may have happened or not. A batch with a sequence can be sent again. */
static void unanswered(struct client *c, struct cluster *cl)
{
    c->waiting = false;
    c->coordinated &= cl->fleet == NULL;
    if (c->api_key == API_PRODUCE && c->idempotent)
        c->retry = true;
    if (rng_percent(&cl->rng, 30))
        forget_producer(c);
}

void client_step(struct client *c, struct world *w, struct cluster *cl)
{
    struct link *l = &w->links[c->conn];
    if (l->closed || l->conn == NULL) {
        if (c->waiting)
            unanswered(c, cl);
        l->closed = false;
        if (l->conn != NULL || !world_connect(w, c->conn))
            return;
    }
    if (c->waiting) {
        struct arena a;
        arena_init(&a, NULL);
        const void *answer = take_answer(c, w, &a);
        if (answer != NULL)
            handle(c, cl, answer);
        else if (w->now.mono_us - c->sent_us > ANSWER_MAX_US)
            violation("api %d was not answered within %d s", c->api_key, ANSWER_MAX_US / 1000000);
        arena_close(&a);
        return;
    }
    begin_request(c, w, cl);
}

/* ------------------------------------------------------------------ a fleet */

/* The coordinator, or whom a batch has to go to again, or anybody who is up. */
static size_t next_world(struct client *c, struct cluster *cl)
{
    struct fleet *f = cl->fleet;
    size_t i;
    if (c->coordinated)
        return c->coordinator;
    if (c->settled)
        return c->replica;
    for (i = 0; c->retry && i < f->n; i++)
        if (fleet_is_broker(f, i) && world_ready(&f->worlds[i]) &&
            leads(&f->worlds[i], c->topic_id, c->partition))
            return i;
    do
        i = rng_below(&cl->rng, f->n);
    while (!fleet_is_broker(f, i));
    return i;
}

void client_step_in_fleet(struct client *c, struct cluster *cl)
{
    struct world *w = &cl->fleet->worlds[c->at];
    struct link *l = &w->links[c->conn];
    if (w->paused) { /* it waits for an answer as long as that lasts */
        c->sent_us = w->now.mono_us;
        return;
    }
    if (c->retry && !c->waiting && w->node != NULL && !leads(w, c->topic_id, c->partition))
        c->moves = true;
    if (l->conn == NULL || (c->moves && !c->waiting)) {
        if (c->waiting)
            unanswered(c, cl);
        if (l->conn != NULL)
            world_disconnect(w, c->conn);
        l->closed = false;
        c->moves = false;
        c->at = next_world(c, cl);
        w = &cl->fleet->worlds[c->at];
        if (w->paused || !world_connect(w, c->conn)) {
            c->coordinated = c->settled = false;
            return;
        }
    }
    client_step(c, w, cl);
}

/* ------------------------------------------------------------------ the last look */

bool client_await(struct client *c, struct world *w, struct cluster *cl, struct arena *a,
                  const void **answer)
{
    for (long i = 0; i < VERIFY_STEPS; i++) {
        *answer = take_answer(c, w, a);
        if (*answer != NULL)
            return true;
        if (cl->fleet != NULL)
            fleet_step(cl->fleet);
        else
            world_step(w);
        if (w->node == NULL || w->links[c->conn].conn == NULL)
            return false;
    }
    return false;
}

/* -1: the node ended. */
static int64_t verify_start(struct client *c, struct world *w, struct cluster *cl)
{
    struct arena a;
    const void *answer;
    int64_t start = -1;
    arena_init(&a, NULL);
    consumer_ask(c, w, cl, LIST_OFFSETS_EARLIEST);
    if (client_await(c, w, cl, &a, &answer)) {
        start = consumer_start_told(c, cl, answer);
        if (start < 0 && cl->fleet == NULL)
            violation("partition %d does not say where it begins", c->partition);
    }
    arena_close(&a);
    return start;
}

static bool verify_partition(struct client *c, struct world *w, struct cluster *cl)
{
    const int64_t start = verify_start(c, w, cl);
    int64_t position = start;
    if (start < 0)
        return false;
    for (long i = 0; i < VERIFY_STEPS; i++) {
        struct arena a;
        const void *answer;
        arena_init(&a, NULL);
        consumer_fetch(c, w, cl, position);
        if (!client_await(c, w, cl, &a, &answer)) {
            arena_close(&a);
            return false;
        }
        const struct fetch_response *resp = answer;
        const struct fetch_response_partition_data *p = &resp->responses.v[0].partitions.v[0];
        if (p->error_code != K_NONE && cl->fleet != NULL) {
            arena_close(&a);
            return false;
        }
        if (p->error_code != K_NONE)
            violation("partition %d cannot be read: error %d", c->partition, p->error_code);
        const int64_t next = consumer_fetched(c, cl, resp, position);
        const int64_t high_watermark = p->high_watermark;
        arena_close(&a);
        if (next == position && position >= high_watermark) {
            model_end(client_model(c, cl), start, position);
            return true;
        }
        position = next;
    }
    return false;
}

/* A leader may have moved a moment ago: again, then. */
static bool verify_at_leader(struct client *c, struct cluster *cl)
{
    for (int tries = 0; tries < VERIFY_TRIES; tries++) {
        c->retry = true; /* next_world: the leader's */
        struct world *w = &cl->fleet->worlds[next_world(c, cl)];
        const bool done = world_connect(w, c->conn) && verify_partition(c, w, cl);
        if (w->links[c->conn].conn != NULL)
            world_disconnect(w, c->conn);
        w->links[c->conn].closed = false;
        if (done)
            return true;
        for (int i = 0; i < VERIFY_PAUSE_STEPS; i++)
            fleet_step(cl->fleet);
    }
    return false;
}

/* Whoever was told that it exists, or grew, will see it so for good. */
static void verify_topic(const struct sim_topic *t, const struct image *img)
{
    const struct image_topic *it = image_topic_by_id(img, t->id);
    if (it == NULL)
        violation("topic %s was created and is gone", t->name);
    if (it->partitions_n < t->partitions_n)
        violation("topic %s was given %d partitions and has %d", t->name, t->partitions_n,
                  it->partitions_n);
}

bool verify_in_topic(struct cluster *cl, size_t conn, int32_t topic, int32_t partition)
{
    struct client c; /* has no batch */
    client_init(&c, CLIENT_CONSUMER, conn, &cl->rng);
    c.rack = 0;
    c.topic = topic;
    c.topic_id = cl->topics[topic].id;
    c.partition = partition;
    return verify_at_leader(&c, cl);
}

bool verify_fleet(struct cluster *cl, size_t conn)
{
    struct client c; /* has no batch */
    client_init(&c, CLIENT_CONSUMER, conn, &cl->rng);
    c.rack = 0;
    for (c.topic = 0; c.topic < TOPICS; c.topic++) {
        const struct sim_topic *t = &cl->topics[c.topic];
        c.topic_id = t->id;
        if (uuid_is_zero(c.topic_id))
            continue;
        verify_topic(t, node_image(cl->fleet->worlds[0].node));
        for (c.partition = 0; c.partition < t->partitions_n; c.partition++)
            if (!ghost_is_stuck(c.topic_id, c.partition) && !verify_at_leader(&c, cl))
                return false;
    }
    return offsets_verify_fleet(&c, cl);
}

bool verify_all(struct world *w, struct cluster *cl, size_t conn)
{
    struct client c; /* has no batch */
    client_init(&c, CLIENT_CONSUMER, conn, &cl->rng);
    c.rack = 0;
    if (w->links[conn].conn != NULL)
        world_disconnect(w, conn);
    if (!world_connect(w, conn))
        return false;
    for (c.topic = 0; c.topic < TOPICS; c.topic++) {
        c.topic_id = cl->topics[c.topic].id;
        if (uuid_is_zero(c.topic_id))
            continue;
        for (c.partition = 0; c.partition < PARTITIONS_PER_TOPIC; c.partition++)
            if (!verify_partition(&c, w, cl))
                return false;
    }
    const bool more = admin_verify(&c, w, cl) && offsets_verify(&c, w, cl);
    if (more)
        world_disconnect(w, conn);
    return more;
}
