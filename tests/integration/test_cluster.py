"""Nodes that form a cluster: they find each other, keep what was acknowledged when one is killed,
and hand over when one is stopped. What they refuse to start with."""
import os
import subprocess
import time

import broker
import calls
import cluster
import kafka

ALL = {'min.insync.replicas': '2'}


class ClusterTest(broker.PollingTest):
    def cluster(self, *roles, **settings):
        c = cluster.Cluster(roles or ('broker,controller',) * 3, settings)
        self.addCleanup(c.close)
        return c

    def isr(self, c, topic, index=0):
        p = c.partition(topic, index)
        return set(p['IsrNodes']) if p is not None else set()

    def read(self, c, topic, index=0):
        with c.leader(topic, index).connect() as connection:
            return connection.read_all(topic, index)


class Three(ClusterTest):
    """Combined nodes, replication factor 3."""

    def setUp(self):
        self.c = self.cluster()
        self.c.start()

    def write(self, acked, n, topic='t', index=0):
        for _ in range(n):
            value = b'value %d' % len(acked)
            acked.append((self.c.produce(topic, index, kafka.batch([value])), value))

    def check(self, acked, topic='t', index=0):
        """Each at its offset; a retry may have written one twice."""
        found = dict(self.read(self.c, topic, index))
        for offset, value in acked:
            self.assertEqual(found.get(offset), value, offset)

    def test_nobody_loses_what_was_acknowledged(self):
        """Each is killed once, whatever it leads, and comes back into the ISR."""
        acked = []
        self.c.create_topic('t', configs=ALL)
        for node in self.c.nodes:
            self.write(acked, 10)
            node.kill()
            self.write(acked, 10)
            node.launch()
            self.c.wait_ready([node])
            self.poll(lambda: self.isr(self.c, 't') == {1, 2, 3}, 'the ISR is not whole')
            self.check(acked)

    def test_a_stopped_node_hands_over(self):
        """Its leaderships are others' before it ends, which is clean."""
        acked = []
        self.c.create_topic('t', partitions=3, configs=ALL)
        for node in self.c.nodes:
            self.write(acked, 5)
            self.assertEqual(node.term().wait(30), 0, node.log()[-2000:])
            self.assertTrue(os.path.exists(os.path.join(node.data, '.kafka_cleanshutdown')))
            for index in range(3):
                self.assertNotEqual(self.c.partition('t', index)['LeaderId'], node.id)
            self.write(acked, 5)
            node.launch()
            self.c.wait_ready([node])
            self.poll(lambda: self.isr(self.c, 't') == {1, 2, 3}, 'the ISR is not whole')
        self.check(acked)

    def test_any_node_is_asked(self):
        """What the controller answers, and topics that are made on the way."""
        for node in self.c.nodes:
            name = 'by%d' % node.id
            with node.connect() as c:
                self.assertEqual(calls.create(c, name, replication=3)['ErrorCode'], 0)
                self.assertEqual(calls.create(c, name, replication=3)['ErrorCode'], 36)
                quorum = c.ask('DescribeQuorum', 2, Topics=[
                    {'TopicName': '__cluster_metadata', 'Partitions': [{'PartitionIndex': 0}]}])
                self.assertEqual(quorum['Topics'][0]['Partitions'][0]['ErrorCode'], 0)
                self.poll(lambda: calls.metadata(c, [name + 'auto'], create_missing=True)
                          ['Topics'][0]['ErrorCode'] == 0)
                answers = c.ask('IncrementalAlterConfigs', 1, Resources=[
                    {'ResourceType': 4, 'ResourceName': '9', 'Configs': []},
                    {'ResourceType': 2, 'ResourceName': name, 'Configs': [
                        {'Name': 'retention.ms', 'ConfigOperation': 0, 'Value': '1000'}]},
                    {'ResourceType': 4, 'ResourceName': str(node.id), 'Configs': [
                        {'Name': 'log.cleaner.threads', 'ConfigOperation': 0, 'Value': '2'}]}])
                self.assertEqual([r['ErrorCode'] for r in answers['Responses']], [42, 0, 0])
                self.poll(lambda: c.ask('FindCoordinator', 3, Key=name, KeyType=0)['ErrorCode'] == 0)
                gone = c.ask('DeleteTopics', 5, TopicNames=[name], TimeoutMs=10000)
                self.assertEqual(gone['Responses'][0]['ErrorCode'], 0)

    def test_sent_to_the_leader(self):
        """KIP-951: who asks a replica that does not lead is told who does, and where."""
        self.c.create_topic('t')
        self.poll(lambda: self.isr(self.c, 't') == {1, 2, 3})
        leader = self.c.leader('t')
        other = next(n for n in self.c.nodes if n is not leader)
        there = [(leader.id, '127.0.0.1', leader.port)]
        with other.connect() as c:
            self.poll(lambda: calls.metadata(c, ['t'])['Topics'][0]['ErrorCode'] == 0)
            answer = c.ask('Produce', 11, Acks=-1, TimeoutMs=1000, TopicData=[
                {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': kafka.batch([b'x'])}]}])
            part = answer['Responses'][0]['PartitionResponses'][0]
            self.assertEqual(part['ErrorCode'], 6)
            self.assertEqual(part['CurrentLeader']['LeaderId'], leader.id)
            self.assertEqual([(n['NodeId'], n['Host'], n['Port'])
                              for n in answer['NodeEndpoints']], there)
            topic_id = calls.metadata(c, ['t'])['Topics'][0]['TopicId']
            answer = c.ask('Fetch', 16, MaxBytes=1 << 20, MaxWaitMs=100, MinBytes=1,
                           ReplicaState={'ReplicaId': leader.id, 'ReplicaEpoch': -1}, Topics=[
                {'TopicId': topic_id, 'Partitions': [
                    {'Partition': 0, 'FetchOffset': 0, 'PartitionMaxBytes': 1 << 20}]}])
            part = answer['Responses'][0]['Partitions'][0]
            self.assertEqual(part['ErrorCode'], 6)
            self.assertEqual([(n['NodeId'], n['Host'], n['Port'])
                              for n in answer['NodeEndpoints']], there)

    def test_too_few_in_sync(self):
        """Two of three where three are asked for: acks=all is refused, nothing written; what acks=1
        wrote is read when they are three again."""
        self.c.create_topic('t', configs={'min.insync.replicas': '3'})
        self.write([], 1)
        leader = self.c.leader('t')
        gone = next(n for n in self.c.nodes if n is not leader)
        gone.kill()
        self.poll(lambda: self.isr(self.c, 't') == {1, 2, 3} - {gone.id}, 'it stays in the ISR')
        with leader.connect() as c:
            self.poll(lambda: calls.produce(c, 't', 0, kafka.batch([b'no']))['ErrorCode'] == 19)
            answer = calls.produce(c, 't', 0, kafka.batch([b'yes']), acks=1)
            self.assertEqual((answer['ErrorCode'], answer['BaseOffset']), (0, 1))
            self.assertEqual(calls.end_of(c, 't'), 1)
            gone.launch()
            self.c.wait_ready([gone])
            self.poll(lambda: calls.end_of(c, 't') == 2, 'nobody may read what acks=1 wrote')
        self.check([(1, b'yes')])

    def produce_in_time(self, c, value, acks):
        """The error: nobody waits longer than a second."""
        answer = c.ask('Produce', 9, Acks=acks, TimeoutMs=1000, TopicData=[
            {'Name': 't', 'PartitionData': [{'Index': 0, 'Records': kafka.batch([value])}]}])
        return answer['Responses'][0]['PartitionResponses'][0]['ErrorCode']

    def test_without_a_majority(self):
        """One of three serves what it leads and takes acks=1; acks=all waits for the ISR as it was,
        and nothing is made before a second one is there; with it all goes on."""
        acked = []
        self.c.create_topic('t', configs=ALL)
        self.write(acked, 5)
        leader = self.c.leader('t')
        gone = [n for n in self.c.nodes if n is not leader]
        for node in gone:
            node.kill()
        with leader.connect() as c:
            self.assertEqual([v for _, v in c.read_all('t', 0)], [v for _, v in acked])
            self.assertEqual(self.produce_in_time(c, b'alone', 1), 0)
            self.assertEqual(self.produce_in_time(c, b'not acknowledged', -1), 7)
            self.assertEqual(calls.create(c, 'perhaps', replication=1)['ErrorCode'], 7)
            self.assertEqual(calls.metadata(c, ['perhaps'])['Topics'][0]['ErrorCode'], 3)
        gone[0].launch()
        self.c.wait_ready(gone[:1])
        self.write(acked, 5)
        self.check(acked)
        self.c.create_topic('made', replication=2)

    def test_all_stop_together(self):
        for node in self.c.nodes:
            node.term()
        for node in self.c.nodes:
            self.assertEqual(node.process.wait(30), 0, node.log()[-2000:])
        for node in self.c.nodes:
            node.launch()
        self.c.wait_ready()
        self.c.create_topic('t')
        self.c.produce('t', 0, kafka.batch([b'after']))


class Emptied(ClusterTest):
    """One whose disk was replaced is a broker as any other, once it has caught up: what leads, leads
    in a log directory that the controller knows of."""
    PARTITIONS = range(6)

    def leaders(self, c):
        """-1 among them when one has none, or nobody tells."""
        found = [c.partition('t', i) for i in self.PARTITIONS]
        return {p['LeaderId'] if p else -1 for p in found}

    def test_it_leads(self):
        c = self.cluster('controller', 'broker', 'broker', 'broker').start()
        first, second, third = c.brokers()
        c.create_topic('t', partitions=6, configs=ALL)
        for i in self.PARTITIONS:
            c.produce('t', i, kafka.batch([b'before']))
        third.kill()
        third.empty()
        third.launch()
        c.wait_ready([third])
        self.poll(lambda: all(len(self.isr(c, 't', i)) == 3 for i in self.PARTITIONS))
        for node in first, second:
            node.kill()
        self.poll(lambda: self.leaders(c) == {third.id}, third.log())
        self.assertIn('assign_directories replicas=6', third.log())
        c.kill()
        for node in c.nodes:
            node.launch()
        c.wait_ready()
        self.poll(lambda: -1 not in self.leaders(c))
        for i in self.PARTITIONS:
            self.poll(lambda: b'before' in [value for _, value in self.read(c, 't', i)])
            c.produce('t', i, kafka.batch([b'after']))


class Roles(ClusterTest):
    def test_a_controller_and_brokers(self):
        """One process is no broker, the others no controllers."""
        c = self.cluster('controller', 'broker', 'broker').start()
        with c.nodes[1].connect() as connection:
            self.assertEqual({b['NodeId'] for b in calls.metadata(connection, [])['Brokers']},
                             {2, 3})
        with self.assertRaises(OSError):
            kafka.Connection(c.nodes[0].port).close()
        for node in c.nodes[1:] + c.nodes[:1]:
            self.assertEqual(node.term().wait(30), 0, node.log()[-2000:])
        self.assertFalse(os.path.exists(os.path.join(c.nodes[0].data, '.kafka_cleanshutdown')))
        self.assertFalse([f for f in os.listdir(os.path.join(c.nodes[1].data,
                                                             '__cluster_metadata-0'))
                          if f == '00000000000000000000-0000000000.checkpoint'])

    def test_the_largest_answers_that_may_be_configured(self):
        self.cluster('controller', 'broker',
                     **{'controller.quorum.fetch.max.bytes': 2**31 - 1,
                        'controller.quorum.fetch.snapshot.max.bytes': 2**31 - 1}).start()


class Throttled(ClusterTest):
    """A replica that is moved, as kafka-reassign-partitions --throttle does it."""

    def alter(self, c, resource_type, name, **values):
        answer = c.ask_controller(lambda a: {'ErrorCode': a.ask(
            'IncrementalAlterConfigs', 1, Resources=[
                {'ResourceType': resource_type, 'ResourceName': name, 'Configs': [
                    {'Name': key.replace('_', '.'), 'ConfigOperation': 0, 'Value': value}
                    for key, value in values.items()]}])['Responses'][0]['ErrorCode']})
        self.assertEqual(answer['ErrorCode'], 0)

    def test_a_moved_replica_takes_its_time(self):
        c = self.cluster('broker,controller', 'broker', 'broker').start()
        c.create_topic('t', replication=1)
        first = c.leader('t')
        other = next(n for n in c.nodes if n is not first)
        for _ in range(30):
            c.produce('t', 0, kafka.batch([b'x' * 100000]))
        self.alter(c, 2, 't', leader_replication_throttled_replicas='0:%d' % first.id,
                   follower_replication_throttled_replicas='0:%d' % other.id)
        for node in c.nodes:
            answer = node_config(node, leader_replication_throttled_rate='200000',
                                 follower_replication_throttled_rate='200000')
            self.assertEqual(answer, 0)
        moved = c.ask_controller(lambda a: a.ask(
            'AlterPartitionReassignments', 0, TimeoutMs=10000, Topics=[
                {'Name': 't', 'Partitions': [
                    {'PartitionIndex': 0, 'Replicas': [first.id, other.id]}]}]))
        self.assertEqual(moved['Responses'][0]['Partitions'][0]['ErrorCode'], 0)
        begin = time.monotonic()
        self.poll(lambda: self.isr(c, 't') == {first.id, other.id}, timeout_s=60)
        took_s = time.monotonic() - begin
        self.assertGreater(took_s, 8)  # 3 MB at 200 kB/s, and a batch of each second before
        c.produce('t', 0, kafka.batch([b'after']))


def node_config(node, **values):
    """The error of altering the node's own values, asked there."""
    with node.connect() as c:
        answer = c.ask('IncrementalAlterConfigs', 1, Resources=[
            {'ResourceType': 4, 'ResourceName': str(node.id), 'Configs': [
                {'Name': key.replace('_', '.'), 'ConfigOperation': 0, 'Value': value}
                for key, value in values.items()]}])
        return answer['Responses'][0]['ErrorCode']


class Voters(ClusterTest):
    """kraft.version 0 to 1, and controllers that join by themselves."""

    def voters(self, c):
        """Ids and directories, as any broker tells."""
        for node in c.running():
            try:
                with node.connect() as connection:
                    answer = connection.ask('DescribeQuorum', 2, Topics=[
                        {'TopicName': '__cluster_metadata',
                         'Partitions': [{'PartitionIndex': 0}]}])
            except (OSError, kafka.Closed):
                continue
            part = answer['Topics'][0]['Partitions'][0] if answer['Topics'] else None
            if part is not None and part['ErrorCode'] == 0:
                return {(v['ReplicaId'], v['ReplicaDirectoryId'])
                        for v in part['CurrentVoters']}
        return set()

    def raise_version(self, c):
        """The voters have told their leader what they are some seconds after its election."""
        def raised():
            answer = c.ask_controller(lambda a: a.ask(
                'UpdateFeatures', 1, TimeoutMs=10000, FeatureUpdates=[
                    {'Feature': 'kraft.version', 'MaxVersionLevel': 1, 'UpgradeType': 1}]))
            return answer['ErrorCode'] == 0
        self.poll(raised, 'kraft.version stays')

    def finalized(self, node):
        with node.connect() as c:
            answer = c.ask('ApiVersions', 3, ClientSoftwareName='t', ClientSoftwareVersion='1')
            return {f['Name']: f['MaxVersionLevel'] for f in answer['FinalizedFeatures']}

    def test_kraft_version_is_raised(self):
        c = self.cluster().start()
        self.assertEqual({i for i, d in self.voters(c) if d.int != 0}, set())
        self.assertNotIn('kraft.version', self.finalized(c.nodes[0]))
        self.raise_version(c)
        self.poll(lambda: len({d for i, d in self.voters(c) if d.int != 0}) == 3)
        for node in c.nodes:
            self.poll(lambda: self.finalized(node).get('kraft.version') == 1)
        before = self.voters(c)
        for node in c.nodes:
            node.kill()
        for node in c.nodes:
            node.launch()
        c.wait_ready()
        self.poll(lambda: self.voters(c) == before)
        c.create_topic('t')
        c.produce('t', 0, kafka.batch([b'x']))
        leader = c.ask_controller(lambda a: a.ask(
            'UpdateFeatures', 1, TimeoutMs=10000, FeatureUpdates=[
                {'Feature': 'kraft.version', 'MaxVersionLevel': 0, 'UpgradeType': 2}]))
        self.assertEqual(leader['ErrorCode'], 95)

    def test_a_new_disk_joins_by_itself(self):
        c = self.cluster(**{'controller.quorum.auto.join.enable': 'true'}).start()
        self.raise_version(c)
        self.poll(lambda: len(self.voters(c)) == 3)
        before = self.voters(c)
        node = c.nodes[1]
        node.kill()
        node.data += '-new'
        bootstrap = ','.join('127.0.0.1:%d' % n.controller_port for n in c.nodes)
        node.settings = {'controller.quorum.voters': None,
                         'controller.quorum.bootstrap.servers': bootstrap}
        done = subprocess.run([broker.BINARY, 'format', '--data', node.data, '--cluster-id',
                               cluster.CLUSTER_ID, '--no-initial-controllers', '--set',
                               'node.id=2', '--set', 'process.roles=broker,controller', '--set',
                               'controller.listener.names=CONTROLLER', '--set',
                               'controller.quorum.bootstrap.servers=' + bootstrap, '--set',
                               'listeners=' + node.listeners()],
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        node.launch()
        self.poll(lambda: len(self.voters(c) - before) == 1 and len(self.voters(c)) == 3,
                  'it does not join', timeout_s=60)
        self.assertEqual({i for i, _ in self.voters(c)}, {1, 2, 3})


class Refused(ClusterTest):
    """What a node does not start with, and what it waits for."""

    def refused(self, node, *says):
        done = subprocess.run(node.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, check=False)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 78, text)
        for word in says:
            self.assertIn(word, text)

    def test_no_cluster_id(self):
        """Three nodes must not each make one up."""
        c = self.cluster(**{'cluster.id': None})
        c.choose_ports()
        self.refused(c.nodes[0], 'is not formatted', 'dohle format', 'cluster.id')
        c.nodes[1].settings = {'controller.quorum.voters': None, 'cluster.id': cluster.CLUSTER_ID,
                               'controller.quorum.bootstrap.servers': '127.0.0.1:1'}
        self.refused(c.nodes[1], 'is not formatted', '--initial-controllers')

    def test_another_nodes_directory(self):
        c = self.cluster().start()
        c.kill()
        c.nodes[0].data = c.nodes[1].data
        self.refused(c.nodes[0], 'node.id=1', 'belongs to node.id=2')
        c.nodes[1].settings = {'cluster.id': 'AAAAAAAAAAAAAAAAAAAAAQ'}
        self.refused(c.nodes[1], 'cluster.id=AAAAAAAAAAAAAAAAAAAAAQ', 'belongs to')

    def test_another_cluster(self):
        """A controller of another cluster's directory; so is a broker."""
        c = self.cluster('broker,controller', 'broker,controller', 'broker').start()
        for node in c.nodes[2], c.nodes[0]:
            node.kill()
            node.data += '-other'
            node.settings = {'cluster.id': 'AAAAAAAAAAAAAAAAAAAAAQ'}
            self.refused(node, 'cluster.id=AAAAAAAAAAAAAAAAAAAAAQ', 'another cluster')

    def test_a_node_id_in_use(self):
        """The other goes on; a quick restart of its own waits for its former session."""
        c = self.cluster('controller', 'broker', 'broker',
                         **{'initial.broker.registration.timeout.ms': 3000}).start()
        c.nodes[2].kill()
        c.nodes[2].id = 2
        c.nodes[2].data += '-other'
        self.refused(c.nodes[2], 'node.id=2 is in use')
        with c.nodes[1].connect() as connection:
            self.assertIn(2, {b['NodeId'] for b in calls.metadata(connection, [])['Brokers']})

    def test_waits_for_a_quorum(self):
        """One line says so; a second node makes it one."""
        c = self.cluster()
        c.choose_ports()
        first = c.nodes[0].launch()
        self.poll(lambda: 'start_waits' in first.log(), 'nothing says what it waits for')
        self.assertFalse(first.ready())
        c.nodes[1].launch()
        self.assertTrue(c.wait_ready(c.nodes[:2]))
        self.assertEqual(first.log().count('start_waits'), 1)

    def test_stops_while_it_waits(self):
        c = self.cluster()
        c.choose_ports()
        first = c.nodes[0].launch()
        self.poll(lambda: 'start_waits' in first.log())
        self.assertEqual(first.term().wait(30), 0, first.log()[-1000:])


if __name__ == '__main__':
    broker.main()
