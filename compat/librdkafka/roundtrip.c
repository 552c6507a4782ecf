/* Sends a file through a broker and reads it back, with librdkafka:
 *
 *   roundtrip produce BROKERS TOPIC CODEC FILE [CHUNK]   lines, or pieces of CHUNK bytes
 *   roundtrip consume BROKERS TOPIC OUT [CHUNKS]         all of partition 0; CHUNKS 0: adds
 * newlines roundtrip offsets BROKERS TOPIC N                    what the broker says of N messages
 *
 * The producer is idempotent with acks=all; each delivery report must carry the next offset, and
 * each consumed message too: nothing lost, nothing twice, in order. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

enum { TIMEOUT_MS = 60000, PARTITION = 0 };

static const char *const usage = "usage: roundtrip produce|consume|offsets BROKERS TOPIC ...";

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char message[512];
    if (rd_kafka_conf_set(conf, key, value, message, sizeof message) != RD_KAFKA_CONF_OK)
        die("%s=%s: %s", key, value, message);
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *brokers)
{
    char message[512];
    set(conf, "bootstrap.servers", brokers);
    set(conf, "reconnect.backoff.max.ms", "500");
    set(conf, "log_level", "4");
    rd_kafka_t *rk = rd_kafka_new(type, conf, message, sizeof message);
    if (rk == NULL)
        die("%s", message);
    return rk;
}

/* ------------------------------------------------------------------ produce */

struct delivery {
    int64_t first_offset; /* -1: none yet */
    int64_t next_offset;
    int64_t n;
};

static void delivered(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
    struct delivery *d = opaque;
    (void)rk;
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("message %lld was not delivered: %s", (long long)d->n, rd_kafka_err2str(m->err));
    if (d->n++ == 0)
        d->first_offset = d->next_offset = m->offset;
    if (m->offset != d->next_offset)
        die("delivered at offset %lld, not %lld", (long long)m->offset, (long long)d->next_offset);
    d->next_offset++;
}

static const char *map_file(const char *path, size_t *n)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd == -1 || fstat(fd, &st) == -1 || st.st_size == 0)
        die("cannot read %s", path);
    *n = (size_t)st.st_size;
    const char *p = mmap(NULL, *n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        die("cannot map %s", path);
    close(fd);
    return p;
}

/* The next message of [p, end): a chunk, or a line; *step is what it takes with its newline. */
static size_t next_message(const char *p, const char *end, size_t chunk, size_t *step)
{
    const size_t left = (size_t)(end - p);
    if (chunk > 0)
        return *step = left < chunk ? left : chunk;
    const char *newline = memchr(p, '\n', left);
    const size_t n = newline != NULL ? (size_t)(newline - p) : left;
    *step = n + (newline != NULL);
    return n;
}

static void send_one(rd_kafka_t *rk, const char *topic, const char *p, size_t n)
{
    for (;;) {
        rd_kafka_resp_err_t err =
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(PARTITION),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_VALUE((void *)(uintptr_t)p, n), RD_KAFKA_V_END);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
            break;
        if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            die("produce: %s", rd_kafka_err2str(err));
        rd_kafka_poll(rk, 100);
    }
    rd_kafka_poll(rk, 0);
}

static int produce(const char *brokers, const char *topic, const char *codec, const char *file,
                   size_t chunk)
{
    struct delivery d = {.first_offset = -1};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "compression.codec", codec);
    set(conf, "enable.idempotence", "true");
    set(conf, "acks", "all");
    set(conf, "message.timeout.ms", "200000");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_conf_set_opaque(conf, &d);
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, conf, brokers);
    size_t n, step, sent = 0;
    const char *p = map_file(file, &n), *end = p + n;
    for (; p < end; p += step, sent++) {
        size_t message_n = next_message(p, end, chunk, &step);
        send_one(rk, topic, p, message_n);
    }
    if (rd_kafka_flush(rk, 3 * TIMEOUT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR || (size_t)d.n != sent)
        die("%lld of %zu messages were delivered", (long long)d.n, sent);
    printf("delivered %zu messages at [%lld, %lld)\n", sent, (long long)d.first_offset,
           (long long)d.next_offset);
    rd_kafka_destroy(rk);
    return 0;
}

/* ------------------------------------------------------------------ consume */

static rd_kafka_t *consumer(const char *brokers)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "group.id", "unused"); /* the client wants one; no group is joined */
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.auto.offset.store", "false");
    set(conf, "enable.partition.eof", "true");
    set(conf, "auto.offset.reset", "error");
    set(conf, "check.crcs", "true");
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, conf, brokers);
    rd_kafka_poll_set_consumer(rk);
    return rk;
}

static int64_t consume_all(rd_kafka_t *rk, FILE *out, bool newlines)
{
    int64_t next_offset = 0;
    for (;;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, TIMEOUT_MS);
        if (m == NULL)
            die("nothing came for %d s behind offset %lld", TIMEOUT_MS / 1000,
                (long long)next_offset);
        if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            rd_kafka_message_destroy(m);
            return next_offset;
        }
        if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR)
            die("consume: %s", rd_kafka_message_errstr(m));
        if (m->offset != next_offset)
            die("offset %lld came, not %lld", (long long)m->offset, (long long)next_offset);
        next_offset++;
        if (fwrite(m->payload, 1, m->len, out) != m->len || (newlines && fputc('\n', out) == EOF))
            die("cannot write");
        rd_kafka_message_destroy(m);
    }
}

static int consume(const char *brokers, const char *topic, const char *path, bool newlines)
{
    rd_kafka_t *rk = consumer(brokers);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, PARTITION)->offset = 0;
    rd_kafka_resp_err_t err = rd_kafka_assign(rk, list);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("assign: %s", rd_kafka_err2str(err));
    FILE *out = fopen(path, "w");
    if (out == NULL)
        die("cannot write %s", path);
    int64_t n = consume_all(rk, out, newlines);
    if (fclose(out) != 0)
        die("cannot write %s", path);
    printf("consumed %lld messages\n", (long long)n);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return 0;
}

/* ------------------------------------------------------------------ offsets */

static int64_t offset_for(rd_kafka_t *rk, const char *topic, int64_t timestamp_ms)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, PARTITION)->offset = timestamp_ms;
    rd_kafka_resp_err_t err = rd_kafka_offsets_for_times(rk, list, TIMEOUT_MS);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        err = list->elems[0].err;
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("offsets for times: %s", rd_kafka_err2str(err));
    int64_t offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    return offset;
}

static int offsets(const char *brokers, const char *topic, int64_t n)
{
    int64_t low, high;
    rd_kafka_t *rk = consumer(brokers);
    rd_kafka_resp_err_t err =
        rd_kafka_query_watermark_offsets(rk, topic, PARTITION, &low, &high, TIMEOUT_MS);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("watermarks: %s", rd_kafka_err2str(err));
    if (low != 0 || high != n)
        die("watermarks are [%lld, %lld), not [0, %lld)", (long long)low, (long long)high,
            (long long)n);
    int64_t first = offset_for(rk, topic, 1);
    if (first != 0)
        die("the first message since 1970 is at %lld", (long long)first);
    int64_t future = offset_for(rk, topic, INT64_C(9999999999999));
    if (future != RD_KAFKA_OFFSET_END)
        die("a message of the year 2286 is at %lld", (long long)future);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        die("%s", usage);
    const char *what = argv[1], *brokers = argv[2], *topic = argv[3];
    if (strcmp(what, "produce") == 0 && argc >= 6)
        return produce(brokers, topic, argv[4], argv[5],
                       argc > 6 ? strtoull(argv[6], NULL, 10) : 0);
    if (strcmp(what, "consume") == 0)
        return consume(brokers, topic, argv[4], argc < 6 || strcmp(argv[5], "0") == 0);
    if (strcmp(what, "offsets") == 0)
        return offsets(brokers, topic, strtoll(argv[4], NULL, 10));
    die("%s", usage);
}
