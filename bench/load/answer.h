/* Whether an answer is what was asked for: it parses as its message, has no error, and speaks of
 * the same topic, partition and offset.
 *
 * Fetched batches are not received to be looked at, that would cost more than what is measured: the
 * first answer is decoded whole; every other must be equal to it up to the records, and those must
 * begin with the offset that was asked for. An answer to ApiVersions is decoded when it is not
 * equal to the last one that was. */
#ifndef LOAD_ANSWER_H
#define LOAD_ANSWER_H

#include "load/request.h"

struct answers {
    const struct options *o;
    struct arena arena;
    uint8_t *first; /* the first frame, of fetches up to its records */
    size_t first_n; /* 0: none to compare with */
    size_t first_frame_n;
};

/* What was asked. */
struct asked {
    int32_t correlation_id;
    int32_t partition;
    int64_t offset;
};

void answers_init(struct answers *as, const struct options *o);
void answers_close(struct answers *as);
/* How many bytes of a frame of frame_n bytes (its length included) a check must see. */
size_t answers_need(const struct answers *as, size_t frame_n);
/* NULL, or what is wrong, as a text that stays until the next call. p has answers_need() bytes. */
const char *answers_check(struct answers *as, const struct request *r, const struct asked *asked,
                          const uint8_t *p, size_t frame_n);

#endif
