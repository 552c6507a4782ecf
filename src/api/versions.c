/* ApiVersions (KIP-35, KIP-511, KIP-584, KIP-1242): the table of APIs, the features of the image.
 * Every client asks for it, all get the same bytes: they are encoded once, until the image or the
 * quorum's version moves. */
#include <ctype.h>

#include "api/api.h"
#include "base/check.h"
#include "core/metadata/features.h"
#include "quorum/raft.h"
#include "wire/error.h"

/* What of e clients are told: of what travels to the controller only what that serves too, while
 * it is of another version (Kafka's forwardable APIs). */
static bool offered(const struct api *api, enum api_scope scope, const struct api_entry *e,
                    struct api_versions_response_api_version *v)
{
    *v = (struct api_versions_response_api_version){e->key, e->advertised_min, e->max};
    if ((e->scope & scope) == 0)
        return false;
    return scope != API_CLIENTS || (e->scope & API_FORWARDED) == 0 || api->forwarding == NULL ||
           channel_cut_range(api->forwarding, e->key, &v->min_version, &v->max_version);
}

static bool fill_keys(const struct api *api, enum api_scope scope,
                      struct api_versions_response *resp, struct arena *a)
{
    size_t n = 0;
    while (api_table[n].key >= 0)
        n++;
    resp->api_keys.v = wire_array(&wire_api_versions_response_api_version, a, n);
    if (resp->api_keys.v == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        resp->api_keys.n += offered(api, scope, &api_table[i], &resp->api_keys.v[resp->api_keys.n]);
    return true;
}

/* Up to v3 a feature whose lowest level is 0 is left out: those clients take 0 for "unknown". */
static bool fill_supported(int16_t version, struct api_versions_response *resp, struct arena *a)
{
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    resp->supported_features.v =
        wire_array(&wire_api_versions_response_supported_feature_key, a, n);
    if (resp->supported_features.v == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (version <= 3 && ranges[i].min == 0)
            continue;
        resp->supported_features.v[resp->supported_features.n++] =
            (struct api_versions_response_supported_feature_key){str_of(ranges[i].name),
                                                                 ranges[i].min, ranges[i].max};
    }
    return true;
}

static void add_finalized(struct api_versions_response *resp, const char *name, int16_t level)
{
    if (level > 0)
        resp->finalized_features.v[resp->finalized_features.n++] =
            (struct api_versions_response_finalized_feature_key){str_of(name), level, level};
}

/* Those of the image and the quorum's own, which is no record of the image's. */
static bool fill_finalized(const struct api *api, struct api_versions_response *resp,
                           struct arena *a)
{
    const struct image *img = api->image;
    resp->finalized_features.v = wire_array(&wire_api_versions_response_finalized_feature_key, a,
                                            (size_t)img->features_n + 1);
    if (resp->finalized_features.v == NULL)
        return false;
    for (int32_t i = 0; i < img->features_n; i++)
        add_finalized(resp, img->features[i].name, img->features[i].level);
    if (api->raft != NULL)
        add_finalized(resp, "kraft.version", raft_kraft_version(api->raft));
    resp->finalized_features_epoch = img->next_offset - 1;
    return true;
}

/* Letters and digits, inside also - and . (KIP-511). */
static bool software_name_valid(struct str s)
{
    if (s.n <= 0 || !isalnum((unsigned char)s.p[0]) || !isalnum((unsigned char)s.p[s.n - 1]))
        return false;
    for (int32_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-' && s.p[i] != '.')
            return false;
    return true;
}

/* KIP-1242: a client that expects another node is told to bootstrap again. */
static int16_t check_request(const struct api *api, const struct api_versions_request *req,
                             int16_t version)
{
    if (version >= 3 && (!software_name_valid(req->client_software_name) ||
                         !software_name_valid(req->client_software_version)))
        return K_INVALID_REQUEST;
    if ((req->cluster_id.n < 0) != (req->node_id == -1))
        return K_INVALID_REQUEST;
    if (req->node_id != -1 &&
        (req->node_id != api->node_id || !str_eq(req->cluster_id, str_of(api->cluster_id))))
        return K_REBOOTSTRAP_REQUIRED;
    return K_NONE;
}

static enum err encode(const struct api *api, struct request *r, struct buf *body)
{
    const enum api_scope scope = api_scope(api, r->listener);
    struct api_versions_response resp;
    wire_default(&wire_api_versions_response, &resp);
    if (!fill_keys(api, scope, &resp, &r->arena) ||
        !fill_supported(r->api_version, &resp, &r->arena) || !fill_finalized(api, &resp, &r->arena))
        return ERR_NOMEM;
    return wire_encode(&msg_api_versions_response, r->api_version, &resp, body);
}

void api_versions_forget(struct api_versions_kept *k)
{
    for (size_t i = 0; i < ARRAY_N(k->bodies); i++)
        for (size_t v = 0; v < ARRAY_N(k->bodies[i]); v++)
            buf_close(&k->bodies[i][v]);
}

/* The body for r; empty when it has to be encoded first. */
static struct buf *kept_body(struct api *api, const struct request *r)
{
    struct api_versions_kept *k = &api->versions;
    const int64_t image_end = api->image->next_offset;
    const int16_t kraft_version = api->raft != NULL ? raft_kraft_version(api->raft) : -1;
    const uint64_t turn = api->forwarding != NULL ? channel_ranges_turn(api->forwarding) : 0;
    if (k->image_end != image_end || k->kraft_version != kraft_version ||
        k->controller_turn != turn) {
        api_versions_forget(k);
        k->controller_turn = turn;
        k->image_end = image_end;
        k->kraft_version = kraft_version;
    }
    CHECK(r->api_version >= 0 && r->api_version < API_VERSIONS_N);
    return &k->bodies[api_scope(api, r->listener) == API_NODES][r->api_version];
}

void api_versions_start(struct api *api, struct request *r, struct now now)
{
    (void)now;
    const int16_t error = check_request(api, r->message, r->api_version);
    if (error != K_NONE) {
        struct api_versions_response resp;
        wire_default(&wire_api_versions_response, &resp);
        resp.error_code = error;
        request_answer(r, &msg_api_versions_response, &resp);
        return;
    }
    struct buf *body = kept_body(api, r);
    enum err e = body->n > 0 ? ERR_NONE : encode(api, r, body);
    if (e != ERR_NONE) {
        request_close(r, err_name(e));
        return;
    }
    request_answer_encoded(r, (struct bytes){body->p, (int32_t)body->n});
}

void api_versions_unsupported(struct request *r)
{
    struct api_versions_response resp;
    wire_default(&wire_api_versions_response, &resp);
    r->api_version = 0;
    resp.error_code = K_UNSUPPORTED_VERSION;
    resp.api_keys.v = wire_array(&wire_api_versions_response_api_version, &r->arena, 1);
    if (resp.api_keys.v == NULL) {
        request_close(r, "out of memory");
        return;
    }
    for (const struct api_entry *e = api_table; e->key >= 0; e++)
        if (e->key == API_API_VERSIONS)
            resp.api_keys.v[0] = (struct api_versions_response_api_version){e->key, e->min, e->max};
    resp.api_keys.n = 1;
    request_answer(r, &msg_api_versions_response, &resp);
}
