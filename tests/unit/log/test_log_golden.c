/* Directories that Apache Kafka wrote: every partition loads, after the clean stop and after the
 * kill, reads back byte for byte, and what recovery rebuilds equals what Kafka itself left. */
#include <dirent.h>
#include <stdio.h>

#include "log/log_impl.h"
#include "support/golden_dirs.h"
#include "unit/log/test_log.h"

static const char *const partitions[] = {
    "g-compact-0",
    "g-deleted-records-0",
    "g-empty-0",
    "g-gzip-0",
    "g-headers-0",
    "g-idempotent-0",
    "g-logappend-0",
    "g-lz4-0",
    "g-none-0",
    "g-segments-0",
    "g-snappy-0",
    "g-txn-0",
    "g-txn-1",
    "g-zstd-0",
    "__consumer_offsets-0",
    "__consumer_offsets-1",
    "__transaction_state-0",
    "__transaction_state-1",
    "__cluster_metadata-0",
};

/* ------------------------------------------------------------------ the dump tool's view */

struct dumped {
    int64_t base, last;
    int32_t epoch, size;
};

struct dump {
    char *text;
    struct dumped *v;
    size_t n;
};

/* The batches of a partition, of all its segments. */
static void dump_open(struct dump *d, const char *state, const char *partition)
{
    char path[512];
    size_t n;
    snprintf(path, sizeof path, "%s/%s.dump.txt", golden_dirs(), state);
    uint8_t *bytes = test_read_file(path, &n);
    *d = (struct dump){.text = calloc(1, n + 1), .v = calloc(n / 100 + 1, sizeof *d->v)};
    memcpy(d->text, bytes, n);
    free(bytes);
    bool ours = false;
    for (char *line = strtok(d->text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        size_t name_n = strlen(partition);
        if (strncmp(line, "== ", 3) == 0)
            ours = strncmp(line + 3, partition, name_n) == 0 && line[3 + name_n] == '/';
        long long base, last;
        int epoch, size;
        if (!ours || sscanf(line, "baseOffset: %lld lastOffset: %lld", &base, &last) != 2)
            continue;
        const char *e = strstr(line, "partitionLeaderEpoch: "), *s = strstr(line, " size: ");
        if (e == NULL || s == NULL || sscanf(e, "partitionLeaderEpoch: %d", &epoch) != 1 ||
            sscanf(s, " size: %d", &size) != 1)
            continue;
        d->v[d->n++] = (struct dumped){base, last, epoch, size};
    }
}

static void dump_close(struct dump *d)
{
    free(d->text);
    free(d->v);
}

/* ------------------------------------------------------------------ reading back */

struct walk {
    const struct dump *dump;
    size_t at;
    struct buf bytes;
};

static void step(void *ctx, const struct batch *b)
{
    struct walk *w = ctx;
    CU_ASSERT_FATAL(w->at < w->dump->n);
    const struct dumped *d = &w->dump->v[w->at++];
    CU_ASSERT_EQUAL(b->base_offset, d->base);
    CU_ASSERT_EQUAL(batch_last_offset(b), d->last);
    CU_ASSERT_EQUAL(b->leader_epoch, d->epoch);
    CU_ASSERT_EQUAL((int64_t)b->size_bytes, d->size);
    MUST(buf_append(&w->bytes, b->p, b->size_bytes));
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);
    return n >= s && strcmp(name + n - s, suffix) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The files of a golden partition with a suffix, in order. */
static int list(const char *state, const char *partition, struct dirent ***out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", golden_dirs(), state, partition);
    return scandir(path, out, NULL, by_name);
}

static uint8_t *golden_file(const char *state, const char *partition, const char *name, size_t *n)
{
    char path[800];
    snprintf(path, sizeof path, "%s/%s/%s/%s", golden_dirs(), state, partition, name);
    return test_read_file(path, n);
}

static void check_reads_back(struct bench *b, const char *state, const char *partition)
{
    struct dump dump;
    dump_open(&dump, state, partition);
    struct walk w = {.dump = &dump};
    buf_init(&w.bytes);
    struct dirent **names;
    int n = list(state, partition, &names);
    int64_t from = dump.n > 0 && dump.v[0].base > log_start_offset(b->log)
                       ? dump.v[0].base
                       : log_start_offset(b->log);
    MUST(bench_each(b, from, 3000, step, &w));
    CU_ASSERT_EQUAL(w.at, dump.n);
    if (dump.n > 0)
        CU_ASSERT_EQUAL(log_end_offset(b->log), dump.v[dump.n - 1].last + 1);
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (has_suffix(names[i]->d_name, ".log")) {
            size_t size;
            uint8_t *p = golden_file(state, partition, names[i]->d_name, &size);
            CU_ASSERT_FATAL(at + size <= w.bytes.n);
            CU_ASSERT_TRUE(size == 0 || memcmp(w.bytes.p + at, p, size) == 0);
            at += size;
            free(p);
        }
        free(names[i]);
    }
    free(names);
    CU_ASSERT_EQUAL(at, w.bytes.n);
    buf_close(&w.bytes);
    dump_close(&dump);
}

/* The producers in memory are those of the snapshot that Kafka took at the clean stop. */
static void check_producers(struct bench *b, const char *partition)
{
    char name[64];
    size_t n = 0;
    struct buf ours;
    buf_init(&ours);
    MUST(producer_snapshot_encode(&b->log->s.producers, &ours));
    if (log_end_offset(b->log) > 0 && strcmp(partition, "__cluster_metadata-0") != 0) {
        snprintf(name, sizeof name, "%020lld.snapshot", (long long)log_end_offset(b->log));
        uint8_t *theirs = golden_file("clean", partition, name, &n);
        CU_ASSERT_EQUAL(n, ours.n);
        CU_ASSERT_TRUE(n == ours.n && memcmp(theirs, ours.p, n) == 0);
        free(theirs);
    }
    buf_close(&ours);
}

static struct log_checkpoints checkpoints_of(const char *state, const char *partition)
{
    static const char *const files[] = {"recovery-point-offset-checkpoint",
                                        "log-start-offset-checkpoint"};
    int64_t found[2];
    struct str topic;
    int32_t number;
    CU_ASSERT_TRUE_FATAL(partition_dir_parse(partition, &topic, &number));
    for (int i = 0; i < 2; i++) {
        char path[512];
        size_t n;
        struct memfs fs;
        struct offset_checkpoint cp;
        snprintf(path, sizeof path, "%s/%s/%s", golden_dirs(), state, files[i]);
        uint8_t *p = test_read_file(path, &n);
        memfs_init(&fs, 1);
        memfs_put(&fs, "/cp", p, n);
        offset_checkpoint_init(&cp);
        MUST(offset_checkpoint_read(&fs.vfs, "/cp", &cp));
        found[i] = offset_checkpoint_get(&cp, topic, number);
        offset_checkpoint_close(&cp);
        memfs_close(&fs);
        free(p);
    }
    return (struct log_checkpoints){strcmp(state, "clean") == 0, found[0] < 0 ? 0 : found[0],
                                    found[1]};
}

static void import(struct bench *b, const char *state, const char *partition)
{
    char path[512];
    bench_init(b, 11);
    b->now.wall_ms = 1700000001000; /* nobody has expired */
    snprintf(path, sizeof path, "%s/%s/%s", golden_dirs(), state, partition);
    memfs_import(&b->fs, path, DIR_NAME);
    b->config.compacted = strncmp(partition, "g-compact", 9) == 0;
    b->config.segment_index_bytes = 65536;
}

static enum err load(struct bench *b, struct log_checkpoints cp)
{
    struct log_load ll = {.args = bench_args(b), .checkpoints = cp, .done = bench_load_done};
    ll.args.topic_id = (struct uuid){{0}}; /* the one on disk */
    log_load_start(&ll);
    bench_settle(b);
    b->recovered_bytes = ll.recovered_bytes;
    b->truncated_bytes = ll.truncated_bytes;
    enum err err = ll.err;
    if (err != ERR_NONE)
        fprintf(stderr, "%s\n", ll.message);
    else
        err = log_open(&ll, &b->log);
    log_load_close(&ll);
    return err;
}

static void test_golden_clean_loads(void)
{
    for (size_t i = 0; i < ARRAY_N(partitions); i++) {
        struct bench b;
        import(&b, "clean", partitions[i]);
        struct log_checkpoints cp = checkpoints_of("clean", partitions[i]);
        MUST(load(&b, cp));
        CU_ASSERT_EQUAL(b.truncated_bytes, 0);
        if (strcmp(partitions[i], "__cluster_metadata-0") != 0) {
            CU_ASSERT_EQUAL(b.recovered_bytes, 0);
            CU_ASSERT_EQUAL(log_end_offset(b.log), cp.recovery_point);
            CU_ASSERT_FALSE(uuid_is_zero(log_topic_id(b.log)));
        }
        CU_ASSERT_EQUAL(log_start_offset(b.log), cp.log_start > 0 ? cp.log_start : 0);
        check_producers(&b, partitions[i]);
        check_reads_back(&b, "clean", partitions[i]);
        bench_close(&b);
    }
}

static void test_golden_killed_recovers(void)
{
    for (size_t i = 0; i < ARRAY_N(partitions); i++) {
        struct bench b;
        import(&b, "killed", partitions[i]);
        struct log_checkpoints cp = checkpoints_of("killed", partitions[i]);
        MUST(load(&b, cp));
        CU_ASSERT_EQUAL(b.truncated_bytes, 0);
        CU_ASSERT_EQUAL(log_start_offset(b.log), cp.log_start > 0 ? cp.log_start : 0);
        CU_ASSERT_EQUAL(log_flushed_end(b.log), cp.recovery_point > log_start_offset(b.log)
                                                    ? cp.recovery_point
                                                    : log_start_offset(b.log));
        check_producers(&b, partitions[i]);
        check_reads_back(&b, "killed", partitions[i]);
        bench_close(&b);
    }
}

/* Files that must be what Kafka left when it stopped. */
static void check_files(struct bench *b, const char *partition, bool logs)
{
    static const char *const suffixes[] = {
        ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", ".log"};
    struct dirent **names;
    int n = list("clean", partition, &names);
    for (int i = 0; i < n; i++) {
        bool wanted = false;
        for (size_t k = 0; k < ARRAY_N(suffixes) - (logs ? 0 : 1); k++)
            wanted = wanted || has_suffix(names[i]->d_name, suffixes[k]);
        if (wanted) {
            char path[512];
            size_t theirs_n, ours_n = 0;
            uint8_t *theirs = golden_file("clean", partition, names[i]->d_name, &theirs_n);
            snprintf(path, sizeof path, DIR_NAME "/%s", names[i]->d_name);
            const uint8_t *ours = memfs_get(&b->fs, path, &ours_n);
            bool equal = ours != NULL && ours_n == theirs_n &&
                         (ours_n == 0 || memcmp(ours, theirs, ours_n) == 0);
            if (!equal)
                fprintf(stderr, "%s/%s differs: %zu, Kafka %zu bytes\n", partition,
                        names[i]->d_name, ours_n, theirs_n);
            CU_ASSERT_TRUE(equal);
            free(theirs);
        }
        free(names[i]);
    }
    free(names);
}

/* Kafka's broker has led anew since: its elections. */
static void elect_as_kafka(struct bench *b, const char *partition)
{
    size_t n;
    struct memfs fs;
    struct epoch_cache epochs;
    uint8_t *p = golden_file("clean", partition, "leader-epoch-checkpoint", &n);
    memfs_init(&fs, 1);
    memfs_put(&fs, "/p/leader-epoch-checkpoint", p, n);
    epoch_cache_init(&epochs);
    MUST(epoch_checkpoint_read(&fs.vfs, "/p", &epochs));
    for (size_t i = 0; i < epochs.n; i++) {
        if (epochs.v[i].epoch > epoch_cache_latest(log_epochs(b->log)))
            MUST(log_assign_epoch(b->log, epochs.v[i].epoch, epochs.v[i].start_offset));
    }
    epoch_cache_close(&epochs);
    memfs_close(&fs);
    free(p);
}

/* All is lost but the .log files and the epochs; a clean close then leaves Kafka's own files. */
static void test_golden_rebuilt_files_are_kafkas(void)
{
    for (size_t i = 0; i < ARRAY_N(partitions); i++) {
        if (strcmp(partitions[i], "g-compact-0") == 0 || partitions[i][2] == 'c' ||
            strcmp(partitions[i], "g-deleted-records-0") == 0)
            continue; /* compaction and DeleteRecords leave other traces */
        struct bench b;
        import(&b, "killed", partitions[i]);
        MUST(load(&b, (struct log_checkpoints){false, 0, -1}));
        elect_as_kafka(&b, partitions[i]);
        MUST(bench_close_log(&b, true, false));
        check_files(&b, partitions[i], true);
        bench_close(&b);
    }
}

struct feed {
    struct bench *b;
};

static void feed_batch(void *ctx, const struct batch *batch)
{
    struct bench *b = ((struct feed *)ctx)->b;
    size_t n;
    MUST(log_stage_follower(b->log, (struct bytes){batch->p, (int32_t)batch->size_bytes}, INT32_MAX,
                            b->now, &n));
    CU_ASSERT_EQUAL(n, batch->size_bytes);
    enum err err = log_write(b->log, b->now);
    if (err == ERR_AGAIN) {
        bench_settle(b);
        err = log_write(b->log, b->now);
    }
    MUST(err);
}

/* The same batches appended to a fresh log give the same files. */
static void test_golden_appended_files_are_kafkas(void)
{
    static const struct {
        const char *partition;
        int32_t segment_bytes;
    } cases[] = {{"g-segments-0", 1 << 20},
                 {"g-none-0", 1 << 20},
                 {"g-idempotent-0", 1 << 20},
                 {"g-logappend-0", 1 << 20}};
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct bench from, to;
        import(&from, "clean", cases[i].partition);
        MUST(load(&from, checkpoints_of("clean", cases[i].partition)));
        bench_init(&to, 12);
        to.config.segment_bytes = cases[i].segment_bytes;
        to.config.segment_index_bytes = 65536;
        MUST(bench_new(&to));
        struct feed feed = {&to};
        MUST(bench_each(&from, 0, 1 << 20, feed_batch, &feed));
        elect_as_kafka(&to, cases[i].partition);
        MUST(bench_close_log(&to, true, false));
        check_files(&to, cases[i].partition, true);
        bench_close(&to);
        bench_close(&from);
    }
}

static void test_golden_transactions(void)
{
    for (int killed = 0; killed < 2; killed++) {
        struct bench b;
        struct arena a;
        const char *state = killed ? "killed" : "clean";
        arena_init(&a, NULL);
        import(&b, state, "g-txn-0");
        MUST(load(&b, checkpoints_of(state, "g-txn-0")));
        CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 13), 12); /* one is open from 12 on */
        CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 5), 5);
        struct log_span span;
        struct log_aborted *v;
        int32_t n;
        MUST(log_read(b.log, 2, 12, 1 << 20, true, &span));
        MUST(log_aborted_in(b.log, 2, &span, &a, &v, &n));
        CU_ASSERT_EQUAL_FATAL(n, 2);
        CU_ASSERT_EQUAL(v[0].producer_id, 1);
        CU_ASSERT_EQUAL(v[0].first_offset, 3);
        CU_ASSERT_EQUAL(v[1].first_offset, 9);
        MUST(log_read(b.log, 6, 12, 1 << 20, true, &span));
        MUST(log_aborted_in(b.log, 6, &span, &a, &v, &n));
        CU_ASSERT_EQUAL_FATAL(n, 1);
        CU_ASSERT_EQUAL(v[0].first_offset, 9);
        bench_close(&b);
        arena_close(&a);
    }
}

TEST_MAIN(TEST(test_golden_clean_loads), TEST(test_golden_killed_recovers),
          TEST(test_golden_rebuilt_files_are_kafkas), TEST(test_golden_appended_files_are_kafkas),
          TEST(test_golden_transactions))
