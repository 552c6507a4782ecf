/* Which header a frame has. Kafka: a flexible request has header 2, its response header 1; clients
 * must be able to read the answer to an ApiVersions request of a version that the broker does not
 * know, so that answer keeps header 0. */
#include "wire/api_key.h"
#include "wire/codec.h"

int16_t wire_request_header_version(int16_t api_key, int16_t version)
{
    const struct wire_message *m = wire_find(WIRE_REQUEST, api_key);
    if (m == NULL)
        return -1;
    return version >= m->flexible_min ? 2 : 1;
}

int16_t wire_response_header_version(int16_t api_key, int16_t version)
{
    const struct wire_message *m = wire_find(WIRE_RESPONSE, api_key);
    if (m == NULL)
        return -1;
    return api_key != API_API_VERSIONS && version >= m->flexible_min ? 1 : 0;
}
