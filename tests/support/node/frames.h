/* Requests and answers as a client puts them on the wire. */
#ifndef SUPPORT_NODE_FRAMES_H
#define SUPPORT_NODE_FRAMES_H

#include "base/arena.h"
#include "support/pipe.h"

/* What an answer is to be an answer to. */
struct frame_of {
    int16_t api_key, version;
    int32_t correlation_id;
};

enum frame_got {
    FRAME_NONE, /* not all of it is there */
    FRAME_ANSWER,
    FRAME_ALIEN, /* does not decode, or answers something else */
};

/* body: a struct of the request's message. */
void frame_put(struct pipe *to, struct frame_of of, const void *body);
/* Takes an answer off; *body in a. */
enum frame_got frame_take(struct pipe *from, struct frame_of of, struct arena *a,
                          const void **body);

#endif
