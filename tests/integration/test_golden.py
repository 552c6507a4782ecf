"""Data directories of Apache Kafka 4.4, after a clean stop and after kill -9, served as that node:
every record is what Kafka's dump tool says and its batch what Kafka wrote; then they are written
to and read again over restarts.

The directories need no configuration: node.id and cluster.id stand in meta.properties, the voters
of a static quorum in its quorum-state. Kafka's own server.properties of the node does too."""
import base64
import collections
import os
import re
import shutil
import tarfile
import unittest

import batches
import broker

ARCHIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'golden',
                       'kafka-log-dirs.tar.gz')
CLUSTER = '5L6g3nShT-eMCtK--X86sw'
EARLIEST, LATEST = -2, -1
LOG_START = {('g-deleted-records', 0): 7}
STABLE = {('g-txn', 0): 12}  # a transaction is open from there on
ABORTED = {('g-txn', 0): [(1, 3), (1, 9)], ('g-txn', 1): [(1, 2), (1, 6)]}
HEADERS = ((b'h1', b'v1'), (b'h1', b'again'), (b'null', None), (b'', b''))

SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=1
broker.rack=RACK1
controller.quorum.voters=1@127.0.0.1:19093
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


# ------------------------------------------------------------------ the dump tool's view

def read_dump(path):
    """The lines on batches and records of each (topic, partition), but for positions."""
    lines, partition = collections.OrderedDict(), None
    with open(path, encoding='utf-8') as f:
        for line in f.read().split('\n'):
            if line.startswith('== '):
                directory = line[3:].split('/')[0]
                topic, _, number = directory.rpartition('-')
                partition = topic, int(number)
                lines.setdefault(partition, [])
            elif line.startswith(('baseOffset: ', '| offset: ')):
                lines[partition].append(re.sub(r' position: \d+', '', line))
    return lines


def log_end(lines):
    last = [line for line in lines if line.startswith('| ')][-1:]
    return int(last[0].split()[2]) + 1 if last else 0


def topic_ids(lines):
    return dict(re.search(r'"TOPIC_RECORD".*"name":"([^"]+)","topicId":"([^"]+)"', line).groups()
                for line in lines if '"TOPIC_RECORD"' in line)


def batch_line(b):
    bit = b.attributes.__and__
    horizon = '[%d]' % b.base_timestamp if bit(batches.DELETE_HORIZON) else '.empty'
    return ('baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d '
            'producerId: %d producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %s '
            'isControl: %s deleteHorizonMs: OptionalLong%s %s: %d size: %d magic: %d '
            'compresscodec: %s crc: %d isvalid: true' %
            (b.base, b.base + b.last_delta, b.count, b.sequence,
             b.sequence + b.last_delta if b.sequence >= 0 else -1, b.producer_id, b.producer_epoch,
             b.leader_epoch, str(bool(bit(batches.TRANSACTIONAL))).lower(),
             str(bool(bit(batches.CONTROL))).lower(), horizon, time_name(b), b.max_timestamp,
             len(b.data), b.magic, batches.CODECS[b.attributes & 7], b.crc))


def time_name(b):
    return 'LogAppendTime' if b.attributes & batches.LOG_APPEND_TIME else 'CreateTime'


def record_line(b, r, internal):
    """Keys and values of internal topics are shown decoded: their sizes are compared."""
    line = '| offset: %d %s: %d keySize: %d valueSize: %d sequence: %d headerKeys: [%s]' % (
        r.offset, time_name(b), r.timestamp, -1 if r.key is None else len(r.key),
        -1 if r.value is None else len(r.value),
        b.sequence + r.offset - b.base if b.sequence >= 0 else -1,
        ','.join(key.decode() for key, _ in r.headers))
    if internal:
        return line
    if b.attributes & batches.CONTROL:
        assert r.key[:2] == r.value[:2] == b'\0\0'
        kind = {0: 'ABORT', 1: 'COMMIT'}[int.from_bytes(r.key[2:], 'big')]
        return line + ' endTxnMarker: %s coordinatorEpoch: %d' % (
            kind, int.from_bytes(r.value[2:], 'big'))
    if r.key is not None:
        line += ' key: ' + r.key.decode()
    if r.value is not None:
        line += ' payload: ' + r.value.decode()
    return line


def segments(directory):
    """What the .log files hold, one behind the other."""
    data = b''
    for name in sorted(os.listdir(directory)):
        if name.endswith('.log'):
            with open(os.path.join(directory, name), 'rb') as f:
                data += f.read()
    return data


# ------------------------------------------------------------------ the broker's view

def offset_of(c, partition, timestamp, isolation=0):
    """(error, timestamp, offset, leader epoch)"""
    answer = c.ask('ListOffsets', 7, IsolationLevel=isolation, ReplicaId=-1, Topics=[
        {'Name': partition[0], 'Partitions': [{'PartitionIndex': partition[1],
                                               'Timestamp': timestamp}]}])
    p = answer['Topics'][0]['Partitions'][0]
    return p['ErrorCode'], p['Timestamp'], p['Offset'], p['LeaderEpoch']


def fetch(c, partition, offset, isolation=0, max_bytes=1 << 20):
    answer = c.ask('Fetch', 12, ReplicaId=-1, MaxBytes=max_bytes, IsolationLevel=isolation, Topics=[
        {'Topic': partition[0], 'Partitions': [{'Partition': partition[1], 'FetchOffset': offset,
                                                'PartitionMaxBytes': max_bytes}]}])
    return answer['Responses'][0]['Partitions'][0]


def read(c, partition, isolation=0):
    """All batches from the log start on, and the aborted transactions told with them."""
    _, _, offset, _ = offset_of(c, partition, EARLIEST)
    _, _, end, _ = offset_of(c, partition, LATEST, isolation)
    out, aborted = [], []
    while offset < end:
        p = fetch(c, partition, offset, isolation)
        assert p['ErrorCode'] == 0, p['ErrorCode']
        found = batches.read(p['Records'])
        assert found, 'nothing at offset %d of %d' % (offset, end)
        out += found
        aborted += [(t['ProducerId'], t['FirstOffset']) for t in p['AbortedTransactions'] or []]
        offset = found[-1].base + found[-1].last_delta + 1
    return out, aborted


def produce(c, partition, data):
    """(error, base offset, log append time)"""
    answer = c.ask('Produce', 9, Acks=-1, TimeoutMs=10000, TopicData=[
        {'Name': partition[0], 'PartitionData': [{'Index': partition[1], 'Records': data}]}])
    p = answer['Responses'][0]['PartitionResponses'][0]
    return p['ErrorCode'], p['BaseOffset'], p['LogAppendTimeMs']


class KafkasNode(broker.Broker):
    """arguments: behind `dohle start`, before --data and --port."""
    arguments = []

    def command(self, port, ports_file):
        command = super().command(port, ports_file)
        at = command.index('start') + 1
        return command[:at] + self.arguments + command[at:]


class Golden:
    state = None

    def setUp(self):
        self.broker = KafkasNode()
        self.addCleanup(self.broker.close)
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(self.broker.directory)
        source = os.path.join(self.broker.directory, self.state)
        dumped = read_dump(source + '.dump.txt')
        self.topic_ids = topic_ids(dumped.pop(('__cluster_metadata', 0)))
        self.dumped = dumped
        self.files = {p: segments(os.path.join(source, '%s-%d' % p)) for p in dumped}
        shutil.copytree(source, self.broker.data)
        self.ends = {p: log_end(lines) for p, lines in dumped.items()}  # of what Kafka wrote
        self.added = {p: [] for p in dumped}  # (key, value) of what we wrote

    # -------------------------------------------------------------- reading

    def check_cluster(self, c):
        answer = c.ask('Metadata', 12, Topics=None)
        self.assertEqual(answer['ClusterId'], CLUSTER)
        self.assertEqual([b['NodeId'] for b in answer['Brokers']], [1])
        found = {}
        for t in answer['Topics']:
            self.assertEqual(t['ErrorCode'], 0, t)
            self.assertEqual(t['IsInternal'], t['Name'].startswith('__'))
            self.assertEqual(kafka_id(t['TopicId']), self.topic_ids[t['Name']])
            for p in t['Partitions']:
                self.assertEqual((p['ErrorCode'], p['LeaderId'], p['ReplicaNodes'], p['IsrNodes'],
                                  p['OfflineReplicas']), (0, 1, [1], [1], []), (t['Name'], p))
                found[t['Name'], p['PartitionIndex']] = p['LeaderEpoch']
        self.assertEqual(set(found), set(self.dumped))
        return found

    def check_open_transactions(self, c, partition):
        answer = c.ask('DescribeProducers', 0, Topics=[
            {'Name': partition[0], 'PartitionIndexes': [partition[1]]}])
        p = answer['Topics'][0]['Partitions'][0]
        self.assertEqual(p['ErrorCode'], 0)
        self.assertEqual([(a['ProducerId'], a['CoordinatorEpoch'], a['CurrentTxnStartOffset'])
                          for a in p['ActiveProducers'] if a['CurrentTxnStartOffset'] >= 0],
                         [(1, 0, STABLE[partition])] if partition in STABLE else [])

    def check_offsets(self, c, partition, records):
        end = self.ends[partition] + len(self.added[partition])
        start = LOG_START.get(partition, 0)
        self.assertEqual(offset_of(c, partition, EARLIEST)[::2], (0, start))
        self.assertEqual(offset_of(c, partition, LATEST)[::2], (0, end))
        self.assertEqual(offset_of(c, partition, LATEST, 1)[::2], (0, STABLE.get(partition, end)))
        p = fetch(c, partition, end)
        self.assertEqual((p['ErrorCode'], p['HighWatermark'], p['LogStartOffset'], p['Records']),
                         (0, end, start, b''))
        self.assertEqual(p['LastStableOffset'], STABLE.get(partition, end))
        self.check_open_transactions(c, partition)
        if start > 0:
            self.assertEqual(fetch(c, partition, start - 1)['ErrorCode'], 1)
        for r in (records[:1] + records[len(records) // 2:][:1]) if start == 0 else []:
            first = next(x for x in records if x.timestamp >= r.timestamp)
            self.assertEqual(offset_of(c, partition, r.timestamp), (0, first.timestamp,
                                                                    first.offset, 0))
        if records:
            late = max(r.timestamp for r in records) + 1
            self.assertEqual(offset_of(c, partition, late), (0, -1, -1, -1))

    def check_epochs(self, c, partition, leader_epoch):
        """All that Kafka wrote is of epoch 0; we lead in a later one."""
        answer = c.ask('OffsetForLeaderEpoch', 4, ReplicaId=-2, Topics=[
            {'Topic': partition[0], 'Partitions': [
                {'Partition': partition[1], 'LeaderEpoch': epoch}
                for epoch in (0, leader_epoch)]}])
        found = [(p['ErrorCode'], p['LeaderEpoch'], p['EndOffset'])
                 for p in answer['Topics'][0]['Partitions']]
        end = self.ends[partition]
        if end > 0:
            self.assertEqual(found[0], (0, 0, end))
        self.assertEqual(found[1], (0, leader_epoch, end + len(self.added[partition])))

    def check_partition(self, c, partition):
        internal = partition[0].startswith('__')
        found, _ = read(c, partition)
        records = [r for b in found for r in b.records]
        n = next((i for i, b in enumerate(found) if b.base >= self.ends[partition]), len(found))
        self.assertEqual(b''.join(b.data for b in found[:n]), self.files[partition])
        lines = []
        for b in found[:n]:
            lines.append((batch_line(b), False))
            lines += [(record_line(b, r, internal), internal) for r in b.records]
        self.assertEqual(len(lines), len(self.dumped[partition]))
        for (ours, begin_only), kafkas in zip(lines, self.dumped[partition]):
            if begin_only or partition[0] == 'g-segments':  # where the dump's values are cut off
                self.assertTrue(ours == kafkas[:len(ours)] or kafkas == ours[:len(kafkas)],
                                '%s\n%s' % (ours, kafkas))
            else:
                self.assertEqual(ours, kafkas)
        self.assertEqual([(r.key, r.value) for b in found[n:] for r in b.records],
                         self.added[partition])
        if partition[0] == 'g-headers':
            self.assertEqual(records[0].headers, HEADERS)
        if not self.added[partition]:
            self.check_offsets(c, partition, records)
        return found[n:]

    def check_committed(self, c, partition):
        found, aborted = read(c, partition, 1)
        self.assertEqual(sorted(set(aborted)), ABORTED.get(partition, []))
        if found:
            self.assertEqual(found[-1].base + found[-1].last_delta + 1,
                             STABLE.get(partition, self.ends[partition]))

    def check_all(self, c):
        epochs = self.check_cluster(c)
        for partition, epoch in epochs.items():
            with self.subTest(partition):
                added = self.check_partition(c, partition)
                self.assertEqual([b.leader_epoch for b in added], sorted(b.leader_epoch
                                                                        for b in added))
                self.check_epochs(c, partition, epoch)
        return epochs

    # -------------------------------------------------------------- writing

    def write(self, c, epochs):
        """A batch to each partition, in every codec; internal topics are not for clients."""
        for i, (partition, epoch) in enumerate(epochs.items()):
            with self.subTest(partition):
                values = [(b'key', b'value %d of us' % k) for k in range(3)]
                data = batches.build([(1700000000000 + k, *v) for k, v in enumerate(values)],
                                     batches.CODECS[i % len(batches.CODECS)])
                error, offset, append_time = produce(c, partition, data)
                if partition[0].startswith('__'):
                    self.assertEqual((error, offset), (17, -1))
                    continue
                end = self.ends[partition] + len(self.added[partition])
                self.assertEqual((error, offset), (0, end))
                self.added[partition] += values
                self.assertEqual(append_time > 1700000000000, partition[0] == 'g-logappend')
                stored = batches.read(fetch(c, partition, offset)['Records'])
                self.assertEqual([(b.base, b.leader_epoch, len(b.records)) for b in stored],
                                 [(offset, epoch, 3)])

    def check_topic_configuration(self, c):
        no_key = batches.build([(1700000000000, None, b'no key')])
        self.assertEqual(produce(c, ('g-compact', 0), no_key)[0], 87)

    # -------------------------------------------------------------- the stories

    def test_serves_what_kafka_wrote(self):
        self.broker.start()
        with self.broker.connect() as c:
            epochs = self.check_all(c)
            for partition in epochs:
                self.check_committed(c, partition)
        self.assertEqual(self.broker.stop(), 0, self.broker.log()[-3000:])

    def test_is_written_to_and_read_over_restarts(self):
        self.broker.start()
        for end in (self.broker.stop, self.broker.kill):
            with self.broker.connect() as c:
                epochs = self.check_all(c)
                self.write(c, epochs)
                self.check_topic_configuration(c)
            end()
            self.broker.start()
            with self.broker.connect() as c:
                later = self.check_all(c)
            for partition, epoch in epochs.items():
                self.assertGreater(later[partition], epoch)
        self.assertEqual(self.broker.stop(), 0, self.broker.log()[-3000:])

    def test_serves_with_the_nodes_server_properties(self):
        path = os.path.join(self.broker.directory, 'server.properties')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(SERVER_PROPERTIES)
        self.broker.arguments = ['-c', path]
        self.broker.start()
        with self.broker.connect() as c:
            answer = c.ask('Metadata', 12, Topics=None)
            self.assertEqual([(b['NodeId'], b['Port'], b['Rack']) for b in answer['Brokers']],
                             [(1, self.broker.port, 'RACK1')])
            self.check_all(c)
        self.assertEqual(self.broker.stop(), 0, self.broker.log()[-3000:])

    def test_refuses_to_be_another_node(self):
        for key, value, word in (('node.id', '2', 'node.id=1'),
                                 ('controller.quorum.voters', '2@127.0.0.1:19093', 'node.id=1'),
                                 ('cluster.id', 'AAAAAAAAAAAAAAAAAAAAAA', CLUSTER)):
            self.broker.settings = {key: value}
            status, text = self.broker.run_refused()
            self.assertEqual(status, 78, text)
            self.assertIn(word, text)


def kafka_id(topic_id):
    """As Kafka prints it: base64url of the bytes."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')


class Clean(Golden, unittest.TestCase):
    state = 'clean'


class Killed(Golden, unittest.TestCase):
    state = 'killed'


if __name__ == '__main__':
    broker.main()
