/* UpdateFeatures (KIP-584, KIP-778, KIP-1022): all updates or none. A level must lie within what
 * we, every registered broker and every controller understand; one that is not registered may not.
 */
#include <stdlib.h>

#include "core/controller/inside.h"
#include "core/metadata/features.h"

enum upgrade_type { UPGRADE = 1, SAFE_DOWNGRADE = 2, UNSAFE_DOWNGRADE = 3 };

#define METADATA_VERSION STR_LIT("metadata.version")
#define KRAFT_VERSION STR_LIT("kraft.version")
#define ELR_VERSION STR_LIT("eligible.leader.replicas.version")

struct update {
    struct controller *c;
    const struct update_features_request *req;
    struct now now;
    struct record_list records;
    int16_t kraft_version; /* to be written; -1: as it is */
    const char *reason;    /* of the refusal */
};

/* ------------------------------------------------------------------ who understands it? */

static bool in_ranges(const struct image_range *v, int32_t n, struct str name, int16_t level)
{
    for (int32_t i = 0; i < n; i++)
        if (str_eq(str_of(v[i].name), name))
            return level >= v[i].min && level <= v[i].max;
    return level == 0;
}

static bool known_here(struct str name, int16_t level)
{
    const struct feature_range *f = feature_find(name);
    return f != NULL && level >= f->min && level <= f->max;
}

static bool known_by_brokers(const struct controller *c, struct str name, int16_t level)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->ahead.brokers, e)) != NULL) {
        const struct image_broker *b = map_value(e);
        if (!in_ranges(b->features, b->features_n, name, level))
            return false;
    }
    return true;
}

static bool known_by_controllers(const struct controller *c, struct str name, int16_t level)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&c->ahead.controllers, e)) != NULL) {
        const struct image_controller *other = map_value(e);
        if (other->id != c->node_id && !in_ranges(other->features, other->features_n, name, level))
            return false;
    }
    return true;
}

/* Those that are listed, as in Kafka; voters that are not have told the quorum what they know. */
static bool all_registered(const struct controller *c)
{
    struct voter_set listed;
    if (config_voters(c->config, &listed) != ERR_NONE)
        return false;
    for (int32_t i = 0; i < listed.n; i++)
        if (listed.v[i].id != c->node_id && image_controller(&c->ahead, listed.v[i].id) == NULL)
            return false;
    return true;
}

static const char *not_supported(const struct controller *c, struct str name, int16_t level)
{
    if (!known_here(name, level))
        return "The controller does not support this level";
    if (!known_by_brokers(c, name, level))
        return "A broker does not support this level";
    if (image_metadata_version(&c->ahead) < METADATA_VERSION_CONTROLLERS)
        return NULL;
    if (!known_by_controllers(c, name, level))
        return "Another controller does not support this level";
    return all_registered(c) ? NULL : "A controller is not registered, and may not support it";
}

/* ------------------------------------------------------------------ one feature */

static int16_t level_now(const struct controller *c, struct str name)
{
    if (str_eq(name, KRAFT_VERSION))
        return raft_kraft_version(c->raft);
    const struct feature_range *f = feature_find(name); /* there are no levels of others */
    return f == NULL ? 0 : image_feature_level(&c->ahead, f->name);
}

/* After all updates; of one that comes twice the last counts. */
static int16_t level_then(const struct update *u, struct str name)
{
    for (int32_t i = u->req->feature_updates.n; i-- > 0;)
        if (str_eq(u->req->feature_updates.v[i].feature, name))
            return u->req->feature_updates.v[i].max_version_level;
    return level_now(u->c, name);
}

/* Down only while the records in between are the same. */
static const char *check_metadata_version(int16_t from, int16_t to)
{
    for (int16_t level = from; level > to; level--)
        if (features_records_changed(level))
            return "The downgrade would lose metadata";
    return NULL;
}

/* Whether the voters are ready for it: it is written when all updates are known to be good. */
static const char *check_kraft_version(struct update *u, int16_t to)
{
    switch (raft_upgrade(u->c->raft, u->c->epoch, to, true, u->now)) {
    case ERR_NONE:
        u->kraft_version = to;
        return NULL;
    case ERR_INVALID:
        return "kraft.version cannot be lowered, and every voter must have said that it supports "
               "it";
    case ERR_AGAIN:
        return "The voters of the metadata quorum are being changed";
    default:
        return "This controller does not lead the metadata quorum any more";
    }
}

static const char *check_update(struct update *u,
                                const struct update_features_request_feature_update_key *in)
{
    const int16_t from = level_now(u->c, in->feature), to = in->max_version_level;
    if (in->upgrade_type < UPGRADE || in->upgrade_type > UNSAFE_DOWNGRADE)
        return "Unknown upgrade type";
    if (to < 0)
        return "A level cannot be negative";
    const char *reason = not_supported(u->c, in->feature, to);
    if (reason != NULL)
        return reason;
    if (to < from && in->upgrade_type == UPGRADE)
        return "It is a downgrade, and the request does not say so";
    if (to > from && in->upgrade_type != UPGRADE)
        return "It is an upgrade, and the request says downgrade";
    if (str_eq(in->feature, METADATA_VERSION))
        return check_metadata_version(from, to);
    if (str_eq(in->feature, KRAFT_VERSION) && to != from)
        return check_kraft_version(u, to);
    if (str_eq(in->feature, ELR_VERSION) && to > 0 &&
        level_then(u, METADATA_VERSION) < METADATA_VERSION_ELR)
        return "It needs a later metadata.version";
    return NULL;
}

static enum err add(struct update *u, const struct update_features_request_feature_update_key *in)
{
    const struct feature_level_record r = {in->feature, in->max_version_level};
    const struct no_op_record nothing = {0};
    u->reason = check_update(u, in);
    if (u->reason != NULL)
        return ERR_NONE;
    return str_eq(in->feature, KRAFT_VERSION)
               ? record_list_add(&u->records, &msg_no_op_record, 0, &nothing)
               : record_list_add(&u->records, &msg_feature_level_record, 0, &r);
}

/* ------------------------------------------------------------------ the request */

/* With ELR one value of min.insync.replicas holds in the cluster, and always one (KIP-966). */
static enum err add_min_isr(struct update *u)
{
    const struct str key = STR_LIT("min.insync.replicas");
    const struct image *img = &u->c->ahead;
    const struct map_entry *it = NULL;
    enum err e = ERR_NONE;
    if (image_config_value(img, CONFIG_RESOURCE_BROKER, STR_LIT(""), key) == NULL) {
        const struct config_record r = {CONFIG_RESOURCE_BROKER, STR_LIT(""), key,
                                        str_of(config_static_text(u->c->config, key.p))};
        e = record_list_add(&u->records, &msg_config_record, 0, &r);
    }
    while (e == ERR_NONE && (it = map_next(&img->configs, it)) != NULL) {
        const struct image_config *own = map_value(it);
        const struct config_record r = {CONFIG_RESOURCE_BROKER, str_of(own->name), key, STR_NULL};
        if (own->resource_type == CONFIG_RESOURCE_BROKER && own->name[0] != '\0' &&
            map_get_str(&own->values, key) != NULL)
            e = record_list_add(&u->records, &msg_config_record, 0, &r);
    }
    return e;
}

static bool asks_for_elr(const struct update_features_request *req)
{
    bool asks = false;
    for (int32_t i = 0; i < req->feature_updates.n; i++)
        if (str_eq(req->feature_updates.v[i].feature, ELR_VERSION))
            asks = req->feature_updates.v[i].max_version_level > 0;
    return asks;
}

static enum err update(struct update *u)
{
    enum err e = ERR_NONE;
    if (!u->req->validate_only && asks_for_elr(u->req))
        e = add_min_isr(u);
    for (int32_t i = 0; e == ERR_NONE && u->reason == NULL && i < u->req->feature_updates.n; i++)
        e = add(u, &u->req->feature_updates.v[i]);
    if (e != ERR_NONE || u->reason != NULL || u->req->validate_only)
        return e;
    if (u->kraft_version >= 0)
        e = raft_upgrade(u->c->raft, u->c->epoch, u->kraft_version, false, u->now);
    /* a record of it is what its answer waits for (Kafka) */
    return e == ERR_NONE ? controller_append(u->c, &u->records, true, u->now) : e;
}

void controller_update_features(struct controller *c, struct controller_op *op,
                                const struct update_features_request *req,
                                struct update_features_response *resp, struct now now)
{
    if (!controller_begin(c, op))
        return;
    struct update u = {.c = c, .req = req, .now = now, .kraft_version = -1};
    record_list_init(&u.records);
    enum err e = update(&u);
    record_list_close(&u.records);
    resp->error_message = u.reason == NULL ? STR_NULL : str_of(u.reason);
    controller_finish(c, op,
                      e != ERR_NONE      ? controller_error_of(e)
                      : u.reason != NULL ? K_INVALID_UPDATE_VERSION
                                         : K_NONE);
}
