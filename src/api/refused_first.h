/* The order in which OffsetCommit and OffsetDelete answer, as in Kafka: what is refused before the
 * group is looked at comes first, topics and in them partitions, and once there is such the entries
 * of a topic that is named twice are merged. Otherwise the answer is in the request's order. */
#ifndef API_REFUSED_FIRST_H
#define API_REFUSED_FIRST_H

#include "core/group/group.h"

/* A topic of the request. */
struct answer_entry {
    struct str name; /* of every entry, or the id of every entry */
    struct uuid id;
    int32_t parts_n;
    bool refused; /* as a whole; it is answered even without partitions */
};

struct answer_topic {
    int32_t entry; /* that names it */
    int32_t parts_n;
};

struct answer_part {
    int32_t topic; /* of the answer */
    int32_t part;  /* of the request */
};

struct answer_order {
    struct answer_topic *topics;
    struct answer_part *parts; /* all of them; those of a topic are not in a row */
    int32_t topics_n, parts_n;
};

/* parts are those of all entries in a row. False: out of memory. */
bool refused_first(const struct answer_entry *entries, int32_t n, const struct commit_part *parts,
                   struct arena *a, struct answer_order *out);

#endif
