#include "cli/topics.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/error.h"

int topics_find(struct client *c, char *const *names, size_t n, struct metadata *out)
{
    struct str *topics = calloc(n + 1, sizeof *topics);
    if (topics == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < n; i++)
        topics[i] = str_of(names[i]);
    const struct metadata_args args = {.scope = METADATA_TOPICS, .topics = topics, .n = n};
    int status = client_metadata(c, &args, out);
    for (size_t i = 0; i < n && status != CLI_FAILED; i++) {
        char what[300];
        const struct topic *t = metadata_topic(out, topics[i]);
        snprintf(what, sizeof what, "topic %s", names[i]);
        if (t == NULL || t->error != K_NONE)
            status = client_tell_kafka(what, t == NULL ? K_UNKNOWN_TOPIC_OR_PARTITION : t->error,
                                       STR_NULL);
    }
    free(topics);
    if (status != CLI_OK)
        metadata_close(out);
    return status;
}

int32_t topics_replicas(const struct topic *t)
{
    int32_t max = 0;
    for (int32_t i = 0; i < t->partitions_n; i++)
        max = t->partitions[i].replicas_n > max ? t->partitions[i].replicas_n : max;
    return max;
}

static const struct verb *const verbs[] = {
    &topics_list,           &topics_create, &topics_describe, &topics_delete,
    &topics_add_partitions, &topics_trim,   &topics_alter,
};

static int run(char **argv, int n)
{
    return line_verbs("topics", "Lists and changes topics.", verbs, ARRAY_N(verbs), argv, n);
}

const struct cli_command cli_topics = {"topics",
                                       "list, create, describe, delete, trim, alter topics", run};
