/* Where the fields of a batch header stand (Kafka's message format, "Record Batch"). Internal to
 * wire. */
#ifndef WIRE_BATCH_LAYOUT_H
#define WIRE_BATCH_LAYOUT_H

#define AT_BASE_OFFSET 0
#define AT_LENGTH 8
#define AT_LEADER_EPOCH 12
#define AT_MAGIC 16
#define AT_CRC 17
#define AT_ATTRIBUTES 21 /* the CRC covers everything from here on */
#define AT_LAST_OFFSET_DELTA 23
#define AT_BASE_TIMESTAMP 27
#define AT_MAX_TIMESTAMP 35
#define AT_PRODUCER_ID 43
#define AT_PRODUCER_EPOCH 51
#define AT_BASE_SEQUENCE 53
#define AT_RECORDS_N 57

#endif
