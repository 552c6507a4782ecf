/* CreateTopics and DeleteTopics in a line each. */
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
