/* Arbitrary records of __consumer_offsets, as a shard loads them: offsets, classic groups, groups
 * of other kinds, transactions and their ends, in any order. Each begins with a byte that says in
 * what batch it is and of which producer, then the lengths of key and value (0xffff: a tombstone).
 *
 * What holds: they are understood or refused, within a budget; what becomes of them can be
 * described, and written and read again to the same; sessions end; all memory comes back. */
#include "base/check.h"
#include "base/endian.h"
#include "core/group/offsets.h"
#include "wire/record.h"

#define BUDGET_BYTES (8u << 20)
#define HEAD_BYTES 5
#define NULL_LENGTH 0xffff
#define HOUR_US (INT64_C(3600) * 1000 * 1000)

enum kind { KIND_PLAIN, KIND_TRANSACTIONAL, KIND_ABORT, KIND_COMMIT };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ------------------------------------------------------------------ a coordinator without logs */

static void random_bytes(struct env *e, void *p, size_t n)
{
    (void)e;
    memset(p, 7, n);
}

static void no_log(struct env *e, enum log_level level, const char *line)
{
    (void)e;
    (void)level;
    (void)line;
}

struct coordinator {
    struct env env;
    struct timers timers;
    struct budget budget;
    struct image image;
    struct now now;
    struct groups *gs;
    struct shard *sh;
    uint64_t least_bytes; /* used without a record */
};

static const struct config *default_config(void)
{
    static struct config *c;
    CHECK(c != NULL || config_new(&c) == ERR_NONE);
    return c;
}

static void open(struct coordinator *c)
{
    memset(c, 0, sizeof *c);
    c->env = (struct env){.random = random_bytes, .log = no_log};
    c->now = (struct now){1000000, 1700000000000};
    timers_init(&c->timers);
    budget_init(&c->budget, NULL, BUDGET_BYTES);
    image_init(&c->image, 3);
    const struct groups_args args = {
        .env = &c->env,
        .timers = &c->timers,
        .budget = &c->budget,
        .config = default_config(),
        .image = &c->image,
        .node_id = 1,
        .seed = 7,
    };
    CHECK(groups_new(&args, &c->gs) == ERR_NONE);
    CHECK(groups_start(c->gs, c->now) == ERR_NONE);
    c->sh = &c->gs->shards[0];
    c->sh->state = SHARD_LOADING;
    c->least_bytes = c->budget.used_bytes;
}

static void close(struct coordinator *c)
{
    shard_unload_now(c->sh);
    CHECK(c->budget.used_bytes == c->least_bytes);
    groups_close(c->gs, c->now);
    CHECK(c->budget.used_bytes == 0);
    groups_free(c->gs);
    image_close(&c->image);
    timers_close(&c->timers);
}

/* ------------------------------------------------------------------ records */

static struct bytes take(struct bytes *in, uint16_t length)
{
    if (length == NULL_LENGTH)
        return BYTES_NULL;
    const int32_t n = length < in->n ? length : in->n;
    const struct bytes out = {in->p, n};
    in->p += n;
    in->n -= n;
    return out;
}

static enum err replay(struct coordinator *c, enum kind kind, int64_t producer_id, int64_t offset,
                       struct bytes key, struct bytes value)
{
    static const uint8_t markers[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 1}};
    struct batch_builder *bb;
    struct bytes bytes;
    struct batch b;
    const bool plain = kind == KIND_PLAIN;
    const bool marker = kind == KIND_ABORT || kind == KIND_COMMIT;
    const struct batch_builder_args args = {
        .base_offset = offset,
        .leader_epoch = -1,
        .attributes = (int16_t)((plain ? 0 : BATCH_TRANSACTIONAL) | (marker ? BATCH_CONTROL : 0)),
        .producer_id = plain ? -1 : producer_id,
        .producer_epoch = plain ? -1 : 0,
        .base_sequence = -1,
    };
    if (marker)
        key = (struct bytes){markers[kind == KIND_COMMIT], sizeof markers[0]};
    CHECK(batch_builder_new(&args, &bb) == ERR_NONE);
    CHECK(batch_builder_add(bb, c->now.wall_ms, key, value, NULL, 0) == ERR_NONE);
    CHECK(batch_builder_finish(bb, &bytes) == ERR_NONE);
    CHECK(batch_take(&bytes, &b) == ERR_NONE);
    const enum err e = replay_batch(c->sh, &b);
    batch_builder_free(bb);
    CHECK(e == ERR_NONE || e == ERR_CORRUPT || e == ERR_NOMEM);
    return e;
}

static enum err replay_all(struct coordinator *c, struct bytes in)
{
    enum err e = ERR_NONE;
    for (int64_t offset = 0; in.n >= HEAD_BYTES && e == ERR_NONE; offset++) {
        const uint8_t *head = in.p;
        in.p += HEAD_BYTES;
        in.n -= HEAD_BYTES;
        const struct bytes key = take(&in, be16(head + 1)), value = take(&in, be16(head + 3));
        e = replay(c, (enum kind)(head[0] & 3), head[0] >> 2 & 3, offset, key, value);
    }
    return e;
}

/* ------------------------------------------------------------------ what became of them */

static struct buf encode(const struct group_metadata_value *v)
{
    struct buf out = {0};
    CHECK(wire_encode(&msg_group_metadata_value, 4, v, &out) == ERR_NONE);
    return out;
}

/* The record of a group as it is, and of that which this record makes. */
static void check_record(struct classic *g)
{
    struct group_metadata_value v, again;
    struct arena a;
    arena_init(&a, NULL);
    CHECK(classic_record(g, &a, &v) == ERR_NONE);
    struct buf first = encode(&v);
    CHECK(wire_decode(&msg_group_metadata_value, 4, (struct bytes){first.p, (int32_t)first.n}, &a,
                      &again) == ERR_NONE);
    const enum err e = classic_load(g, &again);
    CHECK(e == ERR_NONE || e == ERR_NOMEM);
    if (e == ERR_NONE && classic_record(g, &a, &v) == ERR_NONE) {
        struct buf second = encode(&v);
        CHECK(first.n == second.n && memcmp(first.p, second.p, first.n) == 0);
        buf_close(&second);
    }
    buf_close(&first);
    arena_close(&a);
}

static void check_group(struct coordinator *c, struct group *g)
{
    struct describe_groups_response_described_group described;
    struct classic_topics topics;
    struct arena a;
    arena_init(&a, NULL);
    wire_default(&wire_describe_groups_response_described_group, &described);
    if (group_kind(g) == GROUP_CLASSIC) {
        struct classic *classic = g->life->classic;
        CHECK(classic_describe(classic, &a, &described) == ERR_NONE);
        CHECK(classic_subscriptions(classic, &a, &topics) == ERR_NONE);
        for (int32_t i = 0; i < described.members.n; i++)
            CHECK(classic_heartbeat(classic, described.members.v[i].member_id, STR_NULL,
                                    classic_generation(classic), c->now) != K_UNKNOWN_MEMBER_ID);
        check_record(classic);
    }
    arena_close(&a);
}

static bool load_groups(struct coordinator *c)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->sh->order)
    {
        const enum err e = load_membership(LIST_ENTRY(l, struct group, link)->life, c->now);
        CHECK(e == ERR_NONE || e == ERR_CORRUPT || e == ERR_NOMEM);
        if (e != ERR_NONE)
            return false;
    }
    return true;
}

static void look(struct coordinator *c)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->sh->order)
    check_group(c, LIST_ENTRY(l, struct group, link));
    c->sh->unloading = true; /* nothing can be written */
    for (int i = 0; i < 4; i++) {
        c->now.mono_us += HOUR_US;
        c->now.wall_ms += HOUR_US / 1000;
        timers_run(&c->timers, c->now.mono_us);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct coordinator c;
    open(&c);
    if (replay_all(&c, (struct bytes){data, (int32_t)size}) == ERR_NONE && load_groups(&c))
        look(&c);
    close(&c);
    return 0;
}
