#include "limit/templates.h"

#include "difference.h"
#include "wire/codec.h"
#include "wire/messages.h"

#define API_KEYS_N 128

static bool encode(struct arena *a, const struct wire_message *m, int16_t version, const void *body,
                   struct bytes *out)
{
    struct response_header header = {0};
    struct wire_parts parts;
    int16_t header_version = wire_response_header_version(m->api_key, version);
    if (wire_encode_frame(&msg_response_header, header_version, &header, m, version, body, SIZE_MAX,
                          a, &parts) != ERR_NONE ||
        parts.n != 1)
        return false;
    *out = (struct bytes){parts.v[0].p, (int32_t)parts.v[0].n};
    return true;
}

bool template_api_versions(struct arena *a, int16_t version, struct answer_template *out)
{
    struct api_versions_response_api_version keys[API_KEYS_N];
    struct api_versions_response r;
    struct bytes frame;
    wire_default(&wire_api_versions_response, &r);
    r.api_keys.v = keys;
    r.api_keys.n = 0;
    for (int16_t key = 0; key < API_KEYS_N; key++) {
        const struct wire_message *m = wire_find(WIRE_REQUEST, key);
        if (m == NULL)
            continue;
        struct api_versions_response_api_version *v = &keys[r.api_keys.n++];
        wire_default(&wire_api_versions_response_api_version, v);
        v->api_key = key;
        v->min_version = m->min_version;
        v->max_version = m->max_version;
    }
    if (!encode(a, &msg_api_versions_response, version, &r, &frame))
        return false;
    *out = (struct answer_template){.p = frame.p, .n = (size_t)frame.n};
    return true;
}

static bool encode_produce(struct arena *a, int16_t version, struct str name, int32_t index,
                           int64_t base_offset, struct bytes *out)
{
    struct produce_response r;
    struct produce_response_topic_produce_response topic;
    struct produce_response_partition_produce_response partition;
    wire_default(&wire_produce_response, &r);
    wire_default(&wire_produce_response_topic_produce_response, &topic);
    wire_default(&wire_produce_response_partition_produce_response, &partition);
    r.responses.v = &topic;
    r.responses.n = 1;
    topic.name = name;
    topic.partition_responses.v = &partition;
    topic.partition_responses.n = 1;
    partition.index = index;
    partition.base_offset = base_offset;
    partition.log_start_offset = 0;
    return encode(a, &msg_produce_response, version, &r, out);
}

bool template_produce(struct arena *a, int16_t version, struct str topic,
                      struct answer_template *out)
{
    struct bytes frame, other_index, other_offset;
    if (!encode_produce(a, version, topic, 0, 0, &frame) ||
        !encode_produce(a, version, topic, -1, 0, &other_index) ||
        !encode_produce(a, version, topic, 0, -1, &other_offset))
        return false;
    *out = (struct answer_template){.p = frame.p,
                                    .n = (size_t)frame.n,
                                    .partition_at = difference(frame, other_index),
                                    .offset_at = difference(frame, other_offset)};
    return true;
}

bool template_fetch(struct arena *a, int16_t version, struct str name, int32_t records_bytes,
                    struct answer_template *out)
{
    struct fetch_response r;
    struct fetch_response_fetchable_topic_response topic;
    struct fetch_response_partition_data partition;
    struct bytes frame;
    uint8_t *records = arena_zalloc(a, (size_t)records_bytes);
    if (records == NULL)
        return false;
    wire_default(&wire_fetch_response, &r);
    wire_default(&wire_fetch_response_fetchable_topic_response, &topic);
    wire_default(&wire_fetch_response_partition_data, &partition);
    r.responses.v = &topic;
    r.responses.n = 1;
    topic.topic = name;
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    partition.log_start_offset = 0;
    partition.records = (struct wire_records){.p = records, .n = records_bytes};
    if (!encode(a, &msg_fetch_response, version, &r, &frame))
        return false;
    *out = (struct answer_template){.p = frame.p,
                                    .n = (size_t)(frame.n - records_bytes - TEMPLATE_FETCH_TAIL)};
    return true;
}
