#include "core/metadata/random_uuid.h"

struct uuid uuid_random(struct env *env)
{
    struct uuid id;
    char text[UUID_TEXT_N + 1];
    do {
        env->random(env, id.b, sizeof id.b);
        id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x40); /* so none of the reserved ones */
        id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
        uuid_print(id, text);
    } while (text[0] == '-');
    return id;
}
