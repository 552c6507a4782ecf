/* ControllerRegistration (KIP-919): where the controllers are, and what they understand. */
#include "core/controller/inside.h"

static bool copy_lists(struct controller *c, const struct controller_registration_request *req,
                       struct register_controller_record *r)
{
    r->end_points.v = wire_array(&wire_register_controller_record_controller_endpoint, &c->scratch,
                                 (size_t)req->listeners.n);
    r->features.v = wire_array(&wire_register_controller_record_controller_feature, &c->scratch,
                               (size_t)req->features.n);
    if (r->end_points.v == NULL || r->features.v == NULL)
        return false;
    r->end_points.n = req->listeners.n;
    r->features.n = req->features.n;
    for (int32_t i = 0; i < req->listeners.n; i++) {
        const struct controller_registration_request_listener *l = &req->listeners.v[i];
        r->end_points.v[i] = (struct register_controller_record_controller_endpoint){
            l->name, l->host, l->port, l->security_protocol};
    }
    for (int32_t i = 0; i < req->features.n; i++) {
        const struct controller_registration_request_feature *f = &req->features.v[i];
        r->features.v[i] = (struct register_controller_record_controller_feature){
            f->name, f->min_supported_version, f->max_supported_version};
    }
    return true;
}

static enum err append(struct controller *c, const struct controller_registration_request *req,
                       struct now now)
{
    struct register_controller_record r;
    struct record_list rl;
    wire_default(&wire_register_controller_record, &r);
    r.controller_id = req->controller_id;
    r.incarnation_id = req->incarnation_id;
    if (!copy_lists(c, req, &r))
        return ERR_NOMEM;
    record_list_init(&rl);
    enum err e = record_list_add(&rl, &msg_register_controller_record, 0, &r);
    if (e == ERR_NONE)
        e = controller_append(c, &rl, true, now);
    record_list_close(&rl);
    return e;
}

void controller_register_controller(struct controller *c, struct controller_op *op,
                                    const struct controller_registration_request *req,
                                    struct now now)
{
    if (!controller_begin(c, op))
        return;
    if (image_metadata_version(&c->ahead) < METADATA_VERSION_CONTROLLERS) {
        controller_finish(c, op, K_UNSUPPORTED_VERSION);
        return;
    }
    enum err e = append(c, req, now);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
