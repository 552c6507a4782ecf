/* What a claim appends (Kafka's ActivationRecordsGenerator). Without a metadata.version in the log
 * the cluster is fresh: its feature levels come from the 0-0 snapshot that formatting wrote
 * (KAFKA-19648), or are those of a fresh 4.4. They go in as one transaction, so that a crash in the
 * middle leaves nothing half done; the next claim aborts it and begins again. */
#include <stdlib.h>

#include "core/controller/inside.h"
#include "core/metadata/features.h"

enum { LEVELS_MAX = 64, RECORD_MAX_BYTES = 8 << 20 };

struct bootstrap {
    struct feature_level_record levels[LEVELS_MAX];
    int levels_n;
    struct record_list *others; /* SCRAM credentials and the like, as they are */
};

static enum err take_record(struct controller *c, struct bootstrap *b, struct bytes framed)
{
    int16_t type, version;
    void *record;
    enum err e = record_decode(framed, &c->scratch, &type, &version, &record);
    if (e != ERR_NONE)
        return e;
    if (type != RECORD_FEATURE_LEVEL)
        return record_list_add_framed(b->others, framed);
    if (b->levels_n == LEVELS_MAX)
        return ERR_TOO_LARGE;
    b->levels[b->levels_n++] = *(struct feature_level_record *)record;
    return ERR_NONE;
}

static enum err take_batch(struct controller *c, struct bootstrap *b, const struct batch *batch)
{
    struct record_reader *reader;
    if (batch->attributes & BATCH_CONTROL)
        return ERR_NONE;
    enum err e = record_reader_new(batch, RECORD_MAX_BYTES, &reader);
    if (e != ERR_NONE)
        return e;
    for (;;) {
        struct record r;
        bool end = false;
        e = record_reader_next(reader, &r, &end);
        if (e != ERR_NONE || end)
            break;
        e = take_record(c, b, r.value);
        if (e != ERR_NONE)
            break;
    }
    record_reader_free(reader);
    return e;
}

static enum err take_format(struct controller *c, struct bootstrap *b)
{
    struct bytes in = raft_bootstrap_records(c->raft);
    while (in.n > 0) {
        struct batch batch;
        enum err e = batch_take(&in, &batch);
        if (e == ERR_NONE)
            e = take_batch(c, b, &batch);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

static const struct feature_level_record *find_level(const struct bootstrap *b, const char *name)
{
    for (int i = 0; i < b->levels_n; i++)
        if (str_eq(b->levels[i].name, str_of(name)))
            return &b->levels[i];
    return NULL;
}

static void take_fresh(struct bootstrap *b)
{
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    b->levels_n = 0;
    for (size_t i = 0; i < n; i++)
        if (ranges[i].fresh > 0)
            b->levels[b->levels_n++] =
                (struct feature_level_record){str_of(ranges[i].name), ranges[i].fresh};
}

/* metadata.version first, then by name. */
static int compare_levels(const void *a, const void *b)
{
    const struct feature_level_record *x = a, *y = b;
    const struct str first = STR_LIT("metadata.version");
    const bool x_first = str_eq(x->name, first), y_first = str_eq(y->name, first);
    if (x_first != y_first)
        return x_first ? -1 : 1;
    return str_cmp(x->name, y->name);
}

/* With ELR every topic's min ISR must not change unseen: the configured one becomes the cluster's
 * own (KIP-966). */
static enum err add_min_isr(struct controller *c, struct record_list *rl)
{
    const struct config_record r = {CONFIG_RESOURCE_BROKER, STR_LIT(""),
                                    STR_LIT("min.insync.replicas"),
                                    str_of(config_text(c->config, "min.insync.replicas"))};
    return record_list_add(rl, &msg_config_record, 0, &r);
}

static enum err add_all(struct controller *c, const struct bootstrap *b, struct record_list *rl)
{
    const struct begin_transaction_record begin = {STR_LIT("Bootstrap records")};
    const struct end_transaction_record end = {0};
    const struct feature_level_record *elr = find_level(b, "eligible.leader.replicas.version");
    const bool transaction = b->levels[0].feature_level >= METADATA_VERSION_TRANSACTIONS;
    enum err e = ERR_NONE;
    if (transaction)
        e = record_list_add(rl, &msg_begin_transaction_record, 0, &begin);
    for (int i = 0; e == ERR_NONE && i < b->levels_n; i++)
        e = record_list_add(rl, &msg_feature_level_record, 0, &b->levels[i]);
    for (size_t i = 0; e == ERR_NONE && i < b->others->n; i++)
        e = record_list_add_framed(rl, record_list_get(b->others, i));
    if (e == ERR_NONE && elr != NULL && elr->feature_level > 0)
        e = add_min_isr(c, rl);
    if (e == ERR_NONE && transaction)
        e = record_list_add(rl, &msg_end_transaction_record, 0, &end);
    return e;
}

static enum err add_bootstrap(struct controller *c, struct record_list *rl)
{
    struct record_list others;
    struct bootstrap b = {.others = &others};
    record_list_init(&others);
    enum err e = take_format(c, &b);
    if (e == ERR_NONE && find_level(&b, "metadata.version") == NULL)
        take_fresh(&b);
    if (e == ERR_NONE) {
        qsort(b.levels, (size_t)b.levels_n, sizeof b.levels[0], compare_levels);
        e = add_all(c, &b, rl);
    }
    record_list_close(&others);
    return e;
}

enum err controller_activation_records(struct controller *c, struct record_list *rl)
{
    if (c->ahead.in_transaction) {
        const struct abort_transaction_record r = {
            STR_LIT("the transaction was not ended by the controller that began it")};
        enum err e = record_list_add(rl, &msg_abort_transaction_record, 0, &r);
        if (e != ERR_NONE)
            return e;
    }
    return image_metadata_version(&c->ahead) > 0 ? ERR_NONE : add_bootstrap(c, rl);
}
