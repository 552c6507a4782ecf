/* What the active controller answers (API_FORWARDED), asked at any broker: where the controller is
 * here and active the handler goes on, else the client's request travels to it in an Envelope
 * (KIP-590), and its answer's bytes are sent as they come. */
#ifndef API_FORWARD_H
#define API_FORWARD_H

#include "api/api.h"

/* A request of the controller's, here or on its way to it: in its handler's state, or its arena.
 * While it travels it is the request's handler_state, for api_forward_cancel. */
struct api_forward {
    struct controller_op op; /* here; done() is also told when another's answer does not come */
    struct channel_call call;
    struct envelope_request envelope;
    struct api *api;
    struct request *r;
    void (*refuse)(struct request *r, int16_t error);
    int64_t timeout_ms;
    /* K_NONE: the controller's answer, header and body, alive in the call only; else why there is
     * none. UNSUPPORTED_VERSION has closed the connection, and is not told of. */
    void (*done)(struct api_forward *f, int16_t error, struct bytes answer);
};

/* Was r sent by a node to the controller (on its listener, or in an Envelope)? Else by a client. */
bool api_is_for_controller(const struct api *api, const struct request *r);
/* Must r travel? Not while the controller is here. */
bool api_must_forward(const struct api *api, const struct request *r);

/* At the start of a handler, before its checks: sets f, in its state. False: it is to go on here,
 * with f->op. True: r travels; done comes only with an error that ended that, for a response
 * without more. */
bool api_forward(struct api *api, struct request *r, struct api_forward *f,
                 void (*done)(struct controller_op *op, int16_t error), int64_t timeout_ms);
/* In the handler's done(). True: the controller has resigned meanwhile, r travels now, or the node
 * that sent it looks for another: done() comes again, or r is complete. */
bool api_forward_again(struct api_forward *f, int16_t error);

/* The same for what the quorum itself answers where it leads: refuse answers with the error. */
bool api_forward_to_leader(struct api *api, struct request *r, int64_t timeout_ms,
                           void (*refuse)(struct request *r, int16_t error));

/* Sends frame (header and body, alive until f->done) in r's name; f has api, r and done.
 * timeout_ms: how long the client waits; 0 or less: no word of it. False: out of memory, done()
 * will not come. */
bool api_forward_frame(struct api_forward *f, struct bytes frame, int64_t timeout_ms);
/* Decodes what done() was told as a response m of that version, into f->r's arena. */
MUST_USE enum err api_forward_read(const struct api_forward *f, const struct wire_message *m,
                                   int16_t version, struct bytes answer, void *response);

#endif
