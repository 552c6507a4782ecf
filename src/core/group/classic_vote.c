/* The vote (groups.md 2): each member votes for the first of its protocols that all members have;
 * most votes win. Kafka breaks a tie by the order of a Java HashMap, which clients may have come to
 * know: sticky before range before roundrobin before cooperative-sticky. So its places are computed
 * here as Java does. Names that share a place stand in the order of their first votes. */
#include "core/group/classic_impl.h"

#include "base/check.h"
#include "core/group/java_string.h"

static struct classic_support *first_choice(const struct classic *g, const struct classic_member *m)
{
    for (size_t i = 0; i < m->protocols->n; i++) {
        struct classic_support *s = map_get_str(&g->supports, m->protocols->v[i].name);
        CHECK(s != NULL);
        if (s->members_n == g->members_n)
            return s;
    }
    return NULL;
}

/* A HashMap of n keys has at least 16 places, and is three quarters full at most. */
static uint32_t places(size_t n)
{
    uint32_t places = 16;
    while (n > places / 4 * 3)
        places *= 2;
    return places;
}

static uint32_t place_of(const struct classic_support *s, uint32_t places_n)
{
    const uint32_t h = (uint32_t)java_hash(s->name);
    return (h ^ h >> 16) & (places_n - 1);
}

static bool wins(const struct classic_support *a, const struct classic_support *b, uint32_t n)
{
    if (a->votes != b->votes)
        return a->votes > b->votes;
    const uint32_t at = place_of(a, n), bt = place_of(b, n);
    return at != bt ? at < bt : a->seen < b->seen;
}

struct classic_support *classic_vote(struct classic *g)
{
    struct list *l, *tmp;
    size_t names_n = 0;
    struct map_entry *e;
    for (e = map_next(&g->supports, NULL); e != NULL; e = map_next(&g->supports, e))
        ((struct classic_support *)map_value(e))->votes = 0;
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_support *s = first_choice(g, LIST_ENTRY(l, struct classic_member, link));
        CHECK(s != NULL); /* a Join that leaves no protocol to all is refused */
        if (s->votes++ == 0)
            s->seen = names_n++;
    }
    const uint32_t n = places(names_n);
    struct classic_support *best = NULL;
    for (e = map_next(&g->supports, NULL); e != NULL; e = map_next(&g->supports, e)) {
        struct classic_support *s = map_value(e);
        if (s->votes > 0 && (best == NULL || wins(s, best, n)))
            best = s;
    }
    CHECK(best != NULL);
    return best;
}
