"""The APIs of tools and admin clients: what they change is there at once and after a restart, what
they tell is what there is."""
import base64
import glob
import os
import time

import batches
import broker
import calls


class CreatePartitions(broker.BrokerTest):
    def grow(self, c, *topics, **options):
        """(name, error) of each; topics: (name, count[, brokers of each new one])."""
        answer = c.ask('CreatePartitions', 3, TimeoutMs=10000, Topics=[
            {'Name': t[0], 'Count': t[1],
             'Assignments': [{'BrokerIds': b} for b in t[2]] if len(t) > 2 else None}
            for t in topics], **options)
        return [(r['Name'], r['ErrorCode']) for r in answer['Results']]

    def partitions(self, c, topic):
        answer = c.ask('Metadata', 12, Topics=[{'Name': topic}])
        return [(p['PartitionIndex'], p['LeaderId']) for p in answer['Topics'][0]['Partitions']]

    def test_led_at_once_and_after_a_restart(self):
        with self.broker.connect() as c:
            c.create_topic('t')
            self.assertEqual(c.produce('t', 0, [b'0']), (0, 0))
            self.assertEqual(c.produce('t', 1, [b'1'])[0], 3)
            self.assertEqual(self.grow(c, ('t', 3), ('none', 2), ('t2', 2), ('t2', 3)),
                             [('t', 0), ('none', 3), ('t2', 42)])
            for p in (1, 2):
                self.assertEqual(c.produce('t', p, [b'%d' % p]), (0, 0))
            self.assertEqual(self.partitions(c, 't'), [(0, 1), (1, 1), (2, 1)])
        for stop in (self.broker.stop, self.broker.kill):
            stop()
            self.broker.start()
            with self.broker.connect() as c:
                for p in range(3):
                    self.assertEqual(c.read_all('t', p), [(0, b'%d' % p)])

    def test_refused(self):
        with self.broker.connect() as c:
            c.create_topic('t', 2)
            self.assertEqual(self.grow(c, ('t', 2)), [('t', 37)])
            self.assertEqual(self.grow(c, ('t', 3, [[9]])), [('t', 39)])
            self.assertEqual(self.grow(c, ('t', 2 ** 31 - 1)), [('t', 44)])
            self.assertEqual(self.grow(c, ('t', 5), ValidateOnly=True), [('t', 0)])
            self.assertEqual(self.partitions(c, 't'), [(0, 1), (1, 1)])
            self.assertEqual(self.grow(c, ('t', 3, [[1]])), [('t', 0)])
            self.assertEqual(len(self.partitions(c, 't')), 3)


class DeleteRecords(broker.BrokerTest):
    def delete(self, c, *asked, timeout_ms=10000, version=2):
        """asked: (topic, partition, offset). {(topic, partition): (error, low watermark)}"""
        answer = c.ask('DeleteRecords', version, TimeoutMs=timeout_ms, Topics=[
            {'Name': t, 'Partitions': [{'PartitionIndex': p, 'Offset': o}]} for t, p, o in asked])
        return {(t['Name'], p['PartitionIndex']): (p['ErrorCode'], p['LowWatermark'])
                for t in answer['Topics'] for p in t['Partitions']}

    def earliest(self, c, topic, partition=0):
        error, _, offset, _ = calls.offset_of(c, topic, partition, calls.EARLIEST)
        self.assertEqual(error, 0)
        return offset

    def fill(self, c, topic, partition, *sizes, value=b'v'):
        for n in sizes:
            data = batches.build([(1700000000000, None, value)] * n)
            self.assertEqual(calls.produce(c, topic, partition, data)['ErrorCode'], 0)

    def test_inside_a_batch(self):
        """AD-04: the low watermark is what was asked for; the batch comes whole."""
        with self.broker.connect() as c:
            calls.ready(c, 't', 2)
            self.fill(c, 't', 0, 5, 5, 5)
            self.assertEqual(self.delete(c, ('t', 0, 7)), {('t', 0): (0, 7)})
            self.assertEqual(self.delete(c, ('t', 0, 7), version=0), {('t', 0): (0, 7)})
            self.assertEqual(self.delete(c, ('t', 0, 3), version=1), {('t', 0): (0, 7)})
            self.assertEqual(self.earliest(c, 't'), 7)
            found = calls.fetch(c, 't', 0, 7)
            self.assertEqual((found['ErrorCode'], found['LogStartOffset']), (0, 7))
            self.assertEqual([b.base for b in batches.read(found['Records'])], [5, 10])
            self.assertEqual(calls.fetch(c, 't', 0, 6)['ErrorCode'], 1)
            self.assertEqual(self.delete(c, ('t', 0, -1)), {('t', 0): (0, 15)})
            self.assertEqual(self.earliest(c, 't'), calls.end_of(c, 't'))
            self.fill(c, 't', 0, 1)
            found = calls.fetch(c, 't', 0, 15)
            self.assertEqual([b.base for b in batches.read(found['Records'])], [15])

    def test_refused(self):
        """AD-04: each its error, beside what is done; the later of two mentions counts."""
        with self.broker.connect() as c:
            calls.ready(c, 't', 2)
            calls.ready(c, 'compact', 1, {'cleanup.policy': 'compact'})
            calls.ready(c, 'both', 1, {'cleanup.policy': 'compact,delete'})
            self.fill(c, 't', 0, 5)
            for offset in (6, -2, 2 ** 63 - 1, -2 ** 63):
                self.assertEqual(self.delete(c, ('t', 0, offset)), {('t', 0): (1, -1)})
            self.assertEqual(
                self.delete(c, ('t', 0, 4), ('none', 0, 0), ('t', 5, 0), ('compact', 0, 0),
                            ('both', 0, 0), ('t', 0, 2), ('__cluster_metadata', 0, 0)),
                {('t', 0): (0, 2), ('none', 0): (3, -1), ('t', 5): (3, -1), ('compact', 0): (44, -1),
                 ('both', 0): (0, 0), ('__cluster_metadata', 0): (3, -1)})
            self.assertEqual(self.delete(c), {})
            self.assertEqual(self.delete(c, ('t', 0, 3), timeout_ms=0), {('t', 0): (0, 3)})
            self.assertEqual(self.delete(c, ('t', 0, 4), timeout_ms=-1), {('t', 0): (0, 4)})

    def test_kept_after_a_kill(self):
        """AD-04: what was answered holds, however soon the broker is killed."""
        with self.broker.connect() as c:
            calls.ready(c, 't', 2)
            for p in range(2):
                self.fill(c, 't', p, *[10] * 5)
        for offset in range(3, 33, 6):
            with self.broker.connect() as c:
                self.assertEqual(self.delete(c, ('t', 0, offset), ('t', 1, offset + 1)),
                                 {('t', 0): (0, offset), ('t', 1): (0, offset + 1)})
            self.broker.kill()
            self.broker.start()
            with self.broker.connect() as c:
                self.assertEqual((self.earliest(c, 't', 0), self.earliest(c, 't', 1)),
                                 (offset, offset + 1))
                self.assertEqual(calls.end_of(c, 't'), 50)
        self.assertEqual(self.broker.stop(), 0)
        self.broker.start()
        with self.broker.connect() as c:
            self.assertEqual((self.earliest(c, 't', 0), self.earliest(c, 't', 1)), (27, 28))

    def test_segments_leave_the_disk(self):
        with self.broker.connect() as c:
            calls.ready(c, 't', 1, {'segment.bytes': 1 << 20})
            self.fill(c, 't', 0, *[1] * 12, value=bytes(400000))
            self.assertEqual(self.delete(c, ('t', 0, -1)), {('t', 0): (0, 12)})
            pattern = os.path.join(self.broker.data, 't-0', '*.log')
            self.poll(lambda: len(glob.glob(pattern)) <= 1, timeout_s=10)
            self.assertEqual([os.path.basename(p) for p in glob.glob(pattern)],
                             ['%020d.log' % 10])
            self.fill(c, 't', 0, 1)
            self.assertEqual(calls.fetch(c, 't', 0, 12)['HighWatermark'], 13)
        self.broker.kill()
        self.broker.start()
        with self.broker.connect() as c:
            self.assertEqual((self.earliest(c, 't'), calls.end_of(c, 't')), (12, 13))


class DescribeLogDirs(broker.BrokerTest):
    def setUp(self):
        self.broker = broker.Broker()
        # A relative directory, and more slashes than it needs.
        self.broker.prefix = ['env', '-C', self.broker.directory]
        self.broker.data = './/data/'
        self.addCleanup(self.broker.close)
        self.broker.start()

    def describe(self, c, topics, version=5):
        """The only directory's entry; topics: {name: [partitions]}, None: all."""
        answer = c.ask('DescribeLogDirs', version, Topics=topics and [
            {'Topic': t, 'Partitions': p} for t, p in topics.items()])
        self.assertEqual(answer.get('ErrorCode', 0), 0)
        self.assertEqual(len(answer['Results']), 1)
        return answer['Results'][0]

    def sizes(self, entry):
        found = {}
        for t in entry['Topics']:
            for p in t['Partitions']:
                self.assertEqual((p['OffsetLag'], p['IsFutureKey']), (0, False))
                found[t['Name'], p['PartitionIndex']] = p['PartitionSize']
        return found

    def test_sizes_are_the_files(self):
        directory = os.path.join(self.broker.directory, './data')
        with self.broker.connect() as c:
            calls.ready(c, 't', 3)
            calls.ready(c, 'u', 1, {'segment.bytes': 1 << 20})
            data = batches.build([(1700000000000, None, bytes(300000))])
            for _ in range(5):
                self.assertEqual(calls.produce(c, 'u', 0, data)['ErrorCode'], 0)
            self.assertEqual(c.produce('t', 1, [b'v'] * 7)[0], 0)
            files = {('t', 0): 0, ('t', 1): 0, ('t', 2): 0, ('u', 0): 0}
            for path in glob.glob(os.path.join(directory, '[tu]-*', '*.log')):
                topic, _, partition = os.path.basename(os.path.dirname(path)).partition('-')
                files[topic, int(partition)] += os.path.getsize(path)
            self.assertEqual(files['u', 0], 5 * len(data))
            entry = self.describe(c, None)
            self.assertEqual((entry['ErrorCode'], entry['LogDir'], entry['IsCordoned']),
                             (0, directory, False))
            self.assertEqual(self.sizes(entry), files)
            for version in range(1, 6):
                entry = self.describe(c, {'t': [1, 1, 9], 'none': [0], 'u': [0]}, version)
                self.assertEqual(self.sizes(entry), {k: files[k] for k in (('t', 1), ('u', 0))})
            self.assertEqual(self.sizes(self.describe(c, {})), {})
            self.assertEqual(self.sizes(self.describe(c, {'t': []})), {})

    def test_room_of_the_disk(self):
        with self.broker.connect() as c:
            room = os.statvfs(self.broker.directory)
            entry = self.describe(c, {})
            self.assertEqual(entry['TotalBytes'], room.f_blocks * room.f_frsize)
            self.assertGreater(entry['UsableBytes'], 0)
            self.assertLess(abs(entry['UsableBytes'] - room.f_bavail * room.f_frsize), 1 << 30)
            self.assertNotIn('TotalBytes', self.describe(c, {}, 3))


class DescribeQuorum(broker.BrokerTest):
    def describe(self, c, *asked, version=2):
        return c.ask('DescribeQuorum', version, Topics=[
            {'TopicName': t, 'Partitions': [{'PartitionIndex': p} for p in parts]}
            for t, parts in asked])

    def errors(self, c, *asked):
        answer = self.describe(c, *asked)
        self.assertEqual((answer['ErrorCode'], answer['Nodes']), (0, []))
        return [(t['TopicName'], [(p['PartitionIndex'], p['ErrorCode'], p['CurrentVoters'])
                                  for p in t['Partitions']]) for t in answer['Topics']]

    def test_the_only_voter(self):
        with open(os.path.join(self.broker.data, 'meta.properties'), encoding='utf-8') as f:
            directory = dict(line.split('=') for line in f.read().split() if '=' in line)[
                'directory.id']
        epochs = []
        for _ in range(2):
            with self.broker.connect() as c:
                for version in range(3):
                    before = int(time.time() * 1000)
                    answer = self.describe(c, ('__cluster_metadata', [0]), version=version)
                    p = answer['Topics'][0]['Partitions'][0]
                    voter = p['CurrentVoters'][0]
                    self.assertEqual((p['ErrorCode'], p['LeaderId'], len(p['CurrentVoters']),
                                      p['Observers'], voter['ReplicaId']), (0, 1, 1, [], 1))
                    self.assertEqual(voter['LogEndOffset'], p['HighWatermark'])
                    if version >= 1:
                        self.assertEqual(voter['LastFetchTimestamp'], voter['LastCaughtUpTimestamp'])
                        self.assertLess(abs(voter['LastFetchTimestamp'] - before), 60000)
                self.assertEqual(base64.urlsafe_b64encode(
                    voter['ReplicaDirectoryId'].bytes).decode().rstrip('='), directory)
                self.assertEqual([(n['NodeId'], [(x['Host'], x['Port']) for x in n['Listeners']])
                                  for n in answer['Nodes']],
                                 [(1, [('127.0.0.1', self.broker.port)])])
                epochs.append(p['LeaderEpoch'])
                end = p['HighWatermark']
                calls.ready(c, 't%d' % len(epochs))
                grown = self.describe(c, ('__cluster_metadata', [0]))
                self.assertGreater(grown['Topics'][0]['Partitions'][0]['HighWatermark'], end)
            self.broker.kill()
            self.broker.start()
        self.assertLess(epochs[0], epochs[1])

    def test_refused(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            self.assertEqual(self.errors(c), [])
            self.assertEqual(self.errors(c, ('__cluster_metadata', [])), [('__cluster_metadata', [])])
            for asked in ([('t', [0])], [('none', [0, 1])], [('__cluster_metadata', [1])],
                          [('__cluster_metadata', [0, 0])],
                          [('__cluster_metadata', [0]), ('t', [0])]):
                self.assertEqual(self.errors(c, *asked),
                                 [(t, [(p, 3, []) for p in parts]) for t, parts in asked])


class DescribeProducers(broker.BrokerTest):
    NOW = 1700000000000

    def send(self, c, producer, time_ms, n=1, partition=0):
        data = batches.build([(time_ms, None, b'v')] * n, producer=producer)
        self.assertEqual(calls.produce(c, 't', partition, data)['ErrorCode'], 0)

    def known(self, c, topic, *partitions):
        """By partition: the error, or [(id, epoch, last sequence, last time)]."""
        answer = c.ask('DescribeProducers', 0, Topics=[
            {'Name': topic, 'PartitionIndexes': list(partitions)}])
        for p in answer['Topics'][0]['Partitions']:
            for a in p['ActiveProducers']:
                self.assertEqual((a['CoordinatorEpoch'], a['CurrentTxnStartOffset']), (-1, -1))
        return [p['ErrorCode'] or [(a['ProducerId'], a['ProducerEpoch'], a['LastSequence'],
                                    a['LastTimestamp'] - self.NOW) for a in p['ActiveProducers']]
                for p in answer['Topics'][0]['Partitions']]

    def test_over_restarts(self):
        """Recovery reads them from the log, a clean start from the snapshot."""
        now = self.NOW = int(time.time() * 1000)  # old ones are forgotten at a start
        with self.broker.connect() as c:
            calls.ready(c, 't', 2)
            self.assertEqual(self.known(c, 't', 0, 1, 2, -1), [[], [], 3, 3])
            self.send(c, (7, 0, 0), now, 3)
            self.send(c, (7, 0, 3), now + 5, 2)
            self.send(c, (5, 2, 0), now - 1)
            self.send(c, (7, 1, 0), now, 1, 1)
            expected = [[(5, 2, 0, -1), (7, 0, 4, 5)], [(7, 1, 0, 0)]]
            self.assertEqual(self.known(c, 't', 0, 1), expected)
            self.assertEqual(self.known(c, 't', 1, 1), expected[1:] * 2)
        for stop in (self.broker.kill, self.broker.stop, self.broker.kill):
            stop()
            self.broker.start()
            with self.broker.connect() as c:
                self.assertEqual(self.known(c, 't', 0, 1), expected)

    def test_refused(self):
        with self.broker.connect() as c:
            self.assertEqual(self.known(c, 'none', 0, 1), [3, 3])
            self.assertEqual(self.known(c, 'a b', 0), [17])
            self.assertEqual(self.known(c, '', 0), [17])


class DescribeTopicPartitions(broker.BrokerTest):
    settings = {'max.request.partition.size.limit': 4}
    TOPICS = {'b': 3, 'a': 5, 'c.d': 1, 'B': 2}

    def page(self, c, *names, **options):
        """[(name, error, partitions)] and the cursor."""
        answer = c.ask('DescribeTopicPartitions', 0, Topics=[{'Name': n} for n in names], **options)
        cursor = answer['NextCursor']
        return [(t['Name'], t['ErrorCode'], [p['PartitionIndex'] for p in t['Partitions']])
                for t in answer['Topics']], cursor and (cursor['TopicName'], cursor['PartitionIndex'])

    def pages(self, c, limit, *names):
        """What all pages together tell."""
        found, cursor = [], {}
        while cursor is not None:
            topics, at = self.page(c, *names, ResponsePartitionLimit=limit, **cursor)
            self.assertLessEqual(sum(len(p) for _, _, p in topics), min(max(limit, 1), 4))
            for name, error, partitions in topics:
                self.assertEqual(error, 0 if name in self.TOPICS else 3)
                found += [(name, p) for p in partitions]
            cursor = at and {'Cursor': {'TopicName': at[0], 'PartitionIndex': at[1]}}
        return found

    def test_pages(self):
        with self.broker.connect() as c:
            for name, n in self.TOPICS.items():
                c.create_topic(name, n)
            self.assertEqual(self.page(c, ResponsePartitionLimit=2), ([('B', 0, [0, 1])], ('a', 0)))
            every = [(t, i) for t in sorted(self.TOPICS) for i in range(self.TOPICS[t])]
            for limit in (-1, 0, 1, 2, 3, 4, 5, 2000):
                self.assertEqual(self.pages(c, limit), every)
                self.assertEqual(self.pages(c, limit, 'none', 'a', 'b', 'a', 'zz'),
                                 [x for x in every if x[0] in 'ab'])

    def test_what_it_tells(self):
        with self.broker.connect() as c:
            c.create_topic('a')
            topic = c.ask('DescribeTopicPartitions', 0, Topics=[{'Name': 'a'}])['Topics'][0]
            known = c.ask('Metadata', 12, Topics=[{'Name': 'a'}])['Topics'][0]
            self.assertEqual(topic['TopicId'], known['TopicId'])
            self.assertEqual(topic['TopicAuthorizedOperations'], 0b110111111000)
            self.assertEqual(topic['Partitions'], [{
                'ErrorCode': 0, 'PartitionIndex': 0, 'LeaderId': 1, 'LeaderEpoch': 0,
                'ReplicaNodes': [1], 'IsrNodes': [1], 'EligibleLeaderReplicas': [],
                'LastKnownElr': [], 'OfflineReplicas': []}])

    def test_refused(self):
        with self.broker.connect() as c:
            c.create_topic('a')
            c.create_topic('b')
            self.assertEqual(self.page(c, 'b', 'a b', 'none'),
                             ([('a b', 17, []), ('b', 0, [0]), ('none', 3, [])], None))
            for topic, index in (('a', -1), ('c', 0), ('', 0), ('aa', 0)):
                cursor = {'TopicName': topic, 'PartitionIndex': index}
                self.assertEqual(self.page(c, 'b', 'a', Cursor=cursor),
                                 ([('b', 42, []), ('a', 42, [])], None))
            cursor = {'TopicName': 'a', 'PartitionIndex': 7}  # it had more partitions once
            self.assertEqual(self.page(c, 'b', 'a', Cursor=cursor),
                             ([('a', 0, []), ('b', 0, [0])], None))
            cursor = {'TopicName': 'aa', 'PartitionIndex': 7}  # deleted meanwhile
            self.assertEqual(self.page(c, Cursor=cursor), ([('b', 0, [0])], None))


if __name__ == '__main__':
    broker.main()
