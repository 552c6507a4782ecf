/* An operation on a group: embedded in its owner (a request's state), it completes exactly once by
 * done(), never inside the call that began it. What is through with waiting stands on the ready
 * list of the groups, and whoever settles takes it from there and calls done(). */
#ifndef GROUP_OP_H
#define GROUP_OP_H

#include "base/list.h"

struct group_op {
    void (*done)(struct group_op *op);
    /* own */
    struct list ready;
};

#endif
