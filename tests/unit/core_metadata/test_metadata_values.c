/* Small things: fresh ids, errors for clients. */
#include "core/metadata/image.h"
#include "core/metadata/kafka_error.h"
#include "core/metadata/random_uuid.h"
#include "support/rng.h"
#include "support/test.h"

static struct rng rng = {5};
static int dashes;

/* Every second id would begin with '-' (a first byte of 0xf8 to 0xfb). */
static void random_bytes(struct env *e, void *p, size_t n)
{
    (void)e;
    rng_fill(&rng, p, n);
    if (dashes++ % 2 == 0)
        *(uint8_t *)p = 0xf8;
}

static void test_uuid_random(void)
{
    struct env env = {.random = random_bytes};
    for (int i = 0; i < 1000; i++) {
        char text[UUID_TEXT_N + 1];
        const struct uuid id = uuid_random(&env);
        uuid_print(id, text);
        CU_ASSERT(text[0] != '-');
        CU_ASSERT_EQUAL(id.b[6] & 0xf0, 0x40);
        CU_ASSERT_EQUAL(id.b[8] & 0xc0, 0x80);
        CU_ASSERT_FALSE(image_directory_reserved(id));
    }
}

static void test_kafka_error_of(void)
{
    static const struct {
        enum err e;
        int16_t code;
    } cases[] = {
        {ERR_NONE, K_NONE},
        {ERR_NOSPC, K_KAFKA_STORAGE_ERROR},
        {ERR_IO, K_KAFKA_STORAGE_ERROR},
        {ERR_OFFLINE, K_KAFKA_STORAGE_ERROR},
        {ERR_CORRUPT, K_CORRUPT_MESSAGE},
        {ERR_RANGE, K_OFFSET_OUT_OF_RANGE},
        {ERR_TOO_LARGE, K_MESSAGE_TOO_LARGE},
        {ERR_NOMEM, K_UNKNOWN_SERVER_ERROR},
        {ERR_TIMEOUT, K_REQUEST_TIMED_OUT},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++)
        CU_ASSERT_EQUAL(kafka_error_of(cases[i].e), cases[i].code);
    for (int e = ERR_NONE + 1; e < ERR_MAX; e++)
        CU_ASSERT(kafka_error_of((enum err)e) != K_NONE);
}

TEST_MAIN(TEST(test_uuid_random), TEST(test_kafka_error_of))
