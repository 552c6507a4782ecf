/* AlterConfigs and IncrementalAlterConfigs (KIP-133, KIP-339, KIP-226, KIP-848): Kafka's
 * ConfigurationControlManager. Each resource is judged alone by what it would hold afterwards; one
 * that is refused leaves nothing behind, the others become one atomic batch.
 *
 * The keys of brokers are judged by the broker that took the request in, which may be a Kafka of
 * another version; here only what all brokers must agree on. */
#include <stdio.h>

#include "core/config/config.h"
#include "core/controller/inside.h"
#include "core/metadata/topic_name.h"

enum { VALUE_MAX_BYTES = 32767 }; /* a string of the protocol */

struct alteration {
    struct controller *c;
    struct arena *arena; /* of messages */
    struct record_list records;
    struct config_change *change; /* the one at hand */
    struct str *values;           /* of its ops, as they will be; null: not set */
    bool min_isr;                 /* it changes min.insync.replicas */
};

#define REFUSE(a, error, ...) (config_change_refuse((a)->change, (a)->arena, error, __VA_ARGS__))

/* ------------------------------------------------------------------ resources */

static void check_topic(struct alteration *a)
{
    const struct str name = a->change->name;
    if (name.n == 0)
        REFUSE(a, K_INVALID_REQUEST, "There are no default topics: name one");
    else if (!topic_name_valid(name))
        REFUSE(a, K_INVALID_TOPIC_EXCEPTION, "Topic name %.*s is not valid", name.n, name.p);
    else if (image_topic_named(&a->c->ahead, name) == NULL)
        REFUSE(a, K_UNKNOWN_TOPIC_OR_PARTITION, "There is no topic %.*s", name.n, name.p);
}

static void check_broker(struct alteration *a)
{
    const struct str name = a->change->name;
    int64_t id = 0;
    for (int32_t i = 0; i < name.n && id <= INT32_MAX; i++) {
        if (name.p[i] < '0' || name.p[i] > '9') {
            REFUSE(a, K_INVALID_REQUEST, "Broker id %.*s is not a number", name.n, name.p);
            return;
        }
        id = id * 10 + (name.p[i] - '0');
    }
    if (name.n > 0 && (id > INT32_MAX || image_broker(&a->c->ahead, (int32_t)id) == NULL))
        REFUSE(a, K_BROKER_ID_NOT_REGISTERED, "There is no broker %.*s", name.n, name.p);
}

/* The image holds texts that end with one. */
static bool has_zero(struct str s)
{
    return s.n > 0 && memchr(s.p, '\0', (size_t)s.n) != NULL;
}

static void check_resource(struct alteration *a)
{
    if (has_zero(a->change->name)) {
        REFUSE(a, K_INVALID_REQUEST, "A name with a zero character");
        return;
    }
    switch (a->change->type) {
    case CONFIG_RESOURCE_TOPIC:
        check_topic(a);
        break;
    case CONFIG_RESOURCE_BROKER:
        check_broker(a);
        break;
    case CONFIG_RESOURCE_GROUP:
        if (a->change->name.n == 0)
            REFUSE(a, K_INVALID_REQUEST, "There are no default groups: name one");
        break;
    case CONFIG_RESOURCE_CLIENT_METRICS:
        if (a->change->name.n == 0)
            REFUSE(a, K_INVALID_REQUEST, "A subscription of client metrics needs a name");
        break;
    default:
        REFUSE(a, K_INVALID_REQUEST, "Unknown resource type %d", a->change->type);
    }
}

/* ------------------------------------------------------------------ lists */

struct list_edit {
    struct map items; /* when adding what is in out, else what goes */
    struct buf out;
};

static enum err add_item(struct list_edit *e, struct str item)
{
    enum err err = e->out.n > 0 ? buf_append(&e->out, ",", 1) : ERR_NONE;
    return err == ERR_NONE ? buf_append(&e->out, item.p, (size_t)item.n) : err;
}

/* Appends to out what is not in items, and remembers it there when it may come once only. */
static enum err add_missing(struct list_edit *e, struct str list, bool once)
{
    struct str item;
    enum err err = ERR_NONE;
    while (err == ERR_NONE && config_next_item(&list, &item)) {
        if (map_get_str(&e->items, item) != NULL)
            continue;
        err = add_item(e, item);
        if (err == ERR_NONE && once)
            err = map_put(&e->items, item.p, (size_t)item.n, e);
    }
    return err;
}

static enum err remember(struct list_edit *e, struct str list)
{
    struct str item;
    enum err err = ERR_NONE;
    while (err == ERR_NONE && config_next_item(&list, &item))
        err = map_put(&e->items, item.p, (size_t)item.n, e);
    return err;
}

/* list with items, or without them. In the scratch. */
static enum err edit_list(struct alteration *a, struct str list, struct str items, bool add,
                          struct str *out)
{
    struct list_edit e;
    map_init(&e.items, a->c->ahead.seed);
    buf_init(&e.out);
    enum err err = add ? add_missing(&e, list, true) : remember(&e, items);
    if (err == ERR_NONE)
        err = add_missing(&e, add ? items : list, add);
    if (err == ERR_NONE) {
        const struct str text = {(const char *)e.out.p, (int32_t)e.out.n};
        const char *copy = arena_strdup(&a->c->scratch, e.out.n > 0 ? text : STR_LIT(""));
        *out = str_of(copy);
        err = copy == NULL ? ERR_NOMEM : ERR_NONE;
    }
    map_close(&e.items);
    buf_close(&e.out);
    return err;
}

/* ------------------------------------------------------------------ values */

static const char *current_value(const struct alteration *a, struct str key)
{
    return image_config_value(&a->c->ahead, a->change->type, a->change->name, key);
}

static const struct config_key *find_key(const struct alteration *a, struct str name)
{
    switch (a->change->type) {
    case CONFIG_RESOURCE_TOPIC:
        return config_find(CONFIG_TOPIC, name);
    case CONFIG_RESOURCE_GROUP:
        return config_find(CONFIG_GROUP, name);
    case CONFIG_RESOURCE_CLIENT_METRICS:
        return config_find(CONFIG_CLIENT_METRICS, name);
    default:
        return config_find_dynamic(name);
    }
}

/* As Kafka: of topics and brokers only. */
static bool is_list(const struct alteration *a, const struct config_key *k)
{
    return k != NULL && k->type == CONFIG_LIST &&
           (a->change->type == CONFIG_RESOURCE_TOPIC || a->change->type == CONFIG_RESOURCE_BROKER);
}

/* What a list that is not set begins with: as Kafka, the static value. */
static struct str first_list(const struct alteration *a, const struct config_key *k)
{
    const char *text = k->def;
    if (k->scope == CONFIG_BROKER)
        text = config_static_text(a->c->config, k->name);
    else if (k->broker_synonym != NULL)
        text = config_static_text(a->c->config, k->broker_synonym);
    return str_of(text == NULL ? "" : text);
}

static enum err change_list(struct alteration *a, const struct config_op *op, struct str *out)
{
    const struct config_key *k = find_key(a, op->name);
    const bool add = op->operation == CONFIG_OPERATION_APPEND;
    if (!is_list(a, k)) {
        REFUSE(a, K_INVALID_CONFIG, "%.*s is not a list", op->name.n, op->name.p);
        return ERR_NONE;
    }
    const char *current = current_value(a, op->name);
    const struct str list = current != NULL ? str_of(current) : first_list(a, k);
    enum err e = edit_list(a, list, op->value, add, out);
    if (e == ERR_NONE && out->n > VALUE_MAX_BYTES)
        REFUSE(a, K_INVALID_CONFIG, "The value of %.*s would be longer than %d bytes", op->name.n,
               op->name.p, VALUE_MAX_BYTES);
    return e;
}

static enum err new_value(struct alteration *a, const struct config_op *op, struct str *out)
{
    *out = STR_NULL;
    switch ((enum config_operation)op->operation) {
    case CONFIG_OPERATION_SET:
        *out = op->value;
        return ERR_NONE;
    case CONFIG_OPERATION_DELETE:
        return ERR_NONE;
    case CONFIG_OPERATION_APPEND:
    case CONFIG_OPERATION_SUBTRACT:
        return change_list(a, op, out);
    }
    REFUSE(a, K_INVALID_REQUEST, "Unknown operation %d", op->operation);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ validity */

static bool names_a_client(struct str item)
{
    static const char *const names[] = {"client_instance_id",    "client_id",
                                        "client_software_name",  "client_software_version",
                                        "client_source_address", "client_source_port"};
    const char *equals = memchr(item.p, '=', (size_t)item.n);
    if (equals == NULL)
        return false;
    const struct str name = config_trim((struct str){item.p, (int32_t)(equals - item.p)});
    for (size_t i = 0; i < ARRAY_N(names); i++)
        if (str_eq(name, str_of(names[i])))
            return true;
    return false;
}

/* Patterns are Java's, which nobody here reads. */
static void check_match(struct alteration *a, struct str list)
{
    struct str item;
    while (!a->change->settled && config_next_item(&list, &item))
        if (!names_a_client(item))
            REFUSE(a, K_INVALID_CONFIG, "Illegal client matching pattern: %.*s", item.n, item.p);
}

static void check_value(struct alteration *a, struct str name, struct str value)
{
    char text[512];
    const struct config_key *k = find_key(a, name);
    const int8_t type = a->change->type;
    const bool metrics = type == CONFIG_RESOURCE_CLIENT_METRICS;
    if (has_zero(name) || has_zero(value))
        REFUSE(a, K_INVALID_CONFIG, "A configuration with a zero character");
    if (type == CONFIG_RESOURCE_BROKER || a->change->settled)
        return;
    const int16_t error = metrics ? K_INVALID_REQUEST : K_INVALID_CONFIG;
    if (k == NULL)
        REFUSE(a, error, "Unknown %s configuration %.*s",
               metrics                         ? "client metrics"
               : type == CONFIG_RESOURCE_GROUP ? "group"
                                               : "topic",
               name.n, name.p);
    else if ((k->scope == CONFIG_GROUP
                  ? config_check_group(a->c->config, k, value, text, sizeof text)
                  : config_check(k, value, text, sizeof text)) != ERR_NONE)
        REFUSE(a, error, "%s", text);
    else if (metrics && strcmp(k->name, "match") == 0)
        check_match(a, value);
}

/* What the topic will hold. */
static const char *future_value(void *ctx, const char *key)
{
    const struct alteration *a = ctx;
    for (int32_t i = 0; i < a->change->ops_n; i++)
        if (str_eq(a->change->ops[i].name, str_of(key)))
            return a->values[i].n < 0
                       ? NULL
                       : arena_strdup(&a->c->scratch, a->values[i]); /* for the zero */
    return a->change->replace ? NULL : current_value(a, str_of(key));
}

/* Under ELR (KIP-966) one value of min.insync.replicas holds in the cluster, and always one. */
static void check_min_isr(struct alteration *a, struct str value)
{
    a->min_isr = true;
    if (a->change->type != CONFIG_RESOURCE_BROKER ||
        image_feature_level(&a->c->ahead, "eligible.leader.replicas.version") == 0)
        return;
    if (a->change->name.n > 0)
        REFUSE(a, K_INVALID_CONFIG,
               "Broker-level min.insync.replicas cannot be altered while ELR is enabled");
    else if (value.n < 0)
        REFUSE(a, K_INVALID_CONFIG,
               "Cluster-level min.insync.replicas cannot be removed while ELR is enabled");
}

/* ------------------------------------------------------------------ records */

static enum err add_record(struct alteration *a, struct str key, struct str value)
{
    const struct config_record r = {a->change->type, a->change->name, key, value};
    if (str_eq(key, STR_LIT("min.insync.replicas")))
        check_min_isr(a, value);
    return a->change->settled ? ERR_NONE : record_list_add(&a->records, &msg_config_record, 0, &r);
}

static bool changes(const struct alteration *a, struct str key, struct str value)
{
    const char *current = current_value(a, key);
    /* a broker's is told again, so that it reads again what the value names (KAFKA-14136) */
    return a->change->type == CONFIG_RESOURCE_BROKER ||
           (current == NULL ? value.n >= 0 : !str_eq(str_of(current), value));
}

static enum err take_op(struct alteration *a, int32_t i)
{
    const struct config_op *op = &a->change->ops[i];
    enum err e = new_value(a, op, &a->values[i]);
    if (e != ERR_NONE || a->change->settled)
        return e;
    if (a->values[i].n >= 0)
        check_value(a, op->name, a->values[i]);
    if (a->change->settled || !changes(a, op->name, a->values[i]))
        return ERR_NONE;
    return add_record(a, op->name, a->values[i]);
}

/* What an AlterConfigs does not name goes. */
static enum err remove_others(struct alteration *a)
{
    const struct image_config *c = image_config(&a->c->ahead, a->change->type, a->change->name);
    const struct map_entry *it = NULL;
    struct map named;
    enum err e = ERR_NONE;
    if (c == NULL)
        return ERR_NONE;
    map_init(&named, a->c->ahead.seed);
    for (int32_t i = 0; i < a->change->ops_n && e == ERR_NONE; i++)
        e = map_put(&named, a->change->ops[i].name.p, (size_t)a->change->ops[i].name.n, a);
    while (e == ERR_NONE && (it = map_next(&c->values, it)) != NULL) {
        size_t n;
        const char *key = map_key(it, &n);
        if (map_get(&named, key, n) == NULL)
            e = add_record(a, (struct str){key, (int32_t)n}, STR_NULL);
    }
    map_close(&named);
    return e;
}

/* Who is in the ELR hangs on the min ISR. */
static enum err clear_elr(struct alteration *a)
{
    if (!a->min_isr || image_feature_level(&a->c->ahead, "eligible.leader.replicas.version") == 0)
        return ERR_NONE;
    const struct clear_elr_record r = {a->change->type == CONFIG_RESOURCE_TOPIC ? a->change->name
                                                                                : STR_LIT("")};
    return record_list_add(&a->records, &msg_clear_elr_record, 0, &r);
}

/* ------------------------------------------------------------------ one resource */

static void check_together(struct alteration *a)
{
    char text[512];
    if (a->change->type == CONFIG_RESOURCE_TOPIC &&
        topic_config_check(a->c->config, future_value, a, text, sizeof text) != ERR_NONE)
        REFUSE(a, K_INVALID_CONFIG, "%s", text);
}

static enum err take_ops(struct alteration *a)
{
    enum err e = ERR_NONE;
    a->min_isr = false;
    a->values = arena_array(&a->c->scratch, (size_t)a->change->ops_n, sizeof *a->values);
    if (a->values == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < a->change->ops_n && e == ERR_NONE && !a->change->settled; i++)
        e = take_op(a, i);
    if (e == ERR_NONE && !a->change->settled)
        check_together(a);
    if (e == ERR_NONE && !a->change->settled && a->change->replace)
        e = remove_others(a);
    if (e == ERR_NONE && !a->change->settled)
        e = clear_elr(a);
    return e;
}

static enum err alter(struct alteration *a, struct config_change *change)
{
    const size_t before = a->records.n;
    a->change = change;
    check_resource(a);
    enum err e = change->settled ? ERR_NONE : take_ops(a);
    if (change->settled)
        record_list_cut(&a->records, before);
    return e;
}

void controller_alter_configs(struct controller *c, struct controller_op *op,
                              struct config_change *changes, int32_t n, bool validate_only,
                              struct arena *arena, struct now now)
{
    if (!controller_begin(c, op))
        return;
    struct alteration a = {.c = c, .arena = arena};
    enum err e = ERR_NONE;
    record_list_init(&a.records);
    for (int32_t i = 0; i < n && e == ERR_NONE; i++)
        if (!changes[i].settled)
            e = alter(&a, &changes[i]);
    if (e == ERR_NONE && !validate_only)
        e = controller_append(c, &a.records, true, now);
    record_list_close(&a.records);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
