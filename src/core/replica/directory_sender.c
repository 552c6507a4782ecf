/* AssignReplicasToDirs (KIP-858): the metadata say in which log directory a replica is; where that
 * is not the one that has its log (the broker chose it, or a disk was replaced), the controller is
 * told, which lets no replica lead that is in a directory that the broker does not have. One
 * request is in flight for this broker. Where a replica is, and whether the metadata still say
 * otherwise, is looked at when it is sent: so the last word counts. */
#include <stdlib.h>

#include "base/backoff.h"
#include "core/broker/channel.h"
#include "core/metadata/records.h"
#include "core/replica/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

enum {
    REPLICAS_MAX = 2250, /* of a request, as Kafka */
    RETRY_FIRST_US = 100 * 1000,
    DOUBLINGS_MAX = 6,
};

struct sent_replica {
    struct uuid dir, topic_id;
    int32_t index;
    bool taken; /* over by the controller */
};

/* Apart from the replicas in memory, so that a call in flight may outlive them. */
struct directory_sender {
    struct replicas *rs;     /* NULL: they are gone; whoever completes the call frees this */
    struct channel *channel; /* NULL: it was closed */
    struct channel_call call;
    bool in_flight;
    struct list queued; /* struct partition.misplaced */
    struct timer retry;
    uint32_t failures_n; /* in a row */
    struct arena arena;  /* of the request in flight */
    struct assign_replicas_to_dirs_request request;
    struct sent_replica *sent; /* ordered */
    size_t sent_n;
};

/* ------------------------------------------------------------------ the queue */

static bool misplaced(const struct partition *p)
{
    const struct replicas *rs = p->rs;
    struct image_topic *t = image_topic_by_id(rs->image, p->topic_id);
    const struct image_partition *ip = t == NULL ? NULL : image_partition(t, p->index);
    return p->log != NULL && ip != NULL && !partition_offline(p) &&
           !uuid_eq(image_replica_directory(ip, rs->node_id), p->dir->id) &&
           image_metadata_version(rs->image) >= METADATA_VERSION_DIRECTORIES;
}

void directory_sender_look(struct partition *p)
{
    struct directory_sender *s = p->rs->directory_sender;
    if (s != NULL && list_empty(&p->misplaced) && misplaced(p))
        list_append(&s->queued, &p->misplaced);
}

/* ------------------------------------------------------------------ the request */

static int compare(const void *a, const void *b)
{
    const struct sent_replica *x = a, *y = b;
    int d = memcmp(x->dir.b, y->dir.b, sizeof x->dir.b);
    if (d == 0)
        d = memcmp(x->topic_id.b, y->topic_id.b, sizeof x->topic_id.b);
    return d != 0 ? d : (x->index > y->index) - (x->index < y->index);
}

/* How many from v on are in the same directory and, if asked for, of the same topic. */
static size_t run_of(const struct sent_replica *v, size_t n, bool of_topic)
{
    size_t i = 1;
    while (i < n && uuid_eq(v[i].dir, v->dir) && (!of_topic || uuid_eq(v[i].topic_id, v->topic_id)))
        i++;
    return i;
}

static size_t runs_n(const struct sent_replica *v, size_t n, bool of_topic)
{
    size_t runs = 0;
    for (size_t i = 0; i < n; runs++)
        i += run_of(&v[i], n - i, of_topic);
    return runs;
}

static enum err fill_topic(struct arena *a, const struct sent_replica *v, size_t n,
                           struct assign_replicas_to_dirs_request_topic_data *out)
{
    out->topic_id = v->topic_id;
    out->partitions.v = wire_array(&wire_assign_replicas_to_dirs_request_partition_data, a, n);
    if (out->partitions.v == NULL)
        return ERR_NOMEM;
    out->partitions.n = (int32_t)n;
    for (size_t i = 0; i < n; i++)
        out->partitions.v[i].partition_index = v[i].index;
    return ERR_NONE;
}

static enum err fill_directory(struct arena *a, const struct sent_replica *v, size_t n,
                               struct assign_replicas_to_dirs_request_directory_data *out)
{
    enum err e = ERR_NONE;
    out->id = v->dir;
    out->topics.v =
        wire_array(&wire_assign_replicas_to_dirs_request_topic_data, a, runs_n(v, n, true));
    if (out->topics.v == NULL)
        return ERR_NOMEM;
    for (size_t i = 0, run; e == ERR_NONE && i < n; i += run) {
        run = run_of(&v[i], n - i, true);
        e = fill_topic(a, &v[i], run, &out->topics.v[out->topics.n++]);
    }
    return e;
}

static enum err fill(struct directory_sender *s)
{
    struct assign_replicas_to_dirs_request *req = &s->request;
    const struct sent_replica *v = s->sent;
    const size_t n = s->sent_n;
    enum err e = ERR_NONE;
    wire_default(&wire_assign_replicas_to_dirs_request, req);
    req->broker_id = s->rs->node_id;
    req->broker_epoch = s->rs->broker_epoch(s->rs->events.ctx);
    req->directories.v = wire_array(&wire_assign_replicas_to_dirs_request_directory_data, &s->arena,
                                    runs_n(v, n, false));
    if (req->directories.v == NULL)
        return ERR_NOMEM;
    for (size_t i = 0, run; e == ERR_NONE && i < n; i += run) {
        run = run_of(&v[i], n - i, false);
        e = fill_directory(&s->arena, &v[i], run, &req->directories.v[req->directories.n++]);
    }
    return e;
}

/* Of the queue, which stays as it is but for what is in order meanwhile. */
static enum err gather(struct directory_sender *s)
{
    struct list *l, *tmp;
    size_t most = 0;
    for (l = s->queued.next; l != &s->queued && most < REPLICAS_MAX; l = l->next)
        most++;
    s->sent_n = 0;
    s->sent = arena_array(&s->arena, most, sizeof *s->sent);
    if (s->sent == NULL)
        return ERR_NOMEM;
    LIST_EACH(l, tmp, &s->queued)
    {
        const struct partition *p = LIST_ENTRY(l, struct partition, misplaced);
        if (s->sent_n == most)
            break;
        if (misplaced(p))
            s->sent[s->sent_n++] = (struct sent_replica){p->dir->id, p->topic_id, p->index, false};
        else
            list_remove(l);
    }
    qsort(s->sent, s->sent_n, sizeof *s->sent, compare);
    return fill(s);
}

/* They are the first ones of the queue. */
static void take_sent(struct directory_sender *s)
{
    for (size_t i = 0; i < s->sent_n; i++)
        (void)list_pop(&s->queued);
}

/* ------------------------------------------------------------------ the answer */

static void retry_due(struct timer *t)
{
    (void)t; /* the settle that follows sends */
}

static void retry_later(struct directory_sender *s)
{
    const int64_t pause_us = backoff_us(RETRY_FIRST_US, s->failures_n, DOUBLINGS_MAX);
    if (timer_arm(s->rs->timers, &s->retry, s->rs->now.mono_us + pause_us) != ERR_NONE)
        env_log(s->rs->env, LOG_WARN, "assign_directories_retry_now error=NOMEM");
}

static void take_partition(struct directory_sender *s, const struct sent_replica *key,
                           int16_t error)
{
    struct sent_replica *sent =
        bsearch(key, s->sent, s->sent_n, sizeof *s->sent, compare); /* NULL: never asked for */
    if (sent != NULL && error == K_NONE)
        sent->taken = true;
    else if (error != K_NONE)
        env_log(s->rs->env, LOG_INFO, "assign_directory_refused partition=%d code=%d", key->index,
                error);
}

static void take_answer(struct directory_sender *s,
                        const struct assign_replicas_to_dirs_response *resp)
{
    for (int32_t d = 0; d < resp->directories.n; d++) {
        const struct assign_replicas_to_dirs_response_directory_data *dir = &resp->directories.v[d];
        for (int32_t t = 0; t < dir->topics.n; t++) {
            const struct assign_replicas_to_dirs_response_topic_data *topic = &dir->topics.v[t];
            for (int32_t i = 0; i < topic->partitions.n; i++) {
                const struct sent_replica key = {dir->id, topic->topic_id,
                                                 topic->partitions.v[i].partition_index, false};
                take_partition(s, &key, topic->partitions.v[i].error_code);
            }
        }
    }
}

/* What was not taken over is looked at again. True if there is any. */
static bool queue_again(struct directory_sender *s)
{
    bool any = false;
    for (size_t i = 0; i < s->sent_n; i++) {
        const struct sent_replica *sent = &s->sent[i];
        struct partition *p =
            sent->taken ? NULL : replicas_find(s->rs, sent->topic_id, sent->index);
        if (p == NULL)
            continue;
        any = true;
        if (list_empty(&p->misplaced))
            list_append(&s->queued, &p->misplaced);
    }
    return any;
}

static void drop_request(struct directory_sender *s)
{
    arena_close(&s->arena); /* seldom needed: no memory is held for the next one */
    arena_init(&s->arena, s->rs->budget);
    s->sent_n = 0;
}

static void answered(struct channel_call *call, enum err e, const void *response)
{
    struct directory_sender *s = CONTAINER_OF(call, struct directory_sender, call);
    const struct assign_replicas_to_dirs_response *resp = response;
    s->in_flight = false;
    if (s->rs == NULL) {
        arena_close(&s->arena);
        free(s);
        return;
    }
    const bool good = e == ERR_NONE && resp->error_code == K_NONE;
    if (good)
        take_answer(s, resp);
    else if (e != ERR_CANCELLED)
        env_log(s->rs->env, LOG_WARN, "assign_directories_failed error=%s code=%d", err_name(e),
                e == ERR_NONE ? resp->error_code : K_NONE);
    if (e == ERR_CANCELLED)
        s->channel = NULL;
    if (queue_again(s) && s->channel != NULL)
        retry_later(s);
    s->failures_n = good ? 0 : s->failures_n + 1;
    drop_request(s);
}

static int16_t top_error(const void *response)
{
    return ((const struct assign_replicas_to_dirs_response *)response)->error_code;
}

/* ------------------------------------------------------------------ sending */

bool directory_sender_settle(struct replicas *rs)
{
    struct directory_sender *s = rs->directory_sender;
    if (s == NULL || list_empty(&s->queued) || s->channel == NULL || s->in_flight ||
        timer_armed(&s->retry) || rs->closing || rs->broker_epoch(rs->events.ctx) < 0)
        return false;
    const enum err e = gather(s);
    if (e != ERR_NONE || s->sent_n == 0) { /* all may be in order by now */
        drop_request(s);
        if (e != ERR_NONE)
            retry_later(s);
        return false;
    }
    take_sent(s);
    s->call = (struct channel_call){
        .api_key = API_ASSIGN_REPLICAS_TO_DIRS,
        .request = &s->request,
        .deadline_us = INT64_MAX,
        .error = top_error,
        .done = answered,
    };
    s->in_flight = true;
    env_log(rs->env, LOG_INFO, "assign_directories replicas=%zu", s->sent_n);
    channel_call(s->channel, &s->call, rs->now);
    return true;
}

/* ------------------------------------------------------------------ life */

enum err directory_sender_new(struct replicas *rs, struct channel *channel)
{
    struct directory_sender *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ERR_NOMEM;
    s->rs = rs;
    s->channel = channel;
    s->retry.fire = retry_due;
    list_init(&s->queued);
    arena_init(&s->arena, rs->budget);
    rs->directory_sender = s;
    return ERR_NONE;
}

void directory_sender_free(struct replicas *rs)
{
    struct directory_sender *s = rs->directory_sender;
    rs->directory_sender = NULL;
    if (s == NULL)
        return;
    timer_cancel(rs->timers, &s->retry);
    s->rs = NULL;
    if (s->in_flight) {
        channel_cancel(&s->call);
        return;
    }
    arena_close(&s->arena);
    free(s);
}
