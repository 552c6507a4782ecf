/* A follower outside of its leader's range (KAFKA-2143, KIP-101): a log that reaches further than
 * its leader's is cut to that; one that ends before its leader's start begins anew there; else the
 * range has moved meanwhile, and it is fetched again. The leader tells a replica its log end. */
#include "core/replica/fetcher.h"
#include "core/replica/inside.h"
#include "wire/error.h"

enum { LATEST = -1, EARLIEST = -2 };

static void fill_partition(struct follow *fw, struct list_offsets_request_list_offsets_topic *t,
                           struct list_offsets_request_list_offsets_partition *out)
{
    const struct partition *p = fw->p;
    t->name = str_of(p->topic);
    t->partitions.v = out;
    t->partitions.n = 1;
    out->partition_index = p->index;
    out->current_leader_epoch = p->leader_epoch;
    out->timestamp = fw->state == FOLLOW_LATEST ? LATEST : EARLIEST;
    fw->asked = true;
    fw->asked_offset = log_end_offset(p->log);
}

/* One topic for each partition: they are few. The names may go with their partitions, so they are
 * the request's own. */
enum err fetcher_make_range(struct fetcher *f)
{
    struct list_offsets_request *req = &f->request.range;
    struct list *l, *tmp;
    size_t n = 0;
    LIST_EACH(l, tmp, &f->ranged)
    n++;
    wire_default(&wire_list_offsets_request, req);
    req->replica_id = f->rs->node_id;
    req->topics.v = wire_array(&wire_list_offsets_request_list_offsets_topic, &f->arena, n);
    struct list_offsets_request_list_offsets_partition *parts =
        wire_array(&wire_list_offsets_request_list_offsets_partition, &f->arena, n);
    if (req->topics.v == NULL || parts == NULL)
        return ERR_NOMEM;
    LIST_EACH(l, tmp, &f->ranged)
    {
        struct list_offsets_request_list_offsets_topic *t = &req->topics.v[req->topics.n];
        fill_partition(LIST_ENTRY(l, struct follow, link), t, parts++);
        char *name = arena_strdup(&f->arena, t->name);
        if (name == NULL)
            return ERR_NOMEM;
        t->name.p = name;
        req->topics.n++;
    }
    return ERR_NONE;
}

/* ------------------------------------------------------------------ answers */

static void take_latest(struct follow *fw, int64_t leaders_end)
{
    if (leaders_end < log_end_offset(fw->p->log))
        (void)follow_truncate(fw, leaders_end); /* S22: never the end of the process */
    else
        follow_set_state(fw, FOLLOW_EARLIEST);
}

static void take_earliest(struct follow *fw, int64_t leaders_start)
{
    if (leaders_start > log_end_offset(fw->p->log))
        (void)follow_restart_at(fw, leaders_start);
    else
        follow_delay(fw); /* nothing to see here: not at once again */
}

static void take_partition(struct fetcher *f, struct str topic,
                           const struct list_offsets_response_list_offsets_partition_response *in)
{
    const struct image_topic *t = image_topic_named(f->rs->image, topic);
    struct partition *p = t == NULL ? NULL : replicas_find(f->rs, t->id, in->partition_index);
    struct follow *fw = p == NULL ? NULL : p->follow;
    if (fw == NULL || fw->fetcher != f || !fw->asked ||
        (fw->state != FOLLOW_LATEST && fw->state != FOLLOW_EARLIEST) ||
        fw->asked_offset != log_end_offset(p->log))
        return;
    if (in->error_code != K_NONE || in->offset < 0)
        follow_delay(fw);
    else if (fw->state == FOLLOW_LATEST)
        take_latest(fw, in->offset);
    else
        take_earliest(fw, in->offset);
}

void fetcher_take_range(struct fetcher *f, const struct list_offsets_response *resp)
{
    for (int32_t i = 0; i < resp->topics.n; i++)
        for (int32_t k = 0; k < resp->topics.v[i].partitions.n; k++)
            take_partition(f, resp->topics.v[i].name, &resp->topics.v[i].partitions.v[k]);
    fetcher_range_failed(f); /* those without an answer */
}

/* They fetch again, later, and find out anew. */
void fetcher_range_failed(struct fetcher *f)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &f->ranged)
    {
        struct follow *fw = LIST_ENTRY(l, struct follow, link);
        if (fw->asked)
            follow_delay(fw);
    }
}
