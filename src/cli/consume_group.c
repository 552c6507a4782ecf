/* Reading as a member: what has been written to stdout is committed every second, before the
 * partitions are given up, and at the end. So a record may come twice, to this member or another,
 * when one dies, and is never left out. What still waits for the reader of stdout is not written:
 * a mark notes where reading was when so many bytes had been given out, and when all these are gone
 * that place is what is committed. */
#include <stdlib.h>

#include "cli/consume.h"
#include "cli/member.h"

enum {
    COMMIT_US = 1000 * 1000,
    GROWTH_US = 5 * 1000 * 1000,
    LOSSES_MAX = 10, /* generations in a row that could commit nothing */
};

struct run {
    struct consume *o;
    struct member member;
    struct reader reader;
    struct member_commit *written; /* of each partition, up to where it is on stdout */
    int64_t *mark;                 /* of each partition, where the reader was */
    uint64_t mark_bytes;           /* when so many bytes had been given out */
    bool marked;
    int64_t commit_us; /* when written is to be committed */
    int64_t growth_us; /* when a leader looks for new partitions */
    int losses;
    bool failed;
};

static void set_mark(struct run *r)
{
    const struct output *out = &r->o->out;
    for (size_t i = 0; i < r->reader.n; i++)
        r->mark[i] = r->reader.v[i].next_offset;
    r->mark_bytes = out->gone_bytes + (out->buf.n - out->sent);
    r->marked = true;
}

static void pass_mark(struct run *r)
{
    if (!r->marked || r->o->out.gone_bytes < r->mark_bytes)
        return;
    for (size_t i = 0; i < r->reader.n; i++) {
        r->o->unsaved |= r->written[i].offset != r->mark[i];
        r->written[i].offset = r->mark[i];
    }
    r->marked = false;
}

/* A reader that went away may have left what was written last. */
static void see_written(struct run *r)
{
    if (r->o->out.closed || r->o->out.failed != 0)
        return;
    pass_mark(r);
    if (!r->marked)
        set_mark(r);
    pass_mark(r);
}

static void commit(struct run *r)
{
    bool done;
    r->commit_us = client_now(r->member.client).mono_us + COMMIT_US;
    if (!r->o->unsaved)
        return;
    r->failed |= member_commit(&r->member, r->written, r->reader.n, &done) != CLI_OK;
    r->o->unsaved = !done;
    if (done)
        r->losses = 0;
}

/* New partitions are nobody's until the leader joins again. */
static void look_for_growth(struct run *r)
{
    struct client *c = r->member.client;
    const struct metadata_args args = {.scope = METADATA_TOPICS, .topics = &r->o->topic, .n = 1};
    struct metadata m;
    if (!r->member.leads || r->member.lost || client_now(c).mono_us < r->growth_us)
        return;
    client_be_quiet(c, true);
    if (client_metadata(c, &args, &m) == CLI_OK) {
        const struct topic *t = metadata_topic(&m, r->o->topic);
        r->member.lost |= t != NULL && t->partitions_n > r->member.topic_partitions;
        metadata_close(&m);
    }
    client_be_quiet(c, false);
    r->growth_us = client_now(c).mono_us + GROWTH_US;
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
    look_for_growth(r);
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
    r->marked = false;
    if (status == CLI_OK)
        status = reader_run(&r->reader);
    (void)output_wait(&r->o->out, 0);
    see_written(r);
    commit(r);
    reader_close(&r->reader);
    return status;
}

/* Others have all partitions. */
static void wait_for_partitions(struct run *r)
{
    while (!r->member.lost && !r->o->interrupted && !r->o->out.closed) {
        client_turn(r->member.client, r->member.leads ? r->growth_us : INT64_MAX);
        look_for_growth(r);
    }
}

static int read_generation(struct run *r, struct position from)
{
    const size_t n = r->member.n;
    struct place *places = calloc(n + 1, sizeof *places);
    r->written = calloc(n + 1, sizeof *r->written);
    r->mark = calloc(n + 1, sizeof *r->mark);
    r->o->unsaved = false;
    r->growth_us = client_now(r->member.client).mono_us + GROWTH_US;
    int status = CLI_OK;
    if (places == NULL || r->written == NULL || r->mark == NULL)
        status = client_out_of_memory();
    if (status == CLI_OK && n == 0 && !r->o->end)
        wait_for_partitions(r);
    if (status == CLI_OK && n > 0)
        status = find_places(r, from, places, n);
    if (status == CLI_OK && n > 0)
        status = read_places(r, places, n);
    free(places);
    free(r->written);
    free(r->mark);
    return status;
}

/* Only a loss of the partitions is followed by another generation. */
static bool is_over(const struct run *r)
{
    const struct consume *o = r->o;
    return !r->member.lost || o->interrupted || o->failed || r->failed || o->count == 0 ||
           o->out.closed || o->out.failed != 0;
}

/* What nobody knows of will come again: not for ever. */
static int note_loss(struct run *r)
{
    if (!r->o->end && !r->o->unsaved)
        return CLI_OK;
    if (++r->losses < LOSSES_MAX)
        return CLI_OK;
    cli_error("group %s: %d times its members changed before anything could be committed",
              r->o->group, r->losses);
    return CLI_FAILED;
}

int consume_as_member(struct client *c, struct consume *o, struct position from)
{
    struct run r = {.o = o};
    struct metadata m;
    const struct topic *t;
    int status = consume_topic(c, o, &m, &t);
    if (status != CLI_OK)
        return status;
    metadata_close(&m);
    member_init(&r.member, c, str_of(o->group), o->topic);
    do {
        o->member = false; /* nothing to commit, and a held answer blocks the way out */
        status = member_join(&r.member);
        o->member = true;
        if (status == CLI_OK)
            status = read_generation(&r, from);
        if (status == CLI_OK && !is_over(&r))
            status = note_loss(&r);
    } while (status == CLI_OK && !is_over(&r));
    member_close(&r.member);
    return o->failed || r.failed || (o->interrupted && (o->end || o->count > 0)) ? CLI_FAILED
                                                                                 : status;
}
