/* A whole broker and controller without a machine: life cycle, limits, the turn. Frames in, slices
 * out; the server, the simulator and tests drive it alike.
 *
 * A turn: the driver feeds received bytes (rpc.h), calls node_turn, then sends what rpc_next_output
 * gives, closes what rpc_next_close gives, and waits until bytes, a finished job (env wakes it) or
 * the returned deadline come. */
#ifndef NODE_NODE_H
#define NODE_NODE_H

#include "api/api.h"
#include "rpc/dialing.h"

struct node;

enum node_state {
    NODE_STARTING,
    NODE_READY, /* unfenced, logs loaded: every request is served */
    NODE_STOPPING,
    NODE_STOPPED, /* nothing runs any more: free it */
    NODE_FAILED,  /* stopped without promises; node_message says why */
};

struct node_args {
    struct env *env;
    struct dialing *dialing;     /* to other nodes; NULL: there are none */
    const struct config *config; /* the static one; stays until node_free */
    /* Where the listeners really are, in config_listeners order; copied. */
    const uint16_t *ports;
    size_t ports_n;
    struct now now;
};

/* Takes the lock of the log directory (made if missing) and starts. ERR_BUSY, ERR_INVALID,
 * ERR_ACCESS, ERR_IO with a message: the configuration or the directory is at fault. */
MUST_USE enum err node_new(const struct node_args *args, struct node **out, char *message,
                           size_t message_n);
/* After NODE_STOPPED or NODE_FAILED, with all connections closed and no job running. */
void node_free(struct node *n);

struct rpc *node_rpc(struct node *n);
enum node_state node_state(const struct node *n);
/* Whether connections may come in at a listener (in config_listeners order) now: at a controller's
 * as soon as the quorum's log is open, at a broker's when the node is ready. */
bool node_accepts(const struct node *n, size_t listener);
/* Of NODE_FAILED: one line. bad_config: what must be changed is the configuration (exit 78). */
const char *node_message(const struct node *n, bool *bad_config);
const struct api_endpoint *node_endpoints(const struct node *n, size_t *count);
const struct image *node_image(const struct node *n);
/* With the dynamic values of the metadata log. */
const struct config *node_config(const struct node *n);
int32_t node_id(const struct node *n);
/* Peak of memory charged to the budget, in bytes. */
uint64_t node_memory_peak(const struct node *n);

/* Job results, deadlines, settle. Returns the next deadline (monotonic us; INT64_MAX: none), or
 * now.mono_us when work is left for the next turn. */
int64_t node_turn(struct node *n, struct now now);
/* Clean shutdown: controlled shutdown, requests end, logs close. */
void node_stop(struct node *n, struct now now);

#endif
