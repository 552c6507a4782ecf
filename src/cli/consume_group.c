/* Reading as a member: what has been written to stdout is committed every few seconds, before the
 * partitions are given up, and at the end. So a record may come twice, to this member or another,
 * when one dies, and is never left out. */
#include <stdlib.h>

#include "cli/consume.h"
#include "cli/member.h"

enum { COMMIT_US = 5000 * 1000 };

struct run {
    struct consume *o;
    struct member member;
    struct reader reader;
    struct member_commit *written; /* of each partition, up to where it is on stdout */
    bool unsaved;                  /* written is ahead of what is committed */
    int64_t commit_us;             /* when it is to be committed */
    bool failed;
};

/* Nothing waits in memory: all that was given out is on stdout. */
static void see_written(struct run *r)
{
    const struct output *out = &r->o->out;
    if (out->buf.n > 0 || out->closed || out->failed != 0)
        return;
    for (size_t i = 0; i < r->reader.n; i++) {
        r->unsaved |= r->written[i].offset != r->reader.v[i].next_offset;
        r->written[i].offset = r->reader.v[i].next_offset;
    }
}

static void commit(struct run *r)
{
    r->commit_us = client_now(r->member.client).mono_us + COMMIT_US;
    if (!r->unsaved)
        return;
    r->unsaved = false;
    r->failed |= member_commit(&r->member, r->written, r->reader.n) != CLI_OK;
}

static bool take_record(void *ctx, int32_t partition, const struct record *record)
{
    return consume_record(((struct run *)ctx)->o, partition, record);
}

static bool pause_reading(void *ctx)
{
    struct run *r = ctx;
    const bool goes_on = output_pump(&r->o->out);
    see_written(r);
    if (client_now(r->member.client).mono_us >= r->commit_us)
        commit(r);
    return goes_on && !r->member.lost && !r->o->interrupted && !r->failed;
}

/* ------------------------------------------------------------------ one generation */

/* From what is committed on; where nothing is, from --from. */
static int find_places(struct run *r, struct position from, struct place *places, size_t n)
{
    struct member_commit *committed = calloc(n + 1, sizeof *committed);
    if (committed == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < n; i++) {
        places[i] = (struct place){.topic = r->o->topic, .partition = r->member.partitions[i]};
        r->written[i] = (struct member_commit){places[i].partition, -1};
    }
    int status = member_committed(&r->member, committed);
    if (status == CLI_OK)
        status = consume_places(r->member.client, r->o, from, places, n);
    for (size_t i = 0; i < n && status == CLI_OK; i++) {
        if (committed[i].offset < 0)
            continue;
        places[i].offset = committed[i].offset;
        consume_into_range(r->o, &places[i]);
        r->written[i].offset = places[i].offset;
    }
    free(committed);
    return status;
}

static int read_places(struct run *r, const struct place *places, size_t n)
{
    const struct reader_events events = {r, take_record, pause_reading};
    int status =
        reader_open(&r->reader, r->member.client, r->o->topic, places, n, r->o->end, &events);
    r->reader.committed = r->o->committed;
    r->commit_us = client_now(r->member.client).mono_us + COMMIT_US;
    if (status == CLI_OK)
        status = reader_run(&r->reader);
    if (!r->o->interrupted)
        (void)output_wait(&r->o->out, 0);
    see_written(r);
    commit(r);
    reader_close(&r->reader);
    return status;
}

/* Others have all partitions. */
static void wait_for_partitions(struct run *r)
{
    while (!r->member.lost && !r->o->interrupted && !r->o->out.closed)
        client_turn(r->member.client, INT64_MAX);
}

static int read_generation(struct run *r, struct position from)
{
    const size_t n = r->member.n;
    struct place *places = calloc(n + 1, sizeof *places);
    r->written = calloc(n + 1, sizeof *r->written);
    int status = places == NULL || r->written == NULL ? client_out_of_memory() : CLI_OK;
    if (status == CLI_OK && n == 0 && !r->o->end)
        wait_for_partitions(r);
    if (status == CLI_OK && n > 0)
        status = find_places(r, from, places, n);
    if (status == CLI_OK && n > 0)
        status = read_places(r, places, n);
    free(places);
    free(r->written);
    return status;
}

/* Only a loss of the partitions is followed by another generation. */
static bool is_over(const struct run *r)
{
    const struct consume *o = r->o;
    return !r->member.lost || o->interrupted || o->failed || r->failed || o->count == 0 ||
           o->out.closed || o->out.failed != 0;
}

int consume_as_member(struct client *c, struct consume *o, struct position from)
{
    struct run r = {.o = o};
    int status;
    member_init(&r.member, c, str_of(o->group), o->topic);
    do {
        o->member = false; /* nothing to commit: a signal ends it at once */
        status = member_join(&r.member);
        o->member = true;
        if (status == CLI_OK)
            status = read_generation(&r, from);
    } while (status == CLI_OK && !is_over(&r));
    member_close(&r.member);
    return o->failed || r.failed || (o->interrupted && (o->end || o->count > 0)) ? CLI_FAILED
                                                                                 : status;
}
