#include "core/security/authorize.h"
#include "support/test.h"

static bool allowed(const struct config *c)
{
    struct authorizer a;
    authorizer_init(&a, c);
    return authorize(&a, STR_LIT("User:ANONYMOUS"), ACL_WRITE, ACL_TOPIC, STR_LIT("t"));
}

static void test_authorize_without_an_authorizer(void)
{
    struct config *c;
    char message[256];
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    CU_ASSERT_TRUE(allowed(c));
    CU_ASSERT_EQUAL(config_set(c, STR_LIT("authorizer.class.name"), STR_LIT("some.Authorizer"),
                               CONFIG_SET, NULL, NULL, message, sizeof message),
                    ERR_NONE);
    CU_ASSERT_FALSE(allowed(c)); /* what cannot be asked allows nothing */
    config_free(c);
}

TEST_MAIN(TEST(test_authorize_without_an_authorizer))
