/* The features of Kafka 4.4 and the levels this node supports (quorum.md 6: 4.4's from the start).
 */
#ifndef METADATA_FEATURES_H
#define METADATA_FEATURES_H

#include "base/types.h"

struct feature_range {
    const char *name;
    int16_t min, max;
    int16_t fresh; /* level that a fresh cluster finalises; 0: none (kraft.version is no record) */
};

const struct feature_range *feature_ranges(size_t *n);
/* NULL: there is none of this name. */
const struct feature_range *feature_find(struct str name);
/* Has this metadata.version records, or fields of them, that the one before it has not? */
bool features_records_changed(int16_t metadata_version);

#endif
