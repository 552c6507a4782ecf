"""The program of compat/README.md, with confluent-kafka: librdkafka of today."""

import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from program import POLL, TIMEOUT, Assignment, Delivered, Out, Reading, is_there, lines, main
from program import tell_committed, tell_offsets

MANY = 10000  # records of one poll

# A commit that fails so is dropped: whoever gets the partitions reads the records again.
REBALANCED = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._STATE,
)


# ------------------------------------------------------------------ admin


def admin(broker):
    return AdminClient({"bootstrap.servers": broker})


def topics(broker):
    with admin(broker) as a:
        for topic in sorted(a.list_topics(timeout=TIMEOUT).topics):
            print(topic)


def create(broker, topic, n):
    with admin(broker) as a:
        a.create_topics([NewTopic(topic, num_partitions=int(n), replication_factor=1)])[topic].result(TIMEOUT)


def delete(broker, topic):
    with admin(broker) as a:
        a.delete_topics([topic])[topic].result(TIMEOUT)


def committed(broker, topic, group):
    with admin(broker) as a:
        future = a.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
        partitions = future.result(TIMEOUT).topic_partitions
    tell_offsets({p.partition: p.offset for p in partitions if p.topic == topic})


# ------------------------------------------------------------------ produce


def produce(broker, topic, codec, path, first, mode):
    delivered = Delivered()

    def on_delivery(error, message):
        if error:
            delivered.fail(str(error))
        else:
            delivered.take(message.partition(), message.offset())

    producer = Producer(
        {
            "bootstrap.servers": broker,
            "acks": "all",
            "enable.idempotence": mode == "idempotent",
            "compression.type": codec,
            "linger.ms": 5,
            "message.timeout.ms": TIMEOUT * 1000,
        }
    )
    values = lines(path)
    for key, value in enumerate(values, int(first)):
        while True:
            try:
                producer.produce(topic, key=b"%d" % key, value=value, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(POLL)
        producer.poll(0)
    producer.flush()
    delivered.tell(len(values))


# ------------------------------------------------------------------ consume


def consumer(broker, **more):
    settings = {"bootstrap.servers": broker, "enable.auto.commit": False, "check.crcs": True}
    settings.update({name.replace("_", "."): value for name, value in more.items()})
    return Consumer(settings)


def watermarks(c, partition):
    """Asks again when the leader is only becoming one: librdkafka leaves that to the caller."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return c.get_watermark_offsets(partition, TIMEOUT)
        except KafkaException as e:
            if e.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
        time.sleep(POLL)


def consume(broker, topic, path):
    c = consumer(broker, group_id="none")
    partitions = list(c.list_topics(topic, TIMEOUT).topics[topic].partitions)
    marks = {p: watermarks(c, TopicPartition(topic, p)) for p in partitions}
    reading = Reading({p: low for p, (low, _) in marks.items()}, {p: high for p, (_, high) in marks.items()})
    c.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    with Out(path) as out:
        while reading.goes_on():
            for m in c.consume(MANY, POLL):
                if m.error():
                    raise KafkaException(m.error())
                out.write(m.partition(), m.offset(), m.key(), m.value())
                reading.take(m.partition(), m.offset())
    c.close()
    reading.tell()


# ------------------------------------------------------------------ a member of a group


def commit(c, topic, offsets):
    while True:
        try:
            c.commit(offsets=[TopicPartition(topic, p, o) for p, o in offsets.items()], asynchronous=False)
            return tell_committed(offsets)
        except KafkaException as e:
            print("commit:", e, file=sys.stderr)
            if e.args[0].code() in REBALANCED:
                return None
            # The broker is away: again. The client waits between its tries.


def member(broker, topic, group, path, stop, protocol):
    assignment = Assignment()
    settings = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000} if protocol == "classic" else {}
    c = consumer(broker, group_id=group, auto_offset_reset="earliest", group_protocol=protocol, **settings)

    def on_assign(_, partitions):
        assignment.add(p.partition for p in partitions)

    def on_revoke(_, partitions):
        assignment.remove(p.partition for p in partitions)

    c.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
    with Out(path) as out:
        while not is_there(stop):
            offsets = {}
            for m in c.consume(MANY, POLL):
                if m.error():
                    print("consume:", m.error(), file=sys.stderr)
                    continue
                out.write(m.partition(), m.offset(), m.key(), m.value())
                offsets[m.partition()] = m.offset() + 1
            out.flush()
            if offsets:
                commit(c, topic, offsets)
        c.close()


main(topics, create, delete, produce, consume, member, committed)
