"""Fetch, its sessions, and OffsetForLeaderEpoch: cases FE."""
import select
import time

import batches
import broker
import calls

NOW = int(time.time() * 1000)


def batch(*values, **over):
    return batches.build([(NOW + i, b'key', v) for i, v in enumerate(values)], **over)


class Single(broker.BrokerTest):
    def fill(self, c, topic, *sizes, partitions=1, **configs):
        calls.ready(c, topic, partitions, configs)
        for size in sizes:
            for partition in range(partitions):
                self.assertEqual(calls.produce(c, topic, partition,
                                               batch(b'x' * size))['ErrorCode'], 0)
        return len(sizes)


class Limits(Single):
    def request(self, c, entries, version=12, **more):
        """entries: (topic, partition, offset, most bytes). Size of the records of each answered."""
        answer = c.ask('Fetch', version, ReplicaId=-1, Topics=[
            {'Topic': topic, 'Partitions': [{'Partition': partition, 'FetchOffset': offset,
                                             'PartitionMaxBytes': most}]}
            for topic, partition, offset, most in entries], **more)
        found = {}
        for t in answer['Responses']:
            for p in t['Partitions']:
                self.assertEqual(p['ErrorCode'], 0)
                found[t['Topic'], p['PartitionIndex']] = len(p['Records'])
        return found

    def test_first_batch_passes_every_limit(self):
        """FE-01: whole, in every version; the others get what is left."""
        with self.broker.connect() as c:
            self.fill(c, 't', 1000000, partitions=2)
            whole = len(batch(b'x' * 1000000))
            for version in range(4, 13):
                for most, partition_most in ((1, 1), (0, 0), (1 << 20, 1)):
                    found = self.request(c, [('t', 0, 0, partition_most),
                                             ('t', 1, 0, partition_most)], version, MaxBytes=most)
                    self.assertEqual(found, {('t', 0): whole, ('t', 1): 0})
            found = self.request(c, [('t', 0, 1, 1), ('t', 1, 0, 1)], MaxBytes=1)
            self.assertEqual(found, {('t', 0): 0, ('t', 1): whole})

    def test_answer_is_bounded(self):
        """FE-01: many partitions that each allow much; none starves when the client turns them,
        as in a session the broker does."""
        with self.broker.connect() as c:
            self.fill(c, 't', *20 * [10000], partitions=20)
            offsets, total = {p: 0 for p in range(20)}, 0
            entries = [('t', p, 0, 10 << 20) for p in range(20)]
            found = self.request(c, entries, MaxBytes=500000)
            self.assertLessEqual(sum(found.values()), 500000)
            self.assertGreater(sum(found.values()), 400000)
            session, epoch = 0, 0
            for _ in range(20):
                answer = c.ask('Fetch', 12, ReplicaId=-1, MaxBytes=500000, SessionId=session,
                               SessionEpoch=epoch, Topics=[
                                   {'Topic': 't', 'Partitions': [
                                       {'Partition': p, 'FetchOffset': offset,
                                        'PartitionMaxBytes': 10 << 20}
                                       for p, offset in offsets.items()]}])
                session, epoch = answer['SessionId'], epoch + 1
                got = {p['PartitionIndex']: batches.read(p['Records'])
                       for t in answer['Responses'] for p in t['Partitions']}
                total += sum(map(len, got.values()))
                offsets.update((p, found[-1].base + 1) for p, found in got.items() if found)
                if total == 400:
                    break
            self.assertEqual(total, 400)

    def test_batch_at_the_end_may_be_cut(self):
        with self.broker.connect() as c:
            self.fill(c, 't', 1000, 1000)
            one = len(batch(b'x' * 1000))
            for most in (one, one + 100, 2 * one, 2 * one + 5):
                p = calls.fetch(c, 't', 0, 0, max_bytes=most)
                self.assertEqual(len(p['Records']), min(most, 2 * one))


class Waits(Single):
    def waited(self, c, **request):
        begin = time.monotonic()
        answer = c.ask('Fetch', 12, ReplicaId=-1, MaxBytes=1 << 20, **request)
        return answer, (time.monotonic() - begin) * 1000

    def entry(self, offset, topic='t', partition=0):
        return {'Topic': topic, 'Partitions': [{'Partition': partition, 'FetchOffset': offset,
                                                'PartitionMaxBytes': 1 << 20}]}

    def test_waits_as_asked(self):
        """FE-03: until min bytes are there over all partitions, or for max wait."""
        with self.broker.connect() as c:
            self.fill(c, 't', 100)
            self.fill(c, 'u', 100)
            size = len(batch(b'x' * 100))
            for topics, least, waits in (([self.entry(1)], 1, True), ([self.entry(1)], 0, False),
                                         ([self.entry(0)], 1, False),
                                         ([self.entry(0)], 100000, True),
                                         ([self.entry(0)], size + 1, True),
                                         ([self.entry(0), self.entry(0, 'u')], size + 1, False),
                                         ([self.entry(9)], 1, False),
                                         ([self.entry(1), self.entry(0, 'none')], 1, True),
                                         ([self.entry(0, 'none')], 1, False)):
                most = 300 if waits else 60000
                _, ms = self.waited(c, MaxWaitMs=most, MinBytes=least, Topics=topics)
                self.assertEqual(ms >= most - 5, waits, (topics, least, ms))

    def test_empty_incremental_request_waits(self):
        """FE-03: for all partitions of its session, and wakes when data arrives."""
        with self.broker.connect() as c, self.broker.connect() as other:
            self.fill(c, 't', 100)
            first, _ = self.waited(c, MaxWaitMs=0, MinBytes=1, SessionId=0, SessionEpoch=0,
                                   Topics=[self.entry(1)])
            session = first['SessionId']
            self.assertGreater(session, 0)
            answer, ms = self.waited(c, MaxWaitMs=300, MinBytes=1, SessionId=session,
                                     SessionEpoch=1)
            self.assertEqual((answer['ErrorCode'], answer['Responses']), (0, []))
            self.assertGreaterEqual(ms, 295)
            begin = time.monotonic()
            sent = c.post('Fetch', 12, ReplicaId=-1, MaxBytes=1 << 20, MaxWaitMs=60000, MinBytes=1,
                          SessionId=session, SessionEpoch=2)
            self.assertEqual(select.select([c.socket], [], [], 0.1)[0], [])
            self.assertEqual(calls.produce(other, 't', 0, batch(b'woken'))['ErrorCode'], 0)
            self.assertEqual(c.answer()[0], sent)
            self.assertLess(time.monotonic() - begin, 30)

    def test_wakes_all_that_wait(self):
        with self.broker.connect() as c:
            self.fill(c, 't')
            waiting = [self.broker.connect() for _ in range(20)]
            for w in waiting:
                w.post('Fetch', 12, ReplicaId=-1, MaxBytes=1 << 20, MaxWaitMs=60000, MinBytes=1,
                       Topics=[self.entry(0)])
            self.assertEqual(calls.produce(c, 't', 0, batch(b'woken'))['ErrorCode'], 0)
            for w in waiting:
                self.assertIn(b'woken', w.answer()[1])
                w.close()


class Sessions(Single):
    """FE-05 (KIP-227)"""
    settings = {'max.incremental.fetch.session.cache.slots': '20'}

    def ask(self, c, session, epoch, offsets=None, forgotten=(), version=12):
        """offsets: partition -> offset. Top-level error, session, answered partitions -> values."""
        answer = c.ask('Fetch', version, ReplicaId=-1, MaxBytes=1 << 20, SessionId=session,
                       SessionEpoch=epoch, Topics=self.topics(offsets or {}),
                       ForgottenTopicsData=[{'Topic': 't', 'Partitions': list(forgotten)}]
                       if forgotten else [])
        return answer['ErrorCode'], answer['SessionId'], {
            p['PartitionIndex']: [r.value for b in batches.read(p['Records'] or b'')
                                  for r in b.records]
            for t in answer['Responses'] for p in t['Partitions']}

    def topics(self, offsets):
        return [{'Topic': 't', 'Partitions': [
            {'Partition': p, 'FetchOffset': offset, 'PartitionMaxBytes': 1 << 20}
            for p, offset in offsets.items()]}] if offsets else []

    def send(self, c, partition, value):
        self.assertEqual(calls.produce(c, 't', partition, batch(value))['ErrorCode'], 0)

    def test_answers_hold_what_is_new(self):
        with self.broker.connect() as c:
            calls.ready(c, 't', 3)
            self.send(c, 0, b'a')
            all_at_0 = {0: 0, 1: 0, 2: 0}
            self.assertEqual(self.ask(c, 0, -1, all_at_0), (0, 0, {0: [b'a'], 1: [], 2: []}))
            error, session, found = self.ask(c, 0, 0, all_at_0)
            self.assertEqual((error, found), (0, {0: [b'a'], 1: [], 2: []}))
            self.assertGreater(session, 0)
            self.assertEqual(self.ask(c, session, 1, {0: 1}), (0, session, {}))
            self.send(c, 1, b'b')
            self.assertEqual(self.ask(c, session, 2), (0, session, {1: [b'b']}))
            self.assertEqual(self.ask(c, session, 3), (0, session, {1: [b'b']}))  # not moved on
            self.assertEqual(self.ask(c, session, 4, {1: 1}), (0, session, {}))
            self.send(c, 1, b'c')
            self.send(c, 2, b'd')
            self.assertEqual(self.ask(c, session, 5, forgotten=[1]), (0, session, {2: [b'd']}))
            self.send(c, 1, b'e')
            self.assertEqual(self.ask(c, session, 6, {2: 1}), (0, session, {}))
            self.assertEqual(self.ask(c, session, 7, {1: 1}), (0, session, {1: [b'c', b'e']}))

    def test_errors_are_of_the_request(self):
        """Wrong epoch 71, unknown id 70; the connection goes on."""
        with self.broker.connect() as c:
            calls.ready(c, 't', 1)
            _, session, _ = self.ask(c, 0, 0, {0: 0})
            self.assertEqual(self.ask(c, session, 5)[0], 71)
            self.assertEqual(self.ask(c, session, 1)[0], 0)
            self.assertEqual(self.ask(c, session, 1)[0], 71)
            other = session + 1 if session < 2**31 - 1 else 1
            self.assertEqual(self.ask(c, other, 1)[0], 70)
            self.assertEqual(self.ask(c, 0, 5)[0], 70)
            self.assertEqual(self.ask(c, session, 2)[0], 0)
            error, _, found = self.ask(c, session, -1, {0: 0})  # ends it
            self.assertEqual((error, found), (0, {0: []}))
            self.assertEqual(self.ask(c, session, 3)[0], 70)

    def test_lives_on_over_connections(self):
        with self.broker.connect() as c:
            calls.ready(c, 't', 1)
            _, session, _ = self.ask(c, 0, 0, {0: 0})
        with self.broker.connect() as c:
            self.send(c, 0, b'a')
            self.assertEqual(self.ask(c, session, 1), (0, session, {0: [b'a']}))

    def test_a_full_epoch_begins_again(self):
        with self.broker.connect() as c:
            calls.ready(c, 't', 2)
            _, first, _ = self.ask(c, 0, 0, {0: 0, 1: 0})
            error, second, found = self.ask(c, first, 0, {0: 0})
            self.assertEqual((error, found), (0, {0: []}))
            self.assertNotEqual(second, first)
            self.assertEqual(self.ask(c, first, 1)[0], 70)
            self.send(c, 1, b'not asked for')
            self.assertEqual(self.ask(c, second, 1), (0, second, {}))

    def test_a_flood_does_not_end_what_is_used(self):
        """Sessions that are thrown away, more than the table holds: the later ones get none and are
        served all the same."""
        with self.broker.connect() as c:
            calls.ready(c, 't', 1)
            _, used, _ = self.ask(c, 0, 0, {0: 0})
            for epoch in range(1, 4):
                for _ in range(50):
                    error, session, _ = self.ask(c, 0, 0, {0: 0})
                    self.assertEqual(error, 0)
                self.assertEqual(session, 0)  # the table is full: served without one
                self.assertEqual(self.ask(c, used, epoch)[0], 0)


class Offsets(Single):
    def check(self, c, topic, start, end):
        for offset, error in ((start - 1, 1), (start, 0), (end, 0), (end + 1, 1), (-1, 1),
                              (2**63 - 1, 1), (-2**63, 1)):
            for version in (4, 11, 12):
                p = calls.fetch(c, topic, 0, offset, version)
                self.assertEqual(p['ErrorCode'], error, offset)
                if error == 0:
                    self.assertEqual((p['HighWatermark'], p.get('LogStartOffset', start)),
                                     (end, start))
                    self.assertEqual(bool(p['Records']), offset < end)
                else:
                    self.assertEqual((p['HighWatermark'], p['LastStableOffset'],
                                      p.get('LogStartOffset', -1), p['Records']), (-1, -1, -1, b''))

    def test_out_of_range(self):
        """FE-06: no clamping; from the start to the end is no error, over restarts too."""
        with self.broker.connect() as c:
            end = self.fill(c, 't', 10, 10, 10)
            calls.ready(c, 'empty')
            self.check(c, 't', 0, end)
            self.check(c, 'empty', 0, 0)
        for stop in (self.broker.stop, self.broker.kill):
            stop()
            self.broker.start()
            with self.broker.connect() as c:
                self.check(c, 't', 0, end)
                self.check(c, 'empty', 0, 0)

    def test_topic_made_again(self):
        """FE-06: an old offset in the new log is out of range."""
        with self.broker.connect() as c:
            end = self.fill(c, 't', 10, 10, 10)
            c.ask('DeleteTopics', 6, Topics=[{'Name': 't'}], TimeoutMs=10000)
            calls.ready(c, 't')
            self.assertEqual(calls.fetch(c, 't', 0, end)['ErrorCode'], 1)
            self.check(c, 't', 0, 0)

    def test_unknown_partitions(self):
        with self.broker.connect() as c:
            self.fill(c, 't', 10)
            for version in range(4, 13):
                for topic, partition in (('none', 0), ('t', 1), ('t', -1)):
                    p = calls.fetch(c, topic, partition, 0, version)
                    self.assertEqual((p['ErrorCode'], p['HighWatermark']), (3, -1))

    def test_by_topic_id(self):
        with self.broker.connect() as c:
            self.fill(c, 't', 10)
            topic_id = calls.metadata(c, ['t'])['Topics'][0]['TopicId']
            for version in range(13, 19):
                for wanted, error in ((topic_id, 0), (type(topic_id)(int=77), 100)):
                    answer = c.ask('Fetch', version, MaxBytes=1 << 20, Topics=[
                        {'TopicId': wanted, 'Partitions': [{'Partition': 0, 'FetchOffset': 0,
                                                            'PartitionMaxBytes': 1 << 20}]}])
                    topic, = answer['Responses']
                    self.assertEqual((answer['ErrorCode'], topic['TopicId'],
                                      topic['Partitions'][0]['ErrorCode']), (0, wanted, error))


class Isolation(Single):
    def test_without_transactions(self):
        """FE-07: read_committed ends at the high watermark, with an empty list of aborted ones;
        read_uncommitted has none. (Open and aborted transactions: test_golden.)"""
        with self.broker.connect() as c:
            end = self.fill(c, 't', 10, 10)
            calls.ready(c, 'empty')
            for topic, size in (('t', end), ('empty', 0)):
                for version in range(4, 13):
                    for isolation, aborted in ((0, None), (1, [])):
                        p = calls.fetch(c, topic, 0, 0, version, IsolationLevel=isolation)
                        self.assertEqual((p['ErrorCode'], p['AbortedTransactions'],
                                          p['HighWatermark'], p['LastStableOffset']),
                                         (0, aborted, size, size))
                        self.assertEqual(len(batches.read(p['Records'])), size)
            self.assertIsNone(calls.fetch(c, 't', 0, 9, IsolationLevel=1)['AbortedTransactions'])


class Epochs(Single):
    def epoch(self, c, topic='t'):
        return calls.metadata(c, [topic])['Topics'][0]['Partitions'][0]['LeaderEpoch']

    def test_leader_epoch_of_the_reader(self):
        """FE-09: an older one is fenced, a newer one unknown; with each restart it grows."""
        with self.broker.connect() as c:
            self.fill(c, 't', 10)
            epochs = [self.epoch(c)]
        for _ in range(2):
            self.broker.stop()
            self.broker.start()
            with self.broker.connect() as c:
                epochs.append(self.epoch(c))
                self.assertEqual(calls.produce(c, 't', 0, batch(b'x'))['ErrorCode'], 0)
        self.assertEqual(len(set(epochs)), 3)
        self.assertEqual(epochs, sorted(epochs))
        with self.broker.connect() as c:
            last = epochs[-1]
            for epoch, error in ((-1, 0), (last, 0), (last - 1, 74), (0, 74), (last + 1, 75)):
                for version in (9, 12):
                    p = calls.fetch(c, 't', 0, 0, version, part={'CurrentLeaderEpoch': epoch})
                    self.assertEqual(p['ErrorCode'], error, epoch)
                found = calls.offset_of(c, 't', 0, calls.LATEST, CurrentLeaderEpoch=epoch)
                self.assertEqual(found[0], error)
            stored = batches.read(calls.fetch(c, 't', 0, 0)['Records'])
            self.assertEqual([b.leader_epoch for b in stored], epochs)
            self.check_divergence(c, epochs)

    def check_divergence(self, c, epochs):
        """FE-09: offset i was written in epochs[i]; each stop takes the leader away, an epoch in
        which nothing is written."""
        between = epochs[1] - 1
        self.assertGreater(between, epochs[0])
        for offset, epoch, diverging in ((1, epochs[0], None), (2, epochs[0], (epochs[0], 1)),
                                         (3, epochs[0], (epochs[0], 1)), (2, epochs[1], None),
                                         (3, epochs[2], None), (3, epochs[1], (epochs[1], 2)),
                                         (1, epochs[1], None),
                                         (1, between, (epochs[0], 1))):
            p = calls.fetch(c, 't', 0, offset, part={'LastFetchedEpoch': epoch})
            self.assertEqual(p['ErrorCode'], 0)
            told = p['DivergingEpoch'] or None
            self.assertEqual(told and (told['Epoch'], told['EndOffset']), diverging, (offset, epoch))
            self.assertEqual(bool(p['Records']), diverging is None and offset < 3)
        for epoch, end in ((epochs[0], 1), (epochs[1], 2), (epochs[2], 3), (epochs[2] + 1, None)):
            for version in (2, 3, 4):
                answer = c.ask('OffsetForLeaderEpoch', version, ReplicaId=-1, Topics=[
                    {'Topic': 't', 'Partitions': [{'Partition': 0, 'LeaderEpoch': epoch}]}])
                p = answer['Topics'][0]['Partitions'][0]
                self.assertEqual((p['ErrorCode'], p['LeaderEpoch'], p['EndOffset']),
                                 (0, epoch, end) if end is not None else (0, -1, -1))


if __name__ == '__main__':
    broker.main()
