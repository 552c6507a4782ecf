/* What the tests of classic groups share: one group without a log, a clock moved by hand, requests
 * begun by one call. Protocols are written "range=metadata,sticky=other"; a store ends when the
 * test says so, or at once. */
#ifndef UNIT_CORE_GROUP_CLASSIC_FIXTURE_H
#define UNIT_CORE_GROUP_CLASSIC_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "core/group/classic_impl.h"
#include "support/fault.h"
#include "support/memenv.h"
#include "support/real_alloc.h"
#include "support/test.h"

#define FIX_UNUSED __attribute__((unused))

enum { FIX_PROTOCOLS_MAX = 24, FIX_MEMBERS_MAX = 16 };

struct fix_stored {
    int64_t at_ms; /* wall */
    struct group_metadata_value v;
};

struct fix {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct budget budget;
    struct config *config;
    struct list ready;
    struct now now;
    struct classic *g;
    struct arena records; /* what was stored */
    struct fix_stored stored;
    int stores_n;        /* asked for */
    int open_n;          /* not ended yet */
    int16_t store_error; /* of the next stores; refused: at once */
    bool refuse, hold;   /* hold: the test ends stores by fix_end_store */
    struct list calls;   /* struct fix_call.link, freed at the end */
};

/* ------------------------------------------------------------------ life */

/* The value lives until the next store. */
static inline int16_t fix_store(void *ctx, struct classic *g, struct now now)
{
    struct fix *f = ctx;
    struct buf b;
    f->stores_n++;
    if (f->refuse)
        return f->store_error;
    buf_init(&b);
    arena_reset(&f->records);
    if (classic_record(g, &f->records, &f->stored.v) != ERR_NONE ||
        wire_encode(&msg_group_metadata_value, 3, &f->stored.v, &b) != ERR_NONE) {
        buf_close(&b);
        return K_COORDINATOR_NOT_AVAILABLE;
    }
    uint8_t *copy = arena_alloc(&f->records, b.n);
    if (copy != NULL)
        memcpy(copy, b.p, b.n);
    const enum err e =
        copy == NULL ? ERR_NOMEM
                     : wire_decode(&msg_group_metadata_value, 3, (struct bytes){copy, (int32_t)b.n},
                                   &f->records, &f->stored.v);
    buf_close(&b);
    if (e != ERR_NONE)
        return K_COORDINATOR_NOT_AVAILABLE;
    f->stored.at_ms = now.wall_ms;
    f->open_n++;
    return K_NONE;
}

static inline void fix_set(struct fix *f, const char *key, const char *value)
{
    char message[256];
    CU_ASSERT_EQUAL_FATAL(config_set(f->config, str_of(key), str_of(value), CONFIG_SET, NULL, NULL,
                                     message, sizeof message),
                          ERR_NONE);
}

static inline enum err fix_new_group(struct fix *f)
{
    const struct classic_args args = {
        .env = &f->env.env,
        .timers = &f->timers,
        .budget = &f->budget,
        .config = f->config,
        .seed = 7,
        .ready = &f->ready,
        .events = {f, fix_store},
    };
    return classic_new(&args, STR_LIT("g"), f->now, &f->g);
}

/* Without a group: fix_new_group may follow. */
FIX_UNUSED static void fix_prepare(struct fix *f)
{
    memset(f, 0, sizeof *f);
    memfs_init(&f->fs, 1);
    memenv_init(&f->env, &f->fs, 1);
    timers_init(&f->timers);
    budget_init(&f->budget, NULL, 64 << 20);
    arena_init(&f->records, NULL);
    list_init(&f->ready);
    list_init(&f->calls);
    f->now = (struct now){1000000, 1700000000000};
    CU_ASSERT_EQUAL_FATAL(config_new(&f->config), ERR_NONE);
}

/* The initial delay is one second. */
FIX_UNUSED static void fix_open(struct fix *f)
{
    fix_prepare(f);
    fix_set(f, "group.initial.rebalance.delay.ms", "1000");
    CU_ASSERT_EQUAL_FATAL(fix_new_group(f), ERR_NONE);
}

/* ------------------------------------------------------------------ calls */

/* A Join, Sync or Leave of a client. */
struct fix_call {
    struct list link;
    struct fix *f;
    struct arena arena;
    int done;
    char text[1024]; /* of strings in the request */
    size_t text_n;
    struct classic_join_op join;
    struct join_group_request join_request;
    struct join_group_response joined;
    struct join_group_request_join_group_request_protocol protocols[FIX_PROTOCOLS_MAX];
    struct classic_sync_op sync;
    struct sync_group_request sync_request;
    struct sync_group_response synced;
    struct sync_group_request_sync_group_request_assignment assignments[FIX_MEMBERS_MAX];
    struct classic_leave_op leave;
    struct leave_group_request leave_request;
    struct leave_group_response left;
    struct leave_group_request_member_identity leaving[FIX_MEMBERS_MAX];
};

static inline struct fix_call *fix_call(struct fix *f)
{
    struct fix_call *c = __real_calloc(1, sizeof *c); /* no fault is meant for it */
    CU_ASSERT_FATAL(c != NULL);
    c->f = f;
    arena_init(&c->arena, NULL);
    list_append(&f->calls, &c->link);
    return c;
}

/* What stays as long as the call. */
static inline struct str fix_keep(struct fix_call *c, const char *s)
{
    const struct str from = str_of(s);
    if (from.n < 0)
        return from;
    char *at = c->text + c->text_n;
    CU_ASSERT_FATAL(c->text_n + (size_t)from.n < sizeof c->text);
    memcpy(at, s, (size_t)from.n + 1);
    c->text_n += (size_t)from.n + 1;
    return (struct str){at, from.n};
}

/* Of a Join or Sync nothing stays behind the call. */
static inline void fix_forget_request(struct fix_call *c)
{
    c->join.request = NULL;
    c->sync.request = NULL;
    memset(c->text, '#', sizeof c->text);
    memset(c->protocols, '#', sizeof c->protocols);
    memset(c->assignments, '#', sizeof c->assignments);
}

static inline void fix_join_done(struct group_op *op)
{
    CONTAINER_OF(op, struct fix_call, join.op)->done++;
}

static inline void fix_sync_done(struct group_op *op)
{
    CONTAINER_OF(op, struct fix_call, sync.op)->done++;
}

static inline void fix_leave_done(struct group_op *op)
{
    CONTAINER_OF(op, struct fix_call, leave.op)->done++;
}

/* The oldest store ends. */
FIX_UNUSED static void fix_end_store(struct fix *f, int16_t error)
{
    CU_ASSERT_FATAL(f->open_n > 0);
    f->open_n--;
    classic_stored(f->g, error, f->now);
}

/* What a coordinator does at the end of a turn. */
FIX_UNUSED static void fix_settle(struct fix *f)
{
    struct list *l;
    do {
        while (f->open_n > 0 && !f->hold)
            fix_end_store(f, f->store_error);
        while ((l = list_pop(&f->ready)) != NULL) {
            struct group_op *op = LIST_ENTRY(l, struct group_op, ready);
            op->done(op);
        }
    } while (f->open_n > 0 && !f->hold);
}

/* Time goes on to each deadline on the way. */
FIX_UNUSED static void fix_wait(struct fix *f, int64_t ms)
{
    const int64_t end = f->now.mono_us + ms * 1000;
    for (;;) {
        const int64_t next = timers_next_us(&f->timers);
        const int64_t at = next > end ? end : next;
        if (at > f->now.mono_us) {
            f->now.wall_ms += at / 1000 - f->now.mono_us / 1000;
            f->now.mono_us = at;
        }
        timers_run(&f->timers, f->now.mono_us);
        fix_settle(f);
        if (next > end)
            return;
    }
}

FIX_UNUSED static void fix_close(struct fix *f)
{
    struct list *l;
    if (f->g != NULL) {
        classic_unload(f->g, K_NOT_COORDINATOR);
        f->open_n = 0;
        fix_settle(f);
        classic_free(f->g);
    }
    while ((l = list_pop(&f->calls)) != NULL) {
        struct fix_call *c = LIST_ENTRY(l, struct fix_call, link);
        CU_ASSERT_EQUAL(c->done, 1);
        arena_close(&c->arena);
        free(c);
    }
    CU_ASSERT_EQUAL(f->budget.used_bytes, 0);
    CU_ASSERT_EQUAL(timers_next_us(&f->timers), INT64_MAX);
    CU_ASSERT_EQUAL(f->timers.n, 0);
    arena_close(&f->records);
    config_free(f->config);
    timers_close(&f->timers);
    memenv_close(&f->env);
    memfs_close(&f->fs);
}

/* ------------------------------------------------------------------ requests */

/* Zero: a Join of version 9 by a consumer with "range", sessions of 10 s, rebalances of 60 s. */
struct fix_join {
    const char *id;       /* NULL: "" */
    const char *instance; /* NULL: dynamic */
    const char *client;   /* NULL: "client" */
    const char *type;     /* NULL: "consumer" */
    const char *protocols;
    int32_t session_ms, rebalance_ms;
    int version; /* -1: 0 */
};

static inline int32_t fix_split(const char *text,
                                struct join_group_request_join_group_request_protocol *v)
{
    int32_t n = 0;
    while (*text != '\0') {
        const size_t item = strcspn(text, ",");
        const size_t name = strcspn(text, "=,");
        CU_ASSERT_FATAL(n < FIX_PROTOCOLS_MAX);
        v[n].name = (struct str){text, (int32_t)name};
        v[n].metadata = (struct bytes){(const uint8_t *)text + name + (name < item),
                                       (int32_t)(item - name - (name < item))};
        n++;
        text += item + (text[item] == ',');
    }
    return n;
}

FIX_UNUSED static struct fix_call *fix_begin_join(struct fix *f, const struct fix_join *j)
{
    struct fix_call *c = fix_call(f);
    struct join_group_request *r = &c->join_request;
    wire_default(&wire_join_group_request, r);
    r->group_id = STR_LIT("g");
    r->member_id = j->id == NULL ? STR_LIT("") : fix_keep(c, j->id);
    r->group_instance_id = str_of(j->instance);
    r->protocol_type = str_of(j->type == NULL ? "consumer" : j->type);
    r->session_timeout_ms = j->session_ms == 0 ? 10000 : j->session_ms;
    r->rebalance_timeout_ms = j->rebalance_ms == 0 ? 60000 : j->rebalance_ms;
    r->protocols.v = c->protocols;
    r->protocols.n = fix_split(j->protocols == NULL ? "range=m" : j->protocols, c->protocols);
    c->join = (struct classic_join_op){
        .op.done = fix_join_done,
        .arena = &c->arena,
        .request = r,
        .version = (int16_t)(j->version == 0  ? 9
                             : j->version < 0 ? 0
                                              : j->version),
        .client_id = str_of(j->client == NULL ? "client" : j->client),
        .client_host = STR_LIT("/1.2.3.4"),
        .response = &c->joined,
    };
    classic_join(f->g, &c->join, f->now);
    fix_forget_request(c);
    CU_ASSERT_EQUAL(c->done, 0); /* never inside */
    return c;
}

#define fix_join(f, ...) fix_join_settled(f, &(struct fix_join){__VA_ARGS__})
FIX_UNUSED static struct fix_call *fix_join_settled(struct fix *f, const struct fix_join *j)
{
    struct fix_call *c = fix_begin_join(f, j);
    fix_settle(f);
    return c;
}

/* A new dynamic member's id, from the first of its two Joins. */
FIX_UNUSED static const char *fix_ask_id(struct fix *f)
{
    struct fix_call *c = fix_join(f, .version = 9);
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL(c->joined.error_code, K_MEMBER_ID_REQUIRED);
    return c->joined.member_id.p;
}

/* The id a Join got. */
FIX_UNUSED static const char *fix_id(const struct fix_call *c)
{
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL_FATAL(c->joined.error_code, K_NONE);
    return c->joined.member_id.p;
}

/* assignments: "id=bytes,..." or NULL. */
struct fix_sync {
    const char *id, *instance, *type, *protocol, *assignments;
    int32_t generation;
};

FIX_UNUSED static struct fix_call *fix_begin_sync(struct fix *f, const struct fix_sync *y)
{
    struct fix_call *c = fix_call(f);
    struct sync_group_request *r = &c->sync_request;
    struct join_group_request_join_group_request_protocol parts[FIX_PROTOCOLS_MAX];
    const char *text = y->assignments == NULL ? "" : fix_keep(c, y->assignments).p;
    wire_default(&wire_sync_group_request, r);
    r->member_id = fix_keep(c, y->id);
    r->group_instance_id = str_of(y->instance);
    r->generation_id = y->generation;
    r->protocol_type = str_of(y->type);
    r->protocol_name = str_of(y->protocol);
    r->assignments.v = c->assignments;
    r->assignments.n = fix_split(text, parts);
    for (int32_t i = 0; i < r->assignments.n; i++) {
        c->assignments[i].member_id = parts[i].name;
        c->assignments[i].assignment = parts[i].metadata;
    }
    c->sync = (struct classic_sync_op){
        .op.done = fix_sync_done,
        .arena = &c->arena,
        .request = r,
        .response = &c->synced,
    };
    classic_sync(f->g, &c->sync, f->now);
    fix_forget_request(c);
    CU_ASSERT_EQUAL(c->done, 0);
    return c;
}

#define fix_sync(f, ...) fix_sync_settled(f, &(struct fix_sync){__VA_ARGS__})
FIX_UNUSED static struct fix_call *fix_sync_settled(struct fix *f, const struct fix_sync *y)
{
    struct fix_call *c = fix_begin_sync(f, y);
    fix_settle(f);
    return c;
}

/* id=NULL: ""; reason is not told */
FIX_UNUSED static struct fix_call *fix_leave_many(struct fix *f, int version,
                                                  const char *const (*who)[2], int32_t n)
{
    struct fix_call *c = fix_call(f);
    struct leave_group_request *r = &c->leave_request;
    wire_default(&wire_leave_group_request, r);
    r->members.v = c->leaving;
    for (int32_t i = 0; i < n; i++) {
        wire_default(&wire_leave_group_request_member_identity, &c->leaving[i]);
        c->leaving[i].member_id = who[i][0] == NULL ? STR_LIT("") : fix_keep(c, who[i][0]);
        c->leaving[i].group_instance_id = str_of(who[i][1]);
    }
    if (version <= 2)
        r->member_id = c->leaving[0].member_id;
    else
        r->members.n = n;
    c->leave = (struct classic_leave_op){
        .op.done = fix_leave_done,
        .arena = &c->arena,
        .request = r,
        .version = (int16_t)version,
        .response = &c->left,
    };
    classic_leave(f->g, &c->leave, f->now);
    CU_ASSERT_EQUAL(c->done, 0);
    fix_settle(f);
    return c;
}

FIX_UNUSED static struct fix_call *fix_leave(struct fix *f, const char *id, const char *instance)
{
    const char *const who[1][2] = {{id, instance}};
    return fix_leave_many(f, 5, who, 1);
}

FIX_UNUSED static int16_t fix_heartbeat(struct fix *f, const char *id, int32_t generation)
{
    return classic_heartbeat(f->g, str_of(id), STR_NULL, generation, f->now);
}

/* ------------------------------------------------------------------ whole stories */

/* n dynamic members in generation 1, Completing; the first leads. ids are filled. */
FIX_UNUSED static void fix_completing(struct fix *f, int n, const char **ids)
{
    struct fix_call *c[FIX_MEMBERS_MAX];
    for (int i = 0; i < n; i++)
        ids[i] = fix_ask_id(f);
    for (int i = 0; i < n; i++)
        c[i] = fix_join(f, .id = ids[i]);
    fix_wait(f, n == 1 ? 1000 : 2000);
    for (int i = 0; i < n; i++)
        CU_ASSERT_STRING_EQUAL(fix_id(c[i]), ids[i]);
    CU_ASSERT_EQUAL_FATAL(classic_state(f->g), CLASSIC_COMPLETING);
}

/* The same, Stable: member i has the assignment "a<i>". */
FIX_UNUSED static void fix_stable(struct fix *f, int n, const char **ids)
{
    char text[FIX_MEMBERS_MAX * 64] = "";
    struct fix_call *c[FIX_MEMBERS_MAX];
    fix_completing(f, n, ids);
    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s=a%d", i == 0 ? "" : ",",
                 ids[i], i);
    for (int i = n - 1; i >= 0; i--)
        c[i] = fix_sync(f, .id = ids[i], .generation = 1, .assignments = i == 0 ? text : NULL);
    for (int i = 0; i < n; i++) {
        CU_ASSERT_EQUAL_FATAL(c[i]->done, 1);
        CU_ASSERT_EQUAL_FATAL(c[i]->synced.error_code, K_NONE);
    }
    CU_ASSERT_EQUAL_FATAL(classic_state(f->g), CLASSIC_STABLE);
}

FIX_UNUSED static bool fix_bytes(struct bytes b, const char *text)
{
    return b.n == (int32_t)strlen(text) && (b.n == 0 || memcmp(b.p, text, (size_t)b.n) == 0);
}

FIX_UNUSED static bool fix_str(struct str s, const char *text)
{
    return str_eq(s, str_of(text));
}

#endif
