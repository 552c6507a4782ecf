#include "support/node/frames.h"

#include "base/check.h"
#include "base/endian.h"
#include "wire/codec.h"
#include "wire/messages.h"

void frame_put(struct pipe *to, struct frame_of of, const void *body)
{
    const struct request_header header = {.request_api_key = of.api_key,
                                          .request_api_version = of.version,
                                          .correlation_id = of.correlation_id,
                                          .client_id = STR_LIT("test")};
    struct arena a;
    struct wire_parts frame;
    arena_init(&a, NULL);
    CHECK(wire_encode_frame(&msg_request_header,
                            wire_request_header_version(of.api_key, of.version), &header,
                            wire_find(WIRE_REQUEST, of.api_key), of.version, body, SIZE_MAX, &a,
                            &frame) == ERR_NONE);
    for (size_t i = 0; i < frame.n; i++)
        pipe_put(to, frame.v[i].p, frame.v[i].n);
    arena_close(&a);
}

enum frame_got frame_take(struct pipe *from, struct frame_of of, struct arena *a, const void **body)
{
    if (from->n < 4 || from->n - 4 < be32(from->p))
        return FRAME_NONE;
    const struct wire_message *m = wire_find(WIRE_RESPONSE, of.api_key);
    const size_t n = be32(from->p);
    struct response_header header;
    size_t used;
    uint8_t *copy = arena_alloc(a, n);
    void *message = arena_zalloc(a, m->body->size);
    CHECK(copy != NULL && message != NULL);
    memcpy(copy, from->p + 4, n);
    pipe_drop(from, 4 + n);
    if (wire_decode_prefix(&msg_response_header,
                           wire_response_header_version(of.api_key, of.version),
                           (struct bytes){copy, (int32_t)n}, a, &header, &used) != ERR_NONE ||
        header.correlation_id != of.correlation_id)
        return FRAME_ALIEN;
    const struct bytes rest = {copy + used, (int32_t)(n - used)};
    if (wire_decode(m, of.version, rest, a, message) != ERR_NONE)
        return FRAME_ALIEN;
    *body = message;
    return FRAME_ANSWER;
}
