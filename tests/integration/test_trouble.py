"""When things go wrong in a cluster of three: what is refused at a start, what is told, what is
served without a quorum, and what peers may send without harm."""
import os
import shutil
import struct
import subprocess
import time

import broker
import calls
import cluster
import kafka
from false_leader import FalseLeader

REQUEST_TIMED_OUT, COORDINATOR_LOAD_IN_PROGRESS = 7, 14
CHECKPOINT = '00000000000000000000-0000000000.checkpoint'


class TroubleTest(broker.PollingTest):
    def cluster(self, *roles, **settings):
        c = cluster.Cluster(roles or ('broker,controller',) * 3, settings)
        self.addCleanup(c.close)
        return c

    def served_on(self, c, topic='on'):
        """All its nodes are alive, and what needs the controller works."""
        for node in c.nodes:
            self.assertFalse(node.ended(), node.log()[-2000:])
        c.create_topic(topic)
        c.produce(topic, 0, kafka.batch([b'x']))

    def lines(self, node, word):
        return [line for line in node.log().splitlines() if word in line]


class VoterLists(TroubleTest):
    def test_they_differ(self):
        """The cluster works as Kafka's does; who leads and who follows both say that they differ."""
        c = self.cluster()
        c.choose_ports()
        c.nodes[2].settings = {}
        for node in c.nodes[:2]:
            node.settings = {'controller.quorum.voters': ','.join(
                '%d@127.0.0.1:%d' % (n.id, n.controller_port) for n in c.nodes[:2])}
        for node in c.nodes:
            node.launch()
        self.assertTrue(c.wait_ready())
        self.poll(lambda: any(self.lines(n, 'quorum_voters_differ') for n in c.nodes),
                  'nobody tells')
        for node in c.nodes:
            for line in self.lines(node, 'quorum_voters_differ'):
                self.assertIn('controller.quorum.voters', line)
        self.served_on(c)

    def test_they_are_the_same(self):
        c = self.cluster().start()
        c.nodes[0].kill()
        c.nodes[0].launch()
        c.wait_ready()
        self.served_on(c)
        for node in c.nodes:
            self.assertEqual(self.lines(node, 'quorum_voters_differ'), [])


class Directories(TroubleTest):
    def refused(self, node, *says):
        done = subprocess.run(node.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, check=False)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 78, text)
        for word in says:
            self.assertIn(word, text)

    def test_half_formatted(self):
        """Formatting that was interrupted is done again; what is lost afterwards is told."""
        c = self.cluster()
        c.choose_ports()
        node = c.nodes[0]
        os.makedirs(os.path.join(node.data, '__cluster_metadata-0'))
        with open(os.path.join(node.data, '__cluster_metadata-0', CHECKPOINT), 'wb') as f:
            f.write(b'half of it')
        with open(os.path.join(node.data, 'meta.properties.tmp'), 'wb') as f:
            f.write(b'version=1\n')
        for n in c.nodes:
            n.launch()
        self.assertTrue(c.wait_ready())
        self.served_on(c)
        c.kill()
        meta = os.path.join(node.data, 'meta.properties')
        with open(meta, encoding='utf-8') as f:
            text = f.read()
        for damaged in (text.replace('node.id', 'node.ix'), text.replace('cluster.id', 'x'), ''):
            with open(meta, 'w', encoding='utf-8') as f:
                f.write(damaged)
            self.refused(node, 'meta.properties')
        os.unlink(meta)
        self.refused(node, node.data, 'is not empty and has no meta.properties')

    def test_a_metadata_log_that_is_gone(self):
        """A voter without its log may have voted already, and hold what is committed."""
        c = self.cluster().start()
        self.served_on(c)
        node = c.nodes[0]
        node.kill()
        shutil.rmtree(os.path.join(node.data, '__cluster_metadata-0'))
        self.refused(node, '__cluster_metadata-0')
        self.served_on_without(c, node)

    def served_on_without(self, c, node):
        c.create_topic('without', replication=2)
        c.produce('without', 0, kafka.batch([b'x']))
        self.assertTrue(node.ended())


class StaleEpochs(TroubleTest):
    def test_a_broker_that_is_unregistered(self):
        """Its epoch is nobody's then: it registers again, and is in sync again."""
        c = self.cluster().start()
        c.create_topic('t')
        node = c.nodes[2]
        answer = c.ask_controller(lambda a: a.ask('UnregisterBroker', 0, BrokerId=node.id))
        self.assertEqual(answer['ErrorCode'], 0)
        self.poll(lambda: self.lines(node, 'broker_unregistered'), 'it does not notice')
        self.poll(lambda: set(c.partition('t')['IsrNodes']) == {1, 2, 3}, 'it is not back')
        with node.connect() as connection:
            self.poll(lambda: node.id in {b['NodeId'] for b in
                                          calls.metadata(connection, ['t'])['Brokers']})
        self.served_on(c)


class NoQuorum(TroubleTest):
    def test_what_is_led_is_served(self):
        c = self.cluster(**{'group.initial.rebalance.delay.ms': 0}).start()
        c.create_topic('alone', partitions=12, replication=1)
        c.create_topic('three', partitions=12)
        node = c.nodes[2]
        led = next(i for i in range(12) if c.partition('alone', i)['LeaderId'] == node.id)
        shared = next(i for i in range(12) if c.partition('three', i)['LeaderId'] == node.id)
        for other in c.nodes[:2]:
            other.kill()
        with node.connect(timeout_s=60) as connection:
            offset = c.produce('alone', led, kafka.batch([b'before']))
            self.controller_requests(connection)
            # Kafka's answers for what is led go on: acks=all of an ISR that cannot shrink waits
            answer = calls.produce(connection, 'three', shared, kafka.batch([b'x']),
                                   TimeoutMs=500)
            self.assertEqual(answer['ErrorCode'], REQUEST_TIMED_OUT)
            self.assertEqual(calls.produce(connection, 'three', shared, kafka.batch([b'y']),
                                           acks=1)['ErrorCode'], 0)
            self.assertEqual(calls.produce(connection, 'alone', led,
                                           kafka.batch([b'after']))['BaseOffset'], offset + 1)
            self.assertEqual([v for _, v in connection.read_all('alone', led)],
                             [b'before', b'after'])
            self.assertEqual(len(calls.metadata(connection, ['alone'])['Topics'][0]['Partitions']),
                             12)
        for other in c.nodes[:2]:
            other.launch()
        c.wait_ready()
        self.served_on(c)

    def controller_requests(self, c):
        """Each is answered within its time, with what Kafka says then."""
        begin = time.monotonic()
        self.assertEqual(calls.create(c, 'late', TimeoutMs=1000)['ErrorCode'], REQUEST_TIMED_OUT)
        gone = c.ask('DeleteTopics', 5, TopicNames=['alone'], TimeoutMs=1000)
        self.assertEqual(gone['Responses'][0]['ErrorCode'], REQUEST_TIMED_OUT)
        elected = c.ask('ElectLeaders', 2, ElectionType=0, TopicPartitions=None, TimeoutMs=1000)
        self.assertEqual(elected['ErrorCode'], REQUEST_TIMED_OUT)
        moved = c.ask('AlterPartitionReassignments', 0, TimeoutMs=1000, Topics=[])
        self.assertEqual(moved['ErrorCode'], REQUEST_TIMED_OUT)
        fresh = c.ask('InitProducerId', 4, TransactionalId=None, TransactionTimeoutMs=60000)
        self.assertEqual(fresh['ErrorCode'], COORDINATOR_LOAD_IN_PROGRESS)
        self.assertLess(time.monotonic() - begin, 20)


class Peers(TroubleTest):
    def test_garbage_to_controllers(self):
        """It costs the connection that it came by."""
        rng = kafka.seeded()
        c = self.cluster().start()
        for node in c.nodes:
            with kafka.Connection(node.controller_port) as connection:
                served = connection.ask('ApiVersions', 3, ClientSoftwareName='t',
                                        ClientSoftwareVersion='1')['ApiKeys']
            for i in range(100):
                api = rng.choice(served)
                body = kafka.random_bytes(rng, rng.randint(0, 200))
                version = rng.randint(0, api['MaxVersion'] + 1)
                with kafka.Connection(node.controller_port) as connection:
                    connection.send(kafka.frame(api['ApiKey'], body, i, version))
                    connection.socket.shutdown(1)
                    self.assertTrue(connection.ends(), (api, body))
            for data in (b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', struct.pack('>i', -1) + bytes(16),
                         struct.pack('>i', 2**31 - 1) + bytes(16)):
                with kafka.Connection(node.controller_port) as connection:
                    connection.send(data)
                    self.assertTrue(connection.ends(), data)
        self.served_on(c)

    def false_leader(self, c, fetch):
        """Node 3 is gone, and something else says to be it and to lead a later epoch."""
        c.nodes[2].kill()
        quorum = c.ask_controller(lambda a: self.describe(a))
        leader = FalseLeader(3, quorum['LeaderEpoch'] + 5, fetch)
        self.addCleanup(leader.close)
        for node in c.nodes[:2]:
            leader.announce(node.controller_port)
        self.poll(lambda: leader.fetches > 0, 'it is not asked')
        return leader

    def describe(self, connection):
        answer = connection.ask('DescribeQuorum', 2, Topics=[
            {'TopicName': '__cluster_metadata', 'Partitions': [{'PartitionIndex': 0}]}])
        return {'ErrorCode': 0, **answer['Topics'][0]['Partitions'][0]}

    def survives(self, fetch):
        c = self.cluster().start()
        self.served_on(c, 'before')
        self.false_leader(c, fetch)
        c.create_topic('after', replication=2)
        c.produce('after', 0, kafka.batch([b'x']))
        for node in c.nodes[:2]:
            self.assertFalse(node.ended(), node.log()[-2000:])
        c.nodes[2].launch()
        c.wait_ready()
        self.served_on(c)

    def test_a_leader_that_diverges_from_all(self):
        self.survives(lambda leader, version, i: leader.fetch_answer(
            version, i, DivergingEpoch={'Epoch': 0, 'EndOffset': 0}))

    def test_a_leader_that_sends_garbage(self):
        self.survives(lambda leader, version, i: struct.pack('>i', i) + b'\xee' * 50)

    def test_answers_to_nothing_asked(self):
        self.survives(lambda leader, version, i: struct.pack('>i', i + 1000) + bytes(50))

    def test_records_that_are_none(self):
        rng = kafka.seeded()
        self.survives(lambda leader, version, i: leader.fetch_answer(
            version, i, Records=kafka.random_bytes(rng, 300)))


if __name__ == '__main__':
    broker.main()
