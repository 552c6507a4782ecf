/* Kafka's own topics, made when somebody first needs them (Kafka's AutoTopicCreationManager). */
#ifndef API_INTERNAL_TOPIC_H
#define API_INTERNAL_TOPIC_H

#include "api/api.h"

#define API_OFFSETS_TOPIC "__consumer_offsets"

/* Fills out as CreateTopics asks for a topic of that name: as its coordinator wants it, else with
 * the broker's defaults. ERR_NOMEM. */
MUST_USE enum err api_topic_to_create(struct api *api, struct str name, struct arena *a,
                                      struct create_topics_request_creatable_topic *out);

#endif
