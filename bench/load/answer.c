#include "load/answer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"
#include "wire/error.h"
#include "wire/messages.h"

static const char *error_code(int16_t code)
{
    static char text[64];
    snprintf(text, sizeof text, "error code %d", code);
    return text;
}

static const char *check_api_versions(const struct answers *as, const struct asked *asked,
                                      const void *msg)
{
    const struct api_versions_response *r = msg;
    if (r->error_code != K_NONE)
        return error_code(r->error_code);
    return r->api_keys.n > 0 ? NULL : "no APIs";
}

static const char *check_produce(const struct answers *as, const struct asked *asked,
                                 const void *msg)
{
    const struct produce_response *r = msg;
    if (r->responses.n != 1 || r->responses.v[0].partition_responses.n != 1)
        return "not one partition";
    const struct produce_response_partition_produce_response *p =
        &r->responses.v[0].partition_responses.v[0];
    if (p->error_code != K_NONE)
        return error_code(p->error_code);
    if (!str_eq(r->responses.v[0].name, str_of(as->o->topic)) || p->index != asked->partition)
        return "another partition";
    return p->base_offset >= 0 ? NULL : "no offset";
}

static const char *check_fetch(const struct answers *as, const struct asked *asked, const void *msg)
{
    const struct fetch_response *r = msg;
    if (r->error_code != K_NONE)
        return error_code(r->error_code);
    if (r->responses.n != 1 || r->responses.v[0].partitions.n != 1)
        return "not one partition";
    const struct fetch_response_partition_data *p = &r->responses.v[0].partitions.v[0];
    if (p->error_code != K_NONE)
        return error_code(p->error_code);
    if (!str_eq(r->responses.v[0].topic, str_of(as->o->topic)) ||
        p->partition_index != asked->partition)
        return "another partition";
    if (p->records.n != as->o->batch_bytes)
        return "not one batch";
    return be64(p->records.p) == (uint64_t)asked->offset ? NULL : "another offset";
}

static const char *check_commit(const struct answers *as, const struct asked *asked,
                                const void *msg)
{
    const struct offset_commit_response *r = msg;
    if (r->topics.n != 1 || r->topics.v[0].partitions.n != 1)
        return "not one partition";
    int16_t code = r->topics.v[0].partitions.v[0].error_code;
    if (code != K_NONE)
        return error_code(code);
    return r->topics.v[0].partitions.v[0].partition_index == asked->partition ? NULL
                                                                              : "another partition";
}

static const char *(*const checks[])(const struct answers *as, const struct asked *asked,
                                     const void *msg) = {
    [LOAD_API_VERSIONS] = check_api_versions,
    [LOAD_PRODUCE] = check_produce,
    [LOAD_FETCH] = check_fetch,
    [LOAD_COMMIT] = check_commit,
    [LOAD_IDLE] = check_api_versions,
};

void answers_init(struct answers *as, const struct options *o)
{
    *as = (struct answers){.o = o};
    arena_init(&as->arena, NULL);
}

void answers_close(struct answers *as)
{
    free(as->first);
    arena_close(&as->arena);
}

size_t answers_need(const struct answers *as, size_t frame_n)
{
    size_t need = as->first_n + sizeof(int64_t);
    return as->o->kind != LOAD_FETCH || as->first_n == 0 || frame_n < need ? frame_n : need;
}

static const char *keep_first(struct answers *as, const uint8_t *p, size_t n, size_t frame_n)
{
    uint8_t *kept = realloc(as->first, n);
    if (kept == NULL)
        return "no memory";
    memcpy(kept, p, n);
    as->first = kept;
    as->first_n = n;
    as->first_frame_n = frame_n;
    return NULL;
}

static bool like_first(const struct answers *as, const uint8_t *p, size_t frame_n)
{
    const size_t body = 8; /* behind length and correlation id */
    return as->first_n > 0 && frame_n == as->first_frame_n &&
           memcmp(p + body, as->first + body, as->first_n - body) == 0;
}

static const char *check_offset(const struct answers *as, const struct asked *asked,
                                const uint8_t *p)
{
    if (as->o->kind != LOAD_FETCH)
        return NULL;
    return be64(p + as->first_n) == (uint64_t)asked->offset ? NULL : "another offset";
}

/* How much of it stays the same from answer to answer; 0: nothing that is known beforehand. */
static size_t same_bytes(const struct answers *as, const uint8_t *p, size_t frame_n,
                         const void *msg)
{
    const struct fetch_response *fetch = msg;
    if (as->o->kind == LOAD_FETCH)
        return (size_t)(fetch->responses.v[0].partitions.v[0].records.p - p);
    return as->o->kind == LOAD_API_VERSIONS ? frame_n : 0;
}

static const char *check_whole(struct answers *as, const struct request *r,
                               const struct asked *asked, const uint8_t *p, size_t frame_n)
{
    struct response_header header;
    struct bytes in = {p + 4, (int32_t)(frame_n - 4)};
    size_t used;
    arena_reset(&as->arena);
    void *msg = arena_alloc(&as->arena, r->answer->body->size);
    if (msg == NULL)
        return "no memory";
    if (wire_decode_prefix(&msg_response_header, r->answer_header_version, in, &as->arena, &header,
                           &used) != ERR_NONE)
        return "its header does not parse";
    in = (struct bytes){in.p + used, in.n - (int32_t)used};
    if (wire_decode(r->answer, r->version, in, &as->arena, msg) != ERR_NONE)
        return "it does not parse";
    const char *wrong = checks[as->o->kind](as, asked, msg);
    size_t same_n = wrong == NULL ? same_bytes(as, p, frame_n, msg) : 0;
    return same_n > 0 ? keep_first(as, p, same_n, frame_n) : wrong;
}

const char *answers_check(struct answers *as, const struct request *r, const struct asked *asked,
                          const uint8_t *p, size_t frame_n)
{
    if (frame_n < 8 || (int32_t)be32(p + 4) != asked->correlation_id)
        return "another correlation id";
    if (like_first(as, p, frame_n))
        return check_offset(as, asked, p);
    if (as->first_n > 0 && as->o->kind == LOAD_FETCH)
        return "not like the first answer";
    return check_whole(as, r, asked, p, frame_n);
}
