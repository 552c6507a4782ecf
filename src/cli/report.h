/* JSON documents on stdout: built piece by piece, memory that runs out is told once at the end. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>

#include "base/types.h"

struct report {
    json_t *root;
    bool failed;
};

/* Takes root; NULL: out of memory. */
void report_init(struct report *r, json_t *root);
/* These take value, which may be NULL: out of memory. */
void report_put(struct report *r, json_t *object, const char *name, json_t *value);
void report_add(struct report *r, json_t *array, json_t *value);
/* Puts an empty object or array and returns it, which is the parent's. */
json_t *report_add_object(struct report *r, json_t *array);
json_t *report_put_array(struct report *r, json_t *object, const char *name);
/* null for null; what is not UTF-8 becomes '?'. */
json_t *report_text(struct str s);
json_t *report_uuid(struct uuid id);
json_t *report_ints(const int32_t *v, int32_t n);
/* Prints and frees it. CLI_FAILED: told. */
int report_print(struct report *r);

#endif
