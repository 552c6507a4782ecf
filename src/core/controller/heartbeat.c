/* Heartbeats: what a broker is to be next (KIP-631), and what its log directories are. */
#include "core/controller/inside.h"

enum { FENCE = 1, UNFENCE = -1, SHUTTING_DOWN = 1 };

static enum err add_change(struct record_list *rl, const struct image_broker *b,
                           struct broker_registration_change_record *r)
{
    r->broker_id = b->id;
    r->broker_epoch = b->epoch;
    return record_list_add(rl, &msg_broker_registration_change_record,
                           record_version_registration_change(r), r);
}

enum err brokers_add_fenced(struct record_list *rl, const struct image_broker *b, int8_t fenced)
{
    struct broker_registration_change_record r;
    wire_default(&wire_broker_registration_change_record, &r);
    r.fenced = fenced;
    return add_change(rl, b, &r);
}

/* ------------------------------------------------------------------ states */

enum broker_control {
    CONTROL_FENCED,
    CONTROL_UNFENCED,
    CONTROL_SHUTDOWN, /* controlled: leaderships move away */
    CONTROL_SHUTDOWN_NOW,
};

static enum broker_control next_state(const struct controller *c, const struct image_broker *b,
                                      const struct session *s,
                                      const struct broker_heartbeat_request *req)
{
    if (b->fenced) {
        if (req->want_shut_down)
            return CONTROL_SHUTDOWN_NOW;
        /* one that began to shut down does not come back in this life */
        return !req->want_fence && !b->in_controlled_shutdown &&
                       req->current_metadata_offset >= s->register_offset
                   ? CONTROL_UNFENCED
                   : CONTROL_FENCED;
    }
    const bool leads = (req->want_shut_down || b->in_controlled_shutdown) &&
                       partition_index_leads(&c->index, b->id);
    if (b->in_controlled_shutdown)
        return !leads && s->shutdown_offset <= sessions_lowest_active_offset(c)
                   ? CONTROL_SHUTDOWN_NOW
                   : CONTROL_SHUTDOWN;
    if (req->want_fence)
        return req->want_shut_down ? CONTROL_SHUTDOWN_NOW : CONTROL_FENCED;
    if (req->want_shut_down)
        return leads ? CONTROL_SHUTDOWN : CONTROL_SHUTDOWN_NOW;
    return CONTROL_UNFENCED;
}

/* The records of a change of state. */
static enum err add_state(struct controller *c, const struct image_broker *b,
                          enum broker_control next, struct record_list *rl)
{
    struct broker_change change = {.removed = CONTROLLER_NO_BROKER,
                                   .unclean = CONTROLLER_NO_BROKER,
                                   .added = CONTROLLER_NO_BROKER};
    struct broker_registration_change_record r;
    enum err e = ERR_NONE;
    switch (next) {
    case CONTROL_UNFENCED:
        change.added = b->id;
        e = brokers_add_fenced(rl, b, UNFENCE);
        return e != ERR_NONE ? e : election_broker_change(c, &change, rl);
    case CONTROL_SHUTDOWN:
        change.removed = b->id;
        wire_default(&wire_broker_registration_change_record, &r);
        r.in_controlled_shutdown = SHUTTING_DOWN;
        e = add_change(rl, b, &r);
        return e != ERR_NONE ? e : election_broker_change(c, &change, rl);
    case CONTROL_FENCED:
    case CONTROL_SHUTDOWN_NOW:
        change.removed = b->id;
        e = election_broker_change(c, &change, rl);
        return e != ERR_NONE ? e : brokers_add_fenced(rl, b, FENCE);
    }
    return e;
}

static bool changes(const struct image_broker *b, enum broker_control next)
{
    switch (next) {
    case CONTROL_FENCED:
    case CONTROL_SHUTDOWN_NOW:
        return !b->fenced;
    case CONTROL_UNFENCED:
        return b->fenced;
    case CONTROL_SHUTDOWN:
        return !b->in_controlled_shutdown;
    }
    return false;
}

/* Log directories that went offline: their replicas leave the ISRs (KIP-858). */
static enum err add_offline(struct controller *c, const struct image_broker *b,
                            const struct broker_heartbeat_request *req, struct record_list *rl)
{
    struct broker_registration_change_record r;
    struct uuid *left = arena_array(&c->scratch, (size_t)b->log_dirs_n + 1, sizeof *left);
    bool any = false;
    if (left == NULL)
        return ERR_NOMEM;
    wire_default(&wire_broker_registration_change_record, &r);
    r.log_dirs.v = left;
    for (int32_t i = 0; i < b->log_dirs_n; i++) {
        bool offline = false;
        for (int32_t j = 0; j < req->offline_log_dirs.n; j++)
            offline |= uuid_eq(req->offline_log_dirs.v[j], b->log_dirs[i]);
        if (!offline) {
            left[r.log_dirs.n++] = b->log_dirs[i];
            continue;
        }
        any = true;
        const struct broker_change change = {.removed = b->id,
                                             .unclean = CONTROLLER_NO_BROKER,
                                             .added = CONTROLLER_NO_BROKER,
                                             .dir = &b->log_dirs[i]};
        enum err e = election_broker_change(c, &change, rl);
        if (e != ERR_NONE)
            return e;
    }
    /* A record cannot say "none left": such a broker stops by itself. */
    return any && r.log_dirs.n > 0 ? add_change(rl, b, &r) : ERR_NONE;
}

static enum err add_cordoned(struct controller *c, const struct image_broker *b,
                             const struct broker_heartbeat_request *req, struct record_list *rl)
{
    struct broker_registration_change_record r;
    const int32_t n = req->cordoned_log_dirs.n;
    if (n < 0 || image_metadata_version(&c->ahead) < METADATA_VERSION_CORDONED)
        return ERR_NONE;
    if (n == b->cordoned_log_dirs_n &&
        (n == 0 || memcmp(b->cordoned_log_dirs, req->cordoned_log_dirs.v,
                          (size_t)n * sizeof(struct uuid)) == 0))
        return ERR_NONE;
    wire_default(&wire_broker_registration_change_record, &r);
    r.cordoned_log_dirs.v = req->cordoned_log_dirs.v;
    r.cordoned_log_dirs.n = n;
    return add_change(rl, b, &r);
}

static enum err append_state(struct controller *c, const struct image_broker *b,
                             enum broker_control next, struct now now)
{
    struct record_list rl;
    record_list_init(&rl);
    enum err e = add_state(c, b, next, &rl);
    if (e == ERR_NONE)
        e = controller_append(c, &rl, false, now);
    record_list_close(&rl);
    return e;
}

static enum err append_directories(struct controller *c, const struct image_broker *b,
                                   const struct broker_heartbeat_request *req, struct now now)
{
    struct record_list rl;
    record_list_init(&rl);
    enum err e = add_offline(c, b, req, &rl);
    if (e == ERR_NONE)
        e = add_cordoned(c, b, req, &rl);
    if (e == ERR_NONE)
        e = controller_append(c, &rl, false, now);
    record_list_close(&rl);
    return e;
}

static int16_t heartbeat(struct controller *c, const struct broker_heartbeat_request *req,
                         struct broker_heartbeat_response *resp, struct now now)
{
    const struct image_broker *b = image_broker(&c->ahead, req->broker_id);
    if (b == NULL || b->epoch != req->broker_epoch)
        return K_STALE_BROKER_EPOCH;
    struct session *s = session_touch(c, req->broker_id, now);
    if (s == NULL)
        return K_UNKNOWN_SERVER_ERROR;
    s->metadata_offset = req->current_metadata_offset;
    const enum broker_control next = next_state(c, b, s, req);
    if (changes(b, next)) {
        enum err e = append_state(c, b, next, now);
        if (e != ERR_NONE)
            return controller_error_of(e);
        if (next == CONTROL_SHUTDOWN)
            s->shutdown_offset = c->appended_offset;
    }
    if (c->state == CONTROLLER_ACTIVE) { /* else the image ahead was lost: next time */
        enum err e = append_directories(c, b, req, now);
        if (e != ERR_NONE)
            return controller_error_of(e);
    }
    if (next == CONTROL_SHUTDOWN_NOW)
        session_leave(s);
    resp->is_caught_up = req->current_metadata_offset >= s->register_offset;
    resp->is_fenced = next == CONTROL_FENCED || next == CONTROL_SHUTDOWN_NOW;
    resp->should_shut_down = next == CONTROL_SHUTDOWN_NOW;
    return K_NONE;
}

void controller_heartbeat(struct controller *c, struct controller_op *op,
                          const struct broker_heartbeat_request *req,
                          struct broker_heartbeat_response *resp, struct now now)
{
    if (controller_begin(c, op))
        controller_finish(c, op, heartbeat(c, req, resp, now));
}
