#include "core/replica/throttle.h"

#include <stdlib.h>

#include "core/config/config.h"

static const int64_t sample_us = 1000 * 1000;

void throttle_init(struct throttle *t)
{
    *t = (struct throttle){.bytes_per_s = INT64_MAX};
}

static struct throttle_sample *sample_at(struct throttle *t, int32_t i)
{
    return &t->samples[(t->oldest + i) % THROTTLE_SAMPLES];
}

static void forget_old(struct throttle *t, int64_t now_us)
{
    while (t->n > 0 && sample_at(t, 0)->start_us + THROTTLE_SAMPLES * sample_us <= now_us) {
        t->oldest = (t->oldest + 1) % THROTTLE_SAMPLES;
        t->n--;
    }
}

void throttle_record(struct throttle *t, int64_t bytes, int64_t now_us)
{
    forget_old(t, now_us);
    if (t->n == 0 || sample_at(t, t->n - 1)->start_us + sample_us <= now_us) {
        if (t->n == THROTTLE_SAMPLES) { /* a clock that does not move evenly */
            t->oldest = (t->oldest + 1) % THROTTLE_SAMPLES;
            t->n--;
        }
        *sample_at(t, t->n++) = (struct throttle_sample){now_us, 0};
    }
    sample_at(t, t->n - 1)->bytes += bytes;
}

bool throttle_exceeded(struct throttle *t, int64_t now_us)
{
    int64_t bytes = 0;
    if (t->bytes_per_s == INT64_MAX)
        return false;
    forget_old(t, now_us);
    if (t->n == 0)
        return false;
    for (int32_t i = 0; i < t->n; i++)
        bytes += sample_at(t, i)->bytes;
    const int64_t since_us = now_us - sample_at(t, 0)->start_us;
    const double seconds = since_us > sample_us ? (double)since_us / 1e6 : 1;
    return (double)bytes / seconds > (double)t->bytes_per_s;
}

/* ------------------------------------------------------------------ which partitions */

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Of "partition:broker"; a value that is none counts for nothing. */
static bool names_us(struct str item, int32_t node_id, int32_t *index)
{
    const char *colon = memchr(item.p, ':', (size_t)item.n);
    int64_t partition, broker;
    if (colon == NULL)
        return false;
    const struct str before = {item.p, (int32_t)(colon - item.p)};
    const struct str behind = {colon + 1, item.n - before.n - 1};
    if (!config_parse_int(before, &partition) || !config_parse_int(behind, &broker) ||
        partition < 0 || partition > INT32_MAX || broker != node_id)
        return false;
    *index = (int32_t)partition;
    return true;
}

enum err throttled_parse(struct throttled *out, const char *text, int32_t node_id)
{
    struct str list = str_of(text == NULL ? "" : text), item;
    size_t n = 0;
    int32_t index;
    *out = (struct throttled){.all = str_eq(config_trim(list), STR_LIT("*"))};
    if (out->all)
        return ERR_NONE;
    for (struct str rest = list; config_next_item(&rest, &item);)
        n += names_us(item, node_id, &index);
    if (n == 0)
        return ERR_NONE;
    out->v = calloc(n, sizeof *out->v);
    if (out->v == NULL)
        return ERR_NOMEM;
    while (config_next_item(&list, &item))
        if (names_us(item, node_id, &index))
            out->v[out->n++] = index;
    qsort(out->v, out->n, sizeof *out->v, compare);
    return ERR_NONE;
}

bool throttled_has(const struct throttled *t, int32_t index)
{
    return t->all || (t->n > 0 && bsearch(&index, t->v, t->n, sizeof *t->v, compare) != NULL);
}

void throttled_close(struct throttled *t)
{
    free(t->v);
    *t = (struct throttled){0};
}
