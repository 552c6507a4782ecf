#include "cli/reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/reader_impl.h"
#include "os/clocks.h"
#include "wire/error.h"

enum {
    BY_NAME_VERSION = 12,
    MAX_WAIT_MS = 500,
    FETCH_BYTES = 8 << 20,
    PARTITION_BYTES = 2 << 20,
    AHEAD = 2, /* fetches per leader: one under way, one being given out */
    REFRESH_US = 5 * 1000 * 1000,
};

struct fetch {
    struct list link;
    struct answer answer;
    bool taken; /* its readings are free again */
    struct fetch_request request;
    struct fetch_request_fetch_topic topic;
    struct fetch_request_fetch_partition *partitions;
    const struct fetch_response_partition_data **data; /* by partition; NULL: nothing to give out */
};

/* What may be over soon is told once, until that broker answers again. */
static void tell_loss(struct reader *r, const struct answer *a)
{
    if (r->told != a->broker)
        (void)client_tell(a);
    r->told = a->broker;
}

static void find_leaders_soon(struct reader *r, struct reading *reading, int16_t code)
{
    const int64_t now_us = os_now().mono_us;
    reading->leader = -1;
    r->failed_partition = reading->partition;
    r->failed_code = code;
    if (r->refresh_us > now_us + CLIENT_RETRY_MS * 1000)
        r->refresh_us = now_us + CLIENT_RETRY_MS * 1000;
    if (r->failing_us == INT64_MAX)
        r->failing_us = now_us;
}

/* ------------------------------------------------------------------ fetches */

static void fetch_free(struct fetch *f)
{
    list_remove(&f->link);
    answer_close(&f->answer);
    free(f->partitions);
    free(f->data);
    free(f);
}

static bool wants_fetch(const struct reading *reading, int32_t leader)
{
    return reading->leader == leader && !reading->in_flight &&
           reading->fetch_offset < reading->stop_offset;
}

static struct fetch *new_fetch(struct reader *r, int32_t leader)
{
    struct fetch *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    list_init(&f->link);
    f->partitions = calloc(r->n, sizeof *f->partitions);
    f->data = calloc(r->n, sizeof *f->data);
    if (f->partitions == NULL || f->data == NULL) {
        fetch_free(f);
        return NULL;
    }
    wire_default(&wire_fetch_request, &f->request);
    wire_default(&wire_fetch_request_fetch_topic, &f->topic);
    f->topic.topic = r->topic;
    f->topic.partitions.v = f->partitions;
    for (size_t i = 0; i < r->n; i++) {
        struct reading *reading = &r->v[(r->turn + i) % r->n];
        if (!wants_fetch(reading, leader))
            continue;
        struct fetch_request_fetch_partition *p = &f->partitions[f->topic.partitions.n++];
        wire_default(&wire_fetch_request_fetch_partition, p);
        p->partition = reading->partition;
        p->current_leader_epoch = reading->leader_epoch;
        p->fetch_offset = reading->fetch_offset;
        p->partition_max_bytes = PARTITION_BYTES;
        reading->in_flight = true;
    }
    r->turn++;
    f->request.max_wait_ms = MAX_WAIT_MS;
    f->request.min_bytes = 1;
    f->request.max_bytes = FETCH_BYTES;
    f->request.isolation_level = r->committed ? 1 : 0;
    f->request.topics.v = &f->topic;
    f->request.topics.n = 1;
    return f;
}

/* Under way to this leader, or not given out yet. */
static size_t fetches_of(const struct reader *r, const struct broker *b, bool *open)
{
    size_t n = 0;
    struct list *l, *tmp;
    *open = false;
    LIST_EACH(l, tmp, &r->fetches)
    {
        const struct fetch *f = LIST_ENTRY(l, struct fetch, link);
        n += f->answer.broker == b;
        *open |= f->answer.broker == b && f->answer.open;
    }
    return n;
}

static int start_fetches(struct reader *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const int32_t leader = r->v[i].leader;
        struct broker *b = client_broker(r->client, leader);
        bool open;
        if (leader < 0 || !wants_fetch(&r->v[i], leader))
            continue;
        if (b == NULL) {
            find_leaders_soon(r, &r->v[i], K_LEADER_NOT_AVAILABLE);
            continue;
        }
        if (fetches_of(r, b, &open) >= AHEAD || open)
            continue;
        struct fetch *f = new_fetch(r, leader);
        if (f == NULL)
            return client_out_of_memory();
        list_append(&r->fetches, &f->link);
        client_ask(r->client, b, &f->answer, API_FETCH, BY_NAME_VERSION, &f->request);
    }
    return CLI_OK;
}

/* ------------------------------------------------------------------ answers */

static struct reading *find(const struct reader *r, int32_t partition)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].partition == partition)
            return &r->v[i];
    return NULL;
}

static int tell(const struct reader *r, int32_t partition, int16_t code)
{
    char what[300];
    snprintf(what, sizeof what, "%.*s-%d", r->topic.n, r->topic.p, partition);
    return client_tell_kafka(what, code, STR_NULL);
}

/* The offset is gone: retention or a trim took it, or the log was cut. Or the leader is another. */
static int move_into_range(struct reader *r, struct reading *reading)
{
    const struct position latest = {.kind = POSITION_LATEST};
    struct place place = {.topic = r->topic, .partition = reading->partition};
    int status = offsets_resolve(r->client, latest, &place, 1, r->committed);
    if (status != CLI_OK)
        return status;
    if (place.error != K_NONE)
        return tell(r, reading->partition, place.error);
    const int64_t wanted = reading->fetch_offset;
    find_leaders_soon(r, reading, K_OFFSET_OUT_OF_RANGE);
    if (wanted >= place.start && wanted <= place.end)
        return CLI_OK;
    if (reading->stop_offset != INT64_MAX && reading->stop_offset > place.end)
        reading->stop_offset = place.end;
    reading->fetch_offset = wanted < place.start ? place.start : place.end;
    reading->next_offset = reading->fetch_offset;
    cli_error("%.*s-%d: offset %lld is gone, going on at %lld", r->topic.n, r->topic.p,
              reading->partition, (long long)wanted, (long long)reading->fetch_offset);
    return CLI_OK;
}

/* Between here and a stop there are records, or were: they come within the timeout. */
static int note_progress(const struct reader *r, struct reading *reading, bool moved)
{
    const int64_t now_us = os_now().mono_us;
    if (moved || reading->stop_offset == INT64_MAX || reading->fetch_offset >= reading->stop_offset)
        reading->stalled_us = INT64_MAX;
    else if (reading->stalled_us == INT64_MAX)
        reading->stalled_us = now_us;
    if (reading->stalled_us > now_us - client_timeout_ms(r->client) * (int64_t)1000)
        return CLI_OK;
    cli_error(
        "%.*s-%d: there are records up to offset %lld, but from %lld on the broker sends none",
        r->topic.n, r->topic.p, reading->partition, (long long)reading->stop_offset,
        (long long)reading->fetch_offset);
    return CLI_FAILED;
}

/* Where in f's request a partition is that p answers; f->topic.partitions.n: nowhere, or again. */
static int32_t place_in(const struct reader *r, const struct fetch *f, int32_t partition)
{
    for (int32_t i = 0; i < f->topic.partitions.n; i++)
        if (f->partitions[i].partition == partition && find(r, partition)->in_flight)
            return i;
    return f->topic.partitions.n;
}

static int take_partition(struct reader *r, struct fetch *f,
                          const struct fetch_response_partition_data *p)
{
    const int32_t at = place_in(r, f, p->partition_index);
    if (at == f->topic.partitions.n)
        return CLI_OK;
    struct reading *reading = find(r, p->partition_index);
    reading->in_flight = false;
    if (p->error_code == K_OFFSET_OUT_OF_RANGE)
        return move_into_range(r, reading);
    if (kafka_error_retriable(p->error_code)) {
        find_leaders_soon(r, reading, p->error_code);
        return CLI_OK;
    }
    if (p->error_code != K_NONE)
        return tell(r, reading->partition, p->error_code);
    const int64_t before = reading->fetch_offset;
    f->data[at] = p;
    r->failing_us = INT64_MAX;
    if (r->told == f->answer.broker)
        r->told = NULL;
    if (!reader_advance(r, reading, p))
        return CLI_FAILED;
    return note_progress(r, reading, reading->fetch_offset > before);
}

static int take_response(struct reader *r, struct fetch *f, const struct fetch_response *response)
{
    int status = CLI_OK;
    if (response->error_code != K_NONE && !kafka_error_retriable(response->error_code))
        return client_tell_kafka("fetch", response->error_code, STR_NULL);
    for (int32_t t = 0; t < response->responses.n; t++)
        for (int32_t p = 0; p < response->responses.v[t].partitions.n && status == CLI_OK; p++)
            if (str_eq(response->responses.v[t].topic, r->topic))
                status = take_partition(r, f, &response->responses.v[t].partitions.v[p]);
    return status;
}

/* The readings of an answer that came are free for the next fetch. */
static int take_answer(struct reader *r, struct fetch *f)
{
    int status = CLI_OK;
    f->taken = true;
    if (f->answer.err == ERR_NONE)
        status = take_response(r, f, f->answer.response);
    else if (f->answer.err == ERR_CLOSED || f->answer.err == ERR_TIMEOUT)
        tell_loss(r, &f->answer);
    else
        status = client_tell(&f->answer);
    for (int32_t i = 0; i < f->topic.partitions.n; i++) {
        struct reading *reading = find(r, f->partitions[i].partition);
        if (!reading->in_flight)
            continue;
        reading->in_flight = false; /* it has no answer */
        find_leaders_soon(r, reading, K_LEADER_NOT_AVAILABLE);
    }
    return status;
}

static int take_answers(struct reader *r)
{
    int status = CLI_OK;
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &r->fetches)
    {
        struct fetch *f = LIST_ENTRY(l, struct fetch, link);
        if (!f->answer.open && !f->taken && status == CLI_OK)
            status = take_answer(r, f);
    }
    return status;
}

/* Gives out the oldest answer. */
static int give_answer(struct reader *r, bool *given)
{
    struct list *l, *tmp;
    struct fetch *f = NULL;
    *given = false;
    LIST_EACH(l, tmp, &r->fetches)
    {
        f = LIST_ENTRY(l, struct fetch, link);
        if (f->taken)
            break;
        f = NULL;
    }
    if (f == NULL)
        return CLI_OK;
    int status = CLI_OK;
    *given = true;
    for (int32_t i = 0; i < f->topic.partitions.n && status == CLI_OK; i++)
        if (f->data[i] != NULL)
            status = reader_give(r, find(r, f->partitions[i].partition), f->data[i]);
    fetch_free(f);
    return status;
}

/* ------------------------------------------------------------------ leaders */

static int add_reading(struct reader *r, int32_t partition, int64_t offset, int64_t stop_offset)
{
    if (r->n == r->cap) {
        const size_t cap = r->cap == 0 ? 16 : 2 * r->cap;
        struct reading *v = realloc(r->v, cap * sizeof *v);
        if (v == NULL)
            return client_out_of_memory();
        r->v = v;
        r->cap = cap;
    }
    r->v[r->n++] = (struct reading){.partition = partition,
                                    .leader = -1,
                                    .fetch_offset = offset,
                                    .next_offset = offset,
                                    .stalled_us = INT64_MAX,
                                    .stop_offset = stop_offset};
    return CLI_OK;
}

/* False: some partition has no leader. */
static bool find_leaders(struct reader *r, const struct topic *t)
{
    bool all = true;
    for (int32_t i = 0; i < t->partitions_n; i++) {
        const struct topic_partition *p = &t->partitions[i];
        struct reading *reading = find(r, p->index);
        if (reading == NULL && r->new_ones && add_reading(r, p->index, 0, INT64_MAX) == CLI_OK)
            reading = find(r, p->index);
        if (reading == NULL || reading->leader >= 0)
            continue;
        reading->leader = client_broker(r->client, p->leader) != NULL ? p->leader : -1;
        reading->leader_epoch = p->leader_epoch;
    }
    for (size_t i = 0; i < r->n; i++)
        all &= r->v[i].leader >= 0;
    return all;
}

static int refresh(struct reader *r)
{
    const int64_t now_us = os_now().mono_us;
    const bool last = r->failing_us != INT64_MAX &&
                      now_us - r->failing_us >= client_timeout_ms(r->client) * (int64_t)1000;
    const struct metadata_args args = {.scope = METADATA_TOPICS, .topics = &r->topic, .n = 1};
    struct metadata m;
    r->refresh_us = now_us + CLIENT_RETRY_MS * 1000;
    client_be_quiet(r->client, !last);
    int status = client_metadata(r->client, &args, &m);
    client_be_quiet(r->client, false);
    if (status != CLI_OK)
        return last ? status : CLI_OK;
    const struct topic *t = metadata_topic(&m, r->topic);
    const int16_t code = t == NULL ? K_UNKNOWN_TOPIC_OR_PARTITION : t->error;
    if (code == K_NONE && find_leaders(r, t))
        r->refresh_us = r->new_ones ? now_us + REFRESH_US : INT64_MAX;
    if (last || (code != K_NONE && !kafka_error_retriable(code)))
        status = tell(r, r->failed_partition, code != K_NONE ? code : r->failed_code);
    metadata_close(&m);
    return status;
}

/* ------------------------------------------------------------------ the loop */

static bool all_read(const struct reader *r)
{
    if (!list_empty(&r->fetches))
        return false;
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].fetch_offset < r->v[i].stop_offset)
            return false;
    return true;
}

int reader_run(struct reader *r)
{
    int status = CLI_OK;
    while (status == CLI_OK && !r->ended && !all_read(r)) {
        bool given = false;
        if (client_now(r->client).mono_us >= r->refresh_us)
            status = refresh(r);
        if (status == CLI_OK)
            status = start_fetches(r);
        if (status == CLI_OK)
            status = give_answer(r, &given);
        r->ended |= !r->events.pause(r->events.ctx);
        if (status == CLI_OK && !r->ended)
            client_turn(r->client, given ? INT64_MIN : r->refresh_us);
        if (status == CLI_OK)
            status = take_answers(r);
    }
    return status;
}

int reader_open(struct reader *r, struct client *c, struct str topic, const struct place *places,
                size_t n, bool stop, const struct reader_events *events)
{
    int status = CLI_OK;
    *r = (struct reader){.client = c,
                         .topic = topic,
                         .events = *events,
                         .refresh_us = INT64_MIN,
                         .failing_us = os_now().mono_us,
                         .failed_code = K_LEADER_NOT_AVAILABLE};
    list_init(&r->fetches);
    for (size_t i = 0; i < n && status == CLI_OK; i++)
        status =
            add_reading(r, places[i].partition, places[i].offset, stop ? places[i].end : INT64_MAX);
    return status;
}

void reader_close(struct reader *r)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &r->fetches)
    {
        struct fetch *f = LIST_ENTRY(l, struct fetch, link);
        client_cancel(r->client, &f->answer);
        fetch_free(f);
    }
    free(r->v);
}
