"""Produce and InitProducerId: cases PR. What single batches must be is in tests/unit/wire; here is
what a client sees: errors, offsets, and that what comes back is what was sent."""
import struct
import time
import zlib

import batches
import broker
import calls
import kafka

NOW = int(time.time() * 1000)
HOUR = 3600 * 1000


def batch(*values, **over):
    return batches.build([(NOW + i, b'key', v) for i, v in enumerate(values)], **over)


def stored(c, topic, partition=0, offset=0, **options):
    return batches.read(calls.fetch(c, topic, partition, offset, **options)['Records'])


class Batches(broker.BrokerTest):
    def test_what_goes_in_comes_out(self):
        """PR-13: null is not empty, headers repeat and keep their order, deltas have 64 bits."""
        many = tuple((b'h%d' % i, b'%d' % i) for i in range(500))
        records = [
            (NOW, None, b'v'), (NOW + 1, b'', b''), (NOW + 2, b'k', None),
            (NOW + 3, b'k', None, ((b'with', b'headers'),)),
            (NOW + 4, b'k', b'v', ((b'a', None), (b'a', b''), (b'a', b'1'), (b'', b'x'))),
            (NOW + 5, b'k', b'v', many),
            (1, b'k', b'earlier by more than 31 bits'), (NOW + HOUR // 2, b'k', b'later')]
        with self.broker.connect() as c:
            calls.ready(c, 't')
            for i, codec in enumerate(batches.CODECS):
                data = batches.build(records, codec)
                answer = calls.produce(c, 't', 0, data)
                self.assertEqual((answer['ErrorCode'], answer['BaseOffset']), (0, 8 * i))
                found, = stored(c, 't', offset=8 * i)
                self.assertEqual(found.data[61:], data[61:])  # the producer's bytes
                self.assertEqual([(r.timestamp, r.key, r.value, r.headers) for r in found.records],
                                 [(*r[:3], *(r[3:] or ((),))) for r in records])

    def test_snappy_of_every_client(self):
        """PR-05: Java's stream of blocks, one bare block, one shorter than the stream's header;
        kept as they are, and written as Java does when the topic wants snappy."""
        framed = b'\x82SNAPPY\0' + struct.pack('>ii', 1, 1)
        with self.broker.connect() as c:
            calls.ready(c, 'kept')
            calls.ready(c, 'own', configs={'compression.type': 'snappy'})
            short = batches.record(0, 0, None, b'x')
            long = batches.record(0, 0, b'k', b'v' * 5000)
            for n, body in enumerate((short, long)):
                block = batches.compress('snappy', body)
                for k, data in enumerate((block, framed + struct.pack('>i', len(block)) + block)):
                    sent = batches.build([body], 'snappy', attributes=0, base_timestamp=NOW,
                                         max_timestamp=NOW, body=data)
                    self.assertEqual(calls.produce(c, 'kept', 0, sent)['ErrorCode'], 0)
                    found = stored(c, 'kept', offset=2 * n + k)[0]
                    self.assertEqual(found.data[61:], data)
                    self.assertEqual(found.records[0].value, b'x' if n == 0 else b'v' * 5000)
            self.assertEqual(calls.produce(c, 'own', 0, batch(b'1', b'2'))['ErrorCode'], 0)
            found, = stored(c, 'own')
            self.assertEqual(found.attributes, batches.CODECS.index('snappy'))
            self.assertTrue(found.data[61:].startswith(framed))
            self.assertEqual([r.value for r in found.records], [b'1', b'2'])

    def test_lz4_with_checksums(self):
        """PR-04: magic 2 with a content checksum is read; what the broker writes has a header
        checksum that lz4's own tool accepts."""
        with self.broker.connect() as c:
            calls.ready(c, 'own', configs={'compression.type': 'lz4'})
            body = batches.record(0, 0, b'k', b'v' * 1000)
            data = batches.run(['lz4', '-c', '-q', '-BI', '--content-size'], body)
            sent = batches.build([body], 'lz4', base_timestamp=NOW, max_timestamp=NOW, body=data)
            self.assertEqual(calls.produce(c, 'own', 0, sent)['ErrorCode'], 0)
            self.assertEqual(calls.produce(c, 'own', 0, batch(b'plain'))['ErrorCode'], 0)
            values = [r.value for b in stored(c, 'own') for r in b.records]
            self.assertEqual(values, [b'v' * 1000, b'plain'])
            self.assertEqual([b.attributes for b in stored(c, 'own')], [3, 3])

    def test_zstd_needs_version_7(self):
        """PR-06: error 76 below it and nothing is stored; every fetch gets the batches as they
        are, whatever its version (since Kafka 4.0)."""
        with self.broker.connect() as c:
            calls.ready(c, 'free')
            calls.ready(c, 'wanted', configs={'compression.type': 'zstd'})
            for topic in ('free', 'wanted'):
                for version in (3, 6, 7, 13):
                    data = batch(b'v', codec='zstd')
                    if version == 13:
                        topic_id = calls.metadata(c, [topic])['Topics'][0]['TopicId']
                        answer = c.ask('Produce', 13, Acks=-1, TimeoutMs=10000, TopicData=[
                            {'TopicId': topic_id,
                             'PartitionData': [{'Index': 0, 'Records': data}]}])
                        answer = answer['Responses'][0]['PartitionResponses'][0]
                    else:
                        answer = calls.produce(c, topic, 0, data, version)
                    self.assertEqual(answer['ErrorCode'], 76 if version < 7 else 0)
                self.assertEqual(calls.end_of(c, topic), 2)
                for version in (4, 9, 10, 12):
                    found = stored(c, topic, version=version)
                    self.assertEqual([b.attributes for b in found], [4, 4])

    def test_hostile_batches(self):
        """PR-12: each refused with its error, nothing stored, the connection and the other
        partition served on."""
        good = batch(b'good')
        cut = batch(b'first') + batch(b'second')[:40]
        cases = {
            'control': (87, batch(b'v', attributes=batches.CONTROL)),
            'crc': (2, batch(b'v', crc=1)),
            'count of -1': (87, batch(b'v', count=-1)),
            'count of 2^31-1': (87, batch(b'v', count=2**31 - 1)),
            'count not of the last delta': (87, batch(b'v', count=2)),
            'negative last delta': (87, batch(b'v', last_delta=-1)),
            'counts agree, too few records': (87, batch(b'v', count=2, last_delta=1)),
            'counts agree, too many records': (87, batch(b'a', b'b', count=1, last_delta=0)),
            'no records': (87, batches.build([])),
            'two batches': (87, batch(b'a') + batch(b'b')),
            'longer than it is': (87, batch(b'v', length=1000)),
            'length of 2^31-1': (87, batch(b'v', length=2**31 - 1)),
            'magic 1': (87, batch(b'v', magic=1)),
            'magic 0': (87, batch(b'v', magic=0)),
            'base offset': (87, batch(b'v', base=5)),
            'codec 5': (-1, batch(b'v', attributes=5)),
            'empty': (87, b''),
            'a few bytes': (87, b'\0' * 10),
            'null': (87, None),
            'no lz4': (-1, batches.build([b'x'], 'lz4', body=b'garbage')),
            'a record over its end': (87, batches.build([b'\x7e' + bytes(10)])),
        }
        with self.broker.connect() as c:
            calls.ready(c, 't', 2)
            for i, (name, (error, data)) in enumerate(cases.items()):
                answer = c.ask('Produce', 9, Acks=-1, TimeoutMs=10000, TopicData=[
                    {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': data},
                                                    {'Index': 1, 'Records': good}]}])
                found = {p['Index']: p for p in answer['Responses'][0]['PartitionResponses']}
                with self.subTest(name):
                    self.assertEqual((found[0]['ErrorCode'], found[0]['BaseOffset'],
                                      found[0]['LogAppendTimeMs']), (error, -1, -1))
                self.assertEqual(found[1]['ErrorCode'], 0, name)
                self.assertEqual(calls.end_of(c, 't', 1), i + 1)
                self.assertEqual(calls.end_of(c, 't'), 0, name)
            answer = calls.produce(c, 't', 0, cut)  # the cut one behind is dropped
            self.assertEqual(answer['ErrorCode'], 0)
            self.assertEqual(len(stored(c, 't')), 1)

    def test_hostile_batches_refuse_all(self):
        """PR-12: bytes in which Kafka cannot look for a transactional batch, and such a batch
        without a transactional id: none of the request is taken."""
        cases = {
            'length of -1': (2, batch(b'v', length=-1)),
            'length of 0': (2, batch(b'v', length=0)),
            'magic 3': (2, batch(b'v', magic=3)),
            'magic -1': (2, batch(b'v', magic=-1)),
            'transactional': (53, batch(b'v', attributes=batches.TRANSACTIONAL,
                                        producer=(1, 0, 0))),
        }
        with self.broker.connect() as c:
            calls.ready(c, 't', 2)
            for name, (error, data) in cases.items():
                answer = c.ask('Produce', 9, Acks=-1, TimeoutMs=10000, TopicData=[
                    {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': batch(b'good')},
                                                    {'Index': 1, 'Records': data}]}])
                self.assertEqual([p['ErrorCode']
                                  for p in answer['Responses'][0]['PartitionResponses']],
                                 [error, error], name)
                self.assertEqual(calls.end_of(c, 't'), 0)

    def test_transactional_without_a_producer(self):
        """Stored like any other; no transaction begins."""
        data = batch(b'v', attributes=batches.TRANSACTIONAL)
        with self.broker.connect() as c:
            calls.ready(c, 't')
            for version in (9, 12):
                answer = calls.produce(c, 't', 0, data, version, TransactionalId='x')
                self.assertEqual(answer['ErrorCode'], 0)
            self.assertEqual(len(stored(c, 't')), 2)
            answer = calls.produce(c, 't', 0, batch(b'v', attributes=batches.TRANSACTIONAL,
                                                    producer=(1, 0, 0)), 9, TransactionalId='x')
            self.assertEqual(answer['ErrorCode'], 48)

    def test_old_versions_and_message_sets(self):
        """PR-02, PR-04: magic 0 and 1 are refused, by error in a version that is served."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            message = struct.pack('>bbi', 0, 0, -1) + struct.pack('>i', 1) + b'v'
            crc = struct.pack('>I', zlib.crc32(message))
            one = struct.pack('>qi', 0, 4 + len(message)) + crc + message
            for version in (3, 9):
                self.assertEqual(calls.produce(c, 't', 0, 3 * one, version)['ErrorCode'], 87)
            self.assertEqual(calls.end_of(c, 't'), 0)
        for version in (0, 1, 2):
            with self.broker.connect() as c:
                c.send(kafka.frame(kafka.PRODUCE, kafka.produce_body('t', 0, 3 * one)[2:],
                                   version=version))
                self.assertTrue(c.ends())

    def test_acks(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            for acks in (2, -2, 32767):
                self.assertEqual(calls.produce(c, 't', 0, batch(b'v'), acks=acks)['ErrorCode'], 21)
            self.assertEqual(calls.end_of(c, 't'), 0)
            c.post('Produce', 9, Acks=0, TimeoutMs=1000, TopicData=[
                {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': batch(b'v')}]}])
            self.assertEqual(calls.produce(c, 't', 0, batch(b'w'), acks=1)['BaseOffset'], 1)

    def test_log_start_is_told(self):
        """RC-03: in Produce v5 on, 0 for a new topic; and nothing of the broker's own is in it."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            self.assertEqual([calls.offset_of(c, 't', 0, at)[2] for at in (-1, -2)], [0, 0])
            self.assertEqual(calls.fetch(c, 't', 0, 0)['HighWatermark'], 0)
            for version in range(5, 13):
                answer = calls.produce(c, 't', 0, batch(b'v'), version)
                self.assertEqual((answer['BaseOffset'], answer['LogStartOffset']), (version - 5, 0))


class Sizes(broker.BrokerTest):
    settings = {'socket.request.max.bytes': 8 << 20}

    def test_too_large_is_one_partitions(self):
        """PR-09: error 10 for it alone, judged as it was sent, before it is decompressed."""
        with self.broker.connect() as c:
            calls.ready(c, 't', 2, {'max.message.bytes': 1000})
            for values, codec, error in (((b'x' * 1000,), 'none', 10), ((b'x' * 900,), 'none', 0),
                                         ((b'x' * 100000,), 'gzip', 0)):
                end = calls.end_of(c, 't', 1)
                answer = c.ask('Produce', 9, Acks=-1, TimeoutMs=10000, TopicData=[
                    {'Name': 't', 'PartitionData': [
                        {'Index': 0, 'Records': batch(*values, codec=codec)},
                        {'Index': 1, 'Records': batch(b'small')}]}])
                found = {p['Index']: p for p in answer['Responses'][0]['PartitionResponses']}
                self.assertEqual((found[0]['ErrorCode'], found[1]['ErrorCode']), (error, 0))
                self.assertEqual(calls.end_of(c, 't', 1), end + 1)
            exact = batch(b'x')
            calls.ready(c, 'exact', 1, {'max.message.bytes': len(exact)})
            self.assertEqual(calls.produce(c, 'exact', 0, exact)['ErrorCode'], 0)
            self.assertEqual(calls.produce(c, 'exact', 0, batch(b'xy'))['ErrorCode'], 10)
            junk = batch(b'xy', codec='gzip', body=b'no gzip' + bytes(50))
            self.assertEqual(calls.produce(c, 'exact', 0, junk)['ErrorCode'], 10)

    def test_too_large_once_it_is_stored(self):
        """PR-09: the limit holds for what the topic's compression makes of it."""
        with self.broker.connect() as c:
            calls.ready(c, 't', 1, {'compression.type': 'uncompressed', 'max.message.bytes': 100000})
            zeros = batch(bytes(1 << 20), codec='gzip')
            self.assertLess(len(zeros), 10000)
            self.assertEqual(calls.produce(c, 't', 0, zeros)['ErrorCode'], 10)
            self.assertEqual(calls.end_of(c, 't'), 0)
            small = batch(b'a', b'b', codec='gzip')
            self.assertEqual(calls.produce(c, 't', 0, small)['ErrorCode'], 0)
            found, = stored(c, 't')
            self.assertEqual((found.attributes, [r.value for r in found.records]),
                             (0, [b'a', b'b']))

    def test_request_over_the_sockets_limit(self):
        """PR-09: closed before it is read."""
        with self.broker.connect() as c:
            c.send(struct.pack('>i', (8 << 20) + 1) + bytes(1000))
            self.assertTrue(c.ends())

    def test_batch_over_a_segment(self):
        with self.broker.connect() as c:
            calls.ready(c, 't', 1, {'segment.bytes': 1 << 20, 'max.message.bytes': 4 << 20})
            self.assertEqual(calls.produce(c, 't', 0, batch(bytes(2 << 20)))['ErrorCode'], 18)


class Times(broker.BrokerTest):
    def test_log_append_time(self):
        """PR-08: the broker's clock in answer, batch, and search; clients' times do not count."""
        far = 4102444800000  # 2100
        with self.broker.connect() as c:
            calls.ready(c, 't', 1, {'message.timestamp.type': 'LogAppendTime'})
            times = []
            for first in (far, far * 1000, 5):
                begin = int(time.time() * 1000)
                data = batches.build([(first, b'k', b'1'), (first + 7, b'k', b'2')])
                answer = calls.produce(c, 't', 0, data)
                now = int(time.time() * 1000)
                self.assertEqual(answer['ErrorCode'], 0)
                self.assertTrue(begin <= answer['LogAppendTimeMs'] <= now, answer)
                found, = stored(c, 't', offset=answer['BaseOffset'])
                self.assertEqual(found.attributes, batches.LOG_APPEND_TIME)
                self.assertEqual(found.max_timestamp, answer['LogAppendTimeMs'])
                self.assertEqual([r.timestamp for r in found.records],
                                 2 * [answer['LogAppendTimeMs']])
                times.append(answer['LogAppendTimeMs'])
            for at in times:
                self.assertEqual(calls.offset_of(c, 't', 0, at)[1:3], (at, 2 * times.index(at)))
            self.assertEqual(calls.offset_of(c, 't', 0, far)[:3], (0, -1, -1))
            theirs = batches.build([(NOW, b'k', b'v')], attributes=batches.LOG_APPEND_TIME)
            self.assertEqual(calls.produce(c, 't', 0, theirs)['ErrorCode'], 32)

    def test_create_time(self):
        """PR-08: -1 as append time; too far ahead is error 32, with the record named."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            calls.ready(c, 'near', 1, {'message.timestamp.before.max.ms': 1000})
            answer = calls.produce(c, 't', 0, batch(b'v'))
            self.assertEqual((answer['ErrorCode'], answer['LogAppendTimeMs']), (0, -1))
            ahead = batches.build([(NOW, b'k', b'1'), (NOW + 2 * HOUR, b'k', b'2'),
                                   (NOW * 1000, b'k', b'3')])
            answer = calls.produce(c, 't', 0, ahead)
            self.assertEqual((answer['ErrorCode'], answer['BaseOffset']), (32, -1))
            self.assertEqual([e['BatchIndex'] for e in answer['RecordErrors']], [1, 2])
            self.assertEqual(answer['ErrorMessage'], 'One or more records have been rejected due '
                                                     'to invalid timestamp')
            self.assertEqual(calls.produce(c, 't', 0, ahead, 7)['ErrorCode'], 32)
            self.assertEqual(calls.end_of(c, 't'), 1)
            behind = batches.build([(NOW - HOUR, b'k', b'v')])
            self.assertEqual(calls.produce(c, 'near', 0, behind)['ErrorCode'], 32)
            none = batches.build([(-1, b'k', b'v')])
            self.assertEqual(calls.produce(c, 'near', 0, none)['ErrorCode'], 0)

    def test_compacted_topics_need_keys(self):
        with self.broker.connect() as c:
            calls.ready(c, 't', 1, {'cleanup.policy': 'compact'})
            data = batches.build([(NOW, b'', b'1'), (NOW, None, b'2'), (NOW, None, None)])
            answer = calls.produce(c, 't', 0, data)
            self.assertEqual(answer['ErrorCode'], 87)
            text = 'Compacted topic cannot accept message without key in topic partition t-0'
            self.assertEqual([(e['BatchIndex'], e['BatchIndexErrorMessage'])
                              for e in answer['RecordErrors']], [(1, text), (2, text)])
            self.assertEqual(calls.end_of(c, 't'), 0)


class Idempotent(broker.BrokerTest):
    def setUp(self):
        super().setUp()
        with self.broker.connect() as c:
            self.id = self.producer_id(c)
            calls.ready(c, 't')

    def producer_id(self, c, version=4):
        """Error 14 while the broker fetches a block of them: clients ask again, and so do we."""
        end = time.monotonic() + 10
        while True:
            answer = c.ask('InitProducerId', version, TransactionalId=None,
                           TransactionTimeoutMs=60000)
            if answer['ErrorCode'] != 14 or time.monotonic() > end:
                break
        self.assertEqual((answer['ErrorCode'], answer['ProducerEpoch']), (0, 0))
        return answer['ProducerId']

    def send(self, c, sequence, epoch=0, n=1, topic='t'):
        data = batches.build([(NOW, b'k', b'%d' % (sequence + i)) for i in range(n)],
                             producer=(self.id, epoch, sequence))
        answer = calls.produce(c, topic, 0, data)
        return answer['ErrorCode'], answer['BaseOffset']

    def test_ids_are_new_each_time(self):
        with self.broker.connect() as c:
            ids = [self.producer_id(c, version) for version in range(6)]
        self.assertEqual(len(set(ids + [self.id])), 7)

    def test_what_gets_no_id(self):
        """An empty transactional id, half of a producer's (id, epoch)."""
        with self.broker.connect() as c:
            for version in range(6):
                answer = c.ask('InitProducerId', version, TransactionalId='')
                self.assertEqual((answer['ErrorCode'], answer['ProducerId'],
                                  answer['ProducerEpoch']), (42, -1, -1))
            for version in range(3, 6):
                for half in ({'ProducerId': 3}, {'ProducerEpoch': 0}):
                    answer = c.ask('InitProducerId', version, TransactionalId=None,
                                   **{'ProducerId': -1, 'ProducerEpoch': -1, **half})
                    self.assertEqual((answer['ErrorCode'], answer['ProducerId']), (42, -1))
                answer = c.ask('InitProducerId', version, TransactionalId=None,
                               ProducerId=self.id, ProducerEpoch=0)
                self.assertEqual((answer['ErrorCode'], answer['ProducerEpoch']), (0, 0))
                self.assertGreater(answer['ProducerId'], self.id)

    def test_remembers_five_batches(self):
        """PR-10: a repeat has the original offset and no second copy; a gap is error 45."""
        with self.broker.connect() as c:
            for i in range(6):
                self.assertEqual(self.send(c, i), (0, i))
            for i in range(1, 6):
                self.assertEqual(self.send(c, i), (0, i))
            self.assertEqual(self.send(c, 0)[0], 45)  # the sixth last
            self.assertEqual(self.send(c, 8)[0], 45)
            self.assertEqual(self.send(c, 5, n=2)[0], 45)  # no batch of these two
            self.assertEqual(calls.end_of(c, 't'), 6)
            self.assertEqual(self.send(c, 6), (0, 6))

    def test_epochs(self):
        """PR-10: a new epoch begins at 0; an old one is fenced."""
        with self.broker.connect() as c:
            self.assertEqual(self.send(c, 0), (0, 0))
            self.assertEqual(self.send(c, 1, epoch=1)[0], 45)
            self.assertEqual(self.send(c, 0, epoch=1), (0, 1))
            self.assertEqual(self.send(c, 0, epoch=1), (0, 1))
            self.assertEqual(self.send(c, 1, epoch=0)[0], 47)
            self.assertEqual(self.send(c, 1, epoch=1), (0, 2))

    def test_sequence_wraps(self):
        """PR-10: from 2^31-1 to 0, in a batch and between two."""
        with self.broker.connect() as c:
            self.assertEqual(self.send(c, 2**31 - 2, n=4), (0, 0))
            self.assertEqual(self.send(c, 2**31 - 2, n=4), (0, 0))
            self.assertEqual(self.send(c, 2), (0, 4))
            calls.ready(c, 'u')
            self.assertEqual(self.send(c, 2**31 - 1, topic='u'), (0, 0))
            self.assertEqual(self.send(c, 0, topic='u'), (0, 1))
            self.assertEqual(self.send(c, 2**31 - 1, topic='u'), (0, 0))

    def test_over_restarts(self):
        """PR-10: after kill -9 as before it; after a clean stop the last batch is known, the ones
        before it are refused, as Kafka's snapshots hold one."""
        with self.broker.connect() as c:
            for i in range(6):
                self.assertEqual(self.send(c, i), (0, i))
        self.broker.kill()
        self.broker.start()
        with self.broker.connect() as c:
            for i in range(1, 6):
                self.assertEqual(self.send(c, i), (0, i))
            self.assertEqual(self.send(c, 7)[0], 45)
            self.assertEqual(self.send(c, 6), (0, 6))
        self.assertEqual(self.broker.stop(), 0)
        self.broker.start()
        with self.broker.connect() as c:
            self.assertEqual(self.send(c, 5)[0], 45)
            self.assertEqual(self.send(c, 6), (0, 6))
            self.assertEqual(self.send(c, 8)[0], 45)
            self.assertEqual(self.send(c, 7), (0, 7))
            self.assertEqual(self.send(c, 0, epoch=1), (0, 8))
            self.assertEqual(calls.end_of(c, 't'), 9)


if __name__ == '__main__':
    broker.main()
