#include "cli/report.h"

#include <stdio.h>

#include "cli/client.h"
#include "cli/text.h"

void report_init(struct report *r, json_t *root)
{
    *r = (struct report){.root = root, .failed = root == NULL};
}

void report_put(struct report *r, json_t *object, const char *name, json_t *value)
{
    r->failed |= json_object_set_new(object, name, value) != 0; /* of NULL too */
}

void report_add(struct report *r, json_t *array, json_t *value)
{
    r->failed |= json_array_append_new(array, value) != 0;
}

json_t *report_add_object(struct report *r, json_t *array)
{
    json_t *object = json_object();
    report_add(r, array, object);
    return r->failed ? NULL : object;
}

json_t *report_put_array(struct report *r, json_t *object, const char *name)
{
    json_t *array = json_array();
    report_put(r, object, name, array);
    return r->failed ? NULL : array;
}

json_t *report_text(struct str s)
{
    struct buf b;
    if (s.n < 0)
        return json_null();
    if (text_is_utf8(s.p, (size_t)s.n))
        return json_stringn(s.p, (size_t)s.n);
    buf_init(&b);
    json_t *text = NULL;
    if (text_clean(s, &b) == ERR_NONE)
        text = json_stringn((const char *)b.p, b.n);
    buf_close(&b);
    return text;
}

json_t *report_uuid(struct uuid id)
{
    char text[UUID_TEXT_N + 1];
    if (uuid_is_zero(id))
        return json_null();
    uuid_print(id, text);
    return json_string(text);
}

json_t *report_ints(const int32_t *v, int32_t n)
{
    json_t *array = json_array();
    for (int32_t i = 0; i < n; i++)
        if (json_array_append_new(array, json_integer(v[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

int report_print(struct report *r)
{
    if (!r->failed) {
        r->failed = json_dumpf(r->root, stdout, JSON_INDENT(2)) != 0 && !ferror(stdout);
        fputc('\n', stdout);
    }
    json_decref(r->root);
    return r->failed ? client_out_of_memory() : cli_printed();
}
