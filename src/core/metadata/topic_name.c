#include "core/metadata/topic_name.h"

#include "base/limits.h"

bool topic_name_valid(struct str name)
{
    if (name.n <= 0 || name.n > LIMIT_NAME_MAX || str_eq(name, STR_LIT(".")) ||
        str_eq(name, STR_LIT("..")))
        return false;
    for (int32_t i = 0; i < name.n; i++) {
        const char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

bool topic_is_internal(struct str name)
{
    return str_eq(name, STR_LIT("__consumer_offsets")) ||
           str_eq(name, STR_LIT("__transaction_state")) ||
           str_eq(name, STR_LIT("__share_group_state"));
}
