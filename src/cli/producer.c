#include "cli/producer.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/producer_impl.h"
#include "os/clocks.h"
#include "wire/error.h"

enum { BY_NAME_VERSION = 12, REQUEST_BYTES = 8 << 20 };

/* One request under way: the first batches of partitions of one leader. */
struct send {
    struct list link;
    struct answer answer;
    struct produce_request request;
    struct produce_request_topic_produce_data topic;
    struct produce_request_partition_produce_data *data;
    struct producer_partition **parts; /* of data */
};

static int tell(const struct producer *p, int32_t partition, int16_t code, struct str message)
{
    char what[300];
    snprintf(what, sizeof what, "%.*s-%d", p->args.topic.n, p->args.topic.p, partition);
    return client_tell_kafka(what, code, message);
}

static void find_leader_soon(struct producer *p, struct producer_partition *part)
{
    const int64_t now_us = os_now().mono_us;
    part->leader = -1;
    if (p->refresh_us == INT64_MAX)
        p->refresh_us = now_us + CLIENT_RETRY_MS * 1000;
    if (p->failing_us == INT64_MAX)
        p->failing_us = now_us;
}

/* ------------------------------------------------------------------ sending */

static void send_free(struct send *s)
{
    list_remove(&s->link);
    answer_close(&s->answer);
    free(s->data);
    free(s->parts);
    free(s);
}

static bool may_send(const struct producer_partition *part, int32_t leader)
{
    return part->leader == leader && !part->in_flight && !list_empty(&part->batches);
}

static bool is_busy(const struct producer *p, const struct broker *b)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->sends)
    {
        if (LIST_ENTRY(l, struct send, link)->answer.broker == b)
            return true;
    }
    return false;
}

static struct send *send_new(struct producer *p)
{
    struct send *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    list_init(&s->link);
    s->data = calloc((size_t)p->n, sizeof *s->data);
    s->parts = calloc((size_t)p->n, sizeof *s->parts);
    if (s->data == NULL || s->parts == NULL) {
        send_free(s);
        return NULL;
    }
    wire_default(&wire_produce_request, &s->request);
    wire_default(&wire_produce_request_topic_produce_data, &s->topic);
    s->topic.name = p->args.topic;
    s->topic.partition_data.v = s->data;
    s->request.acks = p->args.acks;
    s->request.timeout_ms = client_timeout_ms(p->args.client);
    s->request.topic_data.v = &s->topic;
    s->request.topic_data.n = 1;
    return s;
}

/* The first batches of partitions that follow the leader, as many as a request should hold. */
static int fill(struct producer *p, struct send *s, int32_t leader)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < p->n && bytes < REQUEST_BYTES; i++) {
        struct producer_partition *part = &p->v[i];
        int status = CLI_OK;
        if (!may_send(part, leader))
            continue;
        const struct producer_batch *b = producer_first(p, part, &status);
        if (status != CLI_OK)
            return status;
        const int32_t at = s->topic.partition_data.n++;
        s->data[at].index = part->index;
        s->data[at].records = (struct wire_records){.p = b->bytes.p, .n = b->bytes.n};
        s->parts[at] = part;
        part->in_flight = true;
        bytes += (size_t)b->bytes.n;
    }
    return CLI_OK;
}

static int send_to(struct producer *p, struct broker *b, int32_t leader)
{
    struct send *s = send_new(p);
    if (s == NULL)
        return client_out_of_memory();
    const int status = fill(p, s, leader);
    if (status != CLI_OK) {
        send_free(s);
        return status;
    }
    list_append(&p->sends, &s->link);
    client_ask(p->args.client, b, &s->answer, API_PRODUCE, BY_NAME_VERSION, &s->request);
    s->answer.call.no_answer = p->args.acks == 0;
    return CLI_OK;
}

static int send_all(struct producer *p)
{
    int status = CLI_OK;
    for (int32_t i = 0; i < p->n && status == CLI_OK; i++) {
        const int32_t leader = p->v[i].leader;
        struct broker *b = client_broker(p->args.client, leader);
        if (!may_send(&p->v[i], leader))
            continue;
        if (b == NULL)
            find_leader_soon(p, &p->v[i]);
        else if (!is_busy(p, b))
            status = send_to(p, b, leader);
    }
    return status;
}

/* ------------------------------------------------------------------ answers */

static void written(struct producer *p, struct producer_partition *part)
{
    const struct producer_batch *b = LIST_ENTRY(part->batches.next, struct producer_batch, link);
    p->written_n += (uint64_t)b->records_n;
    p->written_bytes += b->own_bytes;
    producer_drop_first(p, part);
    p->failing_us = INT64_MAX;
}

static int take_result(struct producer *p, struct producer_partition *part,
                       const struct produce_response_partition_produce_response *r)
{
    int status = CLI_OK;
    if (r->error_code == K_NONE || r->error_code == K_DUPLICATE_SEQUENCE_NUMBER) {
        written(p, part);
        return CLI_OK;
    }
    if (r->error_code == K_MESSAGE_TOO_LARGE && producer_split_first(p, part, &status))
        return CLI_OK;
    if (status == CLI_OK && kafka_error_retriable(r->error_code)) {
        p->last_error = r->error_code;
        find_leader_soon(p, part);
        return CLI_OK;
    }
    return status != CLI_OK ? status : tell(p, part->index, r->error_code, r->error_message);
}

static int take_response(struct producer *p, struct send *s,
                         const struct produce_response *response)
{
    int status = CLI_OK;
    for (int32_t t = 0; t < response->responses.n; t++)
        for (int32_t i = 0; i < response->responses.v[t].partition_responses.n; i++) {
            const struct produce_response_partition_produce_response *r =
                &response->responses.v[t].partition_responses.v[i];
            for (int32_t k = 0; k < s->topic.partition_data.n && status == CLI_OK; k++)
                if (s->parts[k]->index == r->index && s->parts[k]->in_flight &&
                    str_eq(response->responses.v[t].name, p->args.topic)) {
                    s->parts[k]->in_flight = false;
                    status = take_result(p, s->parts[k], r);
                }
        }
    return status;
}

/* acks=0: what left is as good as written. */
static void take_nothing(struct producer *p, struct send *s)
{
    for (int32_t k = 0; k < s->topic.partition_data.n; k++) {
        s->parts[k]->in_flight = false;
        written(p, s->parts[k]);
    }
}

/* What may be over soon is told once, until that broker answers again. */
static void tell_loss(struct producer *p, const struct answer *a)
{
    if (p->told != a->broker)
        (void)client_tell(a);
    p->told = a->broker;
}

static int take_answer(struct producer *p, struct send *s)
{
    const struct answer *a = &s->answer;
    int status = CLI_OK;
    if (a->err == ERR_NONE && p->told == a->broker)
        p->told = NULL;
    if (a->err == ERR_NONE && a->response == NULL)
        take_nothing(p, s);
    else if (a->err == ERR_NONE)
        status = take_response(p, s, a->response);
    else if (a->err == ERR_CLOSED || a->err == ERR_TIMEOUT)
        tell_loss(p, a);
    else
        status = client_tell(a);
    for (int32_t k = 0; k < s->topic.partition_data.n; k++) {
        if (!s->parts[k]->in_flight)
            continue;
        s->parts[k]->in_flight = false; /* it has no answer */
        find_leader_soon(p, s->parts[k]);
    }
    send_free(s);
    return status;
}

static int take_answers(struct producer *p)
{
    int status = CLI_OK;
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->sends)
    {
        struct send *s = LIST_ENTRY(l, struct send, link);
        if (!s->answer.open && status == CLI_OK)
            status = take_answer(p, s);
    }
    return status;
}

/* ------------------------------------------------------------------ leaders */

/* False: some partition that has records has no leader. */
static bool find_leaders(struct producer *p, const struct topic *t)
{
    bool all = true;
    for (int32_t i = 0, k = 0; i < p->n; i++) {
        struct producer_partition *part = &p->v[i];
        while (k < t->partitions_n && t->partitions[k].index < part->index)
            k++;
        if (part->leader < 0 && k < t->partitions_n && t->partitions[k].index == part->index &&
            client_broker(p->args.client, t->partitions[k].leader) != NULL)
            part->leader = t->partitions[k].leader;
        all &= part->leader >= 0 || list_empty(&part->batches);
    }
    return all;
}

static int refresh(struct producer *p)
{
    const int64_t now_us = os_now().mono_us;
    const bool last = p->failing_us != INT64_MAX &&
                      now_us - p->failing_us >= client_timeout_ms(p->args.client) * (int64_t)1000;
    const struct metadata_args args = {
        .scope = METADATA_TOPICS, .topics = &p->args.topic, .n = 1, .create = true};
    struct metadata m;
    p->refresh_us = now_us + CLIENT_RETRY_MS * 1000;
    client_be_quiet(p->args.client, !last);
    int status = client_metadata(p->args.client, &args, &m);
    client_be_quiet(p->args.client, false);
    if (status != CLI_OK)
        return last ? status : CLI_OK;
    const struct topic *t = metadata_topic(&m, p->args.topic);
    const int16_t code = t == NULL ? K_UNKNOWN_TOPIC_OR_PARTITION : t->error;
    if (code == K_NONE && find_leaders(p, t))
        p->refresh_us = INT64_MAX;
    if (last || (code != K_NONE && !kafka_error_retriable(code)))
        status = tell(p, p->v[0].index,
                      code != K_NONE            ? code
                      : p->last_error != K_NONE ? p->last_error
                                                : K_LEADER_NOT_AVAILABLE,
                      STR_NULL);
    metadata_close(&m);
    return status;
}

/* ------------------------------------------------------------------ steps */

int producer_step(struct producer *p)
{
    int status = take_answers(p);
    if (status == CLI_OK && client_now(p->args.client).mono_us >= p->refresh_us)
        status = refresh(p);
    return status == CLI_OK ? send_all(p) : status;
}

int64_t producer_deadline_us(const struct producer *p)
{
    return p->refresh_us;
}

int producer_flush(struct producer *p)
{
    int status = producer_step(p);
    while (status == CLI_OK && p->pending_bytes > 0) {
        client_turn(p->args.client, p->refresh_us);
        status = producer_step(p);
    }
    return status;
}

/* ------------------------------------------------------------------ beginning and end */

static int take_topic(struct producer *p, const struct topic *t)
{
    p->v = calloc((size_t)t->partitions_n + 1, sizeof *p->v);
    if (p->v == NULL)
        return client_out_of_memory();
    p->n = t->partitions_n;
    for (int32_t i = 0; i < p->n; i++) {
        p->v[i].index = t->partitions[i].index;
        p->v[i].leader = -1;
        list_init(&p->v[i].batches);
    }
    p->turn = (int32_t)((uint32_t)os_now().wall_ms % (uint32_t)p->n);
    if (!find_leaders(p, t)) /* no partition has records yet: never */
        return CLI_FAILED;
    p->refresh_us = INT64_MAX;
    return CLI_OK;
}

/* The topic's partitions; one that is being made is waited for. */
static int find_topic(struct producer *p)
{
    struct client *c = p->args.client;
    const int64_t deadline_us = client_deadline_us(c);
    const struct metadata_args args = {
        .scope = METADATA_TOPICS, .topics = &p->args.topic, .n = 1, .create = true};
    for (;;) {
        struct metadata m;
        char what[300];
        int status = client_metadata(c, &args, &m);
        if (status != CLI_OK)
            return status;
        const struct topic *t = metadata_topic(&m, p->args.topic);
        const int16_t code = t == NULL ? K_UNKNOWN_TOPIC_OR_PARTITION : t->error;
        const bool found = code == K_NONE && t->partitions_n > 0;
        if (found)
            status = take_topic(p, t);
        metadata_close(&m);
        if (found)
            return status;
        if (code == K_LEADER_NOT_AVAILABLE && client_pause(c, deadline_us))
            continue;
        snprintf(what, sizeof what, "topic %.*s", p->args.topic.n, p->args.topic.p);
        return client_tell_kafka(what, code == K_NONE ? K_LEADER_NOT_AVAILABLE : code, STR_NULL);
    }
}

static int get_id(struct producer *p)
{
    const int64_t deadline_us = client_deadline_us(p->args.client);
    p->id = -1;
    p->epoch = -1;
    if (p->args.acks != -1)
        return CLI_OK;
    for (;;) {
        struct init_producer_id_request request;
        struct answer a;
        wire_default(&wire_init_producer_id_request, &request);
        request.transactional_id = STR_NULL;
        request.transaction_timeout_ms = INT32_MAX;
        const int status = client_call_any(p->args.client, &a, API_INIT_PRODUCER_ID, -1, &request);
        if (status != CLI_OK)
            return status;
        const struct init_producer_id_response *r = a.response;
        const int16_t code = r->error_code;
        p->id = r->producer_id < 0 ? -1 : r->producer_id;
        p->epoch = p->id < 0 ? -1 : r->producer_epoch;
        answer_close(&a);
        if (code == K_NONE)
            return CLI_OK;
        if (!kafka_error_retriable(code) || !client_pause(p->args.client, deadline_us))
            return client_tell_kafka("the producer's id", code, STR_NULL);
    }
}

int producer_open(struct producer *p, const struct producer_args *args)
{
    *p = (struct producer){.args = *args, .refresh_us = INT64_MAX, .failing_us = INT64_MAX};
    list_init(&p->sends);
    const int status = find_topic(p);
    return status == CLI_OK ? get_id(p) : status;
}

void producer_close(struct producer *p)
{
    struct list *l;
    while ((l = list_pop(&p->sends)) != NULL) {
        struct send *s = LIST_ENTRY(l, struct send, link);
        client_cancel(p->args.client, &s->answer);
        send_free(s);
    }
    for (int32_t i = 0; i < p->n; i++)
        while (!list_empty(&p->v[i].batches))
            producer_drop_first(p, &p->v[i]);
    free(p->v);
}
