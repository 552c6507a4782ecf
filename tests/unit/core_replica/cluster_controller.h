/* The controller of a cluster: metadata records stand in a log, AlterPartition is answered as
 * replication.md 3 says, or as the test does. */
#ifndef UNIT_CORE_REPLICA_CLUSTER_CONTROLLER_H
#define UNIT_CORE_REPLICA_CLUSTER_CONTROLLER_H

#include "cluster_state.h"
#include "wire/api_key.h"

/* ------------------------------------------------------------------ metadata */

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

/* ------------------------------------------------------------------ AlterPartition */

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

#endif
