/* A broker's configuration is asked of that broker, which knows its file; all others of any. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/configs.h"
#include "cli/text.h"
#include "wire/error.h"

enum { OP_SET = 0, OP_DELETE = 1 };

enum config_source {
    SOURCE_TOPIC = 1,
    SOURCE_BROKER,
    SOURCE_BROKERS,
    SOURCE_STATIC,
    SOURCE_DEFAULT,
    SOURCE_LOGGER,
    SOURCE_CLIENT_METRICS,
    SOURCE_GROUP,
};

const char *configs_source(int8_t source)
{
    static const char *const names[] = {[SOURCE_TOPIC] = "topic",
                                        [SOURCE_BROKER] = "broker",
                                        [SOURCE_BROKERS] = "brokers",
                                        [SOURCE_STATIC] = "static",
                                        [SOURCE_DEFAULT] = "default",
                                        [SOURCE_LOGGER] = "logger",
                                        [SOURCE_CLIENT_METRICS] = "client-metrics",
                                        [SOURCE_GROUP] = "group"};
    return source > 0 && (size_t)source < ARRAY_N(names) ? names[source] : "?";
}

bool configs_is_default(int8_t source)
{
    return source == SOURCE_DEFAULT;
}

bool configs_is_own(const struct config_resource *r, int8_t source)
{
    switch (r->type) {
    case CONFIG_OF_TOPIC:
        return source == SOURCE_TOPIC;
    case CONFIG_OF_BROKER:
        return source == (r->name.n == 0 ? SOURCE_BROKERS : SOURCE_BROKER);
    case CONFIG_OF_GROUP:
        return source == SOURCE_GROUP;
    }
    return false;
}

const char *configs_what(const struct config_resource *r, char out[CONFIGS_WHAT_BYTES])
{
    const char *type = r->type == CONFIG_OF_TOPIC    ? "topic"
                       : r->type == CONFIG_OF_BROKER ? "broker"
                                                     : "group";
    const struct str name = r->name.n == 0 ? STR_LIT("default") : r->name;
    snprintf(out, CONFIGS_WHAT_BYTES, "%s %.*s", type, name.n, name.p);
    return out;
}

/* Who is to be asked. */
static int find_broker(struct client *c, const struct config_resource *r, struct broker **out)
{
    char what[CONFIGS_WHAT_BYTES], digits[16];
    int64_t id;
    int status = client_controller(c, out);
    if (status != CLI_OK || r->type != CONFIG_OF_BROKER || r->name.n == 0)
        return status;
    snprintf(digits, sizeof digits, "%.*s", r->name.n, r->name.p);
    *out = text_int(digits, 0, INT32_MAX, &id) ? client_broker(c, (int32_t)id) : NULL;
    if (*out != NULL)
        return CLI_OK;
    cli_error("%s: the cluster has no such broker; dohle cluster info lists them",
              configs_what(r, what));
    return CLI_FAILED;
}

/* ------------------------------------------------------------------ changes */

static int tell_change(const struct config_resource *r, const struct answer *a)
{
    char what[CONFIGS_WHAT_BYTES];
    const struct incremental_alter_configs_response *response = a->response;
    if (response->responses.n != 1)
        return client_tell_kafka(configs_what(r, what), K_UNKNOWN_SERVER_ERROR, STR_NULL);
    if (response->responses.v[0].error_code != K_NONE)
        return client_tell_kafka(configs_what(r, what), response->responses.v[0].error_code,
                                 response->responses.v[0].error_message);
    return CLI_OK;
}

int configs_change(struct client *c, const struct config_resource *r,
                   const struct line_pairs *pairs)
{
    struct incremental_alter_configs_request request;
    struct incremental_alter_configs_request_alter_configs_resource resource;
    struct incremental_alter_configs_request_alterable_config *configs =
        calloc(pairs->n + 1, sizeof *configs);
    struct answer a = {0};
    struct broker *b;
    if (configs == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < pairs->n; i++) {
        configs[i].name = pairs->v[i].key;
        configs[i].value = pairs->v[i].value;
        configs[i].config_operation = pairs->v[i].value.n < 0 ? OP_DELETE : OP_SET;
    }
    wire_default(&wire_incremental_alter_configs_request, &request);
    wire_default(&wire_incremental_alter_configs_request_alter_configs_resource, &resource);
    resource.resource_type = (int8_t)r->type;
    resource.resource_name = r->name;
    resource.configs.v = configs;
    resource.configs.n = (int32_t)pairs->n;
    request.resources.v = &resource;
    request.resources.n = 1;
    int status = find_broker(c, r, &b);
    if (status == CLI_OK)
        status = client_call(c, b, &a, API_INCREMENTAL_ALTER_CONFIGS, -1, &request);
    if (status == CLI_OK)
        status = tell_change(r, &a);
    answer_close(&a);
    free(configs);
    return status;
}

/* ------------------------------------------------------------------ reading */

static int by_name(const void *a, const void *b)
{
    const struct describe_configs_response_describe_configs_resource_result *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

static int take_configs(const struct config_resource *r, struct configs *out)
{
    char what[CONFIGS_WHAT_BYTES];
    const struct describe_configs_response *response = out->answer.response;
    if (response->results.n != 1)
        return client_tell_kafka(configs_what(r, what), K_UNKNOWN_SERVER_ERROR, STR_NULL);
    const struct describe_configs_response_describe_configs_result *result = response->results.v;
    if (result->error_code != K_NONE)
        return client_tell_kafka(configs_what(r, what), result->error_code, result->error_message);
    out->v = result->configs.v;
    out->n = result->configs.n < 0 ? 0 : (size_t)result->configs.n;
    if (out->n > 1)
        qsort(out->v, out->n, sizeof *out->v, by_name);
    return CLI_OK;
}

int configs_read(struct client *c, const struct config_resource *r, struct configs *out)
{
    struct describe_configs_request request;
    struct describe_configs_request_describe_configs_resource resource;
    struct broker *b;
    *out = (struct configs){0};
    wire_default(&wire_describe_configs_request, &request);
    wire_default(&wire_describe_configs_request_describe_configs_resource, &resource);
    resource.resource_type = (int8_t)r->type;
    resource.resource_name = r->name;
    resource.configuration_keys.n = -1; /* all */
    request.resources.v = &resource;
    request.resources.n = 1;
    int status = find_broker(c, r, &b);
    if (status == CLI_OK)
        status = client_call(c, b, &out->answer, API_DESCRIBE_CONFIGS, -1, &request);
    if (status == CLI_OK)
        status = take_configs(r, out);
    if (status != CLI_OK)
        configs_close(out);
    return status;
}

void configs_close(struct configs *configs)
{
    answer_close(&configs->answer);
    *configs = (struct configs){0};
}
