"""Connections: cases CN. (What strangers send: test_abuse; slow readers: test_abuse too.)"""
import os
import select
import socket
import struct
import subprocess
import time

import batches
import broker
import calls
import kafka
import messages

ONE = batches.build([(1700000000000, b'k', b'v')])


def framed(data):
    return struct.pack('>i', len(data)) + data


def join(c, group):
    """A JoinGroup of a new member, not answered within group.initial.rebalance.delay.ms."""
    return c.post('JoinGroup', 3, GroupId=group, SessionTimeoutMs=30000, RebalanceTimeoutMs=60000,
                  ProtocolType='consumer', Protocols=[{'Name': 'range', 'Metadata': b'm'}])


def descriptors(process):
    return len(os.listdir('/proc/%d/fd' % process.pid))


class Hostile(broker.BrokerTest):
    def test_lies_inside_a_frame(self):
        """CN-01: lengths and counts that the frame does not have: closed, and nothing allocated."""
        head = struct.Struct('>hhih')
        metadata, fetch12 = head.pack(3, 1, 1, -1), head.pack(1, 12, 1, -1)
        ones = b'\xff' * 10
        produce = messages.request('Produce', 9, {'Acks': -1, 'TopicData': [
            {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': ONE}]}]})
        lies = {
            'no client id': struct.pack('>hhi', 3, 1, 1),
            'client id of -7530': head.pack(3, 1, 1, -7530),
            'client id of 32767': head.pack(3, 1, 1, 32767) + bytes(20),
            'array of 2^31-1': metadata + struct.pack('>i', 2**31 - 1) + bytes(20),
            'string of -2': metadata + struct.pack('>ih', 1, -2) + bytes(20),
            'tags in the header, 2^32-1': fetch12 + b'\xff\xff\xff\xff\x0f' + bytes(20),
            'a tag of 2^32-1 bytes': fetch12 + b'\x01\x07\xff\xff\xff\xff\x0f' + bytes(20),
            'ten bytes of ones for a count': fetch12 + ones + bytes(20),
            'compact array of 2^32-2': head.pack(3, 12, 1, -1) + b'\0\xff\xff\xff\xff\x0f',
            'records over their end': produce[:-60],
            'a body cut by one': produce[:-1],
        }
        with self.broker.connect() as other:
            calls.ready(other, 't')
            for name, data in lies.items():
                with self.subTest(name), self.broker.connect() as c:
                    c.send(framed(data))
                    self.assertTrue(c.ends())
                other.ask('ApiVersions', 0)
            self.assertEqual(calls.end_of(other, 't'), 0)
        self.served_on()

    def test_what_kafka_lets_pass(self):
        """CN-01: any negative length is null, and bytes behind the body are nobody's."""
        with self.broker.connect() as c:
            for data in (struct.pack('>hhihi', 3, 1, 5, -7530, -1),
                         struct.pack('>hhihi', 3, 1, 5, -1, -2),
                         struct.pack('>hhihi', 3, 1, 5, -1, -1) + b'more'):
                c.send(framed(data))
                correlation_id, answer = c.answer()
                self.assertEqual(correlation_id, 5)
                self.assertEqual(messages.response('Metadata', 1, answer)['Topics'], [])

    def test_a_frame_one_byte_short(self):
        """CN-01: waits for the byte, alone."""
        data = framed(messages.request('Metadata', 1, {'Topics': []}))
        with self.broker.connect() as c:
            c.send(data[:-1])
            self.alive()
            self.assertEqual(select.select([c.socket], [], [], 0)[0], [])
            c.send(data[-1:])
            self.assertEqual(c.answer()[0], 1)


class Order(broker.BrokerTest):
    settings = {'group.initial.rebalance.delay.ms': '2000'}

    def test_answers_in_the_order_of_requests(self):
        """CN-02: none overtakes a Fetch that waits; other connections do not wait for it."""
        with self.broker.connect() as c, self.broker.connect() as other:
            calls.ready(c, 't')
            entry = [{'Topic': 't', 'Partitions': [{'Partition': 0, 'PartitionMaxBytes': 1000}]}]
            sent = [c.post('Fetch', 12, MaxWaitMs=2000, MinBytes=1, Topics=entry),
                    c.post('Metadata', 12, Topics=[]),
                    c.post('Produce', 9, Acks=-1, TimeoutMs=1000, TopicData=[
                        {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': ONE}]}]),
                    c.post('ApiVersions', 0)]
            begin = time.monotonic()
            for _ in range(10):
                other.ask('Metadata', 12, Topics=[])
            self.assertEqual(select.select([c.socket], [], [], 0)[0], [])
            self.assertEqual([c.answer()[0] for _ in sent], sent)
            self.assertGreaterEqual(time.monotonic() - begin, 1.5)

    def test_none_overtakes_a_join(self):
        """CN-02: nor a JoinGroup that waits: what is behind it sees what was done meanwhile."""
        with self.broker.connect() as c, self.broker.connect() as other:
            calls.ready(c, 't')
            calls.until_coordinated(c, 'g', 'h')
            begin = time.monotonic()
            sent = [join(c, 'g'),
                    c.post('OffsetFetch', 7, GroupId='h', Topics=[
                        {'Name': 't', 'PartitionIndexes': [0]}]),
                    c.post('Heartbeat', 3, GroupId='g', MemberId='stranger', GenerationId=1)]
            self.assertEqual(calls.commit(other, 'h', 't', 0, 7), 0)
            self.assertEqual(select.select([c.socket], [], [], 0)[0], [])
            (first, joined), (second, fetched), (third, beaten) = (c.answer() for _ in sent)
            self.assertEqual([first, second, third], sent)
            self.assertGreaterEqual(time.monotonic() - begin, 1.9)
            joined = messages.response('JoinGroup', 3, joined)
            self.assertEqual((joined['ErrorCode'], joined['GenerationId']), (0, 1))
            fetched = messages.response('OffsetFetch', 7, fetched)['Topics'][0]['Partitions'][0]
            self.assertEqual(fetched['CommittedOffset'], 7)
            self.assertEqual(messages.response('Heartbeat', 3, beaten)['ErrorCode'], 25)

    def test_a_thousand_produces_at_once(self):
        """CN-02"""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            request = messages.request('Produce', 9, {'Acks': 1, 'TimeoutMs': 1000, 'TopicData': [
                {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': ONE}]}]})
            c.send(b''.join(framed(request[:4] + struct.pack('>i', i) + request[8:])
                            for i in range(1000)))
            for i in range(1000):
                correlation_id, data = c.answer()
                self.assertEqual(correlation_id, i)
                answer = messages.response('Produce', 9, data)
                part = answer['Responses'][0]['PartitionResponses'][0]
                self.assertEqual((part['ErrorCode'], part['BaseOffset']), (0, i))


class Leaving(broker.BrokerTest):
    def test_clients_that_leave_while_they_wait(self):
        """CN-03: nothing of them stays: no descriptor, no waiter."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            base = descriptors(self.broker.process)
            entry = [{'Topic': 't', 'Partitions': [{'Partition': 0, 'PartitionMaxBytes': 1000}]}]
            for _ in range(5):
                waiting = [self.broker.connect() for _ in range(200)]
                for w in waiting:
                    w.post('Fetch', 12, MaxWaitMs=3600000, MinBytes=1, MaxBytes=1000, Topics=entry)
                self.assertEqual(calls.fetch(c, 't', 0, 0)['ErrorCode'], 0)
                for w in waiting:
                    w.close()
            end = time.monotonic() + 30
            while descriptors(self.broker.process) > base and time.monotonic() < end:
                c.ask('ApiVersions', 0)
            self.assertLessEqual(descriptors(self.broker.process), base)
            self.assertEqual(calls.produce(c, 't', 0, ONE)['ErrorCode'], 0)
        self.served_on()

    def test_half_close(self):
        """CN-04: who has said all still gets its answers, then the end."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            sent = [c.post('Produce', 9, Acks=-1, TimeoutMs=1000, TopicData=[
                {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': ONE}]}]) for _ in range(3)]
            entry = [{'Topic': 't', 'Partitions': [{'Partition': 0, 'FetchOffset': 3,
                                                    'PartitionMaxBytes': 1000}]}]
            sent.append(c.post('Fetch', 12, MaxWaitMs=200, MinBytes=1, MaxBytes=1000, Topics=entry))
            c.socket.shutdown(socket.SHUT_WR)
            self.assertEqual([c.answer()[0] for _ in sent], sent)
            self.assertEqual(c.socket.recv(1), b'')
        with self.broker.connect() as c:
            self.assertEqual(calls.end_of(c, 't'), 3)


class Idle(broker.BrokerTest):
    settings = {'connections.max.idle.ms': '2000', 'group.initial.rebalance.delay.ms': '5000'}

    def test_only_the_idle_are_closed(self):
        """CN-04: with a clean end; one whose request waits is not idle."""
        with self.broker.connect() as c, self.broker.connect() as idle:
            calls.ready(c, 't')
            idle.ask('ApiVersions', 0)
            entry = [{'Topic': 't', 'Partitions': [{'Partition': 0, 'PartitionMaxBytes': 1000}]}]
            begin = time.monotonic()
            sent = c.post('Fetch', 12, MaxWaitMs=5000, MinBytes=1, MaxBytes=1000, Topics=entry)
            self.assertEqual(idle.socket.recv(1), b'')
            self.assertGreaterEqual(time.monotonic() - begin, 0.5)
            self.assertEqual(c.answer()[0], sent)
            self.assertGreaterEqual(time.monotonic() - begin, 4.9)
            c.ask('ApiVersions', 0)

    def test_a_parked_member_is_not_idle(self):
        """CN-04: nor one whose JoinGroup waits for the others."""
        with self.broker.connect() as c:
            calls.until_coordinated(c, 'g')
            begin = time.monotonic()
            sent = join(c, 'g')
            self.assertEqual(c.answer()[0], sent)
            self.assertGreaterEqual(time.monotonic() - begin, 4.9)
            c.ask('ApiVersions', 0)


class Start(broker.BrokerTest):
    GROUPS = ['g%d' % i for i in range(20)]

    def test_who_connects_during_the_start_is_served(self):
        """CN-05: from the first connection on that is taken: with brokers, leaders and offsets."""
        with self.broker.connect() as c:
            for i in range(20):
                calls.ready(c, 't%d' % i)
                self.assertEqual(calls.produce(c, 't%d' % i, 0, ONE)['ErrorCode'], 0)
        for end in (self.broker.stop, self.broker.kill):
            end()
            c = self.start_and_connect()
            answer = calls.metadata(c, None)
            self.assertEqual([b['Port'] for b in answer['Brokers']], [self.broker.port])
            self.assertEqual(sorted(t['Name'] for t in answer['Topics']),
                             sorted('t%d' % i for i in range(20)))
            for t in answer['Topics']:
                self.assertEqual((t['ErrorCode'], t['Partitions'][0]['ErrorCode']), (0, 0))
                self.assertEqual(calls.end_of(c, t['Name']), 1)
                self.assertEqual(len(batches.read(calls.fetch(c, t['Name'], 0, 0)['Records'])), 1)
            self.assertEqual(calls.create(c, 'new-%d' % self.broker.process.pid)['ErrorCode'], 0)
            answer = c.ask('DeleteTopics', 6, TimeoutMs=10000, Topics=[
                {'Name': 'new-%d' % self.broker.process.pid}])
            self.assertEqual(answer['Responses'][0]['ErrorCode'], 0)
            c.close()

    def test_groups_of_who_connects_during_the_start(self):
        """CN-05: there is a coordinator from the first connection on; until it has read its log it
        says so, never that nothing is committed."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            calls.until_coordinated(c, *self.GROUPS)
            for i, group in enumerate(self.GROUPS):
                self.assertEqual(calls.commit(c, group, 't', 0, i), 0)
        for end in (self.broker.stop, self.broker.kill):
            end()
            c = self.start_and_connect()
            found = c.ask('FindCoordinator', 4, CoordinatorKeys=self.GROUPS)['Coordinators']
            self.assertEqual({(f['ErrorCode'], f['NodeId']) for f in found}, {(0, 1)})
            left = dict(zip(self.GROUPS, range(20)))
            limit = time.monotonic() + 30
            while left and time.monotonic() < limit:
                for group, offset in list(left.items()):
                    error, told = calls.committed(c, group, 't', 0)
                    if error == 0:
                        self.assertEqual(told, offset)
                        del left[group]
                    else:
                        self.assertIn(error, calls.COORDINATOR_NOT_READY)
            self.assertEqual(left, {})
            c.close()

    def start_and_connect(self):
        ports_file = os.path.join(self.broker.directory, 'ports')
        os.unlink(ports_file)
        with open(os.path.join(self.broker.directory, 'stderr'), 'ab') as stderr:
            self.broker.process = subprocess.Popen(
                self.broker.command(self.broker.port, ports_file), stderr=stderr,
                stdout=subprocess.DEVNULL)
        return self.first_connection()

    def first_connection(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                c = self.broker.connect()
                c.ask('ApiVersions', 0)
                return c
            except (ConnectionError, kafka.Closed):
                pass
        return self.fail('nobody listens')

    def test_free_port(self):
        """CN-05: the real one is advertised."""
        with self.broker.connect() as c:
            self.assertGreater(self.broker.port, 0)
            self.assertEqual(calls.metadata(c, [])['Brokers'][0]['Port'], self.broker.port)


if __name__ == '__main__':
    broker.main()
