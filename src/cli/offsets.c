#include "cli/offsets.h"

#include <stdlib.h>

#include "wire/error.h"

static struct offset_item *item_of(struct leader_item *at)
{
    return CONTAINER_OF(at, struct offset_item, at);
}

static const void *request(const struct leader_op *op, struct arena *a,
                           struct leader_item *const *v, size_t n)
{
    struct list_offsets_request *r = arena_alloc(a, sizeof *r);
    struct list_offsets_request_list_offsets_topic *topics =
        wire_array(&wire_list_offsets_request_list_offsets_topic, a, n);
    struct list_offsets_request_list_offsets_partition *partitions =
        wire_array(&wire_list_offsets_request_list_offsets_partition, a, n);
    if (r == NULL || topics == NULL || partitions == NULL)
        return NULL;
    wire_default(&wire_list_offsets_request, r);
    r->replica_id = -1;
    r->isolation_level = *(const bool *)op->ctx ? 1 : 0;
    r->topics.v = topics;
    for (size_t i = 0, same; i < n; i += same) {
        struct list_offsets_request_list_offsets_topic *t = &topics[r->topics.n++];
        same = leaders_same_topic(v + i, n - i);
        t->name = v[i]->topic;
        t->partitions.v = partitions + i;
        t->partitions.n = (int32_t)same;
    }
    for (size_t i = 0; i < n; i++) {
        partitions[i].partition_index = v[i]->partition;
        partitions[i].current_leader_epoch = v[i]->leader_epoch;
        partitions[i].timestamp = item_of(v[i])->time;
    }
    return r;
}

static void answer(const struct leader_op *op, const void *response, struct leader_item *const *v,
                   size_t n)
{
    const struct list_offsets_response *r = response;
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t p = 0; p < r->topics.v[t].partitions.n; p++) {
            const struct list_offsets_response_list_offsets_partition_response *from =
                &r->topics.v[t].partitions.v[p];
            struct leader_item *item =
                leaders_find(v, n, r->topics.v[t].name, from->partition_index);
            if (item == NULL)
                continue;
            item->done = true;
            item->error = from->error_code;
            item_of(item)->offset = from->offset < -1 ? -1 : from->offset;
        }
}

int offsets_ask(struct client *c, struct offset_item *v, size_t n, bool committed)
{
    const struct leader_op op = {.api = API_LIST_OFFSETS,
                                 .max_version = -1,
                                 .items = v,
                                 .item_bytes = sizeof *v,
                                 .n = n,
                                 .request = request,
                                 .answer = answer,
                                 .ctx = &committed};
    return leaders_ask(c, &op);
}

/* ------------------------------------------------------------------ positions */

/* Asks for all places at once; the first error of a place stays. */
static int ask_places(struct client *c, struct place *v, size_t n, int64_t time, bool committed,
                      struct offset_item *items)
{
    for (size_t i = 0; i < n; i++)
        items[i] = (struct offset_item){.at = {.topic = v[i].topic,
                                               .partition = v[i].partition,
                                               .done = v[i].error != K_NONE,
                                               .final = v[i].error != K_NONE,
                                               .error = v[i].error},
                                        .time = time};
    const int status = offsets_ask(c, items, n, committed);
    for (size_t i = 0; i < n; i++)
        v[i].error = items[i].at.error;
    return status;
}

static int64_t clamp(const struct place *p, int64_t offset)
{
    if (offset < p->start)
        return p->start;
    return offset > p->end ? p->end : offset;
}

static void place_at(struct place *p, struct position position, int64_t by_time)
{
    switch (position.kind) {
    case POSITION_EARLIEST:
        p->offset = p->start;
        return;
    case POSITION_LATEST:
        p->offset = p->end;
        return;
    case POSITION_OFFSET:
        p->offset = position.value;
        return;
    case POSITION_TAIL:
        p->offset = position.value > p->end ? p->start : clamp(p, p->end - position.value);
        return;
    case POSITION_TIME:
        p->offset = by_time < 0 ? p->end : clamp(p, by_time);
        return;
    }
}

static int resolve(struct client *c, struct position position, struct place *v, size_t n,
                   bool committed, struct offset_item *items)
{
    int status = ask_places(c, v, n, OFFSETS_EARLIEST, committed, items);
    for (size_t i = 0; i < n; i++)
        v[i].start = items[i].offset < 0 ? 0 : items[i].offset;
    if (status == CLI_OK)
        status = ask_places(c, v, n, OFFSETS_LATEST, committed, items);
    for (size_t i = 0; i < n; i++)
        v[i].end = items[i].offset < v[i].start ? v[i].start : items[i].offset;
    if (status == CLI_OK && position.kind == POSITION_TIME)
        status = ask_places(c, v, n, position.value, committed, items);
    for (size_t i = 0; i < n && status == CLI_OK; i++)
        place_at(&v[i], position, items[i].offset);
    return status;
}

int offsets_resolve(struct client *c, struct position position, struct place *v, size_t n,
                    bool committed)
{
    struct offset_item *items = calloc(n + 1, sizeof *items);
    if (items == NULL)
        return client_out_of_memory();
    const int status = resolve(c, position, v, n, committed, items);
    free(items);
    return status;
}
