/* Where the replicas of new partitions go. Brokers stand in one order, racks taking turns in it;
 * the leaders of successive partitions are successive brokers, and the followers of a partition
 * follow its leader at a distance that grows with each round, so that the brokers of one leader's
 * followers differ. Racks not used yet come first, fenced brokers last. Start and distance are
 * random, so that small topics do not all begin at the same broker. */
#include "base/check.h"
#include "core/controller/inside.h"

bool placement_cordoned(const struct image_broker *b)
{
    return b->cordoned_log_dirs_n > 0 && b->cordoned_log_dirs_n >= b->log_dirs_n;
}

static bool same_rack(const struct image_broker *a, const struct image_broker *b)
{
    if (a->rack == NULL || b->rack == NULL)
        return a->rack == b->rack;
    return strcmp(a->rack, b->rack) == 0;
}

/* By id: the order of registration shall not matter. */
static void sort(const struct image_broker **v, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        const struct image_broker *b = v[i];
        int32_t at = i;
        for (; at > 0 && v[at - 1]->id > b->id; at--)
            v[at] = v[at - 1];
        v[at] = b;
    }
}

static void number_racks(struct placement *p)
{
    for (int32_t i = 0; i < p->usable_n; i++) {
        int32_t j = 0;
        while (!same_rack(p->order[j], p->order[i]))
            j++;
        p->rack[i] = j < i ? p->rack[j] : p->racks_n++;
    }
}

/* Lets the racks of [from, to) take turns: the next is always of the next rack that has one left.
 */
static void alternate(struct placement *p, int32_t from, int32_t to)
{
    int32_t turn = 0;
    for (int32_t i = from; i < to; i++, turn++) {
        int32_t found = -1;
        for (int32_t k = 0; found < 0 && k < p->racks_n; k++)
            for (int32_t j = i; found < 0 && j < to; j++)
                if (p->rack[j] == (turn + k) % p->racks_n)
                    found = j;
        const struct image_broker *b = p->order[found];
        const int32_t rack = p->rack[found];
        turn = rack;
        for (; found > i; found--) {
            p->order[found] = p->order[found - 1];
            p->rack[found] = p->rack[found - 1];
        }
        p->order[i] = b;
        p->rack[i] = rack;
    }
}

enum err placement_open(struct controller *c, struct placement *p)
{
    const size_t most = c->ahead.brokers.n;
    *p = (struct placement){.start = env_random_u64(c->env), .shift = env_random_u64(c->env)};
    p->order = arena_array(&c->scratch, most, sizeof(void *));
    p->rack = arena_array(&c->scratch, most, sizeof *p->rack);
    p->chosen = arena_array(&c->scratch, most, sizeof *p->chosen);
    if (p->order == NULL || p->rack == NULL || p->chosen == NULL)
        return ERR_NOMEM;
    for (int fenced = 0; fenced < 2; fenced++) {
        const struct map_entry *e = NULL;
        while ((e = map_next(&c->ahead.brokers, e)) != NULL) {
            const struct image_broker *b = map_value(e);
            if (b->fenced == (fenced == 1) && !placement_cordoned(b))
                p->order[p->usable_n++] = b;
        }
        if (!fenced)
            p->unfenced_n = p->usable_n;
    }
    sort(p->order, p->unfenced_n);
    sort(p->order + p->unfenced_n, p->usable_n - p->unfenced_n);
    number_racks(p);
    alternate(p, 0, p->unfenced_n);
    alternate(p, p->unfenced_n, p->usable_n);
    return ERR_NONE;
}

/* Is the i-th broker (or, with fresh, its rack) among the chosen? */
static bool taken(const struct placement *p, int32_t chosen_n, int32_t i, bool fresh)
{
    for (int32_t j = 0; j < chosen_n; j++)
        if (p->chosen[j] == i || (fresh && p->rack[p->chosen[j]] == p->rack[i]))
            return true;
    return false;
}

/* One pass over [from, from + n) of the order, beginning at `at`, for brokers not yet chosen; with
 * fresh, only of racks not in use. */
static int32_t pass(const struct placement *p, int32_t from, int32_t n, uint64_t at, bool fresh,
                    int32_t rf, int32_t chosen_n)
{
    for (int32_t k = 0; k < n && chosen_n < rf; k++) {
        const int32_t i = from + (int32_t)((at + (uint64_t)k) % (uint64_t)n);
        if (!taken(p, chosen_n, i, fresh))
            p->chosen[chosen_n++] = i;
    }
    return chosen_n;
}

void placement_partition(const struct placement *p, int32_t index, int32_t rf, int32_t *replicas)
{
    const int32_t n = p->unfenced_n, rest = p->usable_n - n;
    const uint64_t lead = (p->start % (uint64_t)p->usable_n) + (uint64_t)index;
    int32_t chosen_n = 0;
    if (n > 0) {
        const uint64_t round = p->shift % (uint64_t)n + (uint64_t)(index / n);
        const uint64_t next = lead + 1 + (n > 1 ? round % (uint64_t)(n - 1) : 0);
        chosen_n = pass(p, 0, n, lead, false, 1, chosen_n);
        chosen_n = pass(p, 0, n, next, true, rf, chosen_n);
        chosen_n = pass(p, 0, n, next, false, rf, chosen_n);
    }
    if (rest > 0)
        chosen_n = pass(p, n, rest, lead, false, rf, chosen_n);
    CHECK(chosen_n == rf);
    for (int32_t i = 0; i < rf; i++)
        replicas[i] = p->order[p->chosen[i]]->id;
}
