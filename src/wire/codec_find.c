/* Look-ups over all messages. Only tools and tests want them: they reference every table, which the
 * linker otherwise drops where nothing uses it. */
#include "wire/codec.h"

const struct wire_message *wire_find(enum wire_kind kind, int16_t api_key)
{
    if (kind == WIRE_HEADER || kind == WIRE_DATA)
        return NULL; /* their keys are not unique */
    for (size_t i = 0; wire_messages[i] != NULL; i++) {
        if (wire_messages[i]->kind == kind && wire_messages[i]->api_key == api_key)
            return wire_messages[i];
    }
    return NULL;
}

const struct wire_message *wire_find_name(const char *name)
{
    for (size_t i = 0; wire_messages[i] != NULL; i++) {
        if (strcmp(wire_messages[i]->name, name) == 0)
            return wire_messages[i];
    }
    return NULL;
}
