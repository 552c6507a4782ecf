/* Arbitrary bytes as a properties file, then all that several keys say together. What is taken has
 * listeners and a directory, and every topic key resolves. */
#include "base/check.h"
#include "core/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[512];
    struct config *c;
    struct topic_config topic;
    size_t n;

    if (config_new(&c) != ERR_NONE)
        return 0;
    const struct str text = {(const char *)data, (int32_t)size};
    enum err e = config_parse_properties(c, text, "fuzz", NULL, NULL, message, sizeof message);
    if (e == ERR_NONE)
        e = config_finish(c, message, sizeof message);
    if (e == ERR_NONE) {
        const struct listener *l = config_listeners(c, &n);
        CHECK(n > 0 && l[0].name[0] != '\0' && l[0].advertised_host[0] != '\0');
        CHECK(config_log_dirs(c, &n)[0][0] != '\0' && n > 0);
        CHECK(config_metadata_log_dir(c)[0] != '\0');
        topic_config_resolve(c, NULL, NULL, &topic);
        CHECK(topic.log.segment_ms > 0 && topic.log.flush_messages > 0);
    } else {
        CHECK(e == ERR_INVALID && memchr(message, '\0', sizeof message) != NULL);
    }
    config_free(c);
    return 0;
}
