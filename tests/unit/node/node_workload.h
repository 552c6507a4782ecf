/* A whole node under faults. The named workload: format and start, create topics, produce with
 * acks=all so that segments roll, an idempotent producer that sends its batches twice, delete a
 * topic and create it again, read back and search, stop cleanly and restart, an end in the midst
 * of a write and the restart that cuts the torn tail, read back.
 *
 * For every n the nth allocation fails, alone or with some behind it, and the nth operation on
 * files, alone or with all behind it. A node may then refuse, close a connection or end with one
 * message: it is started again and the workload goes on. At last it starts without faults: every
 * topic and every record that it acknowledged is there, once and in order. */
#ifndef TEST_NODE_WORKLOAD_H
#define TEST_NODE_WORKLOAD_H

#include "base/check.h"
#include "node_bench.h"
#include "wire/batch.h"
#include "wire/error.h"

#define SETTINGS                                                                                   \
    "listeners=PLAINTEXT://127.0.0.1:9092\n"                                                       \
    "auto.create.topics.enable=false\n"                                                            \
    "dohle.memory.max.bytes=16777216\n"                                                            \
    "broker.session.timeout.ms=60000\n"                                                            \
    "broker.heartbeat.interval.ms=20000\n"                                                         \
    "replica.high.watermark.checkpoint.interval.ms=30000\n"                                        \
    "metadata.log.max.record.bytes.between.snapshots=1500\n"
static const char *settings = "log.dirs=/machine/data\n" SETTINGS;

/* ------------------------------------------------------------------ what is known */

enum presence { ABSENT, UNSURE, PRESENT };

struct topic {
    const char *name;
    enum presence is;
    struct uuid id; /* zero: not known */
    bool wanted;    /* by the workload, at this point of it */
};

struct producer {
    uint32_t id; /* in the model */
    struct topic *topic;
    int32_t partition;
    uint32_t next_value;
    bool idempotent;
    int64_t producer_id; /* -1: none yet */
    int32_t next_sequence;
    struct uuid sequence_topic; /* sequences count per incarnation of a topic */
};

enum { PARTITIONS = 2, RECORDS = 3 };

static struct {
    struct model model;
    struct topic a, b;
    struct producer plain, idempotent, other;
    long acked_n, refused_n, starts_n, torn_bytes;
    bool lasting; /* the fault */
} k;

static inline void know_nothing(void)
{
    memset(&k, 0, sizeof k);
    k.a = (struct topic){.name = "a", .wanted = true};
    k.b = (struct topic){.name = "b", .wanted = true};
    k.plain = (struct producer){.id = 1, .topic = &k.a, .producer_id = -1};
    k.idempotent = (struct producer){
        .id = 2, .topic = &k.a, .partition = 1, .idempotent = true, .producer_id = -1};
    k.other = (struct producer){.id = 3, .topic = &k.b, .producer_id = -1};
}

/* ------------------------------------------------------------------ topics */

static inline void create(struct topic *t)
{
    /* Three index entries fill a segment. */
    struct create_topics_request_creatable_topic_config configs[] = {
        {STR_LIT("segment.index.bytes"), STR_LIT("24")},
        {STR_LIT("index.interval.bytes"), STR_LIT("0")},
        {STR_LIT("flush.messages"), STR_LIT("1")},
    };
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request req;
    struct arena a;
    t->wanted = true;
    if (t->is == PRESENT)
        return;
    arena_init(&a, NULL);
    wire_default(&wire_create_topics_request_creatable_topic, &topic);
    wire_default(&wire_create_topics_request, &req);
    topic.name = str_of(t->name);
    topic.num_partitions = PARTITIONS;
    topic.replication_factor = 1;
    topic.configs.v = configs;
    topic.configs.n = t == &k.a ? 3 : 0;
    req.topics.v = &topic;
    req.topics.n = 1;
    t->is = UNSURE;
    const struct create_topics_response *resp = ask(API_CREATE_TOPICS, 7, &req, &a);
    if (resp != NULL && resp->topics.n == 1 && resp->topics.v[0].error_code == K_NONE) {
        t->is = PRESENT;
        t->id = resp->topics.v[0].topic_id;
    }
    arena_close(&a);
}

static inline void delete_topic(struct topic *t)
{
    struct delete_topics_request_delete_topic_state state = {.name = str_of(t->name)};
    struct delete_topics_request req = {.timeout_ms = 1000};
    struct arena a;
    arena_init(&a, NULL);
    req.topics.v = &state;
    req.topics.n = 1;
    t->wanted = false;
    t->is = UNSURE;
    const struct delete_topics_response *resp = ask(API_DELETE_TOPICS, 6, &req, &a);
    if (resp != NULL && resp->responses.n == 1 && resp->responses.v[0].error_code == K_NONE) {
        t->is = ABSENT;
        t->id = (struct uuid){{0}};
    }
    arena_close(&a);
}

static inline void told_of_topic(struct topic *t,
                                 const struct metadata_response_metadata_response_topic *told)
{
    if (told->error_code == K_UNKNOWN_TOPIC_OR_PARTITION) {
        if (t->is == PRESENT)
            violation("topic %s was created and is gone", t->name);
        t->is = ABSENT;
        t->id = (struct uuid){{0}};
        return;
    }
    if (t->is == ABSENT)
        violation("topic %s was deleted and is there", t->name);
    if (t->is == PRESENT && !uuid_eq(t->id, told->topic_id))
        violation("topic %s is another one", t->name);
    t->is = PRESENT;
    t->id = told->topic_id;
}

static inline void look(struct topic *t)
{
    struct metadata_request_metadata_request_topic topic;
    struct metadata_request req;
    struct arena a;
    arena_init(&a, NULL);
    wire_default(&wire_metadata_request_metadata_request_topic, &topic);
    wire_default(&wire_metadata_request, &req);
    topic.name = str_of(t->name);
    req.topics.v = &topic;
    req.topics.n = 1;
    req.allow_auto_topic_creation = false;
    const struct metadata_response *resp = ask(API_METADATA, 12, &req, &a);
    if (resp != NULL && resp->topics.n == 1)
        told_of_topic(t, &resp->topics.v[0]);
    arena_close(&a);
}

/* ------------------------------------------------------------------ producers */

static struct batch_builder *build(const struct producer *p, int32_t value_n, struct bytes *out)
{
    static uint8_t filler[40000];
    struct batch_builder *bb;
    const struct batch_builder_args args = {
        .leader_epoch = -1,
        .producer_id = p->producer_id,
        .producer_epoch = p->idempotent ? 0 : -1,
        .base_sequence = p->idempotent ? p->next_sequence : -1,
        .level = INT32_MIN,
    };
    CHECK(batch_builder_new(&args, &bb) == ERR_NONE);
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint8_t key[MODEL_KEY_BYTES];
        model_key(key, (struct model_value){p->id, p->next_value + i});
        CHECK(batch_builder_add(bb, b.now.wall_ms, (struct bytes){key, sizeof key},
                                (struct bytes){filler, value_n}, NULL, 0) == ERR_NONE);
    }
    CHECK(batch_builder_finish(bb, out) == ERR_NONE);
    return bb;
}

struct produce {
    struct produce_request_partition_produce_data part;
    struct produce_request_topic_produce_data topic;
    struct produce_request req;
    struct batch_builder *bb;
};

static inline void produce_init(struct produce *q, const struct producer *p, int32_t value_n)
{
    struct bytes records;
    q->bb = build(p, value_n, &records);
    wire_default(&wire_produce_request_partition_produce_data, &q->part);
    wire_default(&wire_produce_request_topic_produce_data, &q->topic);
    wire_default(&wire_produce_request, &q->req);
    q->part.index = p->partition;
    q->part.records.p = records.p;
    q->part.records.n = records.n;
    q->topic.topic_id = p->topic->id;
    q->topic.partition_data.v = &q->part;
    q->topic.partition_data.n = 1;
    q->req.acks = -1;
    q->req.timeout_ms = 5000;
    q->req.topic_data.v = &q->topic;
    q->req.topic_data.n = 1;
}

/* The batch is at this offset for good. */
static inline void acknowledged(const struct producer *p, int64_t base_offset)
{
    struct model_partition *mp = model_partition(&k.model, p->topic->id, p->partition);
    for (uint32_t i = 0; i < RECORDS; i++)
        model_acked(&k.model, mp, base_offset + i, (struct model_value){p->id, p->next_value + i});
    k.acked_n++;
}

static inline bool produce_once(const struct producer *p, int32_t value_n)
{
    struct produce q;
    struct arena a;
    bool ok = false;
    arena_init(&a, NULL);
    produce_init(&q, p, value_n);
    const struct produce_response *resp = ask(API_PRODUCE, 13, &q.req, &a);
    if (resp != NULL) {
        const struct produce_response_partition_produce_response *part =
            &resp->responses.v[0].partition_responses.v[0];
        ok = part->error_code == K_NONE;
        if (ok)
            acknowledged(p, part->base_offset);
    }
    batch_builder_free(q.bb);
    arena_close(&a);
    return ok;
}

static inline void ask_producer_id(struct producer *p)
{
    struct init_producer_id_request req;
    struct arena a;
    arena_init(&a, NULL);
    wire_default(&wire_init_producer_id_request, &req);
    req.transactional_id = STR_NULL;
    for (int i = 0; i < 5 && !ended(); i++) { /* the first block is fetched */
        const struct init_producer_id_response *resp = ask(API_INIT_PRODUCER_ID, 5, &req, &a);
        if (resp != NULL && resp->error_code == K_NONE) {
            p->producer_id = resp->producer_id;
            p->next_sequence = 0;
            break;
        }
        pass(SECOND_US);
    }
    arena_close(&a);
}

static inline bool topic_there(struct topic *t)
{
    if (t->is == UNSURE)
        look(t);
    if (t->is == ABSENT && t->wanted && !ended())
        create(t);
    return t->is == PRESENT && !ended();
}

/* An idempotent producer sends each batch twice, whatever the first answer was: it is there once.
 */
static inline bool produce(struct producer *p, int32_t value_n)
{
    if (!topic_there(p->topic))
        return false;
    if (!uuid_eq(p->sequence_topic, p->topic->id)) {
        p->sequence_topic = p->topic->id;
        p->producer_id = -1;
    }
    if (p->idempotent && p->producer_id < 0)
        ask_producer_id(p);
    if (p->idempotent && p->producer_id < 0)
        return false;
    bool ok = produce_once(p, value_n);
    if (p->idempotent && !ended())
        ok = produce_once(p, value_n) || ok;
    p->next_value += RECORDS;
    if (p->idempotent && ok)
        p->next_sequence += RECORDS;
    else if (p->idempotent)
        p->producer_id = -1; /* as a client does: a fresh id */
    return ok;
}

/* ------------------------------------------------------------------ consumers */

/* The next offset, or -1; *end is set at the end of the partition. */
static inline int64_t fetch(const struct topic *t, int32_t partition, int64_t position, bool *end)
{
    struct fetch_request_fetch_partition part;
    struct fetch_request_fetch_topic topic = {.topic_id = t->id};
    struct fetch_request req;
    struct arena a;
    int64_t next = -1;
    arena_init(&a, NULL);
    wire_default(&wire_fetch_request_fetch_partition, &part);
    wire_default(&wire_fetch_request, &req);
    part.partition = partition;
    part.fetch_offset = position;
    part.partition_max_bytes = 1 << 20;
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    req.max_wait_ms = 100;
    req.min_bytes = 1;
    req.topics.v = &topic;
    req.topics.n = 1;
    const struct fetch_response *resp = ask(API_FETCH, 17, &req, &a);
    if (resp != NULL && resp->error_code == K_NONE && resp->responses.n == 1) {
        const struct fetch_response_partition_data *p = &resp->responses.v[0].partitions.v[0];
        if (p->error_code == K_NONE) {
            next =
                model_fetched(&k.model, model_partition(&k.model, t->id, partition), p, position);
            *end = next == position && position >= p->high_watermark;
        }
    }
    arena_close(&a);
    return next;
}

/* True if it was read to its end. */
static inline bool read_partition(const struct topic *t, int32_t partition, int64_t *end_offset)
{
    bool end = false;
    *end_offset = 0;
    while (!end) {
        if (ended())
            return false;
        const int64_t next = fetch(t, partition, *end_offset, &end);
        if (next < 0)
            return false;
        *end_offset = next;
    }
    return true;
}

static inline void read_topic(struct topic *t)
{
    int64_t end_offset;
    if (!topic_there(t))
        return;
    for (int32_t i = 0; i < PARTITIONS; i++)
        (void)read_partition(t, i, &end_offset);
}

static inline void search(struct topic *t)
{
    struct list_offsets_request_list_offsets_partition parts[PARTITIONS];
    struct list_offsets_request_list_offsets_topic topic = {.name = str_of(t->name)};
    struct list_offsets_request req;
    struct arena a;
    arena_init(&a, NULL);
    for (int32_t i = 0; i < PARTITIONS; i++) {
        wire_default(&wire_list_offsets_request_list_offsets_partition, &parts[i]);
        parts[i].partition_index = i;
        parts[i].timestamp = i == 0 ? 5 : -3;
    }
    wire_default(&wire_list_offsets_request, &req);
    req.replica_id = -1;
    topic.partitions.v = parts;
    topic.partitions.n = PARTITIONS;
    req.topics.v = &topic;
    req.topics.n = 1;
    (void)ask(API_LIST_OFFSETS, 10, &req, &a);
    arena_close(&a);
}

/* ------------------------------------------------------------------ the workload */

static inline void step_create_a(void)
{
    create(&k.a);
}

static inline void step_create_b(void)
{
    create(&k.b);
}

static inline void step_delete_b(void)
{
    delete_topic(&k.b);
}

static inline void step_produce_small(void)
{
    (void)produce(&k.plain, 10);
}

static inline void step_produce_large(void) /* written from the frame, read by slices */
{
    (void)produce(&k.plain, 15000);
}

static inline void step_produce_idempotent(void)
{
    (void)produce(&k.idempotent, 2000);
}

static inline void step_produce_b(void)
{
    (void)produce(&k.other, 100);
}

static inline void step_read(void)
{
    memfs_cool(&b.fs);
    read_topic(&k.a);
    if (!ended())
        read_topic(&k.b);
}

static inline void step_search(void)
{
    search(&k.a);
}

static inline void step_wait(void) /* heartbeats and checkpoints */
{
    pass(65LL * SECOND_US);
}

static inline void step_stop(void)
{
    (void)node_halt();
}

static inline long bytes_of_a(void)
{
    long sum = 0;
    for (int offset = 0; offset < 100; offset++) {
        char path[96];
        size_t n;
        snprintf(path, sizeof path, "/machine/data/a-0/%020d.log", offset);
        sum += memfs_get(&b.fs, path, &n) == NULL ? 0 : (long)n;
    }
    return sum;
}

/* The machine dies while a batch is written. */
static inline void step_tear(void)
{
    struct produce q;
    const long before = bytes_of_a();
    if (!topic_there(&k.a))
        return;
    produce_init(&q, &k.plain, 3000);
    k.plain.next_value += RECORDS;
    (void)send_request(API_PRODUCE, 13, &q.req);
    batch_builder_free(q.bb);
    node_kill();
    k.torn_bytes = bytes_of_a() - before;
}

static void (*const steps[])(void) = {
    step_create_a,
    step_create_b,
    step_produce_small,
    step_produce_b,
    step_produce_idempotent,
    step_produce_large,
    step_produce_idempotent,
    step_delete_b,
    step_produce_small,
    step_create_b,
    step_read,
    step_search,
    step_wait,
    step_produce_b,
    step_stop,
    step_produce_small,
    step_produce_idempotent,
    step_read,
    step_tear,
    step_produce_small,
    step_produce_idempotent,
    step_read,
    step_wait,
    step_stop,
};

/* Each step finds a node that runs, unless that cannot be started. */
static inline void workload(bool lasting)
{
    know_nothing();
    k.lasting = lasting;
    for (size_t i = 0; i < ARRAY_N(steps); i++) {
        if (b.node == NULL) {
            k.starts_n++;
            if (!node_begin()) {
                k.refused_n++;
                if (b.node != NULL && !k.lasting)
                    violation("a start that does not end: %s", b.env.last_line);
            }
        }
        if (b.node != NULL && node_ready())
            steps[i]();
        else if (b.node != NULL && !ended())
            (void)node_halt();
        node_bury_if_ended();
    }
}

/* ------------------------------------------------------------------ afterwards */

static inline void check_topic(struct topic *t)
{
    look(t);
    if (t->is == UNSURE)
        violation("topic %s cannot be looked up", t->name);
    for (int32_t i = 0; t->is == PRESENT && i < PARTITIONS; i++) {
        int64_t end_offset;
        if (!read_partition(t, i, &end_offset))
            violation("%s-%d cannot be read", t->name, i);
        model_end(model_partition(&k.model, t->id, i), 0, end_offset);
    }
}

static inline void check_afterwards(void)
{
    if (b.node != NULL)
        violation("a step left its node");
    if (!node_begin() || !node_ready())
        violation("no start without faults: %s", b.env.last_line);
    check_topic(&k.a);
    check_topic(&k.b);
    create(&k.a);
    if (!produce(&k.plain, 10) || !produce(&k.idempotent, 10))
        violation("no record is taken without faults");
    check_topic(&k.a);
    if (!node_halt())
        violation("no clean stop without faults: %s", b.message);
    model_close(&k.model);
}

#endif
