/* The vote on the protocol: votes, candidates, Kafka's order of ties. */
#include "unit/core_group/classic_fixture.h"

/* The protocol that a group of these members gets. */
static struct str elected(const char *const *lists, char out[64])
{
    struct fix f;
    struct fix_call *c = NULL;
    fix_open(&f);
    for (; *lists != NULL; lists++)
        c = fix_join(&f, .version = 3, .protocols = *lists);
    fix_wait(&f, 2000);
    fix_id(c);
    snprintf(out, 64, "%.*s", (int)c->joined.protocol_name.n, c->joined.protocol_name.p);
    fix_close(&f);
    return str_of(out);
}

#define ELECTED(...) elected((const char *const[]){__VA_ARGS__, NULL}, text)

static void test_vote_most_votes_win(void)
{
    char text[64];
    CU_ASSERT(fix_str(ELECTED("b,a"), "b"));
    CU_ASSERT(fix_str(ELECTED("a,b", "b,a", "b,a"), "b"));
    CU_ASSERT(fix_str(ELECTED("a,b", "b,a", "a,b"), "a"));
    CU_ASSERT(
        fix_str(ELECTED("range,roundrobin", "roundrobin,range", "roundrobin,range"), "roundrobin"));
}

/* A member votes for the first that all have. */
static void test_vote_candidates_only(void)
{
    char text[64];
    CU_ASSERT(fix_str(ELECTED("x,a,b", "y,b,a", "z,b,a"), "b"));
    CU_ASSERT(fix_str(ELECTED("x,b", "x,b", "b"), "b"));
}

/* Measured: sticky < range < roundrobin < cooperative-sticky. */
static void test_vote_ties(void)
{
    static const char *const order[] = {"sticky", "range", "roundrobin", "cooperative-sticky"};
    char text[64], ab[64], ba[64];
    for (size_t i = 0; i < ARRAY_N(order); i++) {
        for (size_t k = i + 1; k < ARRAY_N(order); k++) {
            snprintf(ab, sizeof ab, "%s,%s", order[i], order[k]);
            snprintf(ba, sizeof ba, "%s,%s", order[k], order[i]);
            CU_ASSERT(fix_str(ELECTED(ab, ba), order[i]));
            CU_ASSERT(fix_str(ELECTED(ba, ab), order[i]));
        }
    }
    CU_ASSERT(fix_str(ELECTED("cooperative-sticky,range,roundrobin,sticky",
                              "roundrobin,cooperative-sticky,range,sticky",
                              "range,cooperative-sticky,roundrobin,sticky",
                              "sticky,cooperative-sticky,range,roundrobin"),
                      "sticky"));
}

/* "Aa" and "BB" have the same hash: the one voted for first. */
static void test_vote_ties_in_one_place(void)
{
    char text[64];
    CU_ASSERT(fix_str(ELECTED("Aa,BB", "BB,Aa"), "Aa"));
    CU_ASSERT(fix_str(ELECTED("BB,Aa", "Aa,BB"), "BB"));
}

/* From 13 names on Java's table has 32 places: "p" (112) stands behind "a" (97) in 16, where it is
 * 0, and before it no more. */
static void test_vote_ties_of_many_names(void)
{
    static const char names[] = "pabcdefghijklm";
    struct fix f;
    struct fix_call *c = NULL;
    for (size_t n = 12; n <= 13; n++) {
        char list[13][64];
        fix_open(&f);
        for (size_t i = 0; i < n; i++) { /* member i puts name i first */
            list[i][0] = '\0';
            for (size_t k = 0; k < n; k++)
                snprintf(list[i] + strlen(list[i]), 3, "%s%c", k == 0 ? "" : ",",
                         names[(i + k) % n]);
            c = fix_join(&f, .version = 3, .protocols = list[i]);
        }
        fix_wait(&f, 2000);
        fix_id(c);
        CU_ASSERT(fix_str(c->joined.protocol_name, n == 12 ? "p" : "a"));
        fix_close(&f);
    }
}

TEST_MAIN(TEST(test_vote_most_votes_win), TEST(test_vote_candidates_only), TEST(test_vote_ties),
          TEST(test_vote_ties_in_one_place), TEST(test_vote_ties_of_many_names))
