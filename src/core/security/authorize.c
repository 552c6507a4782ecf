#include "core/security/authorize.h"

void authorizer_init(struct authorizer *a, const struct config *config)
{
    const char *class_name = config_text(config, "authorizer.class.name");
    *a = (struct authorizer){.denies_all = class_name != NULL && class_name[0] != '\0'};
}

bool authorize(const struct authorizer *a, struct str principal, enum acl_operation op,
               enum acl_resource_type type, struct str resource)
{
    (void)principal;
    (void)op;
    (void)type;
    (void)resource;
    return !a->denies_all;
}
