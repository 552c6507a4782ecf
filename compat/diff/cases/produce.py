"""Produce, InitProducerId, ListOffsets, OffsetForLeaderEpoch."""
import uuid

from batch import batch, record
from both import Each

HOUR_MS = 3_600_000


TOPICS = {'pr-plain': (2, {}), 'pr-compact': (1, {'cleanup.policy': 'compact'}),
          'pr-stamped': (1, {'message.timestamp.type': 'LogAppendTime'}),
          'pr-small': (1, {'max.message.bytes': '1000'}),
          'pr-segment': (1, {'max.message.bytes': '2000000', 'segment.bytes': '1048576'}),
          'pr-overflow': (1, {}),
          'pr-strict': (1, {'message.timestamp.before.max.ms': '1000'}),
          'pr-gzip': (1, {'compression.type': 'gzip', 'max.message.bytes': '1000'}),
          'pr-none': (1, {'compression.type': 'uncompressed', 'max.message.bytes': '1000'})}


def produce(c):
    ids = {name: c.topic(name, n, configs) for name, (n, configs) in TOPICS.items()}
    internal = c.poll('Metadata', 12, {'Topics': [{'Name': '__consumer_offsets'}]},
                      lambda a: all(p['ErrorCode'] == 0 for p in a['Topics'][0]['Partitions']))
    ids['__consumer_offsets'] = Each([a['Topics'][0]['TopicId'] for a in internal])

    for v in range(3, 14):
        def named(topic, v=v):
            return {'Name': topic} if v < 13 else {'TopicId': ids.get(topic, uuid.UUID(int=3 << 80))}

        def ask(note, records, topic='pr-plain', partition=0, acks=-1, transaction=None, v=v):
            c.ask('Produce', v, {'TransactionalId': transaction, 'Acks': acks, 'TimeoutMs': 15000,
                                 'TopicData': [{**named(topic), 'PartitionData': [
                                     {'Index': partition, 'Records': records}]}]}, note=note)
        ask('one', batch())
        ask('three, gzip', batch([b'a', b'b', b'c'], codec='gzip'))
        ask('acks 1', batch(), acks=1)
        ask('acks 2', batch(), acks=2)
        ask('unknown topic', batch(), 'pr-unknown')
        ask('unknown partition', batch(), partition=9)
        ask('negative partition', batch(), partition=-1)
        ask('null records', None)
        ask('empty records', b'')
        ask('short', b'\0' * 13)
        ask('cut', batch()[:-1])
        ask('cut within its head', batch()[:40])
        ask('length 13', batch(length=13))
        ask('length of a head without records', batch(length=30))
        ask('negative length', batch(length=-1))
        ask('longer than there is', batch(length=1 << 30))
        ask('overflowing length', batch(length=0x7FFFFFFF), 'pr-overflow')
        ask('overflowing length behind', batch() + batch(length=0x7FFFFFFF), 'pr-overflow')
        ask('two batches', batch() + batch())
        ask('junk behind', batch() + b'zz')
        ask('magic 0', batch(magic=0))
        ask('magic 1', batch(magic=1))
        ask('magic 3', batch(magic=3))
        ask('bad crc', batch(crc=1))
        ask('base offset', batch(base=5))
        ask('count 0', batch([], count=0, last_delta=0))
        ask('count off', batch([b'a', b'b'], count=1))
        ask('negative delta', batch(last_delta=-1))
        ask('codec 5', batch(attributes=5))
        ask('codec 7', batch(attributes=7))
        for codec in range(1, 5):
            ask(f'junk as codec {codec}', batch(attributes=codec))
        ask('unused attributes', batch(attributes=0xC0))
        ask('control', batch(attributes=0x20))
        ask('transactional without an id', batch(attributes=0x10, producer=(5, 0, 0)))
        ask('producer without a sequence', batch(producer=(5, 0, -1)))
        ask('producer -2', batch(producer=(-2, 0, 0)))
        ask('producer without an epoch', batch(producer=(5, -1, 0)))
        ask('transactional without a producer', batch(attributes=0x10), transaction='t')
        ask('record too long', batch(records=b'\x7f' + record(0, b'v')[1:]))
        ask('too few records', batch([b'a', b'b'], records=record(0, b'a')))
        ask('too many records', batch([b'a'], records=record(0, b'a') + record(1, b'b')))
        ask('offset deltas off', batch([b'a', b'b'], records=record(0, b'a') + record(5, b'b')))
        ask('offset deltas off, gzip', batch([b'a', b'b'], codec='gzip',
                                             records=record(0, b'a') + record(5, b'b')))
        ask('headers', batch(records=record(0, b'v', b'k', [(b'h', b'1'), (b'', None)])))
        ask('null value and key', batch([None]))
        ask('keyless, compacted', batch([b'a', b'b']), 'pr-compact')
        ask('one keyless, compacted', batch([b'a', b'b'], [b'k', None]), 'pr-compact')
        ask('keyed, compacted', batch([b'a'], [b'']), 'pr-compact')
        ask('append time', batch(timestamp=5), 'pr-stamped')
        ask('append time, gzip', batch(timestamp=5, codec='gzip'), 'pr-stamped')
        ask('append time by the client', batch(attributes=8), 'pr-stamped')
        ask('append time by the client, not asked for', batch(attributes=8))
        ask('append time of -1, not asked for', batch(attributes=8, timestamp=-1))
        ask('too large', batch([b'x' * 1001]), 'pr-small')
        ask('too large for a segment', batch([b'x' * 1_100_000]), 'pr-segment')
        ask('too large for its topic only', batch([b'x' * 1000] * 9, codec='gzip'), 'pr-none')
        ask('small enough for its topic only', batch([b'x' * 1000] * 9), 'pr-gzip')
        ask('packed anew', batch([b'x' * 100] * 3), 'pr-gzip')
        ask('unpacked', batch([b'x' * 100] * 3, codec='gzip'), 'pr-none')
        ask('packed as it was', batch([b'x' * 100] * 3, codec='gzip'), 'pr-gzip')
        ask('old', batch(timestamp=1), 'pr-strict')
        ask('future', batch(timestamp=1 << 44))
        ask('no timestamp', batch(timestamp=-1))
        ask('internal', batch([b'v'], [b'k']), '__consumer_offsets')
        several = lambda note, *rs: c.ask('Produce', v, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [  # noqa: E731,B023
            {**named('pr-plain'), 'PartitionData': [{'Index': i, 'Records': r} for i, r in rs]}]}, note=note)  # noqa: B023
        several('one of two cannot be a batch', (0, batch()), (1, batch(magic=3)))
        several('one of two is corrupt', (0, batch()), (1, batch(crc=1)))
        several('a partition twice', (0, batch()), (1, batch()), (0, batch([b'a', b'b'])))
    c.ask('Produce', 13, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [
        {'TopicId': uuid.UUID(int=0), 'PartitionData': [{'Index': 0, 'Records': batch()}]}]}, note='zero id')
    c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': []}, note='nothing')
    c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [
        {'Name': 'pr-plain', 'PartitionData': [{'Index': 0, 'Records': batch()},
                                               {'Index': 1, 'Records': batch()},
                                               {'Index': 7, 'Records': batch()}]},
        {'Name': 'pr-unknown', 'PartitionData': [{'Index': 0, 'Records': batch()}]}]}, note='several')


def idempotence(c):
    c.topic('pr-idem')

    def ask(note, producer, values=(b'v',), v=9):
        c.ask('Produce', v, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [
            {'Name': 'pr-idem', 'PartitionData': [{'Index': 0, 'Records': batch(
                values, producer=producer, timestamp=1_700_000_000_000)}]}]}, note=note)
    ask('first', (1000, 0, 0))
    ask('next', (1000, 0, 1), [b'a', b'b'])
    ask('repeated', (1000, 0, 1), [b'a', b'b'])
    ask('first repeated', (1000, 0, 0))
    ask('gap', (1000, 0, 9))
    ask('part of an old one', (1000, 0, 1))
    ask('new epoch, not 0', (1000, 1, 4))
    ask('new epoch', (1000, 1, 0))
    ask('old epoch', (1000, 0, 3))
    ask('unknown producer, not 0', (2000, 0, 7))
    ask('wraps', (3000, 0, 0x7FFFFFFF), [b'a', b'b'])
    ask('after the wrap', (3000, 0, 1))
    for i in range(6):
        ask(f'six, {i}', (4000, 0, i))
    ask('five back', (4000, 0, 1))
    ask('six back', (4000, 0, 0))
    for parts in ([0], [9], [-1], [0, 0]):
        c.ask('DescribeProducers', 0, {'Topics': [{'Name': 'pr-idem', 'PartitionIndexes': parts}]}, note=str(parts))
    c.ask('DescribeProducers', 0, {'Topics': [{'Name': 'pr-unknown', 'PartitionIndexes': [0]}]}, note='unknown')
    c.ask('DescribeProducers', 0, {'Topics': [{'Name': 'a b', 'PartitionIndexes': [0]}]}, note='bad name')


def producer_ids(c):
    c.poll('InitProducerId', 0, {'TransactionalId': None, 'TransactionTimeoutMs': 1000},
           lambda a: a['ErrorCode'] == 0)  # Kafka sends the first away
    for v in range(6):
        ask = lambda note, **f: c.ask('InitProducerId', v, f, note=note)  # noqa: E731,B023
        def relevant(fields, v=v, note=''):
            answers = c.ask('InitProducerId', v, fields, compare=False)
            for a in answers:
                if isinstance(a, dict) and a.get('ProducerId', -1) >= 0:
                    a['ProducerId'] = '<producer>'
            c.note = note
            c.compare('InitProducerId', v, answers)
        relevant({'TransactionalId': None, 'TransactionTimeoutMs': 1000}, note='fresh')
        relevant({'TransactionalId': None, 'TransactionTimeoutMs': -1}, note='no timeout')
        ask('empty transactional id', TransactionalId='', TransactionTimeoutMs=1000)
        if v >= 3:
            ask('id without epoch', TransactionalId=None, TransactionTimeoutMs=1, ProducerId=5)
            ask('epoch without id', TransactionalId=None, TransactionTimeoutMs=1, ProducerEpoch=5)
            relevant({'TransactionalId': None, 'TransactionTimeoutMs': 1, 'ProducerId': 5, 'ProducerEpoch': 1},
                     note='both')


def offsets(c):
    c.topic('lo-t', 2)
    now = 1_750_000_000_000
    for i in range(3):
        c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [{'Name': 'lo-t', 'PartitionData': [
            {'Index': 0, 'Records': batch([b'a', b'b'], timestamp=now + i * 10)}]}]}, note='prepared')
    for v in range(1, 12):
        def ask(note, timestamp=-1, partition=0, topic='lo-t', epoch=-1, v=v, **f):
            c.ask('ListOffsets', v, {'ReplicaId': -1, 'TimeoutMs': 1000, 'Topics': [{'Name': topic, 'Partitions': [
                {'PartitionIndex': partition, 'CurrentLeaderEpoch': epoch, 'Timestamp': timestamp}]}], **f}, note=note)
        for t in (-1, -2, -3, -4, -5, -6, -7, now, now + 5, now + 10, now + 21, 0):
            ask(f'time {t}', t)
            if t in (-1, -2, -3, now):
                ask(f'time {t}, empty', t, 1)
        ask('unknown partition', partition=9)
        ask('unknown topic', topic='lo-none')
        ask('bad name', topic='a b')
        ask('old epoch', epoch=0) if v == 4 else None
        ask('later epoch', epoch=99)
        ask('committed', IsolationLevel=1)
        ask('isolation 5', IsolationLevel=5)
        ask('replica -2', ReplicaId=-2)
        ask('replica 7', ReplicaId=7)
        c.ask('ListOffsets', v, {'ReplicaId': -1, 'Topics': []}, note='nothing')
        c.ask('ListOffsets', v, {'ReplicaId': -1, 'Topics': [{'Name': 'lo-t', 'Partitions': [
            {'PartitionIndex': 0, 'Timestamp': -1}, {'PartitionIndex': 0, 'Timestamp': -2}]}]}, note='twice')
    for v in range(2, 5):
        def epoch(note, asked, current=-1, partition=0, topic='lo-t', replica=-2, v=v):
            c.ask('OffsetForLeaderEpoch', v, {'ReplicaId': replica, 'Topics': [{'Topic': topic, 'Partitions': [
                {'Partition': partition, 'CurrentLeaderEpoch': current, 'LeaderEpoch': asked}]}]}, note=note)
        for e in (0, 1, 7, -1, -2):
            epoch(f'epoch {e}', e)
        epoch('current 0', 0, 0)
        epoch('current 9', 0, 9)
        epoch('unknown partition', 0, partition=5)
        epoch('unknown topic', 0, topic='lo-none')
        epoch('replica 1', 0, replica=1)


def run(c):
    produce(c)
    idempotence(c)
    producer_ids(c)
    offsets(c)
