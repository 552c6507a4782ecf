#include "api/internal_topic.h"

#include <stdio.h>

#include "quorum/raft.h"

/* How many brokers there are, or are to be: where this node is broker and controller the other
 * voters are taken to be both too, also those that have not come yet. */
static size_t brokers_n(const struct api *api)
{
    const size_t registered = api->image->brokers.n;
    const size_t voters = config_is_controller(api->config) && api->raft != NULL
                              ? (size_t)raft_voters(api->raft)->n
                              : 0;
    return registered > voters ? registered : voters;
}

/* Kafka's default of 3 cannot be had from fewer brokers. Who has not asked for it gets one on each,
 * and waits for those that are down; who has, Kafka's refusal. */
static int16_t replication_factor(const struct api *api, const char *key)
{
    const int16_t rf = (int16_t)config_int(api->config, key);
    const size_t brokers = brokers_n(api);
    return config_source(api->config, key) == CONFIG_DEFAULT && brokers > 0 && brokers < (size_t)rf
               ? (int16_t)brokers
               : rf;
}

static void offsets_topic(const struct api *api, char *segment_bytes, size_t segment_bytes_n,
                          struct create_topics_request_creatable_topic_config *configs,
                          struct create_topics_request_creatable_topic *out)
{
    snprintf(segment_bytes, segment_bytes_n, "%lld",
             (long long)config_int(api->config, "offsets.topic.segment.bytes"));
    configs[0].name = STR_LIT("cleanup.policy");
    configs[0].value = STR_LIT("compact");
    configs[1].name = STR_LIT("compression.type");
    configs[1].value = STR_LIT("producer");
    configs[2].name = STR_LIT("segment.bytes");
    configs[2].value = str_of(segment_bytes);
    out->num_partitions = (int32_t)config_int(api->config, "offsets.topic.num.partitions");
    out->replication_factor = replication_factor(api, "offsets.topic.replication.factor");
    out->configs.v = configs;
    out->configs.n = 3;
}

enum err api_topic_to_create(struct api *api, struct str name, struct arena *a,
                             struct create_topics_request_creatable_topic *out)
{
    enum { NUMBER_N = 24 };
    wire_default(&wire_create_topics_request_creatable_topic, out);
    out->name = name;
    out->num_partitions = -1;
    out->replication_factor = -1;
    if (!str_eq(name, STR_LIT(API_OFFSETS_TOPIC)))
        return ERR_NONE;
    char *text = arena_alloc(a, NUMBER_N);
    struct create_topics_request_creatable_topic_config *configs =
        wire_array(&wire_create_topics_request_creatable_topic_config, a, 3);
    if (text == NULL || configs == NULL)
        return ERR_NOMEM;
    offsets_topic(api, text, NUMBER_N, configs, out);
    return ERR_NONE;
}
