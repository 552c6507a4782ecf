#include "api/refused_first.h"

#include "core/replica/mentions.h"

struct ordering {
    const struct answer_entry *entries;
    const struct commit_part *parts;
    const struct mention *mentions; /* of each entry: first is the one whose topic it shares */
    int32_t *places; /* by that one: its topic's in the answer, from 1; 0: none yet */
    struct answer_order *out;
};

static bool any_refused(const struct answer_entry *entries, int32_t n,
                        const struct commit_part *parts)
{
    for (int32_t i = 0; i < n; i++) {
        if (entries[i].refused)
            return true;
        for (int32_t k = 0; k < entries[i].parts_n; k++)
            if (parts[k].refused)
                return true;
        parts += entries[i].parts_n;
    }
    return false;
}

static struct mention *find_shared(const struct answer_entry *entries, int32_t n, bool merged,
                                   struct arena *a)
{
    struct mention *m = arena_array(a, (size_t)n, sizeof *m);
    if (m == NULL)
        return NULL;
    for (int32_t i = 0; i < n; i++)
        m[i] = (struct mention){
            .topic = entries[i].name, .topic_id = entries[i].id, .first = (size_t)i};
    return merged && mentions_find(m, (size_t)n, a) != ERR_NONE ? NULL : m;
}

static int32_t topic_of(struct ordering *o, int32_t entry)
{
    int32_t *place = &o->places[o->mentions[entry].first];
    if (*place == 0) {
        o->out->topics[o->out->topics_n].entry = entry;
        *place = ++o->out->topics_n;
    }
    return *place - 1;
}

static void add_parts(struct ordering *o, int32_t entry, const struct commit_part *parts,
                      bool refused)
{
    if (refused && o->entries[entry].refused)
        (void)topic_of(o, entry);
    for (int32_t i = 0; i < o->entries[entry].parts_n; i++) {
        if (parts[i].refused != refused)
            continue;
        const int32_t topic = topic_of(o, entry);
        o->out->topics[topic].parts_n++;
        o->out->parts[o->out->parts_n++] =
            (struct answer_part){topic, (int32_t)(parts + i - o->parts)};
    }
}

bool refused_first(const struct answer_entry *entries, int32_t n, const struct commit_part *parts,
                   struct arena *a, struct answer_order *out)
{
    size_t parts_n = 0;
    for (int32_t i = 0; i < n; i++)
        parts_n += (size_t)entries[i].parts_n;
    *out = (struct answer_order){
        .topics = arena_array(a, (size_t)n, sizeof *out->topics),
        .parts = arena_array(a, parts_n, sizeof *out->parts),
    };
    struct ordering o = {
        .entries = entries,
        .parts = parts,
        .mentions = find_shared(entries, n, any_refused(entries, n, parts), a),
        .places = arena_array(a, (size_t)n, sizeof *o.places),
        .out = out,
    };
    if (out->topics == NULL || out->parts == NULL || o.mentions == NULL || o.places == NULL)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        const struct commit_part *at = parts;
        for (int32_t i = 0; i < n; i++) {
            add_parts(&o, i, at, pass == 0);
            at += entries[i].parts_n;
        }
    }
    return true;
}
