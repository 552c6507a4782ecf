/* The inside of dohle consume: alone (consume.c) or as a member of a group (consume_group.c). */
#ifndef CLI_CONSUME_H
#define CLI_CONSUME_H

#include "cli/line.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/reader.h"

struct consume {
    const char *from, *group;
    int64_t partition, count; /* -1: all; count is what is left */
    bool end, committed, json, keys;
    struct buf key_separator, delimiter;
    const char *null_text;
    /* while it runs */
    struct str topic;
    struct output out;
    struct progress progress;
    bool failed;       /* told */
    bool member;       /* of a group: at a signal it commits and leaves before it ends */
    bool unsaved;      /* more is on stdout than the group knows of */
    bool interrupted;  /* a signal came to a member */
    struct timer late; /* then: it takes too long */
};

/* Of struct reader_events; ctx is the struct consume. */
bool consume_record(void *ctx, int32_t partition, const struct record *r);
/* The topic in m; one that is not there is told. CLI_FAILED: told, m is closed. */
int consume_topic(struct client *c, const struct consume *o, struct metadata *m,
                  const struct topic **out);
/* Where reading begins in each of the places. CLI_FAILED: told. */
int consume_places(struct client *c, const struct consume *o, struct position from,
                   struct place *places, size_t n);
/* An offset outside becomes the nearest inside; told. */
void consume_into_range(const struct consume *o, struct place *p);
int consume_as_member(struct client *c, struct consume *o, struct position from);

#endif
