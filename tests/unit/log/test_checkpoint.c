/* The text files of a log directory. */
#include <stdio.h>

#include "log/path.h"
#include "unit/log/test_log.h"

static enum err read_text(struct memfs *fs, const char *text, struct offset_checkpoint *cp)
{
    memfs_put(fs, "/d/cp", text, strlen(text));
    offset_checkpoint_init(cp);
    return offset_checkpoint_read(&fs->vfs, "/d/cp", cp);
}

static void test_checkpoint_reads_what_kafka_accepts(void)
{
    static const struct {
        const char *text;
        enum err err;
        size_t n;
    } cases[] = {
        {"", ERR_NONE, 0},
        {"0\n", ERR_NONE, 0},
        {"0", ERR_NONE, 0},
        {"0\n0\n", ERR_NONE, 0},
        {"0\n2\na 0 5\nb 1 -7\n", ERR_NONE, 2},
        {"0\r\n1\r\na\t 0   5\r\n", ERR_NONE, 1},
        {"0\n1\na 0 5", ERR_NONE, 1},
        {"1\n0\n", ERR_CORRUPT, 0},
        {"x\n0\n", ERR_CORRUPT, 0},
        {"0\n2\na 0 5\n", ERR_CORRUPT, 0},
        {"0\n1\na 0 5\nb 0 5\n", ERR_CORRUPT, 0},
        {"0\n1\na 0\n", ERR_CORRUPT, 0},
        {"0\n1\na 0 5 6\n", ERR_CORRUPT, 0},
        {"0\n-1\n", ERR_CORRUPT, 0},
        {"0\n1\na 0 x\n", ERR_RANGE, 0},
        {"0\n1\na 0 99999999999999999999\n", ERR_RANGE, 0},
        {"0\n1\na 0 9223372036854775807\n", ERR_NONE, 1},
        {"0\n1\na 0 9223372036854775808\n", ERR_RANGE, 0},
    };
    struct memfs fs;
    memfs_init(&fs, 1);
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct offset_checkpoint cp;
        CU_ASSERT_EQUAL(read_text(&fs, cases[i].text, &cp), cases[i].err);
        if (cases[i].err == ERR_NONE)
            CU_ASSERT_EQUAL(cp.n, cases[i].n);
        offset_checkpoint_close(&cp);
    }
    struct offset_checkpoint cp;
    offset_checkpoint_init(&cp);
    CU_ASSERT_EQUAL(offset_checkpoint_read(&fs.vfs, "/d/none", &cp), ERR_NONE);
    CU_ASSERT_EQUAL(cp.n, 0);
    memfs_close(&fs);
}

static void test_checkpoint_writes_and_survives_crash(void)
{
    struct memfs fs;
    struct rng rng = {3};
    for (int round = 0; round < 50; round++) {
        memfs_init(&fs, (uint64_t)round);
        memfs_put(&fs, "/d/cp", "0\n1\nold 0 1\n", 12);
        struct offset_checkpoint cp;
        offset_checkpoint_init(&cp);
        for (int i = 0; i < 20; i++) {
            char topic[16];
            snprintf(topic, sizeof topic, "t%d", 20 - i);
            MUST(offset_checkpoint_add(&cp, str_of(topic), i, 100 + i));
        }
        CU_ASSERT_EQUAL(offset_checkpoint_get(&cp, STR_LIT("t18"), 2), 102);
        offset_checkpoint_sort(&cp);
        CU_ASSERT_EQUAL(offset_checkpoint_get(&cp, STR_LIT("t18"), 2), 102);
        CU_ASSERT_EQUAL(offset_checkpoint_get(&cp, STR_LIT("t18"), 3), -1);
        memfs_fault_arm(&fs, (struct memfs_fault){.nth = 1 + (long)rng_below(&rng, 6),
                                                  .persistent = true,
                                                  .err = ERR_IO});
        enum err err = offset_checkpoint_write(&fs.disk, "/d", "cp", &cp);
        memfs_fault_hit(&fs);
        memfs_crash(&fs, &rng);
        offset_checkpoint_close(&cp);
        MUST(offset_checkpoint_read(&fs.vfs, "/d/cp", &cp)); /* old or new, never torn */
        CU_ASSERT_TRUE(cp.n == 20 || (cp.n == 1 && err != ERR_NONE));
        offset_checkpoint_close(&cp);
        memfs_close(&fs);
    }
}

static void test_epoch_file(void)
{
    struct memfs fs;
    struct epoch_cache c;
    memfs_init(&fs, 1);
    memfs_mkdirs(&fs, "/p");
    epoch_cache_init(&c);
    MUST(epoch_checkpoint_read(&fs.vfs, "/p", &c));
    CU_ASSERT_EQUAL(c.n, 0);
    MUST(epoch_cache_assign(&c, 3, 7, NULL));
    MUST(epoch_cache_assign(&c, 4, 70, NULL));
    MUST(epoch_checkpoint_write(&fs.disk, "/p", &c));
    size_t n;
    const uint8_t *p = memfs_get(&fs, "/p/leader-epoch-checkpoint", &n);
    CU_ASSERT_TRUE(n == 13 && memcmp(p, "0\n2\n3 7\n4 70\n", 13) == 0);
    epoch_cache_close(&c);
    MUST(epoch_checkpoint_read(&fs.vfs, "/p", &c));
    CU_ASSERT_EQUAL(c.n, 2);
    epoch_cache_close(&c);
    static const char *const bad[] = {"0\n1\n3\n", "0\n1\nx 3\n", "0\n1\n-2 3\n", "0\n1\n2 -3\n",
                                      "2\n0\n"};
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        memfs_put(&fs, "/p/leader-epoch-checkpoint", bad[i], strlen(bad[i]));
        CU_ASSERT_EQUAL(epoch_checkpoint_read(&fs.vfs, "/p", &c), ERR_CORRUPT);
        epoch_cache_close(&c);
    }
    memfs_close(&fs);
}

static void put(struct memfs *fs, const char *path, const char *text)
{
    memfs_put(fs, path, text, strlen(text));
}

static void test_partition_metadata(void)
{
    struct memfs fs;
    struct uuid id;
    memfs_init(&fs, 1);
    memfs_mkdirs(&fs, "/p");
    CU_ASSERT_EQUAL(partition_metadata_read(&fs.vfs, "/p", &id), ERR_NOENT);
    MUST(partition_metadata_begin(&fs.disk, "/p", topic_id));
    MUST(partition_metadata_end(&fs.disk, "/p"));
    MUST(partition_metadata_read(&fs.vfs, "/p", &id));
    CU_ASSERT_TRUE(uuid_eq(id, topic_id));
    size_t n;
    memfs_get(&fs, "/p/partition.metadata", &n);
    CU_ASSERT_EQUAL(n, 43); /* no newline at the end */
    put(&fs, "/p/partition.metadata", "version: 0\ntopic_id: 2YVUzFcnSrqkwhqkIIXhlg\n");
    MUST(partition_metadata_read(&fs.vfs, "/p", &id));
    static const char *const bad[] = {"",
                                      "version: 1\ntopic_id: 2YVUzFcnSrqkwhqkIIXhlg",
                                      "version: 0\ntopic_id: 2YVUzFcnSrqkwhqkIIXhl",
                                      "version: 0\n",
                                      "topic_id: 2YVUzFcnSrqkwhqkIIXhlg",
                                      "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"};
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        put(&fs, "/p/partition.metadata", bad[i]);
        CU_ASSERT_EQUAL(partition_metadata_read(&fs.vfs, "/p", &id), ERR_CORRUPT);
    }
    memfs_close(&fs);
}

static void test_meta_properties(void)
{
    struct memfs fs;
    struct meta_properties m = {.cluster_id = "c-1_X", .node_id = 7, .directory_id = topic_id}, r;
    char message[256];
    memfs_init(&fs, 1);
    memfs_mkdirs(&fs, "/d");
    CU_ASSERT_EQUAL(meta_properties_read(&fs.vfs, "/d", &r, message, sizeof message), ERR_NOENT);
    MUST(meta_properties_begin(&fs.disk, "/d", &m));
    MUST(meta_properties_end(&fs.disk, "/d"));
    MUST(meta_properties_read(&fs.vfs, "/d", &r, message, sizeof message));
    CU_ASSERT_STRING_EQUAL(r.cluster_id, "c-1_X");
    CU_ASSERT_EQUAL(r.node_id, 7);
    CU_ASSERT_TRUE(uuid_eq(r.directory_id, topic_id));
    put(&fs, "/d/meta.properties",
        "#\n#Mon Nov 30\nnode.id = 1\ndirectory.id:981iA-U6uLqcc5NSmdZxYw\nversion=1\n"
        "other=1\ncluster.id=a\\=b");
    MUST(meta_properties_read(&fs.vfs, "/d", &r, message, sizeof message));
    CU_ASSERT_STRING_EQUAL(r.cluster_id, "a=b");
    static const char *const bad[] = {
        "",
        "version=0\ncluster.id=a\nnode.id=1\ndirectory.id=981iA-U6uLqcc5NSmdZxYw\n",
        "version=1\ncluster.id=a\nnode.id=-1\ndirectory.id=981iA-U6uLqcc5NSmdZxYw\n",
        "version=1\ncluster.id=a\nnode.id=1x\ndirectory.id=981iA-U6uLqcc5NSmdZxYw\n",
        "version=1\ncluster.id=a\nnode.id=1\ndirectory.id=981iA\n",
        "version=1\ncluster.id=\nnode.id=1\ndirectory.id=981iA-U6uLqcc5NSmdZxYw\n",
        "version=1\ncluster.id=a\nnode.id=1\n",
    };
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        put(&fs, "/d/meta.properties", bad[i]);
        CU_ASSERT_EQUAL(meta_properties_read(&fs.vfs, "/d", &r, message, sizeof message),
                        ERR_CORRUPT);
        CU_ASSERT_TRUE(strstr(message, "/d/meta.properties") != NULL);
    }
    memfs_close(&fs);
}

static void test_clean_shutdown_marker(void)
{
    struct memfs fs;
    int64_t epoch;
    memfs_init(&fs, 1);
    memfs_mkdirs(&fs, "/d");
    CU_ASSERT_EQUAL(clean_shutdown_read(&fs.vfs, "/d", &epoch), ERR_NOENT);
    MUST(clean_shutdown_write(&fs.disk, "/d", 174));
    size_t n;
    const uint8_t *p = memfs_get(&fs, "/d/.kafka_cleanshutdown", &n);
    CU_ASSERT_TRUE(n == 31 && memcmp(p, "{\"version\":0,\"brokerEpoch\":174}", 31) == 0);
    MUST(clean_shutdown_read(&fs.vfs, "/d", &epoch));
    CU_ASSERT_EQUAL(epoch, 174);
    put(&fs, "/d/.kafka_cleanshutdown", ""); /* of an old version */
    MUST(clean_shutdown_read(&fs.vfs, "/d", &epoch));
    CU_ASSERT_EQUAL(epoch, -1);
    MUST(clean_shutdown_remove(&fs.disk, "/d"));
    MUST(clean_shutdown_remove(&fs.disk, "/d"));
    CU_ASSERT_EQUAL(clean_shutdown_read(&fs.vfs, "/d", &epoch), ERR_NOENT);
    memfs_close(&fs);
}

static void test_names(void)
{
    static const struct {
        const char *name;
        bool ok;
        const char *topic;
        int32_t partition;
    } dirs[] = {{"t-0", true, "t", 0},
                {"a-b.c_d-12", true, "a-b.c_d", 12},
                {"__consumer_offsets-49", true, "__consumer_offsets", 49},
                {"t-2147483647", true, "t", INT32_MAX},
                {"t-2147483648", false, NULL, 0},
                {"-0", false, NULL, 0},
                {"t-", false, NULL, 0},
                {"t", false, NULL, 0},
                {"t-0.0123456789abcdef0123456789abcdef-delete", false, NULL, 0},
                {"t-0.0123456789abcdef0123456789abcdef-stray", false, NULL, 0},
                {"t-x", false, NULL, 0}};
    for (size_t i = 0; i < ARRAY_N(dirs); i++) {
        struct str topic;
        int32_t partition;
        bool ok = partition_dir_parse(dirs[i].name, &topic, &partition);
        CU_ASSERT_EQUAL(ok, dirs[i].ok);
        if (ok)
            CU_ASSERT_TRUE(str_eq(topic, str_of(dirs[i].topic)) && partition == dirs[i].partition);
    }
    int64_t base;
    const char *suffix;
    CU_ASSERT_TRUE(path_parse("00000000000000000042.index", &base, &suffix));
    CU_ASSERT_EQUAL(base, 42);
    CU_ASSERT_STRING_EQUAL(suffix, ".index");
    CU_ASSERT_TRUE(path_parse("09223372036854775807.log.swap", &base, &suffix));
    CU_ASSERT_EQUAL(base, INT64_MAX);
    CU_ASSERT_FALSE(path_parse("09223372036854775808.log", &base, &suffix));
    CU_ASSERT_FALSE(path_parse("10000000000000000000.log", &base, &suffix));
    CU_ASSERT_FALSE(path_parse("0000000000000000004.log", &base, &suffix));
    CU_ASSERT_FALSE(path_parse("leader-epoch-checkpoint", &base, &suffix));

    char path[LOG_PATH_MAX], dir[600] = "/d/";
    MUST(path_aside(path, "/d/t-3", topic_id, SUFFIX_DIR_DELETE));
    CU_ASSERT_STRING_EQUAL(path, "/d/t-3.0102030405060708090a0b0c0d0e0f10-delete");
    memset(dir + 3, 'x', 249);
    strcpy(dir + 3 + 249, "-12345");
    MUST(path_aside(path, dir, topic_id, SUFFIX_DIR_STRAY));
    CU_ASSERT_EQUAL(strlen(path), 3 + 255);
    CU_ASSERT_TRUE(strstr(path, "x-12345.0102") != NULL);
    CU_ASSERT_STRING_EQUAL(path + strlen(path) - 6, "-stray");
    memset(dir + 3 + 249 + 1, '1', 250); /* no number that a partition has */
    CU_ASSERT_EQUAL(path_aside(path, dir, topic_id, SUFFIX_DIR_STRAY), ERR_INVALID);
}

TEST_MAIN(TEST(test_checkpoint_reads_what_kafka_accepts),
          TEST(test_checkpoint_writes_and_survives_crash), TEST(test_epoch_file),
          TEST(test_partition_metadata), TEST(test_meta_properties),
          TEST(test_clean_shutdown_marker), TEST(test_names))
