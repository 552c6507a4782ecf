"""ListOffsets: cases LO. (Open transactions and epochs of old leaders: test_golden.)"""
import time

import batches
import broker
import calls

T0 = 1700000000000
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -4, -5, -6
NONE = (0, -1, -1)


class Times(broker.BrokerTest):
    def fill(self, c, topic, *stamps, **configs):
        """A batch for each tuple of times."""
        calls.ready(c, topic, 1, configs)
        for times in stamps:
            data = batches.build([(T0 + t, b'k', b'%d' % t) for t in times])
            self.assertEqual(calls.produce(c, topic, 0, data)['ErrorCode'], 0)

    def found(self, c, topic, at, **options):
        """(error, time, offset), times counted from T0."""
        error, timestamp, offset, _ = calls.offset_of(c, topic, 0, T0 + at, **options)
        return error, timestamp - T0 if timestamp >= 0 else timestamp, offset

    def test_first_record_at_or_after(self):
        """LO-01: in one batch, in four, compressed, in every version."""
        with self.broker.connect() as c:
            self.fill(c, 'one', (2, 4, 6, 8))
            self.fill(c, 'four', (2,), (4,), (6,), (8,))
            self.fill(c, 'packed', (2, 4), (6, 8), **{'compression.type': 'zstd'})
            for topic in ('one', 'four', 'packed'):
                for version in range(1, 12):
                    for at, offset in ((1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (8, 3)):
                        self.assertEqual(self.found(c, topic, at, version=version),
                                         (0, 2 * offset + 2, offset), (topic, at, version))
                    self.assertEqual(self.found(c, topic, 9, version=version), NONE)
                self.assertEqual(calls.offset_of(c, topic, 0, 0)[:3], (0, T0 + 2, 0))

    def test_times_that_go_backwards(self):
        """LO-01: in the order of offsets, no search among times that are not in order."""
        with self.broker.connect() as c:
            self.fill(c, 'batches', (50,), (10,), (60, 20), (30,))
            for at, offset, time_found in ((5, 0, 50), (50, 0, 50), (51, 2, 60), (60, 2, 60)):
                self.assertEqual(self.found(c, 'batches', at), (0, time_found, offset))
            self.assertEqual(self.found(c, 'batches', 61), NONE)
            self.fill(c, 'within', (50, 10, 60))
            self.assertEqual(self.found(c, 'within', 20), (0, 50, 0))
            self.assertEqual(self.found(c, 'within', 55), (0, 60, 2))

    def test_what_was_deleted_is_not_found(self):
        """LO-01: from the log's start on, also where that is inside a batch; after a restart too."""
        with self.broker.connect() as c:
            self.fill(c, 'one', (2, 4, 6, 8))
            self.fill(c, 'four', (8,), (4,), (6,), (2,))
            for topic, offset in (('one', 2), ('four', 1)):
                answer = c.ask('DeleteRecords', 2, TimeoutMs=10000, Topics=[
                    {'Name': topic, 'Partitions': [{'PartitionIndex': 0, 'Offset': offset}]}])
                self.assertEqual(answer['Topics'][0]['Partitions'][0]['ErrorCode'], 0)
        for restart in (False, True):
            if restart:
                self.broker.kill()
                self.broker.start()
            with self.broker.connect() as c:
                c.wait_for_leaders('four', 1)
                for at, found in ((1, (0, 6, 2)), (5, (0, 6, 2)), (7, (0, 8, 3)), (9, NONE)):
                    self.assertEqual(self.found(c, 'one', at), found)
                for at, found in ((1, (0, 4, 1)), (5, (0, 6, 2)), (7, NONE)):
                    self.assertEqual(self.found(c, 'four', at), found)

    def test_over_segments(self):
        with self.broker.connect() as c:
            calls.ready(c, 't', 1, {'segment.bytes': 1 << 20})
            for i in range(12):
                data = batches.build([(T0 + 10 * i, b'k', bytes(300000))])
                self.assertEqual(calls.produce(c, 't', 0, data)['ErrorCode'], 0)
            for i in range(12):
                self.assertEqual(self.found(c, 't', 10 * i - 3), (0, 10 * i, i))
        self.broker.kill()
        self.broker.start()
        with self.broker.connect() as c:
            for i in range(12):
                self.assertEqual(self.found(c, 't', 10 * i - 3), (0, 10 * i, i))

    def test_specials(self):
        """LO-01: -1 the end, -2 the start, -3 the record with the largest time, where the version
        has them; error 35 for the others."""
        with self.broker.connect() as c:
            self.fill(c, 't', (1, 9, 3), (4,))
            self.fill(c, 'empty')
            since = {calls.LATEST: 1, calls.EARLIEST: 1, calls.MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8,
                     LATEST_TIERED: 9, EARLIEST_PENDING: 11, -7: 99, -2**63: 99}
            right = {calls.LATEST: (0, -1, 4), calls.EARLIEST: (0, -1, 0),
                     calls.MAX_TIMESTAMP: (0, T0 + 9, 1), EARLIEST_LOCAL: (0, -1, 0),
                     LATEST_TIERED: NONE, EARLIEST_PENDING: NONE}
            for at, first in since.items():
                for version in range(1, 12):
                    for isolation in (0, 1) if version >= 2 else (0,):
                        found = calls.offset_of(c, 't', 0, at, isolation, version)[:3]
                        self.assertEqual(found, right[at] if version >= first else (35, -1, -1),
                                         (at, version))
            for at, offset in ((calls.LATEST, 0), (calls.EARLIEST, 0), (calls.MAX_TIMESTAMP, -1),
                               (T0, -1)):
                self.assertEqual(calls.offset_of(c, 'empty', 0, at)[:3], (0, -1, offset))

    def test_log_append_time(self):
        with self.broker.connect() as c:
            self.fill(c, 't', (5, 6), **{'message.timestamp.type': 'LogAppendTime'})
            now = int(time.time() * 1000)
            for at in (0, T0 + 5, T0 + 7):
                error, stamp, offset, _ = calls.offset_of(c, 't', 0, at)
                self.assertEqual((error, offset), (0, 0))
                self.assertTrue(now - 60000 < stamp <= now)
            self.assertEqual(calls.offset_of(c, 't', 0, now + 1)[:3], NONE)

    def test_a_partition_twice(self):
        with self.broker.connect() as c:
            self.fill(c, 't', (1,))
            answer = c.ask('ListOffsets', 7, ReplicaId=-1, Topics=[
                {'Name': 't', 'Partitions': [{'PartitionIndex': 0, 'Timestamp': -1},
                                             {'PartitionIndex': 0, 'Timestamp': -2}]}])
            parts = [p for t in answer['Topics'] for p in t['Partitions']]
            self.assertEqual([p['ErrorCode'] for p in parts], [42])

    def test_unknown_partitions(self):
        with self.broker.connect() as c:
            self.fill(c, 't')
            for topic, partition in (('none', 0), ('t', 1), ('t', -1)):
                self.assertEqual(calls.offset_of(c, topic, partition, calls.LATEST)[:3],
                                 (3, -1, -1))


class Epochs(broker.BrokerTest):
    def test_epoch_is_the_records(self):
        """LO-03: of what was found, not of today; the end's is today's."""
        epochs, at = [], []
        for i in range(3):
            with self.broker.connect() as c:
                if i == 0:
                    calls.ready(c, 't')
                at.append(T0 + 10 * i)
                data = batches.build([(at[-1], b'k', b'v')])
                self.assertEqual(calls.produce(c, 't', 0, data)['ErrorCode'], 0)
                epochs.append(calls.offset_of(c, 't', 0, calls.LATEST)[3])
            self.broker.stop()
            self.broker.start()
        self.assertEqual(epochs, sorted(set(epochs)))
        with self.broker.connect() as c:
            for i in range(3):
                self.assertEqual(calls.offset_of(c, 't', 0, at[i]), (0, at[i], i, epochs[i]))
            self.assertEqual(calls.offset_of(c, 't', 0, calls.EARLIEST)[2:], (0, epochs[0]))
            self.assertEqual(calls.offset_of(c, 't', 0, calls.MAX_TIMESTAMP)[2:], (2, epochs[2]))
            self.assertGreater(calls.offset_of(c, 't', 0, calls.LATEST)[3], epochs[2])
            self.assertEqual(calls.offset_of(c, 't', 0, at[2] + 1), (0, -1, -1, -1))
            self.assertEqual(calls.offset_of(c, 't', 0, at[0], version=3)[3], -1)


if __name__ == '__main__':
    broker.main()
