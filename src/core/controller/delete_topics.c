/* DeleteTopics by name or id (KIP-4, KIP-516). A topic that the request names twice, in whatever
 * way, gets one answer and is not deleted. */
#include "core/controller/inside.h"

struct deletion {
    struct controller *c;
    struct arena *arena;
    struct map seen; /* what an entry means -> its result */
    struct buf key;
    struct delete_topics_response *resp;
};

/* Two entries that mean the same topic, or the same unknown one, have the same key. */
static enum err key_of(struct deletion *d, const struct image_topic *t, struct str name,
                       struct uuid id)
{
    const bool named = t == NULL && name.n >= 0;
    const char kind = t != NULL ? 't' : named ? 'n' : 'i';
    d->key.n = 0;
    enum err e = buf_append(&d->key, &kind, 1);
    if (e != ERR_NONE || (named && name.n == 0))
        return e;
    if (named)
        return buf_append(&d->key, name.p, (size_t)name.n);
    return buf_append(&d->key, t != NULL ? t->id.b : id.b, sizeof id.b);
}

static void judge(struct delete_topics_response_deletable_topic_result *out,
                  const struct image_topic *t, struct str name, struct uuid id)
{
    if (name.n < 0 && uuid_is_zero(id)) {
        out->error_code = K_INVALID_REQUEST;
        out->error_message = STR_LIT("Neither name nor id is given");
    } else if (name.n >= 0 && !uuid_is_zero(id)) {
        out->error_code = K_INVALID_REQUEST;
        out->error_message = STR_LIT("Both name and id are given");
    } else if (t == NULL) {
        out->error_code = name.n >= 0 ? K_UNKNOWN_TOPIC_OR_PARTITION : K_UNKNOWN_TOPIC_ID;
        out->error_message = STR_LIT("There is no such topic");
    }
}

static enum err take(struct deletion *d, struct str name, struct uuid id)
{
    const struct image *img = &d->c->ahead;
    const struct image_topic *t = NULL;
    if (name.n >= 0 && uuid_is_zero(id))
        t = image_topic_named(img, name);
    else if (name.n < 0 && !uuid_is_zero(id))
        t = image_topic_by_id(img, id);
    enum err e = key_of(d, t, name, id);
    if (e != ERR_NONE)
        return e;
    struct delete_topics_response_deletable_topic_result *out =
        map_get(&d->seen, d->key.p, d->key.n);
    const bool twice = out != NULL;
    if (!twice)
        out = &d->resp->responses.v[d->resp->responses.n++];
    out->name = name;
    out->topic_id = id;
    if (t != NULL) {
        out->topic_id = t->id;
        const char *copy = name.n >= 0 ? NULL : arena_strdup(d->arena, str_of(t->name));
        if (name.n < 0 && copy == NULL)
            return ERR_NOMEM;
        if (copy != NULL)
            out->name = str_of(copy);
    }
    judge(out, t, name, id);
    if (twice) {
        out->error_code = K_INVALID_REQUEST;
        out->error_message = STR_LIT("The request names this topic twice");
        return ERR_NONE;
    }
    return map_put(&d->seen, d->key.p, d->key.n, out);
}

static enum err take_all(struct deletion *d, const struct delete_topics_request *req,
                         int16_t version)
{
    const int32_t n = version >= 6 ? req->topics.n : req->topic_names.n;
    d->resp->responses.v =
        wire_array(&wire_delete_topics_response_deletable_topic_result, d->arena, (size_t)n);
    if (d->resp->responses.v == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < n; i++) {
        const struct uuid none = {{0}};
        enum err e = version >= 6 ? take(d, req->topics.v[i].name, req->topics.v[i].topic_id)
                                  : take(d, req->topic_names.v[i], none);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

static enum err append_removals(struct deletion *d, struct now now)
{
    struct record_list rl;
    enum err e = ERR_NONE;
    record_list_init(&rl);
    for (int32_t i = 0; e == ERR_NONE && i < d->resp->responses.n; i++) {
        const struct remove_topic_record r = {d->resp->responses.v[i].topic_id};
        if (d->resp->responses.v[i].error_code == K_NONE)
            e = record_list_add(&rl, &msg_remove_topic_record, 0, &r);
    }
    if (e == ERR_NONE)
        e = controller_append(d->c, &rl, false, now);
    record_list_close(&rl);
    return e;
}

void controller_delete_topics(struct controller *c, struct controller_op *op,
                              const struct delete_topics_request *req, int16_t version,
                              struct arena *a, struct delete_topics_response *resp, struct now now)
{
    if (!controller_begin(c, op))
        return;
    struct deletion d = {.c = c, .arena = a, .resp = resp};
    map_init(&d.seen, c->ahead.seed);
    buf_init(&d.key);
    enum err e = take_all(&d, req, version);
    if (e == ERR_NONE)
        e = append_removals(&d, now);
    map_close(&d.seen);
    buf_close(&d.key);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
