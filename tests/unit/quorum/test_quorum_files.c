/* voters, quorum-state, control records, snapshot files: our bytes and Apache Kafka's. */
#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"
#include "quorum/control.h"
#include "quorum/quorum_state.h"
#include "quorum/raft.h"
#include "quorum/snapshot.h"
#include "support/fault.h"
#include "support/golden_dirs.h"
#include "support/memfs.h"
#include "support/test.h"

static struct memfs fs;

static void begin(void)
{
    memfs_init(&fs, 1);
    memfs_mkdirs(&fs, "/m");
}

static void end(void)
{
    memfs_close(&fs);
}

/* ------------------------------------------------------------------ voters */

static void test_voters_parse(void)
{
    struct voter_set s;
    CU_ASSERT_EQUAL_FATAL(voter_set_parse(STR_LIT("1@host:9093,2@[::1]:9094"), &s), ERR_NONE);
    CU_ASSERT_EQUAL(s.n, 2);
    CU_ASSERT_EQUAL(s.v[0].id, 1);
    CU_ASSERT_STRING_EQUAL(s.v[0].host, "host");
    CU_ASSERT_EQUAL(s.v[0].port, 9093);
    CU_ASSERT_STRING_EQUAL(s.v[1].host, "::1");
    static const char *const bad[] = {
        "",      "1",    "1@",        "1@:1",        "@h:1",
        "x@h:1", "1@h:", "1@h:65536", "1@h:1,1@g:2", "99999999999@h:1"};
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT_EQUAL(voter_set_parse(str_of(bad[i]), &s), ERR_INVALID);
}

static void test_voters_match_by_directory(void)
{
    const struct uuid a = {{1}}, b = {{2}}, none = {{0}};
    struct voter_set s = {.n = 2, .v = {{.id = 1, .directory_id = a}, {.id = 2}}};
    CU_ASSERT_PTR_EQUAL(voter_set_find(&s, 1, a), &s.v[0]);
    CU_ASSERT_PTR_NULL(voter_set_find(&s, 1, b));
    CU_ASSERT_PTR_NULL(voter_set_find(&s, 1, none));
    CU_ASSERT_PTR_EQUAL(voter_set_find(&s, 2, b), &s.v[1]); /* an entry without one matches any */
    CU_ASSERT_PTR_NULL(voter_set_find(&s, 3, a));
}

/* ------------------------------------------------------------------ quorum-state */

static void test_quorum_state_is_kafkas_line(void)
{
    static const char v0[] =
        "{\"clusterId\":\"\",\"leaderId\":1,\"leaderEpoch\":2,\"votedId\":-1,\"appliedOffset\":0,"
        "\"currentVoters\":[{\"voterId\":1},{\"voterId\":2}],\"data_version\":0}";
    static const char v1[] =
        "{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\"votedDirectoryId\":"
        "\"AAAAAAAAAAAAAAAAAAAAAA\",\"data_version\":1}";
    const struct quorum_state s0 = {
        .leader_id = 1, .epoch = 2, .voted_id = -1, .voters = {1, 2}, .voters_n = 2};
    const struct quorum_state s1 = {.data_version = 1, .leader_id = 1, .epoch = 1, .voted_id = -1};
    struct quorum_state got;
    size_t n;
    begin();
    CU_ASSERT_EQUAL(quorum_state_read(&fs.vfs, "/m", &got), ERR_NOENT);
    CU_ASSERT_EQUAL(quorum_state_write(&fs.disk, "/m", &s0), ERR_NONE);
    const uint8_t *p = memfs_get(&fs, "/m/quorum-state", &n);
    CU_ASSERT(n == sizeof v0 - 1 && memcmp(p, v0, n) == 0);
    CU_ASSERT_EQUAL(quorum_state_read(&fs.vfs, "/m", &got), ERR_NONE);
    CU_ASSERT(got.voters_n == 2 && got.voters[1] == 2 && got.epoch == 2 && got.leader_id == 1);
    CU_ASSERT_EQUAL(quorum_state_write(&fs.disk, "/m", &s1), ERR_NONE);
    p = memfs_get(&fs, "/m/quorum-state", &n);
    CU_ASSERT(n == sizeof v1 - 1 && memcmp(p, v1, n) == 0);
    CU_ASSERT_EQUAL(quorum_state_read(&fs.vfs, "/m", &got), ERR_NONE);
    CU_ASSERT(got.data_version == 1 && got.voted_id == -1 && uuid_is_zero(got.voted_directory_id));
    end();
}

#define DIRECTORY "\"votedDirectoryId\":\"AAAAAAAAAAAAAAAAAAAAAA\","

static void test_quorum_state_refuses_damage(void)
{
    static const struct {
        const char *text;
        enum err err;
    } cases[] = {
        {"", ERR_CORRUPT},
        {"{}", ERR_CORRUPT},
        {"{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\"data_version\":2}", ERR_UNSUPPORTED},
        {"{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\"data_version\":1}", ERR_CORRUPT},
        {"{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\"data_version\":0}", ERR_CORRUPT},
        {"{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\"x\":{\"y\":[\"}\",{}]},\"data_"
         "version\":2}",
         ERR_UNSUPPORTED}, /* newer, with more in it */
        {"{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\"x\":0," DIRECTORY
         "\"data_version\":1}",
         ERR_CORRUPT},
        {"{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1," DIRECTORY "\"data_version\":1}x",
         ERR_CORRUPT},
        {"{\"leaderId\":1,\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1," DIRECTORY
         "\"data_version\":1}",
         ERR_CORRUPT},
        {"{\"leaderId\":1,\"leaderEpoch\":1.5,\"votedId\":-1," DIRECTORY "\"data_version\":1}",
         ERR_CORRUPT},
        {"{\"leaderId\":-2,\"leaderEpoch\":1,\"votedId\":-1," DIRECTORY "\"data_version\":1}",
         ERR_CORRUPT},
        {"{\"leaderId\":1,\"leaderEpoch\":-1,\"votedId\":-1," DIRECTORY "\"data_version\":1}",
         ERR_CORRUPT},
        {"{\"leaderId\":1,\"leaderEpoch\":01,\"votedId\":-1," DIRECTORY "\"data_version\":1}",
         ERR_CORRUPT},
        {"{\"leaderId\":x,\"leaderEpoch\":1,\"votedId\":-1,\"data_version\":0}", ERR_CORRUPT},
        {"{\"leaderId\":99999999999,\"leaderEpoch\":1,\"votedId\":-1,\"currentVoters\":[],"
         "\"data_version\":0}",
         ERR_CORRUPT},
    };
    struct quorum_state got;
    begin();
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        memfs_put(&fs, "/m/quorum-state", cases[i].text, strlen(cases[i].text));
        CU_ASSERT_EQUAL(quorum_state_read(&fs.vfs, "/m", &got), cases[i].err);
    }
    end();
}

/* Other spacing and order; every shorter line is refused. */
static void test_quorum_state_is_read_whole(void)
{
    static const char text[] = "{ \"data_version\" : 1,\n\"votedId\":7, " DIRECTORY
                               "\"leaderId\":-1 ,\"leaderEpoch\": 2147483647 }";
    struct quorum_state got;
    begin();
    memfs_put(&fs, "/m/quorum-state", text, sizeof text - 1);
    CU_ASSERT_EQUAL(quorum_state_read(&fs.vfs, "/m", &got), ERR_NONE);
    CU_ASSERT(got.voted_id == 7 && got.leader_id == -1 && got.epoch == INT32_MAX);
    for (size_t n = 0; n < sizeof text - 1; n++) {
        memfs_put(&fs, "/m/quorum-state", text, n);
        CU_ASSERT_EQUAL(quorum_state_read(&fs.vfs, "/m", &got), ERR_CORRUPT);
    }
    end();
}

static void test_quorum_state_of_kafka(void)
{
    char dir[512];
    struct quorum_state got;
    begin();
    snprintf(dir, sizeof dir, "%s/clean/__cluster_metadata-0", golden_dirs());
    memfs_import(&fs, dir, "/m");
    CU_ASSERT_EQUAL(quorum_state_read(&fs.vfs, "/m", &got), ERR_NONE);
    CU_ASSERT(got.data_version == 0 && got.leader_id == 1 && got.epoch == 2 && got.voted_id == -1);
    CU_ASSERT(got.voters_n == 1 && got.voters[0] == 1);
    end();
}

/* ------------------------------------------------------------------ snapshots */

static void test_snapshot_names(void)
{
    char name[SNAPSHOT_NAME_MAX];
    struct snapshot_id id;
    snapshot_name((struct snapshot_id){1234, 7}, name);
    CU_ASSERT_STRING_EQUAL(name, "00000000000000001234-0000000007.checkpoint");
    CU_ASSERT(snapshot_name_parse(name, &id) && id.offset == 1234 && id.epoch == 7);
    static const char *const bad[] = {"00000000000000001234-0000000007.checkpoint.part",
                                      "1234-7.checkpoint",
                                      "00000000000000001234.snapshot",
                                      "0000000000000000123x-0000000007.checkpoint",
                                      "99999999999999999999-0000000007.checkpoint",
                                      "00000000000000001234-9999999999.checkpoint"};
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT_FALSE(snapshot_name_parse(bad[i], &id));
}

/* The 0-0 snapshot as Apache Kafka's `format --standalone` wrote it, byte for byte. */
static void test_snapshot_of_standalone_format_is_kafkas(void)
{
    static const struct {
        const char *name;
        uint8_t level;
    } features[] = {{"metadata.version", 33}, {"eligible.leader.replicas.version", 1},
                    {"group.version", 1},     {"share.version", 2},
                    {"streams.version", 1},   {"transaction.version", 2}};
    uint8_t framed[ARRAY_N(features)][64];
    struct bytes records[ARRAY_N(features)];
    size_t kafka_n, n;
    uint8_t *kafka = test_read_file(test_golden("quorum/standalone-0-0.checkpoint"), &kafka_n);
    struct raft_format f = {
        .node_id = 1,
        .endpoint = {STR_LIT("CONTROLLER"), STR_LIT("127.0.0.1"), 9093},
        .records = records,
        .records_n = ARRAY_N(features),
        .now = {.wall_ms = 0x01a22afe5f03}, /* the log time in Kafka's header record */
    };
    for (size_t i = 0; i < ARRAY_N(features); i++) {
        uint8_t *p = framed[i];
        const size_t k = strlen(features[i].name);
        memcpy(p, "\x01\x0c\x00", 3);
        p[3] = (uint8_t)(k + 1);
        memcpy(p + 4, features[i].name, k);
        put_be16(p + 4 + k, features[i].level);
        p[6 + k] = 0;
        records[i] = (struct bytes){p, (int32_t)(7 + k)};
    }
    begin();
    CU_ASSERT_PTR_NOT_NULL_FATAL(kafka);
    CU_ASSERT(uuid_parse(STR_LIT("ReZ0zZCPS8aSHld_rKAfQQ"), &f.directory_id));
    CU_ASSERT_EQUAL(raft_format_standalone(&fs.disk, "/m/x", &f), ERR_NONE);
    const uint8_t *p = memfs_get(&fs, "/m/x/00000000000000000000-0000000000.checkpoint", &n);
    CU_ASSERT_EQUAL_FATAL(n, kafka_n);
    /* times and the CRCs over them differ, nothing else */
    size_t differ = 0;
    for (size_t at = 0; at < n;) {
        const size_t size = 12 + be32(p + at + 8);
        for (size_t i = 0; i < size; i++)
            if (!(i >= 17 && i < 21) && !(i >= 27 && i < 43))
                differ += p[at + i] != kafka[at + i];
        at += size;
    }
    CU_ASSERT_EQUAL(differ, 0);
    free(kafka);
    end();
}

static void test_snapshot_reads_back_and_refuses_damage(void)
{
    static const struct bytes records[] = {{(const uint8_t *)"one", 3},
                                           {(const uint8_t *)"two", 3}};
    const struct voter_set voters = {.n = 1, .v = {{.id = 1, .host = "h", .listener = "L"}}};
    const struct snapshot_content c = {.id = {40, 3},
                                       .timestamp = 5,
                                       .kraft_version = 1,
                                       .voters = &voters,
                                       .records = records,
                                       .records_n = 2};
    struct buf built, got;
    begin();
    buf_init(&built);
    buf_init(&got);
    CU_ASSERT_EQUAL_FATAL(snapshot_build(&c, &built), ERR_NONE);
    CU_ASSERT_EQUAL(snapshot_write(&fs.disk, "/m", c.id, built.p, built.n), ERR_NONE);
    CU_ASSERT_EQUAL(snapshot_read(&fs.vfs, "/m", c.id, &got), ERR_NONE);
    CU_ASSERT(got.n == built.n && memcmp(got.p, built.p, got.n) == 0);
    struct batch b;
    int16_t version = 0;
    struct voter_set read = {.n = 0};
    bool has = false;
    CU_ASSERT_EQUAL(batch_parse((struct bytes){built.p, (int32_t)built.n}, &b), ERR_NONE);
    CU_ASSERT_EQUAL(control_read(&b, &version, &read, &has), ERR_NONE);
    CU_ASSERT(version == 1 && has && read.n == 1 && strcmp(read.v[0].host, "h") == 0);
    for (size_t i = 17; i < be32(built.p + 8) + 12; i++) { /* under the first batch's CRC */
        built.p[i] ^= 0x10;
        memfs_put(&fs, "/m/00000000000000000040-0000000003.checkpoint", built.p, built.n);
        built.p[i] ^= 0x10;
        got.n = 0;
        CU_ASSERT_EQUAL(snapshot_read(&fs.vfs, "/m", c.id, &got), ERR_CORRUPT);
    }
    for (size_t cut = 0; cut < built.n; cut++) {
        memfs_put(&fs, "/m/00000000000000000040-0000000003.checkpoint", built.p, cut);
        got.n = 0;
        CU_ASSERT_EQUAL(snapshot_read(&fs.vfs, "/m", c.id, &got), ERR_CORRUPT);
    }
    buf_close(&built);
    buf_close(&got);
    end();
}

/* A crash at any operation leaves no snapshot or a whole one. */
static void test_snapshot_write_is_atomic(void)
{
    static const struct bytes records[] = {{(const uint8_t *)"one", 3}};
    const struct snapshot_content c = {
        .id = {40, 3}, .timestamp = 5, .records = records, .records_n = 1};
    struct buf built, got;
    struct rng rng = {1};
    buf_init(&built);
    buf_init(&got);
    CU_ASSERT_EQUAL_FATAL(snapshot_build(&c, &built), ERR_NONE);
    for (int round = 0; round < 50; round++) {
        for (long nth = 1;; nth++) {
            begin();
            memfs_fault_arm(&fs,
                            (struct memfs_fault){.nth = nth, .err = ERR_IO, .persistent = true});
            const enum err e = snapshot_write(&fs.disk, "/m", c.id, built.p, built.n);
            const bool hit = memfs_fault_hit(&fs);
            memfs_crash(&fs, &rng);
            got.n = 0;
            const enum err r = snapshot_read(&fs.vfs, "/m", c.id, &got);
            CU_ASSERT(r == ERR_NONE || r == ERR_NOENT);
            CU_ASSERT(e != ERR_NONE || r == ERR_NONE);
            end();
            if (!hit)
                break;
        }
    }
    buf_close(&built);
    buf_close(&got);
}

TEST_MAIN(TEST(test_voters_parse), TEST(test_voters_match_by_directory),
          TEST(test_quorum_state_is_kafkas_line), TEST(test_quorum_state_refuses_damage),
          TEST(test_quorum_state_is_read_whole), TEST(test_quorum_state_of_kafka),
          TEST(test_snapshot_names), TEST(test_snapshot_of_standalone_format_is_kafkas),
          TEST(test_snapshot_reads_back_and_refuses_damage), TEST(test_snapshot_write_is_atomic))
