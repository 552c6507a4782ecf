/* Strings as Kafka's own language sees them, in UTF-16: what hangs on their hash or length in Kafka
 * must come out the same here. Malformed UTF-8 counts as one U+FFFD for each maximal part. */
#ifndef GROUP_JAVA_STRING_H
#define GROUP_JAVA_STRING_H

#include "base/types.h"

/* String.hashCode. */
int32_t java_hash(struct str s);
/* String.length: UTF-16 units. */
int32_t java_length(struct str s);

#endif
