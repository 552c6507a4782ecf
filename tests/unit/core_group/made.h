/* Records of __consumer_offsets made by hand, and put into the log behind the coordinator's back.
 */
#ifndef UNIT_CORE_GROUP_MADE_H
#define UNIT_CORE_GROUP_MADE_H

#include "base/endian.h"
#include "coordinator.h"

struct made {
    struct batch_builder *bb;
    struct buf key, value;
};

static inline void made_begin(struct made *m, int64_t producer_id, int16_t attributes)
{
    const struct batch_builder_args args = {.leader_epoch = -1,
                                            .attributes = attributes,
                                            .producer_id = producer_id,
                                            .producer_epoch = producer_id < 0 ? -1 : 0,
                                            .base_sequence = -1};
    buf_init(&m->key);
    buf_init(&m->value);
    CU_ASSERT_EQUAL_FATAL(batch_builder_new(&args, &m->bb), ERR_NONE);
}

static inline void made_part(struct buf *b, int16_t head, const struct wire_message *w,
                             int16_t version, const void *msg)
{
    uint8_t be[2];
    b->n = 0;
    put_be16(be, (uint16_t)head);
    CU_ASSERT_EQUAL_FATAL(buf_append(b, be, 2), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(wire_encode(w, version, msg, b), ERR_NONE);
}

/* value NULL: a tombstone. */
static inline void made_add(struct co *c, struct made *m, int16_t type,
                            const struct wire_message *kw, const void *key,
                            const struct wire_message *vw, int16_t version, const void *value)
{
    struct bytes v = BYTES_NULL;
    made_part(&m->key, type, kw, 0, key);
    if (value != NULL) {
        made_part(&m->value, version, vw, version, value);
        v = (struct bytes){m->value.p, (int32_t)m->value.n};
    }
    CU_ASSERT_EQUAL_FATAL(batch_builder_add(m->bb, c->f.now.wall_ms,
                                            (struct bytes){m->key.p, (int32_t)m->key.n}, v, NULL,
                                            0),
                          ERR_NONE);
}

FIX_UNUSED static void made_raw(struct co *c, struct made *m, const void *key, size_t key_n,
                                const void *value, size_t value_n)
{
    CU_ASSERT_EQUAL_FATAL(batch_builder_add(m->bb, c->f.now.wall_ms,
                                            (struct bytes){key, (int32_t)key_n},
                                            (struct bytes){value, (int32_t)value_n}, NULL, 0),
                          ERR_NONE);
}

static int made_appended_n;

static inline void made_appended(struct append_op *op, int16_t error)
{
    (void)op;
    CU_ASSERT_EQUAL(error, K_NONE);
    made_appended_n++;
}

/* Into the log behind the coordinator's back. */
static inline void made_end(struct co *c, struct made *m)
{
    struct replicas_ends ends;
    struct append_op op = {.topic_id = c->offsets, .done = made_appended};
    CU_ASSERT_EQUAL_FATAL(replicas_ends(c->f.rs, c->offsets, 0, &ends), K_NONE);
    CU_ASSERT_EQUAL_FATAL(batch_builder_finish(m->bb, &op.batch), ERR_NONE);
    op.leader_epoch = ends.leader_epoch;
    made_appended_n = 0;
    CU_ASSERT_EQUAL_FATAL(replicas_append(c->f.rs, &op, c->f.now), K_NONE);
    CU_ASSERT_EQUAL(made_appended_n, 0);
    fix_turn(&c->f);
    CU_ASSERT_EQUAL_FATAL(made_appended_n, 1);
    batch_builder_free(m->bb);
    buf_close(&m->key);
    buf_close(&m->value);
}

static inline void made_offset(struct co *c, struct made *m, const char *group, int32_t index,
                               int64_t offset)
{
    const struct offset_commit_key key = {str_of(group), STR_LIT("t"), index};
    const struct offset_commit_value value = {.offset = offset,
                                              .leader_epoch = -1,
                                              .metadata = STR_LIT(""),
                                              .commit_timestamp = c->f.now.wall_ms,
                                              .expire_timestamp = -1,
                                              .topic_id = c->t};
    made_add(c, m, 1, &msg_offset_commit_key, &key, &msg_offset_commit_value, 4,
             offset < 0 ? NULL : &value);
}

FIX_UNUSED static void made_put_offset(struct co *c, int64_t producer_id, const char *group,
                                       int32_t index, int64_t offset)
{
    struct made m;
    made_begin(&m, producer_id, producer_id < 0 ? 0 : BATCH_TRANSACTIONAL);
    made_offset(c, &m, group, index, offset);
    made_end(c, &m);
}

#endif
