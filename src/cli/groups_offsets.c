#include <stdlib.h>

#include "cli/groups.h"
#include "cli/offsets.h"
#include "wire/error.h"

enum { ONE_GROUP_VERSION = 7 };

static int by_partition(const void *a, const void *b)
{
    const struct group_offset *x = a, *y = b;
    const int order = str_cmp(x->topic, y->topic);
    return order != 0 ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

void group_offsets_merge(struct group_offsets *o)
{
    size_t kept = 0;
    if (o->n > 1)
        qsort(o->v, o->n, sizeof *o->v, by_partition);
    for (size_t i = 0; i < o->n; i++) {
        struct group_offset *last = kept == 0 ? NULL : &o->v[kept - 1];
        if (last == NULL || by_partition(last, &o->v[i]) != 0) {
            o->v[kept++] = o->v[i];
            continue;
        }
        if (last->committed < 0)
            last->committed = o->v[i].committed;
        if (last->member.n < 0) {
            last->member = o->v[i].member;
            last->host = o->v[i].host;
        }
    }
    o->n = kept;
}

const struct group_offset *group_offsets_find(const struct group_offsets *o, struct str topic,
                                              int32_t partition)
{
    const struct group_offset key = {.topic = topic, .partition = partition};
    return o->n == 0 ? NULL : bsearch(&key, o->v, o->n, sizeof *o->v, by_partition);
}

struct group_offset *group_offsets_add(struct group_offsets *o, struct str topic, int32_t partition)
{
    if (o->n == o->cap) {
        const size_t cap = o->cap == 0 ? 64 : 2 * o->cap;
        struct group_offset *v = realloc(o->v, cap * sizeof *v);
        if (v == NULL)
            return NULL;
        o->v = v;
        o->cap = cap;
    }
    o->v[o->n] = (struct group_offset){.topic = topic,
                                       .partition = partition,
                                       .committed = -1,
                                       .end = -1,
                                       .member = STR_NULL,
                                       .host = STR_NULL};
    return &o->v[o->n++];
}

static int take_offsets(struct group_offsets *out, const struct offset_fetch_response *r)
{
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t p = 0; p < r->topics.v[t].partitions.n; p++) {
            const struct offset_fetch_response_offset_fetch_response_partition *from =
                &r->topics.v[t].partitions.v[p];
            if (from->committed_offset < 0 || from->partition_index < 0 ||
                from->error_code != K_NONE)
                continue;
            struct group_offset *o =
                group_offsets_add(out, r->topics.v[t].name, from->partition_index);
            if (o == NULL)
                return client_out_of_memory();
            o->committed = from->committed_offset;
        }
    group_offsets_merge(out);
    return CLI_OK;
}

int group_offsets_committed(struct client *c, struct broker *coordinator, struct str group,
                            struct group_offsets *out)
{
    const int64_t deadline_us = client_deadline_us(c);
    struct offset_fetch_request request;
    wire_default(&wire_offset_fetch_request, &request);
    request.group_id = group;
    request.topics.n = -1; /* all */
    for (;;) {
        *out = (struct group_offsets){0};
        const int status = client_call(c, coordinator, &out->answer, API_OFFSET_FETCH,
                                       ONE_GROUP_VERSION, &request);
        if (status != CLI_OK)
            return status;
        const struct offset_fetch_response *r = out->answer.response;
        if (r->error_code == K_NONE)
            return take_offsets(out, r);
        const int16_t code = r->error_code;
        group_offsets_close(out);
        if (!kafka_error_retriable(code) || !client_pause(c, deadline_us))
            return client_tell_kafka("the group's offsets", code, STR_NULL);
    }
}

int group_offsets_find_ends(struct client *c, struct group_offsets *o)
{
    struct offset_item *items = calloc(o->n + 1, sizeof *items);
    if (items == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < o->n; i++)
        items[i] = (struct offset_item){
            .at = {.topic = o->v[i].topic, .partition = o->v[i].partition}, .time = OFFSETS_LATEST};
    const int status = offsets_ask(c, items, o->n, false);
    for (size_t i = 0; i < o->n && status == CLI_OK; i++)
        if (items[i].at.error == K_NONE) /* else the topic is gone, or nobody leads it */
            o->v[i].end = items[i].offset;
    free(items);
    return status;
}

void group_offsets_close(struct group_offsets *o)
{
    answer_close(&o->answer);
    free(o->v);
    *o = (struct group_offsets){0};
}
