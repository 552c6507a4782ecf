"""The program of compat/README.md, with kafka-python."""

import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from program import POLL, TIMEOUT, Assignment, Delivered, Out, Reading, is_there, lines, main
from program import tell_committed, tell_offsets

POLL_MS = int(POLL * 1000)


# ------------------------------------------------------------------ admin


def with_admin(broker, do):
    admin = KafkaAdminClient(bootstrap_servers=broker)
    try:
        return do(admin)
    finally:
        admin.close()


def topics(broker):
    for topic in sorted(with_admin(broker, lambda admin: admin.list_topics())):
        print(topic)


def create(broker, topic, n):
    new = {topic: {"num_partitions": int(n), "replication_factor": 1}}
    with_admin(broker, lambda admin: admin.create_topics(new))


def delete(broker, topic):
    with_admin(broker, lambda admin: admin.delete_topics([topic]))


def committed(broker, topic, group):
    offsets = with_admin(broker, lambda admin: admin.list_group_offsets({group: None}))[group]
    tell_offsets({p.partition: o.offset for p, o in offsets.items() if p.topic == topic})


# ------------------------------------------------------------------ produce


def produce(broker, topic, codec, path, first, mode):
    delivered = Delivered()
    producer = KafkaProducer(
        bootstrap_servers=broker,
        acks="all",
        enable_idempotence=mode == "idempotent",
        compression_type=None if codec == "none" else codec,
        linger_ms=5,
        delivery_timeout_ms=TIMEOUT * 1000,
    )
    values = lines(path)
    for key, value in enumerate(values, int(first)):
        future = producer.send(topic, key=b"%d" % key, value=value)
        future.add_callback(lambda m: delivered.take(m.partition, m.offset))
        future.add_errback(lambda e: delivered.fail(repr(e)))
    producer.flush(TIMEOUT)
    producer.close()
    delivered.tell(len(values))


# ------------------------------------------------------------------ consume


def consumer(broker, **more):
    return KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, check_crcs=True, **more)


def write(out, records, took):
    for partition, batch in records.items():
        for r in batch:
            out.write(r.partition, r.offset, r.key, r.value)
            took(partition, r.offset)


def consume(broker, topic, path):
    c = consumer(broker, auto_offset_reset="none")
    partitions = [TopicPartition(topic, p) for p in c.partitions_for_topic(topic)]
    c.assign(partitions)
    c.seek_to_beginning(*partitions)
    reading = Reading(c.beginning_offsets(partitions), c.end_offsets(partitions))
    with Out(path) as out:
        while reading.goes_on():
            write(out, c.poll(POLL_MS), reading.take)
    c.close()
    reading.tell()


# ------------------------------------------------------------------ a member of a group


class Listener(ConsumerRebalanceListener):
    def __init__(self):
        self.assignment = Assignment()

    def on_partitions_assigned(self, assigned):
        self.assignment.add(p.partition for p in assigned)

    def on_partitions_revoked(self, revoked):
        self.assignment.remove(p.partition for p in revoked)


def commit(c, offsets):
    while True:
        try:
            c.commit({p: OffsetAndMetadata(o, "", -1) for p, o in offsets.items()})
            return tell_committed({p.partition: o for p, o in offsets.items()})
        except (CommitFailedError, RebalanceInProgressError):
            return None  # whoever gets the partitions reads these again
        except KafkaError as e:
            if not e.retriable:
                raise
            print("commit: %r" % e, file=sys.stderr)  # the broker is away; the client has waited for it


def member(broker, topic, group, path, stop, _):
    c = consumer(
        broker, group_id=group, auto_offset_reset="earliest", session_timeout_ms=6000, heartbeat_interval_ms=1000
    )
    c.subscribe([topic], listener=Listener())
    with Out(path) as out:
        while not is_there(stop):
            offsets = {}
            write(out, c.poll(POLL_MS), lambda partition, offset: offsets.update({partition: offset + 1}))
            out.flush()
            if offsets:
                commit(c, offsets)
        c.close(autocommit=False)


main(topics, create, delete, produce, consume, member, committed)
