/* CreateTopics and CreatePartitions in a line each. */
#ifndef UNIT_CORE_CONTROLLER_TOPICS_H
#define UNIT_CORE_CONTROLLER_TOPICS_H

#include "fake_raft.h"

struct creating {
    struct create_topics_request_creatable_topic topics[16];
    struct create_topics_request req;
    struct create_topics_response resp;
    int16_t version;
};

static inline struct create_topics_request_creatable_topic topic_of(const char *name,
                                                                    int32_t partitions, int16_t rf)
{
    return (struct create_topics_request_creatable_topic){
        .name = str_of(name), .num_partitions = partitions, .replication_factor = rf};
}

static inline void creating_init(struct creating *c)
{
    *c = (struct creating){.version = 7};
    wire_default(&wire_create_topics_request, &c->req);
    wire_default(&wire_create_topics_response, &c->resp);
    c->req.topics.v = c->topics;
}

static inline void creating_add(struct creating *c, struct create_topics_request_creatable_topic t)
{
    CU_ASSERT_FATAL(c->req.topics.n < (int32_t)ARRAY_N(c->topics));
    c->topics[c->req.topics.n++] = t;
}

static inline int16_t creating_run(struct fixture *f, struct creating *c)
{
    struct test_op op = test_op_new();
    wire_default(&wire_create_topics_response, &c->resp);
    controller_create_topics(f->controller, &op.op, &c->req, c->version, &f->arena, &c->resp,
                             f->now);
    return test_op_wait(f, &op);
}

/* One topic alone; its error. */
static inline int16_t create_one(struct fixture *f, struct creating *c,
                                 struct create_topics_request_creatable_topic t)
{
    creating_init(c);
    creating_add(c, t);
    CU_ASSERT_EQUAL(creating_run(f, c), K_NONE);
    CU_ASSERT_EQUAL_FATAL(c->resp.topics.n, 1);
    CU_ASSERT_TRUE(str_eq(c->resp.topics.v[0].name, t.name));
    return c->resp.topics.v[0].error_code;
}

static inline int16_t create_named(struct fixture *f, const char *name)
{
    struct creating c;
    return create_one(f, &c, topic_of(name, 1, 1));
}

struct growing {
    struct create_partitions_request_create_partitions_topic topics[8];
    struct create_partitions_request req;
    struct create_partitions_response resp;
    bool refused; /* the principal may alter nothing */
};

static inline void growing_init(struct growing *g)
{
    *g = (struct growing){0};
    wire_default(&wire_create_partitions_request, &g->req);
    wire_default(&wire_create_partitions_response, &g->resp);
    g->req.timeout_ms = 1000;
    g->req.topics.v = g->topics;
}

/* Without assignments. */
static inline struct create_partitions_request_create_partitions_topic *
growing_add(struct growing *g, const char *name, int32_t count)
{
    CU_ASSERT_FATAL(g->req.topics.n < (int32_t)ARRAY_N(g->topics));
    struct create_partitions_request_create_partitions_topic *t = &g->topics[g->req.topics.n++];
    wire_default(&wire_create_partitions_request_create_partitions_topic, t);
    t->name = str_of(name);
    t->count = count;
    t->assignments.n = -1;
    return t;
}

static inline bool growing_allowed(void *ctx, struct str topic)
{
    (void)topic;
    return !((const struct growing *)ctx)->refused;
}

static inline void growing_begin(struct fixture *f, struct growing *g, struct test_op *op)
{
    controller_create_partitions(f->controller, &op->op, &g->req, growing_allowed, g, &f->arena,
                                 &g->resp, f->now);
}

static inline int16_t growing_run(struct fixture *f, struct growing *g)
{
    struct test_op op = test_op_new();
    wire_default(&wire_create_partitions_response, &g->resp);
    growing_begin(f, g, &op);
    return test_op_wait(f, &op);
}

static inline bool topic_exists(struct fixture *f, const char *name)
{
    return image_topic_named(&f->image, str_of(name)) != NULL;
}

/* A fresh cluster with broker 1. */
static inline void topics_open(struct fixture *f)
{
    fixture_init(f);
    fixture_start(f);
    fixture_claim(f);
    fixture_broker(f, 1, 1, -1);
}

#endif
