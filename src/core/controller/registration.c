/* Registration (KIP-631; KIP-966 for restarts that may have lost data). */
#include "core/controller/inside.h"
#include "core/metadata/kafka_error.h"

/* ------------------------------------------------------------------ may it register? */

static bool covers(const struct broker_registration_request *req, const char *name, int16_t level)
{
    for (int32_t i = 0; i < req->features.n; i++) {
        const struct broker_registration_request_feature *f = &req->features.v[i];
        if (str_eq(f->name, str_of(name)))
            return level >= f->min_supported_version && level <= f->max_supported_version;
    }
    return level == 0;
}

/* It must understand every finalised level. */
static bool covers_levels(const struct controller *c, const struct broker_registration_request *req)
{
    for (int32_t i = 0; i < c->ahead.features_n; i++)
        if (!covers(req, c->ahead.features[i].name, c->ahead.features[i].level))
            return false;
    return covers(req, "kraft.version", raft_kraft_version(c->raft));
}

static bool directories_valid(const struct controller *c,
                              const struct broker_registration_request *req)
{
    if (image_metadata_version(&c->ahead) < METADATA_VERSION_DIRECTORIES)
        return true;
    for (int32_t i = 0; i < req->log_dirs.n; i++) {
        const struct uuid dir = req->log_dirs.v[i];
        if (image_directory_reserved(dir))
            return false;
        for (int32_t j = 0; j < i; j++)
            if (uuid_eq(req->log_dirs.v[j], dir))
                return false;
        const struct map_entry *e = NULL;
        while ((e = map_next(&c->ahead.brokers, e)) != NULL) {
            const struct image_broker *b = map_value(e);
            if (b->id != req->broker_id && image_broker_owns(b, dir))
                return false;
        }
    }
    return req->log_dirs.n > 0;
}

/* Is another incarnation alive? Kafka waits out the session of the last one after every claim. A
 * broker of our own node id shares our process: when we do not hear it, it is not there, so a node
 * that was killed need not wait for itself. */
static bool other_alive(const struct controller *c, const struct image_broker *b,
                        const struct broker_registration_request *req)
{
    if (b == NULL || uuid_eq(b->incarnation_id, req->incarnation_id))
        return false;
    const struct session *s = session_find(c, b->id);
    return s != NULL && timer_armed(&s->timer) && (s->heard || b->id != c->node_id);
}

static int16_t check_registration(const struct controller *c,
                                  const struct broker_registration_request *req)
{
    if (!str_eq(req->cluster_id, str_of(c->cluster_id)))
        return K_INCONSISTENT_CLUSTER_ID;
    if (req->broker_id < 0)
        return K_INVALID_REQUEST;
    if (other_alive(c, image_broker(&c->ahead, req->broker_id), req))
        return K_DUPLICATE_BROKER_REGISTRATION;
    if (!directories_valid(c, req))
        return K_INVALID_REGISTRATION;
    return covers_levels(c, req) ? K_NONE : K_UNSUPPORTED_VERSION;
}

/* ------------------------------------------------------------------ registering */

/* The previous incarnation is gone: it leaves the ISRs, and when it may have lost data also the
 * ELRs. So does one of which we know no previous incarnation: after UnregisterBroker it can still
 * be in an ELR, and nobody knows what became of its log since (Kafka lets it lead). */
static enum err add_restart(struct controller *c, int32_t id, bool clean, struct record_list *rl)
{
    const bool elr_on = image_feature_level(&c->ahead, "eligible.leader.replicas.version") > 0;
    const bool lossy = elr_on && !clean;
    const struct broker_change change = {
        .removed = lossy ? CONTROLLER_NO_BROKER : id,
        .unclean = lossy ? id : CONTROLLER_NO_BROKER,
        .added = CONTROLLER_NO_BROKER,
    };
    return election_broker_change(c, &change, rl);
}

static bool copy_lists(struct controller *c, const struct broker_registration_request *req,
                       struct register_broker_record *r)
{
    r->end_points.v = wire_array(&wire_register_broker_record_broker_endpoint, &c->scratch,
                                 (size_t)req->listeners.n);
    r->features.v = wire_array(&wire_register_broker_record_broker_feature, &c->scratch,
                               (size_t)req->features.n);
    if (r->end_points.v == NULL || r->features.v == NULL)
        return false;
    r->end_points.n = req->listeners.n;
    r->features.n = req->features.n;
    for (int32_t i = 0; i < req->listeners.n; i++) {
        const struct broker_registration_request_listener *l = &req->listeners.v[i];
        r->end_points.v[i] = (struct register_broker_record_broker_endpoint){
            l->name, l->host, l->port, l->security_protocol};
    }
    for (int32_t i = 0; i < req->features.n; i++) {
        const struct broker_registration_request_feature *f = &req->features.v[i];
        r->features.v[i] = (struct register_broker_record_broker_feature){
            f->name, f->min_supported_version, f->max_supported_version};
    }
    return true;
}

static enum err add_registration(struct controller *c,
                                 const struct broker_registration_request *req, int64_t epoch,
                                 const struct image_broker *amended, struct record_list *rl)
{
    struct register_broker_record r;
    const int16_t version = record_version_register_broker(image_metadata_version(&c->ahead));
    wire_default(&wire_register_broker_record, &r);
    r.broker_id = req->broker_id;
    r.incarnation_id = req->incarnation_id;
    r.broker_epoch = epoch;
    r.rack = req->rack;
    r.fenced = amended == NULL || amended->fenced;
    r.in_controlled_shutdown = amended != NULL && amended->in_controlled_shutdown;
    if (version >= 3) {
        r.log_dirs.v = req->log_dirs.v;
        r.log_dirs.n = req->log_dirs.n;
    }
    if (!copy_lists(c, req, &r))
        return ERR_NOMEM;
    return record_list_add(rl, &msg_register_broker_record, version, &r);
}

static enum err append_registration(struct controller *c,
                                    const struct broker_registration_request *req, int64_t *epoch,
                                    struct now now)
{
    struct record_list rl;
    const struct image_broker *b = image_broker(&c->ahead, req->broker_id);
    const bool amends = b != NULL && uuid_eq(b->incarnation_id, req->incarnation_id);
    enum err e = ERR_NONE;
    record_list_init(&rl);
    *epoch = amends ? b->epoch : controller_next_offset(c); /* of the event's first record */
    if (!amends)
        e = add_restart(c, req->broker_id, b != NULL && req->previous_broker_epoch == b->epoch,
                        &rl);
    if (e == ERR_NONE)
        e = add_registration(c, req, *epoch, amends ? b : NULL, &rl);
    if (e == ERR_NONE)
        e = controller_append(c, &rl, false, now);
    record_list_close(&rl);
    return e;
}

static int16_t register_broker(struct controller *c, const struct broker_registration_request *req,
                               int64_t *epoch, struct now now)
{
    const int16_t error = check_registration(c, req);
    if (error != K_NONE)
        return error;
    enum err e = append_registration(c, req, epoch, now);
    if (e != ERR_NONE)
        return controller_error_of(e);
    struct session *s = session_touch(c, req->broker_id, now);
    if (s == NULL)
        return K_UNKNOWN_SERVER_ERROR; /* it asks again, and amends */
    s->register_offset = c->appended_offset;
    s->metadata_offset = s->shutdown_offset = -1;
    return K_NONE;
}

void controller_register_broker(struct controller *c, struct controller_op *op,
                                const struct broker_registration_request *req,
                                struct broker_registration_response *resp, struct now now)
{
    if (!controller_begin(c, op))
        return;
    const int16_t error = register_broker(c, req, &resp->broker_epoch, now);
    if (error != K_NONE)
        env_log(c->env, LOG_WARN, "broker_registration_refused broker=%d error=%s", req->broker_id,
                kafka_error_name(error));
    controller_finish(c, op, error);
}
