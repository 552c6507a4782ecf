/* What a request changes is changed in memory while its batch is built; the list of undos says how
 * to take it back. An append that failed takes back every write behind it too: the log was cut
 * there. First memory is as it was, then those who waited hear of it, for they may begin anew. */
#include "core/group/write.h"

#include <limits.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/endian.h"
#include "base/limits.h"

enum {
    WRITE_BYTES = sizeof(struct write) + 192, /* and its builder, without records */
    RECORD_BYTES = 64,                        /* and its undo, without key and value */
    KEEP_BYTES = 64 << 10,
};

enum key_type { KEY_OFFSET = 1, KEY_CLASSIC = 2 };
enum { OFFSET_VERSION = 4, OFFSET_VERSION_EXPIRES = 1, CLASSIC_VERSION = 3 };

int16_t group_append_error(int16_t error)
{
    switch (error) {
    case K_NONE:
        return K_NONE;
    case K_NOT_LEADER_OR_FOLLOWER:
    case K_KAFKA_STORAGE_ERROR:
    case K_NOT_COORDINATOR:
        return K_NOT_COORDINATOR;
    case K_MESSAGE_TOO_LARGE:
    case K_RECORD_LIST_TOO_LARGE:
    case K_INVALID_FETCH_SIZE:
        return K_UNKNOWN_SERVER_ERROR;
    default: /* what there is no memory for too: a client comes again */
        return K_COORDINATOR_NOT_AVAILABLE;
    }
}

/* ------------------------------------------------------------------ waiting */

void group_wait_init(struct groups *gs, struct group_wait *wait)
{
    wait->gs = gs;
    wait->op = NULL;
    wait->timer = (struct timer){0};
    list_init(&wait->link);
    list_init(&wait->fresh);
}

static void wait_end(struct group_wait *wait, int16_t error)
{
    timer_cancel(wait->gs->timers, &wait->timer);
    list_remove(&wait->link);
    list_remove(&wait->fresh);
    wait->ended(wait, error);
    groups_op_ready(wait->gs, wait->op);
}

/* Kafka: the request has timed out; what it changed stays and may still be committed. */
static void wait_late(struct timer *t)
{
    wait_end(CONTAINER_OF(t, struct group_wait, timer), K_COORDINATOR_NOT_AVAILABLE);
}

void group_wait_cancel(struct group_wait *wait)
{
    if (wait->gs != NULL && !list_empty(&wait->link))
        wait_end(wait, K_COORDINATOR_NOT_AVAILABLE);
}

void group_wait_arm_fresh(struct groups *gs)
{
    struct list *l;
    while ((l = list_pop(&gs->fresh)) != NULL) {
        struct group_wait *wait = LIST_ENTRY(l, struct group_wait, fresh);
        if (timer_arm(gs->timers, &wait->timer, gs->now.mono_us + gs->commit_timeout_us) !=
            ERR_NONE)
            wait_late(&wait->timer);
    }
}

void write_await(struct write *w, struct group_wait *wait, struct group_op *op,
                 void (*ended)(struct group_wait *w, int16_t error))
{
    wait->op = op;
    wait->ended = ended;
    wait->timer.fire = wait_late;
    list_append(&w->waits, &wait->link);
    list_append(&wait->gs->fresh, &wait->fresh);
}

static void end_waits(struct write *w, int16_t error)
{
    while (!list_empty(&w->waits))
        wait_end(LIST_ENTRY(w->waits.next, struct group_wait, link), error);
}

/* ------------------------------------------------------------------ life of a write */

static void write_free(struct write *w)
{
    struct groups *gs = w->gs;
    CHECK(list_empty(&w->waits) && !w->appending);
    list_remove(&w->link);
    list_remove(&w->ended);
    batch_builder_free(w->bb);
    budget_give(gs->budget, w->charged_bytes);
    free(w->undo);
    free(w);
}

enum err write_new(struct shard *sh, struct write **out)
{
    const struct batch_builder_args args = {
        .leader_epoch = -1,
        .attributes = sh->gs->codec,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = 0, /* as Kafka writes them */
        .level = INT_MIN,
    };
    struct groups *gs = sh->gs;
    if (!budget_take(gs->budget, WRITE_BYTES))
        return ERR_NOMEM;
    struct write *w = calloc(1, sizeof *w);
    if (w == NULL || batch_builder_new(&args, &w->bb) != ERR_NONE) {
        free(w);
        budget_give(gs->budget, WRITE_BYTES);
        return ERR_NOMEM;
    }
    w->gs = gs;
    w->shard = sh;
    w->charged_bytes = WRITE_BYTES;
    list_init(&w->link);
    list_init(&w->ended);
    list_init(&w->waits);
    *out = w;
    return ERR_NONE;
}

/* The log has a copy of a small batch: where followers are long in coming many writes wait. */
static void free_copied(struct write *w)
{
    if (w->append.batch.n >= LIMIT_STAGE_COPY_BYTES)
        return;
    const uint64_t left = WRITE_BYTES + RECORD_BYTES * (uint64_t)w->records_n;
    batch_builder_free(w->bb);
    w->bb = NULL;
    w->append.batch = BYTES_NULL;
    budget_give(w->gs->budget, w->charged_bytes - left);
    w->charged_bytes = left;
}

/* ------------------------------------------------------------------ records */

/* Room for one undo more. */
static enum err room(struct write *w)
{
    if (w->undo_n < w->undo_cap)
        return ERR_NONE;
    const size_t cap = w->undo_cap == 0 ? 4 : w->undo_cap * 2;
    struct undo *v = realloc(w->undo, cap * sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    w->undo = v;
    w->undo_cap = cap;
    return ERR_NONE;
}

static void will_undo(struct write *w, enum undo_kind kind, void *what)
{
    CHECK(w->undo_n < w->undo_cap);
    w->undo[w->undo_n++] = (struct undo){kind, w->records_n - 1, what};
}

static enum err encode(struct buf *b, int16_t head, const struct wire_message *m, int16_t version,
                       const void *msg)
{
    uint8_t be[2];
    if (b->cap > KEEP_BYTES)
        buf_close(b);
    b->n = 0;
    put_be16(be, (uint16_t)head);
    enum err e = buf_append(b, be, sizeof be);
    return e == ERR_NONE ? wire_encode(m, version, msg, b) : e;
}

static struct bytes bytes_of(const struct buf *b)
{
    return (struct bytes){b->p, (int32_t)b->n};
}

static enum err add(struct write *w, struct bytes key, struct bytes value)
{
    const uint64_t n =
        RECORD_BYTES + (uint64_t)(key.n < 0 ? 0 : key.n) + (uint64_t)(value.n < 0 ? 0 : value.n);
    if (!budget_take(w->gs->budget, n))
        return ERR_NOMEM;
    w->charged_bytes += n;
    enum err e = batch_builder_add(w->bb, w->gs->now.wall_ms, key, value, NULL, 0);
    if (e == ERR_NONE)
        w->records_n++;
    return e;
}

static enum err add_offset(struct write *w, struct str group, struct str topic, int32_t partition,
                           const struct committed *value)
{
    struct groups *gs = w->gs;
    const struct offset_commit_key key = {group, topic, partition};
    enum err e = encode(&gs->key, KEY_OFFSET, &msg_offset_commit_key, 0, &key);
    if (e != ERR_NONE)
        return e;
    if (value == NULL)
        return add(w, bytes_of(&gs->key), BYTES_NULL);
    const int16_t version = value->expire_ms == -1 ? OFFSET_VERSION : OFFSET_VERSION_EXPIRES;
    const struct offset_commit_value v = {
        .offset = value->offset,
        .leader_epoch = value->leader_epoch,
        .metadata = value->metadata.n < 0 ? STR_LIT("") : value->metadata,
        .commit_timestamp = value->commit_ms,
        .expire_timestamp = value->expire_ms,
        .topic_id = value->topic_id,
    };
    e = encode(&gs->value, version, &msg_offset_commit_value, version, &v);
    return e == ERR_NONE ? add(w, bytes_of(&gs->key), bytes_of(&gs->value)) : e;
}

static enum err add_classic(struct write *w, struct str group,
                            const struct group_metadata_value *value)
{
    struct groups *gs = w->gs;
    const struct group_metadata_key key = {group};
    enum err e = encode(&gs->key, KEY_CLASSIC, &msg_group_metadata_key, 0, &key);
    if (e != ERR_NONE)
        return e;
    if (value == NULL)
        return add(w, bytes_of(&gs->key), BYTES_NULL);
    e = encode(&gs->value, CLASSIC_VERSION, &msg_group_metadata_value, CLASSIC_VERSION, value);
    return e == ERR_NONE ? add(w, bytes_of(&gs->key), bytes_of(&gs->value)) : e;
}

/* ------------------------------------------------------------------ changes */

enum err write_offset(struct write *w, struct group *g, struct str topic, int32_t partition,
                      const struct committed *value)
{
    struct offset *o = NULL;
    struct version *v;
    enum err e = room(w);
    if (e == ERR_NONE)
        e = group_offset_make(g, topic, partition, &o);
    if (e == ERR_NONE)
        e = offset_set(o, w, value, &v);
    if (e == ERR_NONE) {
        e = add_offset(w, group_id(g), topic, partition, value);
        if (e == ERR_NONE)
            will_undo(w, UNDO_OFFSET, v);
        else
            version_undo(v);
    } else if (o != NULL) {
        offset_tidy(o);
    }
    return e;
}

enum err write_offset_deletion(struct write *w, struct offset *o)
{
    struct version *v;
    const struct group *g = o->topic->group;
    enum err e = room(w);
    if (e == ERR_NONE)
        e = offset_delete(o, w, &v);
    if (e != ERR_NONE)
        return e;
    e = add_offset(w, group_id(g), topic_name(o->topic), o->partition, NULL);
    if (e == ERR_NONE)
        will_undo(w, UNDO_OFFSET, v);
    else
        version_undo(v);
    return e;
}

enum err write_classic(struct write *w, struct life *l)
{
    struct group_metadata_value value;
    struct arena a;
    arena_init(&a, w->gs->budget);
    enum err e = room(w);
    if (e == ERR_NONE)
        e = classic_record(l->classic, &a, &value);
    if (e == ERR_NONE)
        e = add_classic(w, group_id(l->group), &value);
    if (e == ERR_NONE) {
        l->recorded = true;
        will_undo(w, UNDO_STORE, l);
    }
    arena_close(&a);
    return e;
}

static enum err begin_classic(struct write *w, struct group *g, struct life **out)
{
    enum err e = room(w);
    if (e == ERR_NONE)
        e = life_begin(g, w, GROUP_CLASSIC, out);
    if (e != ERR_NONE)
        return e;
    e = life_make_classic(*out, w->gs->now);
    if (e != ERR_NONE) {
        life_undo(*out);
        life_free(*out, K_NONE);
    }
    return e;
}

enum err write_simple_group(struct write *w, struct group *g)
{
    struct life *l;
    enum err e = begin_classic(w, g, &l);
    if (e == ERR_NONE)
        will_undo(w, UNDO_LIFE, l);
    return e;
}

enum err write_new_group(struct write *w, struct group *g)
{
    struct group_metadata_value value;
    struct arena a;
    struct life *l;
    enum err e = begin_classic(w, g, &l);
    if (e != ERR_NONE)
        return e;
    arena_init(&a, w->gs->budget);
    e = classic_record(l->classic, &a, &value);
    if (e == ERR_NONE)
        e = add_classic(w, group_id(g), &value);
    arena_close(&a);
    if (e == ERR_NONE) {
        l->recorded = true;
        will_undo(w, UNDO_LIFE, l);
    } else {
        life_undo(l);
        life_free(l, K_NONE);
    }
    return e;
}

/* Kafka refuses to read that a group went before its members did: an order for each kind. */
static enum err add_foreign_deletion(struct write *w, const struct life *l)
{
    static const int16_t types[] = {8,  7,  5,  16, 6,  4,  3,  14, 13, 10,
                                    15, 12, 11, 22, 21, 19, 20, 23, 17};
    enum err e = ERR_NONE;
    for (size_t i = 0; i < ARRAY_N(types) && e == ERR_NONE; i++) {
        struct map_entry *it = NULL;
        while (e == ERR_NONE && (it = map_next(&l->records, it)) != NULL) {
            size_t n;
            const uint8_t *key = map_key(it, &n);
            if ((int16_t)be16(key) == types[i])
                e = add(w, (struct bytes){key, (int32_t)n}, BYTES_NULL);
        }
    }
    return e;
}

enum err write_group_deletion(struct write *w, struct group *g)
{
    const struct life *before = g->life;
    struct life *l;
    enum err e = room(w);
    if (e == ERR_NONE && before->kind == GROUP_CLASSIC)
        e = add_classic(w, group_id(g), NULL);
    else if (e == ERR_NONE)
        e = add_foreign_deletion(w, before);
    if (e == ERR_NONE)
        e = life_begin(g, w, GROUP_NONE, &l);
    if (e == ERR_NONE)
        will_undo(w, UNDO_LIFE, l);
    return e;
}

/* ------------------------------------------------------------------ taking back */

/* Newest first. Lives and stores are only unhooked: who waits in them is told later. */
static void take_back(struct write *w)
{
    for (size_t i = w->undo_n; i > 0; i--) {
        const struct undo *u = &w->undo[i - 1];
        switch (u->kind) {
        case UNDO_OFFSET:
            version_undo(u->what);
            break;
        case UNDO_LIFE:
            life_undo(u->what);
            break;
        case UNDO_STORE:
            break;
        }
    }
}

static void tell_stores(struct write *w, int16_t error)
{
    for (size_t i = 0; i < w->undo_n; i++)
        if (w->undo[i].kind == UNDO_STORE)
            classic_stored(((struct life *)w->undo[i].what)->classic, error, w->gs->now);
}

static void free_lives(struct write *w, int16_t error)
{
    for (size_t i = 0; i < w->undo_n; i++)
        if (w->undo[i].kind == UNDO_LIFE)
            life_free(w->undo[i].what, error);
    w->undo_n = 0;
}

/* Its memory goes when the log has let go of the batch. */
static void let_go(struct write *w)
{
    w->shard = NULL;
    list_remove(&w->link);
    if (!w->appending)
        write_free(w);
}

static void take_back_from(struct write *from)
{
    struct shard *sh = from->shard;
    const int16_t error = group_append_error(from->error);
    struct list failed, *l, *tmp;
    struct write *last;
    list_init(&failed);
    sh->end = from->append.base_offset;
    do {
        last = LIST_ENTRY(sh->writes.prev, struct write, link);
        take_back(last);
        list_remove(&last->link);
        list_prepend(&failed, &last->link);
    } while (last != from);
    LIST_EACH(l, tmp, &failed)
    {
        struct write *w = LIST_ENTRY(l, struct write, link);
        tell_stores(w, error);
        end_waits(w, error);
        sweep_written(sh, w, false);
    }
    while ((l = list_pop(&failed)) != NULL) {
        struct write *w = LIST_ENTRY(l, struct write, link);
        free_lives(w, error);
        let_go(w);
    }
}

/* ------------------------------------------------------------------ the end */

static void appended(struct append_op *op, int16_t error)
{
    struct write *w = CONTAINER_OF(op, struct write, append);
    w->error = error;
    w->appending = false;
    list_append(&w->gs->ended, &w->ended);
}

static int16_t append(struct write *w)
{
    struct shard *sh = w->shard;
    enum err e = batch_builder_finish(w->bb, &w->append.batch);
    if (e != ERR_NONE)
        return e == ERR_TOO_LARGE ? K_RECORD_LIST_TOO_LARGE : K_COORDINATOR_NOT_AVAILABLE;
    w->append.topic_id = sh->topic_id;
    w->append.index = sh->index;
    w->append.leader_epoch = sh->epoch;
    w->append.done = appended;
    return replicas_append(sh->gs->replicas, &w->append, sh->gs->now);
}

static void take_over(struct write *w)
{
    struct shard *sh = w->shard;
    w->appending = true;
    list_append(&sh->writes, &w->link);
    sh->end = w->append.base_offset + w->records_n;
    for (size_t i = 0; i < w->undo_n; i++)
        if (w->undo[i].kind == UNDO_OFFSET)
            ((struct version *)w->undo[i].what)->log_offset =
                w->append.base_offset + w->undo[i].record;
    free_copied(w);
}

int16_t write_end(struct write *w, enum err e, struct write **out)
{
    const bool empty = e == ERR_NONE && w->records_n == 0;
    int16_t error = e == ERR_TOO_LARGE ? K_RECORD_LIST_TOO_LARGE
                    : e != ERR_NONE    ? K_COORDINATOR_NOT_AVAILABLE
                                       : K_NONE;
    *out = NULL;
    CHECK(!empty || w->undo_n == 0);
    if (error == K_NONE && !empty)
        error = append(w);
    if (error == K_NONE && !empty) {
        take_over(w);
        *out = w;
        return K_NONE;
    }
    take_back(w);
    free_lives(w, K_COORDINATOR_NOT_AVAILABLE);
    write_free(w);
    return group_append_error(error);
}

static void commit(struct write *w)
{
    CHECK(w->shard->writes.next == &w->link);
    list_remove(&w->link);
    for (size_t i = 0; i < w->undo_n; i++) {
        const struct undo *u = &w->undo[i];
        switch (u->kind) {
        case UNDO_OFFSET:
            version_commit(u->what);
            break;
        case UNDO_LIFE:
            life_commit(u->what);
            break;
        case UNDO_STORE:
            break;
        }
    }
    tell_stores(w, K_NONE);
    w->undo_n = 0;
    end_waits(w, K_NONE);
    sweep_written(w->shard, w, true);
}

void write_finish(struct write *w)
{
    if (w->shard == NULL) {
        write_free(w);
    } else if (w->error != K_NONE) {
        take_back_from(w);
    } else {
        commit(w);
        write_free(w);
    }
}

void write_abandon(struct write *w, int16_t error)
{
    end_waits(w, error);
    w->undo_n = 0;
    let_go(w);
}
