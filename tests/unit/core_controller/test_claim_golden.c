/* The controller against the log that Apache Kafka 4.4.0 wrote: given the same events at the same
 * place it must write the same records, byte for byte. Kafka's order among partitions hangs on its
 * hash tables, so runs of records are compared sorted. */
#include "fake_raft.h"
#include "support/golden_dirs.h"

/* All records of the clean log by offset; value n < 0: a control record. */
struct golden {
    uint8_t *bytes;
    size_t n;
    struct bytes values[512];
    int64_t end;
};

static void golden_open(struct golden *g)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/clean/__cluster_metadata-0/00000000000000000000.log",
             golden_dirs());
    *g = (struct golden){0};
    g->bytes = test_read_file(path, &g->n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g->bytes);
    struct batch b;
    size_t at = 0;
    while (at < g->n &&
           batch_parse((struct bytes){g->bytes + at, (int32_t)(g->n - at)}, &b) == ERR_NONE) {
        struct record_reader *reader;
        struct record r;
        bool end = false;
        CU_ASSERT_EQUAL_FATAL(record_reader_new(&b, 1 << 20, &reader), ERR_NONE);
        while (record_reader_next(reader, &r, &end) == ERR_NONE && !end) {
            CU_ASSERT_FATAL(r.offset < (int64_t)ARRAY_N(g->values));
            g->values[r.offset] = b.attributes & BATCH_CONTROL ? BYTES_NULL : r.value;
            g->end = r.offset + 1;
        }
        record_reader_free(reader);
        at += b.size_bytes;
    }
}

/* Commits Kafka's batches up to the one that begins at `offset`. */
static void golden_load(const struct golden *g, struct fixture *f, int64_t offset)
{
    struct batch b;
    size_t at = 0;
    while (at < g->n &&
           batch_parse((struct bytes){g->bytes + at, (int32_t)(g->n - at)}, &b) == ERR_NONE) {
        if (b.base_offset >= offset)
            break;
        CU_ASSERT_EQUAL_FATAL(loader_committed(f->loader, &b), ERR_NONE);
        at += b.size_bytes;
    }
    CU_ASSERT_EQUAL_FATAL(f->image.next_offset, offset);
}

static int compare(const void *a, const void *b)
{
    const struct bytes *x = a, *y = b;
    return str_cmp((struct str){(const char *)x->p, x->n}, (struct str){(const char *)y->p, y->n});
}

static void print(const char *who, struct bytes framed)
{
    struct arena a;
    struct buf text;
    int16_t type, version;
    void *record;
    arena_init(&a, NULL);
    buf_init(&text);
    if (record_decode(framed, &a, &type, &version, &record) == ERR_NONE &&
        wire_print(wire_find(WIRE_RECORD, type), version, record, &text) == ERR_NONE)
        fprintf(stderr, "%s %d/%d %.*s\n", who, type, version, (int)text.n, (const char *)text.p);
    buf_close(&text);
    arena_close(&a);
}

/* Our records at [from, to) equal Kafka's; NoOps are left out there. */
static bool same_records(const struct golden *g, const struct fixture *f, int64_t from, int64_t to)
{
    struct bytes theirs[512], ours[512];
    int theirs_n = 0, ours_n = 0;
    for (int64_t i = from; i < to; i++) {
        int16_t type, version;
        if (record_peek(g->values[i], &type, &version) == ERR_NONE && type != RECORD_NO_OP)
            theirs[theirs_n++] = g->values[i];
    }
    const int64_t base = f->raft.base;
    for (int64_t i = from; i < to && i - base < (int64_t)f->raft.records.n; i++) {
        struct bytes r = record_list_get(&f->raft.records, (size_t)(i - base));
        int16_t type, version;
        if (record_peek(r, &type, &version) == ERR_NONE && type != RECORD_NO_OP)
            ours[ours_n++] = r;
    }
    qsort(theirs, (size_t)theirs_n, sizeof theirs[0], compare);
    qsort(ours, (size_t)ours_n, sizeof ours[0], compare);
    bool same = theirs_n == ours_n;
    for (int i = 0; same && i < ours_n; i++)
        same = compare(&theirs[i], &ours[i]) == 0;
    for (int i = 0; !same && i < theirs_n; i++)
        print("kafka", theirs[i]);
    for (int i = 0; !same && i < ours_n; i++)
        print("ours ", ours[i]);
    return same;
}

/* NoOps that Kafka wrote meanwhile, up to offset. */
static void skip_to(struct fixture *f, int64_t offset)
{
    const struct no_op_record r = {0};
    while (f->raft.base + (int64_t)f->raft.records.n < offset)
        CU_ASSERT_EQUAL_FATAL(record_list_add(&f->raft.records, &msg_no_op_record, 0, &r),
                              ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(f->raft.base + (int64_t)f->raft.records.n, offset);
    fixture_commit(f);
}

/* Kafka's own registration, as its request must have been. */
static int64_t register_as(const struct golden *g, struct fixture *f, int64_t offset,
                           int64_t previous_epoch)
{
    int16_t type, version;
    void *record;
    CU_ASSERT_EQUAL_FATAL(record_decode(g->values[offset], &f->arena, &type, &version, &record),
                          ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(type, RECORD_REGISTER_BROKER);
    const struct register_broker_record *r = record;
    struct broker_registration_request req = fixture_registration(f, r->broker_id, 0);
    req.incarnation_id = r->incarnation_id;
    req.previous_broker_epoch = previous_epoch;
    req.incarnation_id.b[0] ^= previous_epoch >= 0; /* one that Kafka did not go on with */
    req.rack = r->rack;
    req.log_dirs.v = r->log_dirs.v;
    req.log_dirs.n = r->log_dirs.n;
    req.features.v =
        wire_array(&wire_broker_registration_request_feature, &f->arena, (size_t)r->features.n);
    req.features.n = r->features.n;
    for (int32_t i = 0; i < r->features.n; i++)
        req.features.v[i] = (struct broker_registration_request_feature){
            r->features.v[i].name, r->features.v[i].min_supported_version,
            r->features.v[i].max_supported_version};
    int64_t epoch;
    CU_ASSERT_EQUAL_FATAL(fixture_register(f, &req, &epoch), K_NONE);
    return epoch;
}

static void test_claim_golden_bootstrap(void)
{
    struct golden g;
    struct fixture f;
    golden_open(&g);
    fixture_init(&f);
    golden_load(&g, &f, 1); /* the epoch's LeaderChange */
    fixture_start(&f);
    fixture_claim(&f);
    CU_ASSERT_EQUAL(f.raft.records.n, 9);
    for (int64_t i = 1; i < 10; i++) { /* in this order too */
        const struct bytes ours = record_list_get(&f.raft.records, (size_t)i - 1);
        CU_ASSERT_EQUAL(compare(&ours, &g.values[i]), 0);
    }
    CU_ASSERT_EQUAL(image_metadata_version(&f.image), 33);

    /* the broker's first life */
    skip_to(&f, 11);
    CU_ASSERT_EQUAL(register_as(&g, &f, 11, -1), 11);
    CU_ASSERT_TRUE(same_records(&g, &f, 11, 12));
    skip_to(&f, 13);
    CU_ASSERT_FALSE(fixture_beat(&f, 1, 11, false, false).is_fenced);
    CU_ASSERT_TRUE(same_records(&g, &f, 13, 14));
    fixture_close(&f);
    free(g.bytes);
}

/* kill -9; the session of the dead incarnation lapses; it restarts having lost its state; then it
 * stops cleanly. */
static void test_claim_golden_killed_broker(void)
{
    struct golden g;
    struct fixture f;
    struct broker_heartbeat_request beat;
    struct broker_heartbeat_response resp;
    golden_open(&g);
    fixture_init(&f);
    golden_load(&g, &f, 151);
    fixture_start(&f);
    fixture_claim(&f);
    CU_ASSERT_EQUAL(f.raft.records.n, 0); /* nothing to bootstrap */
    fixture_pass(&f, 8999);
    CU_ASSERT_EQUAL(f.raft.records.n, 0);
    fixture_pass(&f, 1);
    CU_ASSERT_TRUE(same_records(&g, &f, 151, 170));
    CU_ASSERT_TRUE(image_broker(&f.image, 1)->fenced);

    skip_to(&f, 174);
    CU_ASSERT_EQUAL(register_as(&g, &f, 192, -1), 174);
    CU_ASSERT_TRUE(same_records(&g, &f, 174, 193));

    wire_default(&wire_broker_heartbeat_request, &beat);
    beat.broker_id = 1;
    beat.broker_epoch = 174;
    beat.current_metadata_offset = 191;
    beat.cordoned_log_dirs.n = -1;
    CU_ASSERT_EQUAL(fixture_heartbeat(&f, &beat, &resp), K_NONE);
    CU_ASSERT_TRUE(resp.is_fenced); /* has not applied its registration */
    CU_ASSERT_FALSE(resp.is_caught_up);
    beat.current_metadata_offset = 192;
    beat.cordoned_log_dirs.n = 0;
    CU_ASSERT_EQUAL(fixture_heartbeat(&f, &beat, &resp), K_NONE);
    CU_ASSERT_FALSE(resp.is_fenced);
    CU_ASSERT_TRUE(same_records(&g, &f, 193, 213));
    CU_ASSERT_EQUAL(f.image.next_offset, 213);

    skip_to(&f, 219);
    CU_ASSERT_FALSE(fixture_beat(&f, 1, 174, false, true).should_shut_down);
    CU_ASSERT_TRUE(same_records(&g, &f, 219, 238));
    resp = fixture_beat(&f, 1, 174, false, true);
    CU_ASSERT_TRUE(resp.should_shut_down);
    CU_ASSERT_TRUE(resp.is_fenced);
    CU_ASSERT_TRUE(same_records(&g, &f, 238, 239));
    fixture_close(&f);
    free(g.bytes);
}

/* A clean restart of that: the ELR leads, without loss. */
static void test_claim_golden_clean_restart(void)
{
    struct golden g;
    struct fixture f;
    golden_open(&g);
    fixture_init(&f);
    golden_load(&g, &f, g.end);
    fixture_start(&f);
    fixture_claim(&f);
    const int32_t before = fixture_partition(&f, "g-txn", 1)->leader_epoch;
    const int64_t epoch = register_as(&g, &f, 192, 174);
    CU_ASSERT_EQUAL(epoch, g.end); /* no clean-up: the first record is the registration */
    CU_ASSERT_FALSE(fixture_beat(&f, 1, epoch, false, false).is_fenced);
    const struct image_partition *p = fixture_partition(&f, "g-txn", 1);
    CU_ASSERT_EQUAL(p->leader, 1);
    CU_ASSERT_EQUAL(p->leader_epoch, before + 1);
    CU_ASSERT_EQUAL(p->isr_n, 1);
    CU_ASSERT_EQUAL(p->elr_n, 0);
    CU_ASSERT_EQUAL(p->last_known_elr_n, 0);
    fixture_close(&f);
    free(g.bytes);
}

/* Our own short cut: after kill -9 of the whole node its broker need not wait for the session of
 * the broker that died with it. Every partition gets its leader back. */
static void test_claim_golden_killed_node(void)
{
    struct golden g;
    struct fixture f;
    golden_open(&g);
    fixture_init(&f);
    golden_load(&g, &f, 133); /* the killed state: registered, unfenced */
    fixture_start(&f);
    fixture_claim(&f);
    CU_ASSERT_FALSE(image_broker(&f.image, 1)->fenced);
    const int64_t epoch = register_as(&g, &f, 192, -1);
    CU_ASSERT_EQUAL(epoch, 133);
    CU_ASSERT_TRUE(image_broker(&f.image, 1)->fenced);
    const struct image_partition *p = fixture_partition(&f, "g-none", 0);
    CU_ASSERT_EQUAL(p->leader, -1);
    CU_ASSERT_EQUAL(p->isr_n, 0);
    CU_ASSERT_EQUAL(p->elr_n, 0);
    CU_ASSERT_EQUAL(p->last_known_elr_n, 1);
    CU_ASSERT_FALSE(fixture_beat(&f, 1, epoch, false, false).is_fenced);
    const struct map_entry *e = NULL;
    int partitions = 0;
    while ((e = map_next(&f.image.topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        for (int32_t i = 0; i < t->partitions_n; i++, partitions++) {
            CU_ASSERT_EQUAL(t->partitions[i].leader, 1);
            CU_ASSERT_EQUAL(t->partitions[i].leader_epoch, 2);
            CU_ASSERT_EQUAL(t->partitions[i].leader_recovery_state, 1);
        }
    }
    CU_ASSERT_EQUAL(partitions, 18);
    fixture_close(&f);
    free(g.bytes);
}

TEST_MAIN(TEST(test_claim_golden_bootstrap), TEST(test_claim_golden_killed_broker),
          TEST(test_claim_golden_clean_restart), TEST(test_claim_golden_killed_node))
