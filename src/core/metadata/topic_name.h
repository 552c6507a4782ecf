/* Kafka's rules for topic names: 1 to 249 characters of [a-zA-Z0-9._-], neither "." nor "..". */
#ifndef METADATA_TOPIC_NAME_H
#define METADATA_TOPIC_NAME_H

#include "base/types.h"

bool topic_name_valid(struct str name);
/* Kafka's own topics: offsets, transactions, share groups. */
bool topic_is_internal(struct str name);

#endif
