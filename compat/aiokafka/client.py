"""The program of compat/README.md, with aiokafka."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError, for_code

from program import POLL, TIMEOUT, Assignment, Delivered, Out, Reading, is_there, lines, main
from program import tell_committed, tell_offsets

POLL_MS = int(POLL * 1000)
UNDERWAY = 10000  # records


# ------------------------------------------------------------------ admin


async def with_admin(broker, do):
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    await admin.start()
    try:
        return await do(admin)
    finally:
        await admin.close()


def raise_errors(answers):
    for _, code, *_ in answers:
        if code:
            raise for_code(code)()


async def topics(broker):
    for topic in sorted(await with_admin(broker, lambda admin: admin.list_topics())):
        print(topic)


async def create(broker, topic, n):
    new = NewTopic(topic, int(n), 1)
    raise_errors((await with_admin(broker, lambda admin: admin.create_topics([new]))).topic_errors)


async def delete(broker, topic):
    raise_errors((await with_admin(broker, lambda admin: admin.delete_topics([topic]))).topic_error_codes)


async def committed(broker, topic, group):
    offsets = await with_admin(broker, lambda admin: admin.list_consumer_group_offsets(group))
    tell_offsets({p.partition: o.offset for p, o in offsets.items() if p.topic == topic})


# ------------------------------------------------------------------ produce


async def produce(broker, topic, codec, path, first, mode):
    delivered = Delivered()
    producer = AIOKafkaProducer(
        bootstrap_servers=broker,
        acks="all",
        enable_idempotence=mode == "idempotent",
        compression_type=None if codec == "none" else codec,
        linger_ms=5,
    )
    await producer.start()
    values = lines(path)
    underway = []
    for key, value in enumerate(values, int(first)):
        underway.append(await producer.send(topic, key=b"%d" % key, value=value))
        if len(underway) == UNDERWAY or key == int(first) + len(values) - 1:
            for m in await asyncio.wait_for(asyncio.gather(*underway), TIMEOUT):
                delivered.take(m.partition, m.offset)
            underway.clear()
    await producer.stop()
    delivered.tell(len(values))


# ------------------------------------------------------------------ consume


def consumer(broker, **more):
    return AIOKafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, check_crcs=True, **more)


def write(out, records, took):
    for partition, batch in records.items():
        for r in batch:
            out.write(r.partition, r.offset, r.key, r.value)
            took(partition, r.offset)


async def partitions_of(broker, topic):
    [described] = await with_admin(broker, lambda admin: admin.describe_topics([topic]))
    return [TopicPartition(topic, p["partition"]) for p in described["partitions"]]


async def consume(broker, topic, path):
    c = consumer(broker, auto_offset_reset="none")
    await c.start()
    partitions = await partitions_of(broker, topic)
    c.assign(partitions)
    await c.seek_to_beginning(*partitions)
    reading = Reading(await c.beginning_offsets(partitions), await c.end_offsets(partitions))
    with Out(path) as out:
        while reading.goes_on():
            write(out, await c.getmany(timeout_ms=POLL_MS), reading.take)
    await c.stop()
    reading.tell()


# ------------------------------------------------------------------ a member of a group


class Listener(ConsumerRebalanceListener):
    """A rebalance waits for the records at hand: they are committed before others get the partitions."""

    def __init__(self, busy):
        self.busy = busy
        self.assignment = Assignment()

    async def on_partitions_assigned(self, assigned):
        self.assignment.add(p.partition for p in assigned)

    async def on_partitions_revoked(self, revoked):
        async with self.busy:
            self.assignment.remove(p.partition for p in revoked)


async def commit(c, offsets):
    while True:
        try:
            await c.commit(offsets)
            return tell_committed({p.partition: o for p, o in offsets.items()})
        except (CommitFailedError, IllegalStateError):
            return None  # whoever gets the partitions reads these again
        except KafkaError as e:
            if not e.retriable:
                raise
            print("commit: %r" % e, file=sys.stderr)
            await asyncio.sleep(POLL)  # the broker is away


async def member(broker, topic, group, path, stop, _):
    c = consumer(
        broker, group_id=group, auto_offset_reset="earliest", session_timeout_ms=6000, heartbeat_interval_ms=1000
    )
    busy = asyncio.Lock()
    c.subscribe([topic], listener=Listener(busy))
    await c.start()
    with Out(path) as out:
        while not is_there(stop):
            offsets = {}
            records = await c.getmany(timeout_ms=POLL_MS)
            async with busy:
                write(out, records, lambda partition, offset: offsets.update({partition: offset + 1}))
                out.flush()
                if offsets:
                    await commit(c, offsets)
        await c.stop()


def awaited(call):
    def run(*words):
        asyncio.run(call(*words))

    run.__name__ = call.__name__
    return run


main(*map(awaited, (topics, create, delete, produce, consume, member, committed)))
