/* Which header a frame has. Kafka: a flexible request has header 2, its response header 1; clients
 * must be able to read the answer to an ApiVersions request of a version that the broker does not
 * know, so that answer keeps header 0. */
#include "wire/api_key.h"
#include "wire/table.h"

static bool is_flexible(int16_t api_key, int16_t version)
{
    return version >= wire_apis[api_key].flexible_min;
}

static bool is_known(int16_t api_key)
{
    return api_key >= 0 && api_key < API_KEYS_N && wire_apis[api_key].known;
}

int16_t wire_request_header_version(int16_t api_key, int16_t version)
{
    if (!is_known(api_key))
        return -1;
    return is_flexible(api_key, version) ? 2 : 1;
}

int16_t wire_response_header_version(int16_t api_key, int16_t version)
{
    if (!is_known(api_key))
        return -1;
    return api_key != API_API_VERSIONS && is_flexible(api_key, version) ? 1 : 0;
}
