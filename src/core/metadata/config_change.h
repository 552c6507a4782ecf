/* One resource of an AlterConfigs or IncrementalAlterConfigs request on its way: the broker that
 * took the request in refuses what it can judge, the controller judges and applies the rest. */
#ifndef METADATA_CONFIG_CHANGE_H
#define METADATA_CONFIG_CHANGE_H

#include "base/arena.h"
#include "wire/error.h"

/* Kafka's AlterConfigOp. */
enum config_operation {
    CONFIG_OPERATION_SET = 0,
    CONFIG_OPERATION_DELETE = 1,
    CONFIG_OPERATION_APPEND = 2,
    CONFIG_OPERATION_SUBTRACT = 3,
};

struct config_op {
    struct str name;
    int8_t operation;
    struct str value; /* may be null with DELETE */
};

struct config_change {
    int8_t type;
    struct str name;
    struct config_op *ops;
    int32_t ops_n;
    bool replace; /* AlterConfigs: what it does not name goes */
    bool settled; /* there is nothing left for the controller: refused, or done here */
    int16_t error;
    struct str message;
};

/* Settles it with an error; the text goes into a (none, when there is no memory). */
__attribute__((format(printf, 4, 5))) void config_change_refuse(struct config_change *change,
                                                                struct arena *a, int16_t error,
                                                                const char *fmt, ...);

#endif
