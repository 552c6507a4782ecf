/* Every bound of the broker that is not a configuration key, with what happens at it. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#define LIMIT_NAME_MAX 249              /* topic name, as Kafka */
#define LIMIT_TURN_READ_BYTES (1 << 20) /* read per connection and turn; the rest waits a turn */
#define LIMIT_TURN_SEND_BYTES (1 << 20) /* sent per connection and turn; the rest waits a turn */
#define LIMIT_TURN_ACCEPTS 64           /* per listening socket and turn; the rest waits a turn */
#define LIMIT_SMALL_FRAME_BYTES (16 << 10) /* copied into the request's arena, see rpc/conn.h */
#define LIMIT_PIPELINE 256                 /* unanswered requests per connection; then not read */
#define LIMIT_STAGE_COPY_BYTES 4096        /* smaller batches are copied into the staging buffer */
#define LIMIT_STAGE_IOV 512          /* staged pieces per log and write; then a write is made */
#define LIMIT_STAGE_BYTES (64 << 20) /* staged bytes per log; then a write is made */
#define LIMIT_STAGES_SPARE 64        /* kept for logs that stage next; more are freed */
#define LIMIT_PRODUCER_BATCHES 5     /* remembered per producer, as Kafka */
#define LIMIT_SETTLE_ROUNDS 64       /* of a turn; what is left goes to the next turn */
#define LIMIT_ANSWER_COPY_BYTES (32 << 10) /* smaller record sets are read into the answer */
#define LIMIT_FRAME_DEADLINE_MS 30000      /* an unfinished frame; then the connection closes */
#define LIMIT_SEND_DEADLINE_MS 30000       /* a client takes no byte; then its connection closes */
#define LIMIT_CONNECT_MS 10000             /* an address that does not answer; then the next one */
#define LIMIT_SLOW_TURN_MS 50              /* longer turns are logged */

#endif
