/* What went wrong, and what to do about it. */
#include <stdio.h>
#include <string.h>

#include "cli/client_impl.h"
#include "wire/error.h"

int client_out_of_memory(void)
{
    cli_error("out of memory");
    return CLI_FAILED;
}

void client_be_quiet(struct client *c, bool quiet)
{
    c->quiet = quiet;
}

void client_be_patient(struct client *c)
{
    c->patient = true;
}

static void api_name(const struct answer *a, char *out, size_t out_n)
{
    const struct wire_message *m = wire_find(WIRE_REQUEST, a->call.api_key);
    const char *name = m == NULL ? "?" : m->name;
    const char *end = strstr(name, "Request");
    snprintf(out, out_n, "%.*s", end == NULL ? (int)strlen(name) : (int)(end - name), name);
}

int client_tell(const struct answer *a)
{
    char api[64];
    const char *where = broker_name(a->broker), *why = dial_reason(a->broker->dial);
    if (a->broker->client->quiet)
        return CLI_FAILED;
    api_name(a, api, sizeof api);
    if (a->err == ERR_NOMEM)
        return client_out_of_memory();
    if (a->err == ERR_CLOSED && a->call.sent)
        cli_error("the broker at %s ended the connection while it was asked for %s: %s", where, api,
                  why);
    else if (a->err == ERR_CLOSED || (a->err == ERR_TIMEOUT && !a->call.sent && why[0] != '\0'))
        cli_error("no broker at %s: %s. Is it running? --brokers HOST:PORT or DOHLE_BROKERS says "
                  "where it is",
                  where, why);
    else if (a->err == ERR_TIMEOUT && a->call.sent)
        cli_error("the broker at %s did not answer %s in time; --timeout SECONDS allows more",
                  where, api);
    else if (a->err == ERR_TIMEOUT)
        cli_error("no broker answers at %s in time. Is it running?", where);
    else if (a->err == ERR_UNSUPPORTED)
        cli_error("the broker at %s does not serve %s", where, api);
    else if (a->err == ERR_CORRUPT || a->err == ERR_TOO_LARGE)
        cli_error("what answers at %s does not speak Kafka's protocol. Is it a broker, and its "
                  "listener without TLS?",
                  where);
    else
        cli_error("cannot ask %s for %s: %s", where, api, err_name(a->err));
    return CLI_FAILED;
}

static const struct {
    int16_t code;
    const char *text;
} texts[] = {
    {K_UNKNOWN_SERVER_ERROR, "the broker failed; its log says why"},
    {K_OFFSET_OUT_OF_RANGE, "no such offset"},
    {K_CORRUPT_MESSAGE, "the records arrived damaged"},
    {K_UNKNOWN_TOPIC_OR_PARTITION, "no such topic or partition"},
    {K_LEADER_NOT_AVAILABLE, "it has no leader yet"},
    {K_NOT_LEADER_OR_FOLLOWER, "its leader moved"},
    {K_REQUEST_TIMED_OUT, "the broker did not finish in time"},
    {K_BROKER_NOT_AVAILABLE, "that broker is not there"},
    {K_MESSAGE_TOO_LARGE, "larger than the topic's max.message.bytes"},
    {K_COORDINATOR_LOAD_IN_PROGRESS, "its coordinator is starting"},
    {K_COORDINATOR_NOT_AVAILABLE, "it has no coordinator yet"},
    {K_NOT_COORDINATOR, "its coordinator moved"},
    {K_INVALID_TOPIC_EXCEPTION, "not a topic's name"},
    {K_RECORD_LIST_TOO_LARGE, "larger than the topic's segment.bytes"},
    {K_NOT_ENOUGH_REPLICAS, "fewer replicas in sync than min.insync.replicas"},
    {K_NOT_ENOUGH_REPLICAS_AFTER_APPEND, "fewer replicas in sync than min.insync.replicas"},
    {K_UNKNOWN_MEMBER_ID, "the group has members: only they may commit"},
    {K_ILLEGAL_GENERATION, "the group has moved on"},
    {K_INCONSISTENT_GROUP_PROTOCOL,
     "its members share partitions in another way (by another assignor)"},
    {K_GROUP_MAX_SIZE_REACHED, "the group has all the members that group.max.size allows"},
    {K_REBALANCE_IN_PROGRESS, "the group is rebalancing"},
    {K_INVALID_GROUP_ID, "not a group's name"},
    {K_TOPIC_AUTHORIZATION_FAILED, "not allowed on this topic"},
    {K_GROUP_AUTHORIZATION_FAILED, "not allowed on this group"},
    {K_CLUSTER_AUTHORIZATION_FAILED, "not allowed on this cluster"},
    {K_TOPIC_ALREADY_EXISTS, "it exists already"},
    {K_INVALID_PARTITIONS, "not a valid number of partitions"},
    {K_INVALID_REPLICATION_FACTOR, "there are not that many brokers, or it is below 1"},
    {K_INVALID_CONFIG, "not a valid configuration"},
    {K_NOT_CONTROLLER, "the controller moved"},
    {K_INVALID_REQUEST, "the broker refuses the request"},
    {K_UNSUPPORTED_VERSION, "the broker does not serve it"},
    {K_POLICY_VIOLATION, "the cluster's policy forbids it"},
    {K_KAFKA_STORAGE_ERROR, "its disk failed or is full"},
    {K_NON_EMPTY_GROUP, "the group has members: stop them first"},
    {K_GROUP_ID_NOT_FOUND, "no such group"},
    {K_OUT_OF_ORDER_SEQUENCE_NUMBER, "the broker has lost records that it had acknowledged"},
    {K_UNKNOWN_PRODUCER_ID, "the broker has lost records that it had acknowledged"},
    {K_SECURITY_DISABLED, "the cluster has no authorizer"},
    {K_THROTTLING_QUOTA_EXCEEDED, "the cluster's quota is used up for now"},
    {K_FENCED_LEADER_EPOCH, "its leader moved"},
    {K_UNKNOWN_LEADER_EPOCH, "its leader moved"},
    {K_UNKNOWN_TOPIC_ID, "the topic was deleted"},
    {K_INVALID_RECORD, "the topic refuses such records (a compacted topic needs keys)"},
    {K_TOPIC_DELETION_DISABLED, "the brokers' delete.topic.enable is false"},
    {K_UNSTABLE_OFFSET_COMMIT, "a transaction holds its offset"},
};

const char *client_error_text(int16_t code)
{
    for (size_t i = 0; i < ARRAY_N(texts); i++)
        if (texts[i].code == code)
            return texts[i].text;
    return "the broker refuses";
}

int client_tell_kafka(const char *what, int16_t code, struct str message)
{
    if (message.n > 0)
        cli_error("%s: %.*s (%s)", what, message.n > 600 ? 600 : message.n, message.p,
                  kafka_error_name(code));
    else
        cli_error("%s: %s (%s)", what, client_error_text(code), kafka_error_name(code));
    return CLI_FAILED;
}
