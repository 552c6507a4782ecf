/* Stages that no log needs now. Between a turn's first batch and its write a log has one; of
 * thousands of logs few have at the same time, so the same few serve them all, and are warm in the
 * caches. The last one that was given comes first. */
#include <stdlib.h>

#include "base/limits.h"
#include "log/log_impl.h"

void log_stages_init(struct log_stages *ss)
{
    *ss = (struct log_stages){.spare = NULL};
}

void log_stages_close(struct log_stages *ss)
{
    while (ss->spare != NULL) {
        struct stage *st = ss->spare;
        ss->spare = st->next;
        stage_free(st);
    }
    ss->spare_n = 0;
}

struct stage *log_stages_take(struct log_stages *ss)
{
    struct stage *st = ss->spare;
    if (st == NULL)
        return stage_new();
    ss->spare = st->next;
    ss->spare_n--;
    return st;
}

void log_stages_give(struct log_stages *ss, struct stage *st)
{
    if (ss->spare_n == LIMIT_STAGES_SPARE) {
        stage_free(st);
        return;
    }
    st->next = ss->spare;
    ss->spare = st;
    ss->spare_n++;
}
