/* The verbs of dohle groups, and what a group has committed. */
#ifndef CLI_GROUPS_H
#define CLI_GROUPS_H

#include "cli/line.h"

extern const struct verb verb_groups_list, verb_groups_describe, verb_groups_reset,
    verb_groups_delete;

struct group_offset {
    struct str topic;
    int32_t partition;
    int64_t committed;       /* -1: none */
    int64_t end;             /* -1: not known */
    struct str member, host; /* who reads it; null: nobody */
};

/* What a group has committed and what its members read. */
struct group_offsets {
    struct answer answer;
    struct group_offset *v; /* by topic and partition, each once, when merged */
    size_t n, cap;
};

/* Merged. CLI_FAILED: told. */
int group_offsets_committed(struct client *c, struct broker *coordinator, struct str group,
                            struct group_offsets *out);
/* One more that knows nothing yet. NULL: out of memory. */
struct group_offset *group_offsets_add(struct group_offsets *o, struct str topic,
                                       int32_t partition);
/* What is known of a partition comes together. */
void group_offsets_merge(struct group_offsets *o);
/* Of merged ones; NULL: there is none. */
const struct group_offset *group_offsets_find(const struct group_offsets *o, struct str topic,
                                              int32_t partition);
/* Sets end. CLI_FAILED: told. */
int group_offsets_find_ends(struct client *c, struct group_offsets *o);
/* Harmless when only zeroed, or twice. */
void group_offsets_close(struct group_offsets *o);

struct group_member {
    struct str id, instance, client, host;
};

/* A group as its coordinator tells it, of the old kind or the new. */
struct group {
    struct str name, state, kind, assignor; /* state null: no such group */
    struct answer classic, consumer;
    struct group_member *members;
    size_t members_n;
};

/* offsets learns who reads what, and stays merged. CLI_FAILED: told. */
int group_look(struct client *c, struct broker *coordinator, struct str name,
               struct group_offsets *offsets, struct group *out);
/* Harmless when only zeroed, or twice. */
void group_close(struct group *g);

#endif
