#include "wire/table.h"

const struct wire_message *wire_find(enum wire_kind kind, int16_t api_key)
{
    const struct wire_index *index = &wire_by_key[kind];
    return api_key >= 0 && api_key < index->n ? index->v[api_key] : NULL;
}

const struct wire_message *wire_find_name(const char *name)
{
    for (size_t i = 0; wire_messages[i] != NULL; i++) {
        if (strcmp(wire_messages[i]->name, name) == 0)
            return wire_messages[i];
    }
    return NULL;
}
