#include "cli/leaders.h"

#include <stdlib.h>

#include "wire/error.h"

/* One round: the items without an answer, and a call for each of their leaders. */
struct round {
    struct client *c;
    const struct leader_op *op;
    struct leader_item **v;
    size_t n;
    struct answer *answers;
    size_t answers_n;
    struct arena arena; /* of requests */
    int64_t deadline_us;
    bool last; /* time is up: what has no answer never gets one */
};

static int by_topic(const void *a, const void *b)
{
    const struct leader_item *x = *(struct leader_item *const *)a,
                             *y = *(struct leader_item *const *)b;
    const int order = str_cmp(x->topic, y->topic);
    return order != 0 ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

static int by_leader(const void *a, const void *b)
{
    const struct leader_item *x = *(struct leader_item *const *)a,
                             *y = *(struct leader_item *const *)b;
    return x->leader != y->leader ? (x->leader > y->leader) - (x->leader < y->leader)
                                  : by_topic(a, b);
}

struct leader_item *leaders_find(struct leader_item *const *v, size_t n, struct str topic,
                                 int32_t partition)
{
    struct leader_item key = {.topic = topic, .partition = partition};
    const struct leader_item *key_p = &key;
    struct leader_item *const *found = bsearch(&key_p, v, n, sizeof *v, by_topic);
    return found == NULL ? NULL : *found;
}

size_t leaders_same_topic(struct leader_item *const *v, size_t n)
{
    size_t same = 1;
    while (same < n && str_eq(v[same]->topic, v[0]->topic))
        same++;
    return same;
}

static void collect(struct round *r)
{
    r->n = 0;
    for (size_t i = 0; i < r->op->n; i++) {
        struct leader_item *item =
            (struct leader_item *)(void *)((char *)r->op->items + i * r->op->item_bytes);
        if (!item->done)
            r->v[r->n++] = item;
    }
    qsort(r->v, r->n, sizeof *r->v, by_topic);
}

static void fail_item(struct leader_item *item, int16_t error)
{
    item->done = item->final = true;
    item->error = error;
}

/* ------------------------------------------------------------------ leaders */

static void find_leader(struct client *c, const struct topic *t, struct leader_item *item)
{
    const struct topic_partition key = {.index = item->partition};
    item->leader = -1;
    item->error = K_LEADER_NOT_AVAILABLE;
    if (t == NULL || t->error == K_UNKNOWN_TOPIC_OR_PARTITION) {
        fail_item(item, K_UNKNOWN_TOPIC_OR_PARTITION);
        return;
    }
    if (t->error != K_NONE) {
        item->done = true;
        item->error = t->error;
        return;
    }
    for (int32_t low = 0, high = t->partitions_n; low < high;) {
        const struct topic_partition *p = &t->partitions[low + (high - low) / 2];
        if (p->index == key.index) {
            item->leader = client_broker(c, p->leader) != NULL ? p->leader : -1;
            item->leader_epoch = p->leader_epoch;
            return;
        }
        if (p->index < key.index)
            low = (int32_t)(p - t->partitions) + 1;
        else
            high = (int32_t)(p - t->partitions);
    }
    fail_item(item, K_UNKNOWN_TOPIC_OR_PARTITION);
}

static int find_leaders(struct round *r)
{
    struct metadata m;
    struct str *topics = arena_array(&r->arena, r->n, sizeof *topics);
    size_t n = 0;
    if (topics == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < r->n; i += leaders_same_topic(r->v + i, r->n - i))
        topics[n++] = r->v[i]->topic;
    const struct metadata_args args = {.scope = METADATA_TOPICS, .topics = topics, .n = n};
    const int status = client_metadata(r->c, &args, &m);
    if (status != CLI_OK)
        return status;
    for (size_t i = 0; i < r->n; i++)
        find_leader(r->c, metadata_topic(&m, r->v[i]->topic), r->v[i]);
    metadata_close(&m);
    return CLI_OK;
}

/* ------------------------------------------------------------------ calls */

/* From `at` on, all of one leader. */
static size_t same_leader(const struct round *r, size_t at)
{
    size_t n = 1;
    while (at + n < r->n && r->v[at + n]->leader == r->v[at]->leader)
        n++;
    return n;
}

static int ask_leaders(struct round *r)
{
    const struct leader_op *op = r->op;
    collect(r); /* without those that cannot be asked */
    qsort(r->v, r->n, sizeof *r->v, by_leader);
    r->answers_n = 0;
    r->answers = arena_array(&r->arena, r->n, sizeof *r->answers);
    if (r->answers == NULL)
        return client_out_of_memory();
    int status = CLI_OK;
    for (size_t i = 0, n; i < r->n && status == CLI_OK; i += n) {
        n = same_leader(r, i);
        if (r->v[i]->leader < 0)
            continue;
        const void *request = op->request(op, &r->arena, r->v + i, n);
        if (request == NULL)
            status = client_out_of_memory();
        else
            client_ask(r->c, client_broker(r->c, r->v[i]->leader), &r->answers[r->answers_n++],
                       op->api, op->max_version, request);
    }
    client_wait(r->c, r->answers, r->answers_n);
    return status;
}

/* What may succeed with the same leader later, or with another. */
static bool may_retry(enum err e)
{
    return e == ERR_CLOSED || e == ERR_TIMEOUT;
}

static int take_answers(struct round *r)
{
    size_t k = 0;
    int status = CLI_OK;
    for (size_t i = 0, n; i < r->n; i += n) {
        n = same_leader(r, i);
        if (r->v[i]->leader < 0)
            continue;
        const struct answer *a = &r->answers[k++];
        if (a->err == ERR_NONE)
            r->op->answer(r->op, a->response, r->v + i, n);
        else if (r->last || !may_retry(a->err))
            status = client_tell(a);
    }
    return status;
}

/* True if something is to be asked again. */
static bool open_items(struct round *r)
{
    bool open = false;
    for (size_t i = 0; i < r->n; i++) {
        struct leader_item *item = r->v[i];
        if (item->done && !item->final && kafka_error_retriable(item->error))
            item->done = false;
        open |= !item->done;
        if (r->last && !item->done)
            fail_item(item, item->error != K_NONE ? item->error : K_REQUEST_TIMED_OUT);
    }
    return open && !r->last;
}

static int run_round(struct round *r, bool *again)
{
    collect(r);
    *again = false;
    int status = r->n == 0 ? CLI_OK : find_leaders(r);
    if (status == CLI_OK && r->n > 0)
        status = ask_leaders(r);
    if (status == CLI_OK)
        status = take_answers(r);
    for (size_t i = 0; i < r->answers_n; i++)
        answer_close(&r->answers[i]);
    r->answers_n = 0;
    if (status == CLI_OK)
        *again = open_items(r);
    arena_reset(&r->arena);
    return status;
}

int leaders_ask(struct client *c, const struct leader_op *op)
{
    struct round r = {.c = c, .op = op, .deadline_us = client_deadline_us(c)};
    bool again = true;
    int status = CLI_OK;
    r.v = calloc(op->n + 1, sizeof *r.v);
    if (r.v == NULL)
        return client_out_of_memory();
    arena_init(&r.arena, client_memory(c));
    while (again && status == CLI_OK) {
        status = run_round(&r, &again);
        r.last = again && !client_pause(c, r.deadline_us);
    }
    arena_close(&r.arena);
    free(r.v);
    return status;
}
