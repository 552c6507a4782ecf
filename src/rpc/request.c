/* Requests complete in any order and are answered in theirs: the connection's list keeps the order,
 * an answered request waits in it until all before it have gone out. Request objects are recycled
 * with their arenas, so that a request in a busy node costs no malloc. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "rpc/conn.h"
#include "wire/messages.h"

enum { KEEP_REQUESTS = 256 };

static struct request *request_take(struct rpc *rpc)
{
    struct list *l = list_pop(&rpc->free_requests);
    if (l != NULL) {
        rpc->free_requests_n--;
        return LIST_ENTRY(l, struct request, link);
    }
    struct request *r = malloc(sizeof *r);
    if (r != NULL)
        arena_init(&r->arena, rpc->answers);
    return r;
}

struct request *request_new(struct conn *c, const uint8_t *p, size_t n, struct pool_buf *buf)
{
    struct rpc *rpc = c->rpc;
    struct request *r = request_take(rpc);
    if (r == NULL)
        return NULL;
    struct arena arena = r->arena;
    *r = (struct request){
        .arena = arena,
        .rpc = rpc,
        .conn = c,
        .conn_id = c->id,
        .listener = c->listener,
        .client_address = c->address,
        .principal = STR_LIT("User:ANONYMOUS"),
        .arrival = rpc->now,
        .state = REQUEST_QUEUED,
    };
    list_init(&r->link);
    if (n > LIMIT_SMALL_FRAME_BYTES) {
        r->buf = pool_ref(buf);
        r->frame = (struct bytes){p, (int32_t)n};
    } else {
        uint8_t *copy = arena_memdup(&r->arena, p, n);
        if (copy == NULL) {
            rpc->requests_n++;
            request_free(rpc, r);
            return NULL;
        }
        r->frame = (struct bytes){copy, (int32_t)n};
    }
    rpc->requests_n++;
    return r;
}

struct request *request_within(struct request *outer, struct bytes frame,
                               void (*ended)(struct request *outer, struct bytes answer,
                                             const char *reason))
{
    struct request *r = request_take(outer->rpc);
    CHECK(outer->state == REQUEST_RUNNING);
    if (r == NULL)
        return NULL;
    struct arena arena = r->arena;
    *r = (struct request){
        .arena = arena,
        .rpc = outer->rpc,
        .conn_id = outer->conn_id,
        .listener = outer->listener,
        .client_address = outer->client_address,
        .principal = outer->principal,
        .outer = outer,
        .ended = ended,
        .frame = frame,
        .arrival = outer->arrival,
        .state = REQUEST_RUNNING,
    };
    list_init(&r->link);
    r->rpc->requests_n++;
    r->rpc->running_n++;
    return r;
}

static void release_answer(struct request *r)
{
    for (size_t i = r->answer_sent_n; i < r->answer.n; i++)
        file_unref(r->answer.v[i].s.f);
    r->answer = (struct wire_parts){0};
}

void request_free(struct rpc *rpc, struct request *r)
{
    list_remove(&r->link);
    release_answer(r);
    request_release_frame(r);
    rpc->requests_n--;
    if (rpc->free_requests_n >= KEEP_REQUESTS) {
        arena_close(&r->arena);
        free(r);
        return;
    }
    arena_reset(&r->arena);
    list_prepend(&rpc->free_requests, &r->link);
    rpc->free_requests_n++;
}

void request_release_frame(struct request *r)
{
    pool_unref(r->buf);
    r->buf = NULL;
}

void request_staged(struct request *r)
{
    CHECK(r->state == REQUEST_RUNNING && !r->produce_staged);
    r->produce_staged = true;
    if (r->conn == NULL)
        return;
    r->conn->running_unstaged_n--;
    conn_start_requests(r->conn);
}

/* Out of the running state; true if somebody is left to answer to. */
static bool finish(struct request *r)
{
    struct conn *c = r->conn;
    CHECK(r->state == REQUEST_RUNNING);
    r->state = REQUEST_ANSWERED;
    r->rpc->running_n--;
    request_release_frame(r);
    if (c == NULL)
        return false;
    c->running_n--;
    if (!r->produce_staged)
        c->running_unstaged_n--;
    return !c->closing;
}

static void drop(struct rpc *rpc, struct request *r)
{
    struct conn *c = r->conn;
    if (c != NULL)
        c->requests_n--;
    request_free(rpc, r);
    if (c != NULL) {
        conn_check_output(c);
        conn_check_resume(c);
        conn_check_ended(c);
    }
}

/* One that runs inside another is told of and gone. An answer in pieces is one of records, and
 * those travel in no other message. */
static void end_within(struct request *r, const char *reason)
{
    enum { LENGTH_BYTES = 4 };
    struct bytes answer = BYTES_NULL;
    finish(r);
    if (reason == NULL && (r->answer.n != 1 || r->answer.v[0].p == NULL))
        reason = "an answer in pieces inside another";
    if (reason == NULL)
        answer = (struct bytes){r->answer.v[0].p + LENGTH_BYTES,
                                (int32_t)r->answer.v[0].n - LENGTH_BYTES};
    r->ended(r->outer, answer, reason);
    request_free(r->rpc, r);
}

/* The answer is encoded, or e says why not. */
static bool leave(struct request *r, enum err e)
{
    struct conn *c = r->conn;
    if (e != ERR_NONE) {
        env_log(r->rpc->env, LOG_ERROR, "answer_failed api=%d version=%d error=%s", r->api_key,
                r->api_version, err_name(e));
        r->answer = (struct wire_parts){0};
        request_close(r, "the answer could not be encoded");
        return false;
    }
    if (r->outer != NULL) {
        end_within(r, NULL);
        return true;
    }
    if (!finish(r)) { /* nobody waits for it: only its slices have to be released */
        drop(r->rpc, r);
        return true;
    }
    conn_check_output(c);
    conn_start_requests(c);
    return true;
}

bool request_answer(struct request *r, const struct wire_message *m, const void *response)
{
    const int16_t header_version = wire_response_header_version(r->api_key, r->api_version);
    const struct response_header header = {.correlation_id = r->correlation_id};
    return leave(r,
                 wire_encode_frame(&msg_response_header, header_version, &header, m, r->api_version,
                                   response, LIMIT_STAGE_COPY_BYTES, &r->arena, &r->answer));
}

bool request_answer_encoded(struct request *r, struct bytes body)
{
    const int16_t header_version = wire_response_header_version(r->api_key, r->api_version);
    const struct response_header header = {.correlation_id = r->correlation_id};
    return leave(r, wire_frame_body(&msg_response_header, header_version, &header, body, &r->arena,
                                    &r->answer));
}

bool request_answer_whole(struct request *r, struct bytes answer)
{
    return leave(r, wire_frame_body(NULL, 0, NULL, answer, &r->arena, &r->answer));
}

void request_mark(struct request *r, int64_t mark)
{
    if (r->conn != NULL)
        r->conn->mark = mark;
}

void request_drop(struct request *r)
{
    struct conn *c = r->conn;
    CHECK(r->outer == NULL); /* who sent it waits for an answer */
    finish(r);
    drop(r->rpc, r);
    if (c != NULL)
        conn_start_requests(c);
}

void request_close(struct request *r, const char *reason)
{
    if (r->outer != NULL) {
        end_within(r, reason);
        return;
    }
    if (r->conn != NULL)
        conn_fail(r->conn, reason);
    finish(r);
    drop(r->rpc, r);
}
