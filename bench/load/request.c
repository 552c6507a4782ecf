#include "load/request.h"

#include <stdio.h>

#include "difference.h"
#include "load/values.h"
#include "wire/api_key.h"
#include "wire/messages.h"

#define WHOLE_MAX 16384 /* a larger frame is not copied for each sending */
#define CLIENT STR_LIT("bench")
/* Versions that name topics: the same bytes for every broker. */
#define PRODUCE_VERSION 12
#define FETCH_VERSION 12
#define COMMIT_VERSION 9
#define API_VERSIONS_VERSION 4

/* What is put where a patched field stands, to find it. */
struct marks {
    int32_t partition;
    int64_t offset;
};

struct maker {
    const struct options *o;
    int number;
    struct arena *arena;
    struct bytes batch;
};

static bool encode(const struct maker *k, const struct wire_message *m, int16_t version,
                   const void *body, struct bytes *out)
{
    struct request_header header = {m->api_key, version, 0, CLIENT};
    struct wire_parts parts;
    int16_t header_version = wire_request_header_version(m->api_key, version);
    if (wire_encode_frame(&msg_request_header, header_version, &header, m, version, body, SIZE_MAX,
                          k->arena, &parts) != ERR_NONE ||
        parts.n != 1)
        return false;
    *out = (struct bytes){parts.v[0].p, (int32_t)parts.v[0].n};
    return true;
}

static bool make_api_versions(const struct maker *k, struct marks marks, struct bytes *out)
{
    struct api_versions_request r;
    wire_default(&wire_api_versions_request, &r);
    r.client_software_name = CLIENT;
    r.client_software_version = STR_LIT("1");
    return encode(k, &msg_api_versions_request, API_VERSIONS_VERSION, &r, out);
}

static bool make_produce(const struct maker *k, struct marks marks, struct bytes *out)
{
    struct produce_request r;
    struct produce_request_topic_produce_data topic;
    struct produce_request_partition_produce_data partition;
    wire_default(&wire_produce_request, &r);
    wire_default(&wire_produce_request_topic_produce_data, &topic);
    wire_default(&wire_produce_request_partition_produce_data, &partition);
    r.acks = k->o->acks;
    r.timeout_ms = 30000;
    r.topic_data.v = &topic;
    r.topic_data.n = 1;
    topic.name = str_of(k->o->topic);
    topic.partition_data.v = &partition;
    topic.partition_data.n = 1;
    partition.index = marks.partition;
    partition.records = (struct wire_records){.p = k->batch.p, .n = k->batch.n};
    return encode(k, &msg_produce_request, PRODUCE_VERSION, &r, out);
}

static bool make_fetch(const struct maker *k, struct marks marks, struct bytes *out)
{
    struct fetch_request r;
    struct fetch_request_fetch_topic topic;
    struct fetch_request_fetch_partition partition;
    wire_default(&wire_fetch_request, &r);
    wire_default(&wire_fetch_request_fetch_topic, &topic);
    wire_default(&wire_fetch_request_fetch_partition, &partition);
    r.max_wait_ms = 500;
    r.min_bytes = 1;
    r.topics.v = &topic;
    r.topics.n = 1;
    topic.topic = str_of(k->o->topic);
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    partition.partition = marks.partition;
    partition.fetch_offset = marks.offset;
    partition.partition_max_bytes = k->o->batch_bytes;
    return encode(k, &msg_fetch_request, FETCH_VERSION, &r, out);
}

static bool make_commit(const struct maker *k, struct marks marks, struct bytes *out)
{
    struct offset_commit_request r;
    struct offset_commit_request_offset_commit_request_topic topic;
    struct offset_commit_request_offset_commit_request_partition partition;
    char group[64];
    wire_default(&wire_offset_commit_request, &r);
    wire_default(&wire_offset_commit_request_offset_commit_request_topic, &topic);
    wire_default(&wire_offset_commit_request_offset_commit_request_partition, &partition);
    snprintf(group, sizeof group, "%.40s-%d", k->o->group, k->number);
    r.group_id = str_of(group);
    r.topics.v = &topic;
    r.topics.n = 1;
    topic.name = str_of(k->o->topic);
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    partition.partition_index = marks.partition;
    partition.committed_offset = marks.offset;
    partition.committed_metadata = STR_LIT("");
    return encode(k, &msg_offset_commit_request, COMMIT_VERSION, &r, out);
}

static const struct {
    bool (*make)(const struct maker *k, struct marks marks, struct bytes *out);
    const struct wire_message *answer;
    int16_t version;
} kinds[] = {
    [LOAD_API_VERSIONS] = {make_api_versions, &msg_api_versions_response, API_VERSIONS_VERSION},
    [LOAD_PRODUCE] = {make_produce, &msg_produce_response, PRODUCE_VERSION},
    [LOAD_FETCH] = {make_fetch, &msg_fetch_response, FETCH_VERSION},
    [LOAD_COMMIT] = {make_commit, &msg_offset_commit_response, COMMIT_VERSION},
    [LOAD_IDLE] = {make_api_versions, &msg_api_versions_response, API_VERSIONS_VERSION},
};

bool request_make(const struct options *o, int number, struct arena *a, struct request *out)
{
    struct maker k = {o, number, a, BYTES_NULL};
    struct bytes frame, other_partition, other_offset;
    if (o->kind == LOAD_PRODUCE)
        k.batch = values_batch(o, a);
    /* A field whose bytes are all others is found by its first one. */
    if ((o->kind == LOAD_PRODUCE && k.batch.n < 0) ||
        !kinds[o->kind].make(&k, (struct marks){0, 0}, &frame) ||
        !kinds[o->kind].make(&k, (struct marks){-1, 0}, &other_partition) ||
        !kinds[o->kind].make(&k, (struct marks){0, -1}, &other_offset)) {
        fprintf(stderr, "the request cannot be encoded\n");
        return false;
    }
    *out = (struct request){
        .answer = kinds[o->kind].answer,
        .version = kinds[o->kind].version,
        .answer_header_version =
            wire_response_header_version(kinds[o->kind].answer->api_key, kinds[o->kind].version),
        .p = frame.p,
        .n = (size_t)frame.n,
        .partition_at = difference(frame, other_partition),
        .offset_at = difference(frame, other_offset),
        .batch_bytes = k.batch.n < 0 ? 0 : (size_t)k.batch.n,
    };
    /* Of a large produce, what stands up to its partition is a sending's own. */
    out->head_n = out->n > WHOLE_MAX ? out->partition_at + sizeof(int32_t) : out->n;
    return true;
}
