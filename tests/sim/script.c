#include "script.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/controller/controller.h"
#include "core/replica/inside.h"
#include "ghost.h"
#include "node/inside.h"
#include "scripts.h"
#include "support/node/frames.h"
#include "wire/error.h"

enum {
    WAIT_US = 60 * 1000 * 1000,
    SETTLE_US = 180 * 1000 * 1000,
    LOOK_EVERY = 50, /* steps, for what is expensive to look at */
    ASK_LINK = WORLD_LINKS - 1,
    WRITE_TIMEOUT_MS = 30000,
    PREFERRED = 0,
};

static const char settings[] = "auto.create.topics.enable=false\n"
                               "replica.lag.time.max.ms=4000\n"
                               "replica.fetch.backoff.ms=200\n"
                               "auto.leader.rebalance.enable=false\n";

static struct {
    struct fleet f;
    struct cluster cl;
    uint64_t seed;
    bool blind;
    size_t link; /* of the next write */
    uint32_t written_n;
} s;

/* ------------------------------------------------------------------ steps */

struct fleet *script_fleet(void)
{
    return &s.f;
}

uint64_t script_seed(void)
{
    return s.seed;
}

void script_allow_loss(void)
{
    if (!s.blind)
        ghost_allow_loss();
}

int64_t script_deadline(void)
{
    return s.f.network.us + WAIT_US;
}

void script_step(int64_t until_us, const char *what)
{
    if (s.f.network.us >= until_us)
        violation("waited in vain until %s", what);
    fleet_step(&s.f);
}

void script_pass(int64_t ms)
{
    const int64_t until_us = s.f.network.us + ms * 1000;
    while (s.f.network.us < until_us)
        fleet_step(&s.f);
}

/* ------------------------------------------------------------------ what nodes know */

struct world *script_world(int32_t id)
{
    CHECK(id >= 1 && id <= (int32_t)s.f.n);
    return &s.f.worlds[id - 1];
}

bool script_up(int32_t id)
{
    return world_ready(script_world(id));
}

struct raft *script_raft(int32_t id)
{
    const struct node *n = script_world(id)->node;
    return n == NULL ? NULL : n->raft;
}

int32_t script_controller(void)
{
    for (int32_t id = 1; id <= (int32_t)s.f.n; id++) {
        const struct node *n = script_world(id)->node;
        if (n != NULL && n->controller != NULL && controller_is_active(n->controller))
            return id;
    }
    return 0;
}

void script_others(int32_t than, int32_t *out)
{
    size_t n = 0;
    for (int32_t id = 1; id <= (int32_t)s.f.n; id++)
        if (id != than)
            out[n++] = id;
}

struct partition *script_part(int32_t id)
{
    const struct node *n = script_world(id)->node;
    if (n == NULL || n->replicas == NULL)
        return NULL;
    struct partition *p = replicas_find(n->replicas, s.cl.topics[0].id, 0);
    return p == NULL || p->log == NULL ? NULL : p;
}

int64_t script_end_of(int32_t id)
{
    const struct partition *p = script_part(id);
    return p == NULL ? -1 : log_end_offset(p->log);
}

int64_t script_hw(int32_t id)
{
    const struct partition *p = script_part(id);
    return p == NULL ? -1 : p->high_watermark;
}

bool script_leads(int32_t id)
{
    const struct partition *p = script_part(id);
    return p != NULL && p->leading;
}

int32_t script_epoch_of(int32_t id)
{
    const struct partition *p = script_part(id);
    return p == NULL ? -1 : p->leader_epoch;
}

static const struct image *newest_image(void)
{
    const struct image *newest = NULL;
    for (size_t i = 0; i < s.f.n; i++) {
        const struct node *n = s.f.worlds[i].node;
        if (n != NULL && (newest == NULL || n->image.next_offset > newest->next_offset))
            newest = &n->image;
    }
    return newest;
}

const struct image_partition *script_state(void)
{
    const struct image *img = newest_image();
    struct image_topic *t = img == NULL ? NULL : image_topic_by_id(img, s.cl.topics[0].id);
    return t == NULL ? NULL : image_partition(t, 0);
}

bool script_in_isr(int32_t id)
{
    const struct image_partition *p = script_state();
    for (int32_t i = 0; p != NULL && i < p->isr_n; i++)
        if (p->isr[i] == id)
            return true;
    return false;
}

const struct image_broker *script_broker(int32_t id)
{
    const struct image *img = newest_image();
    return img == NULL ? NULL : image_broker(img, id);
}

static const uint8_t *log_file(int32_t id, size_t *n)
{
    char path[64];
    *n = 0;
    snprintf(path, sizeof path, "/data/%s-0/00000000000000000000.log", s.cl.topics[0].name);
    return memfs_get(&script_world(id)->fs, path, n);
}

bool script_same_log(int32_t a, int32_t b)
{
    size_t a_n, b_n;
    const uint8_t *x = log_file(a, &a_n), *y = log_file(b, &b_n);
    return a_n == b_n && (a_n == 0 || memcmp(x, y, a_n) == 0);
}

/* ------------------------------------------------------------------ what is done to them */

void script_kill(int32_t id)
{
    world_kill(script_world(id));
}

void script_power_off(int32_t id)
{
    world_power_off(script_world(id));
}

void script_stop(int32_t id)
{
    world_stop(script_world(id));
    UNTIL(script_world(id)->node == NULL);
}

void script_start(int32_t id)
{
    fleet_start(&s.f, (size_t)id - 1);
}

void script_wipe(int32_t id)
{
    fleet_wipe(&s.f, (size_t)id - 1);
}

void script_block(int32_t from, int32_t to)
{
    fleet_block(&s.f, (size_t)from - 1, (size_t)to - 1);
}

void script_isolate(int32_t id)
{
    for (int32_t other = 1; other <= (int32_t)s.f.n; other++) {
        if (other == id)
            continue;
        script_block(id, other);
        script_block(other, id);
    }
}

void script_heal(void)
{
    fleet_heal(&s.f);
}

void script_hold_fetches(int32_t from, int32_t to, bool on)
{
    s.f.network.held[from - 1][to - 1] = on;
}

/* ------------------------------------------------------------------ what is asked of them */

/* The answer, in a. */
static const void *ask(int32_t id, int16_t key, int16_t version, const void *body, struct arena *a)
{
    struct world *w = script_world(id);
    struct client c = {.conn = ASK_LINK};
    const void *answer;
    if (!world_connect(w, ASK_LINK))
        violation("node %d takes no connection", id);
    client_send(&c, w, key, version, body);
    if (!client_await(&c, w, &s.cl, a, &answer))
        violation("node %d does not answer api %d", id, key);
    world_disconnect(w, ASK_LINK);
    w->links[ASK_LINK].closed = false;
    return answer;
}

static bool everywhere(const int32_t *replicas, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (script_part(replicas[i]) == NULL || script_part(replicas[i])->leader != replicas[0])
            return false;
    return true;
}

void script_topic(const int32_t *replicas, int32_t n)
{
    int32_t ids[SCRIPT_NODES_MAX];
    struct create_topics_request_creatable_replica_assignment part = {.partition_index = 0};
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request req;
    struct arena a;
    memcpy(ids, replicas, (size_t)n * sizeof *ids);
    part.broker_ids.v = ids;
    part.broker_ids.n = n;
    wire_default(&wire_create_topics_request_creatable_topic, &topic);
    topic.name = str_of(s.cl.topics[0].name);
    topic.num_partitions = -1;
    topic.replication_factor = -1;
    topic.assignments.v = &part;
    topic.assignments.n = 1;
    wire_default(&wire_create_topics_request, &req);
    req.topics.v = &topic;
    req.topics.n = 1;
    arena_init(&a, NULL);
    const struct create_topics_response *resp = ask(replicas[0], API_CREATE_TOPICS, 7, &req, &a);
    if (resp->topics.n != 1 || resp->topics.v[0].error_code != K_NONE)
        violation("the topic is not created");
    s.cl.topics[0].id = resp->topics.v[0].topic_id;
    arena_close(&a);
    UNTIL(everywhere(replicas, n));
}

void script_elect(int32_t id)
{
    int32_t index = 0;
    struct elect_leaders_request_topic_partitions topic = {.topic = str_of(s.cl.topics[0].name)};
    struct elect_leaders_request req;
    struct arena a;
    topic.partitions.v = &index;
    topic.partitions.n = 1;
    wire_default(&wire_elect_leaders_request, &req);
    req.election_type = PREFERRED;
    req.topic_partitions.v = &topic;
    req.topic_partitions.n = 1;
    arena_init(&a, NULL);
    const struct elect_leaders_response *resp = ask(id, API_ELECT_LEADERS, 2, &req, &a);
    if (resp->error_code != K_NONE)
        violation("ElectLeaders is answered by error %d", resp->error_code);
    arena_close(&a);
}

void script_reassign(int32_t id, const int32_t *replicas, int32_t n)
{
    int32_t ids[SCRIPT_NODES_MAX];
    struct alter_partition_reassignments_request_reassignable_partition part;
    struct alter_partition_reassignments_request_reassignable_topic topic = {
        .name = str_of(s.cl.topics[0].name)};
    struct alter_partition_reassignments_request req;
    struct arena a;
    memcpy(ids, replicas, (size_t)n * sizeof *ids);
    wire_default(&wire_alter_partition_reassignments_request_reassignable_partition, &part);
    part.replicas.v = ids;
    part.replicas.n = n;
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    wire_default(&wire_alter_partition_reassignments_request, &req);
    req.topics.v = &topic;
    req.topics.n = 1;
    arena_init(&a, NULL);
    const struct alter_partition_reassignments_response *resp =
        ask(id, API_ALTER_PARTITION_REASSIGNMENTS, 0, &req, &a);
    if (resp->error_code != K_NONE || resp->responses.n != 1 ||
        resp->responses.v[0].partitions.v[0].error_code != K_NONE)
        violation("the reassignment is refused");
    arena_close(&a);
}

/* ------------------------------------------------------------------ writing */

static void put_record(struct script_write *w, const struct world *at)
{
    struct batch_builder *bb;
    struct bytes batch;
    uint8_t key[MODEL_KEY_BYTES];
    const struct batch_builder_args args = {.leader_epoch = -1,
                                            .producer_id = -1,
                                            .producer_epoch = -1,
                                            .base_sequence = -1,
                                            .level = INT32_MIN};
    w->c.first_sequence = s.written_n++;
    model_key(key, (struct model_value){0, w->c.first_sequence});
    CHECK(batch_builder_new(&args, &bb) == ERR_NONE);
    CHECK(batch_builder_add(bb, at->now.wall_ms, (struct bytes){key, sizeof key},
                            (struct bytes){key, sizeof key}, NULL, 0) == ERR_NONE);
    CHECK(batch_builder_finish(bb, &batch) == ERR_NONE);
    CHECK(buf_append(&w->c.batch, batch.p, (size_t)batch.n) == ERR_NONE);
    batch_builder_free(bb);
}

void script_write_begin(struct script_write *w, int32_t id, int16_t acks)
{
    struct world *at = script_world(id);
    *w = (struct script_write){.c = {.conn = s.link++, .at = at->index, .acks = acks}};
    CHECK(w->c.conn < ASK_LINK);
    put_record(w, at);
    if (!world_connect(at, w->c.conn))
        violation("node %d takes no connection", id);
    struct produce_request_partition_produce_data part = {
        .index = 0, .records = {.p = w->c.batch.p, .n = (int32_t)w->c.batch.n}};
    struct produce_request_topic_produce_data topic = {.topic_id = s.cl.topics[0].id};
    struct produce_request req;
    topic.partition_data.v = &part;
    topic.partition_data.n = 1;
    wire_default(&wire_produce_request, &req);
    req.acks = acks;
    req.timeout_ms = WRITE_TIMEOUT_MS;
    req.topic_data.v = &topic;
    req.topic_data.n = 1;
    client_send(&w->c, at, API_PRODUCE, 13, &req);
    buf_close(&w->c.batch);
}

static void take_written(struct script_write *w, const struct produce_response *resp)
{
    const struct produce_response_partition_produce_response *p =
        &resp->responses.v[0].partition_responses.v[0];
    w->error = p->error_code;
    w->offset = p->base_offset;
    if (w->error == K_NONE && w->c.acks == -1)
        model_acked(&s.cl.model, model_partition(&s.cl.model, s.cl.topics[0].id, 0), w->offset,
                    (struct model_value){0, w->c.first_sequence});
}

bool script_write_ended(struct script_write *w)
{
    struct world *at = &s.f.worlds[w->c.at];
    struct link *l = &at->links[w->c.conn];
    const struct frame_of of = {w->c.api_key, w->c.version, w->c.correlation_id};
    const void *body = NULL;
    struct arena a;
    if (w->ended)
        return true;
    arena_init(&a, NULL);
    const enum frame_got got = frame_take(&l->out, of, &a, &body);
    CHECK(got != FRAME_ALIEN);
    if (got == FRAME_ANSWER)
        take_written(w, body);
    else if (l->conn == NULL || l->closed)
        w->error = -1;
    w->ended = got == FRAME_ANSWER || w->error != K_NONE;
    if (w->ended && l->conn != NULL)
        world_disconnect(at, w->c.conn);
    l->closed = l->closed && !w->ended;
    arena_close(&a);
    return w->ended;
}

void script_write(int32_t id, int16_t acks)
{
    struct script_write w;
    script_write_begin(&w, id, acks);
    UNTIL(script_write_ended(&w));
    if (w.error != K_NONE)
        violation("a write to node %d is answered by error %d", id, w.error);
    s.link--;
}

/* ------------------------------------------------------------------ begin and end */

static bool all_serve(void)
{
    for (int32_t id = 1; id <= (int32_t)s.f.n; id++) {
        const struct image_broker *b = script_broker(id);
        if (!script_up(id) || b == NULL || b->fenced)
            return false;
    }
    return script_controller() != 0;
}

void script_begin(size_t n, const char *more)
{
    char lines[1024];
    const int used = snprintf(lines, sizeof lines, "%s%s", settings, more);
    CHECK(used > 0 && (size_t)used < sizeof lines);
    s.link = 0;
    s.written_n = 0;
    cluster_init(&s.cl, s.seed);
    s.cl.fleet = &s.f;
    fleet_init(&s.f, n, s.seed, lines);
    s.f.calm = true;
    if (!s.blind)
        ghost_begin(&s.f);
    for (int32_t id = 1; id <= (int32_t)n; id++)
        script_start(id);
    UNTIL(all_serve());
}

/* By what everybody can see: full ISRs, and all have all. */
static bool looks_settled(void)
{
    const struct image_partition *p = script_state();
    if (!all_serve())
        return false;
    if (p == NULL)
        return true;
    for (int32_t i = 0; i < p->replicas_n; i++) {
        const int32_t id = p->replicas[i];
        if (script_end_of(id) != script_end_of(p->replicas[0]) ||
            script_hw(id) != script_end_of(id) || script_end_of(id) < 0)
            return false;
    }
    return p->isr_n == p->replicas_n;
}

static void settle(void)
{
    char why[160] = "it does not look so";
    const int64_t until_us = s.f.network.us + SETTLE_US;
    for (long k = 0; s.f.network.us < until_us; k++) {
        fleet_step(&s.f);
        if (k % LOOK_EVERY == 0 && looks_settled() && (s.blind || ghost_settled(why, sizeof why)))
            return;
    }
    violation("at the end not all is well: %s (28)", why);
}

static void compare_logs(void)
{
    const struct image_partition *p = script_state();
    for (int32_t i = 1; p != NULL && i < p->replicas_n; i++)
        if (!script_same_log(p->replicas[0], p->replicas[i]))
            violation("the logs of nodes %d and %d differ", p->replicas[0], p->replicas[i]);
}

static void stop_all(void)
{
    for (int32_t id = 1; id <= (int32_t)s.f.n; id++)
        world_stop(script_world(id));
    for (int32_t id = 1; id <= (int32_t)s.f.n; id++)
        UNTIL(script_world(id)->node == NULL);
}

void script_end(void)
{
    memset(s.f.network.held, 0, sizeof s.f.network.held);
    script_heal();
    for (int32_t id = 1; id <= (int32_t)s.f.n; id++) {
        script_world(id)->crash_at_op = 0;
        if (script_world(id)->node == NULL)
            script_start(id);
    }
    settle();
    if (!verify_in_topic(&s.cl, ASK_LINK, 0, 0))
        violation("the partition could not be read to its end");
    compare_logs();
    stop_all();
    model_close(&s.cl.model);
    if (!s.blind)
        ghost_end();
    fleet_close(&s.f);
}

/* ------------------------------------------------------------------ all of them */

bool script_run(const char *name, uint64_t seed, bool blind)
{
    bool found = false;
    s.seed = seed;
    s.blind = blind;
    for (size_t i = 0; i < scripts_n; i++) {
        if (strcmp(name, scripts[i].name) != 0 && strcmp(name, "all") != 0)
            continue;
        found = true;
        violation_where("script %s, seed %llu", scripts[i].name, (unsigned long long)seed);
        scripts[i].run();
        printf("script %s: %llu steps, %lld ms\n", scripts[i].name, (unsigned long long)s.f.steps,
               (long long)(s.f.network.us / 1000));
    }
    return found;
}
