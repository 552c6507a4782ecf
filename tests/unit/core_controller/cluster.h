/* A cluster of brokers 2, 3, 4 that a test fences, restarts and looks at in a line each. */
#ifndef UNIT_CORE_CONTROLLER_CLUSTER_H
#define UNIT_CORE_CONTROLLER_CLUSTER_H

#include "fake_raft.h"

struct cluster {
    struct fixture f;
    int64_t epoch[8]; /* by broker id */
};

static inline void cluster_level(struct fixture *f, const char *name, int16_t value)
{
    const struct feature_level_record r = {str_of(name), value};
    CU_ASSERT_EQUAL_FATAL(record_list_add(&f->raft.records, &msg_feature_level_record, 0, &r),
                          ERR_NONE);
}

static inline void cluster_config(struct fixture *f, int8_t type, const char *name, const char *key,
                                  const char *value)
{
    const struct config_record r = {type, str_of(name), str_of(key), str_of(value)};
    CU_ASSERT_EQUAL_FATAL(record_list_add(&f->raft.records, &msg_config_record, 0, &r), ERR_NONE);
    fixture_commit(f);
    controller_resign(f->controller); /* it reads what others wrote */
    fixture_claim(f);
}

/* A topic of one partition with these replicas, the first leading. */
static inline void cluster_topic(struct cluster *c, const char *name, int32_t *replicas, int32_t n)
{
    struct create_topics_request_creatable_replica_assignment assignment = {.partition_index = 0};
    struct create_topics_request_creatable_topic t = {
        .name = str_of(name), .num_partitions = -1, .replication_factor = -1};
    struct create_topics_request req;
    struct create_topics_response resp;
    struct test_op op = test_op_new();
    assignment.broker_ids.v = replicas;
    assignment.broker_ids.n = n;
    t.assignments.v = &assignment;
    t.assignments.n = 1;
    wire_default(&wire_create_topics_request, &req);
    wire_default(&wire_create_topics_response, &resp);
    req.topics.v = &t;
    req.topics.n = 1;
    controller_create_topics(c->f.controller, &op.op, &req, 7, &c->f.arena, &resp, c->f.now);
    CU_ASSERT_EQUAL_FATAL(test_op_wait(&c->f, &op), K_NONE);
    CU_ASSERT_EQUAL_FATAL(resp.topics.v[0].error_code, K_NONE);
}

static int32_t cluster_all[] = {2, 3, 4};

/* An active controller that finds these levels; after fixture_init. */
static inline void cluster_claim(struct cluster *c, int16_t metadata_version, int16_t elr)
{
    cluster_level(&c->f, "metadata.version", metadata_version);
    if (elr > 0)
        cluster_level(&c->f, "eligible.leader.replicas.version", elr);
    fixture_start(&c->f);
    c->f.raft.base = 0;
    fixture_commit(&c->f);
    fixture_claim(&c->f);
}

/* Brokers 2, 3, 4, topic t on all three with min.insync.replicas as given; after fixture_init. */
static inline void cluster_start(struct cluster *c, int16_t elr, const char *min_isr)
{
    cluster_claim(c, 33, elr);
    for (int32_t id = 2; id <= 4; id++)
        c->epoch[id] = fixture_broker(&c->f, id, 1, -1);
    cluster_config(&c->f, CONFIG_RESOURCE_BROKER, "", "min.insync.replicas", min_isr);
    cluster_topic(c, "t", cluster_all, 3);
}

/* Static keys and their values, ending with NULL. */
static inline void cluster_open_with(struct cluster *c, int16_t elr, const char *min_isr,
                                     const char *const settings[])
{
    fixture_init(&c->f);
    for (; *settings != NULL; settings += 2)
        fixture_set(&c->f, settings[0], settings[1]);
    cluster_start(c, elr, min_isr);
}

static inline void cluster_open(struct cluster *c, int16_t elr, const char *min_isr)
{
    fixture_init(&c->f);
    cluster_start(c, elr, min_isr);
}

static inline void cluster_open_dialing(struct cluster *c, struct dialing *d)
{
    fixture_init(&c->f);
    c->f.dialing = d;
    cluster_start(c, 1, "1");
}

/* A record as another controller would have written it; ours reads it. */
static inline void cluster_wrote(struct cluster *c, const struct partition_change_record *r)
{
    CU_ASSERT_EQUAL_FATAL(record_list_add(&c->f.raft.records, &msg_partition_change_record, 2, r),
                          ERR_NONE);
    fixture_commit(&c->f);
    controller_resign(c->f.controller);
    fixture_claim(&c->f);
}

/* What AlterPartition does when followers have caught up. */
static inline void cluster_isr(struct cluster *c, const char *topic, int32_t *ids, int32_t n)
{
    struct partition_change_record r;
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = image_topic_named(&c->f.image, str_of(topic))->id;
    r.partition_id = 0;
    r.isr.v = ids;
    r.isr.n = n;
    cluster_wrote(c, &r);
}

static inline void cluster_fence(struct cluster *c, int32_t id)
{
    CU_ASSERT_TRUE(fixture_beat(&c->f, id, c->epoch[id], true, false).is_fenced);
}

static inline void cluster_unfence(struct cluster *c, int32_t id)
{
    CU_ASSERT_FALSE(fixture_beat(&c->f, id, c->epoch[id], false, false).is_fenced);
}

/* Time in which all brokers that are not fenced go on with their heartbeats. */
static inline void cluster_pass(struct cluster *c, int64_t ms)
{
    while (ms > 0) {
        const int64_t step = ms < 4000 ? ms : 4000;
        fixture_pass(&c->f, step);
        ms -= step;
        for (int32_t id = 2; id < 8; id++) {
            const struct image_broker *b = image_broker(&c->f.image, id);
            if (b != NULL && !b->fenced)
                cluster_unfence(c, id);
        }
    }
}

/* A new incarnation registers; still fenced. */
static inline void cluster_restart(struct cluster *c, int32_t id, bool clean)
{
    static uint8_t incarnation = 100;
    struct broker_registration_request req = fixture_registration(&c->f, id, incarnation++);
    req.previous_broker_epoch = clean ? c->epoch[id] : -1;
    CU_ASSERT_EQUAL(fixture_register(&c->f, &req, &c->epoch[id]), K_NONE);
}

/* "leader/epoch isr elr last": "2/0 234  " */
static inline const char *cluster_state(struct cluster *c, const char *name)
{
    static char text[64];
    const struct image_partition *p = fixture_partition(&c->f, name, 0);
    size_t n = (size_t)snprintf(text, sizeof text, "%d/%d ", p->leader, p->leader_epoch);
    for (int32_t i = 0; i < p->isr_n; i++)
        text[n++] = (char)('0' + p->isr[i]);
    text[n++] = ' ';
    for (int32_t i = 0; i < p->elr_n; i++)
        text[n++] = (char)('0' + p->elr[i]);
    text[n++] = ' ';
    for (int32_t i = 0; i < p->last_known_elr_n; i++)
        text[n++] = (char)('0' + p->last_known_elr[i]);
    text[n] = '\0';
    return text;
}

#endif
