"""Metadata and DescribeCluster: cases MD."""
import os
import socket
import uuid

import batches
import broker
import calls
import kafka
import messages

ONE = batches.build([(1700000000000, b'k', b'v')])
ILLEGAL = ('a b', 'a/b', 'abc!@#$', '', '.', '..', '../x', '/x', 'ä', 'a\0b', 'x' * 250, 'x' * 255)


class Topics(broker.BrokerTest):
    def test_which_topics_are_asked_for(self):
        """MD-01: no list is all; an empty one is none, but all in v0."""
        with self.broker.connect() as c:
            both = {calls.ready(c, 'one'), calls.ready(c, 'two')}
            for version in range(14):
                for topics, names in ((None, both), ([], set() if version > 0 else both)):
                    if version == 0 and topics is None:
                        continue  # v0 has no null
                    answer = calls.metadata(c, topics, version)
                    self.assertEqual({t['Name'] for t in answer['Topics']}, names,
                                     (version, topics))
                    self.assertEqual(len(answer['Brokers']), 1)

    def test_creates_when_it_is_asked_to(self):
        """MD-02: v0 to v3 always ask; the topic can be used at once; Produce creates nothing."""
        with self.broker.connect() as c:
            for version in range(14):
                name = 'v%d' % version
                before = calls.metadata(c, [name], max(version, 4))
                self.assertEqual([t['ErrorCode'] for t in before['Topics']], [3])
                self.assertEqual(calls.produce(c, name, 0, ONE)['ErrorCode'], 3)
                self.assertEqual(calls.offset_of(c, name, 0, calls.LATEST)[0], 3)
                self.assertNotIn(name, calls.topic_names(c))
                calls.metadata(c, [name], version, create_missing=True)
                c.wait_for_leaders(name, 1)
                self.assertEqual(calls.produce(c, name, 0, ONE)['ErrorCode'], 0)

    def test_created_topic_is_there_at_once(self):
        """MD-02: no error 3 or 5 on a single node once CreateTopics, or Metadata, has answered."""
        with self.broker.connect() as c:
            for i in range(50):
                name = 't%d' % i
                if i % 2 == 0:
                    self.assertEqual(calls.create(c, name)['ErrorCode'], 0)
                else:
                    answer = calls.metadata(c, [name], create_missing=True)
                    self.assertEqual(answer['Topics'][0]['ErrorCode'], 0)
                topic = calls.metadata(c, [name])['Topics'][0]
                self.assertEqual((topic['ErrorCode'], topic['Partitions'][0]['ErrorCode']), (0, 0))
                answer = calls.produce(c, name, 0, ONE)
                self.assertEqual((answer['ErrorCode'], answer['BaseOffset']), (0, 0))
                self.assertEqual(calls.end_of(c, name), 1)

    def test_illegal_names(self):
        """MD-04: error 17 at once, the name echoed, nothing made; 249 characters are legal."""
        with self.broker.connect() as c:
            for name in ILLEGAL:
                answer = calls.metadata(c, [name], create_missing=True)
                self.assertEqual([(t['ErrorCode'], t['Name']) for t in answer['Topics']],
                                 [(17, name)])
                self.assertEqual(calls.metadata(c, [name])['Topics'][0]['ErrorCode'], 17)
                answer = calls.create(c, name)
                self.assertEqual((answer['ErrorCode'], answer['Name']), (17, name))
            longest = 'x' * 249
            self.assertEqual(calls.create(c, longest)['ErrorCode'], 0)
            self.assertEqual(calls.produce(c, longest, 0, ONE)['ErrorCode'], 0)
            self.assertEqual(calls.topic_names(c), [longest])
        self.check_directory({longest + '-0', '__cluster_metadata-0'})

    def check_directory(self, names):
        data = self.broker.data
        if os.path.isdir(data):
            self.assertEqual({n for n in os.listdir(data) if os.path.isdir(os.path.join(data, n))},
                             names)
            self.assertEqual(set(os.listdir(self.broker.directory)), {'data', 'ports', 'stderr'})

    def test_topic_ids(self):
        """MD-05: error 42 in v10 and v11; from v12 on a known one is found without a name."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            topic_id = calls.metadata(c, ['t'])['Topics'][0]['TopicId']
            strange = uuid.UUID(int=77)
            for version in (10, 11):
                for topic in ({'Name': None, 'TopicId': topic_id}, {'Name': None},
                              {'Name': 't', 'TopicId': topic_id}):
                    answer = c.ask('Metadata', version, Topics=[topic])
                    self.assertEqual([(t['ErrorCode'], t['Name']) for t in answer['Topics']],
                                     [(42, topic['Name'] or '')])
            for version in (12, 13):
                answer = c.ask('Metadata', version, Topics=[
                    {'Name': None, 'TopicId': topic_id}, {'Name': None, 'TopicId': strange}])
                found = {t['TopicId']: t for t in answer['Topics']}
                self.assertEqual((found[topic_id]['ErrorCode'], found[topic_id]['Name'],
                                  len(found[topic_id]['Partitions'])), (0, 't', 1))
                self.assertEqual((found[strange]['ErrorCode'], found[strange]['Name'],
                                  found[strange]['Partitions']), (100, None, []))

    def test_authorized_operations(self):
        """KIP-430: bit fields of all that there is, without an authorizer; else not told."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            for version in (8, 10):
                answer = c.ask('Metadata', version, Topics=[{'Name': 't'}],
                               IncludeClusterAuthorizedOperations=True,
                               IncludeTopicAuthorizedOperations=True)
                self.assertEqual(answer['ClusterAuthorizedOperations'], 0x1fa0)
                self.assertEqual(answer['Topics'][0]['TopicAuthorizedOperations'], 0xdf8)
            answer = calls.metadata(c, ['t'])
            self.assertEqual(answer['Topics'][0]['TopicAuthorizedOperations'], -2**31)


class NoCreation(broker.BrokerTest):
    settings = {'auto.create.topics.enable': 'false'}

    def test_the_server_does_not_allow_it(self):
        """MD-02"""
        with self.broker.connect() as c:
            for version in (0, 4, 12):
                answer = calls.metadata(c, ['t'], version, create_missing=True)
                self.assertEqual(answer['Topics'][0]['ErrorCode'], 3)
            self.assertEqual(calls.topic_names(c), [])


class Cluster(broker.BrokerTest):
    settings = {'broker.rack': 'here', 'cluster.id': 'AAAAAAAAAAAAAAAAAAAAAQ', 'node.id': '5'}

    def check(self):
        with self.broker.connect() as c:
            for version in range(14):
                answer = calls.metadata(c, [], version)
                brokers = answer['Brokers']
                self.assertEqual([(b['NodeId'], b['Host'], b['Port']) for b in brokers],
                                 [(5, '127.0.0.1', self.broker.port)])
                if version >= 1:
                    self.assertEqual((answer['ControllerId'], brokers[0]['Rack']), (5, 'here'))
                if version >= 2:
                    self.assertEqual(answer['ClusterId'], 'AAAAAAAAAAAAAAAAAAAAAQ')
            for version in range(3):
                answer = c.ask('DescribeCluster', version)
                self.assertEqual((answer['ErrorCode'], answer['ClusterId'], answer['ControllerId']),
                                 (0, 'AAAAAAAAAAAAAAAAAAAAAQ', 5))
                self.assertEqual([(b['BrokerId'], b['Host'], b['Port'], b['Rack'])
                                  for b in answer['Brokers']],
                                 [(5, '127.0.0.1', self.broker.port, 'here')])
                if version == 2:
                    self.assertFalse(answer['Brokers'][0]['IsFenced'])
            self.assertEqual(calls.create(c, 'by-%d' % self.broker.process.pid)['ErrorCode'], 0)

    def test_controller_is_in_the_answer(self):
        """MD-03: this node, from the first answer on; the same cluster over restarts."""
        self.check()
        self.assertEqual(self.broker.stop(), 0)
        self.broker.settings = {}
        self.broker.start()
        with self.broker.connect() as c:
            answer = calls.metadata(c, [])
            self.assertEqual((answer['ClusterId'], answer['ControllerId']),
                             ('AAAAAAAAAAAAAAAAAAAAAQ', 5))

    def test_endpoint_type_of_describe_cluster(self):
        with self.broker.connect() as c:
            for kind, error in ((1, 0), (2, 114), (3, 115), (0, 115)):
                answer = c.ask('DescribeCluster', 1, EndpointType=kind)
                self.assertEqual(answer['ErrorCode'], error, kind)


def has_v6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(('::1', 0))
        return True
    except OSError:
        return False


class Listeners(broker.BrokerTest):
    """MD-06: a client is sent where it came in."""
    settings = {
        'listeners': 'INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,LOCAL://127.0.0.1:0' +
                     (',V6://[::1]:0' if has_v6() else ''),
        'listener.security.protocol.map': 'INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,LOCAL:PLAINTEXT,'
                                          'V6:PLAINTEXT',
        'advertised.listeners': 'INSIDE://broker.invalid:19092,OUTSIDE://localhost:19092',
        'inter.broker.listener.name': 'INSIDE',
    }

    def ports(self):
        with open(os.path.join(self.broker.directory, 'ports'), encoding='utf-8') as f:
            return {name: int(port) for name, _, port in map(str.split, f)}

    def test_advertised_addresses(self):
        """One port advertised twice, and other than the bound one; names that do not resolve."""
        ports = self.ports()
        for name, address in (('INSIDE', ('broker.invalid', 19092)),
                              ('OUTSIDE', ('localhost', 19092)),
                              ('LOCAL', ('127.0.0.1', ports['LOCAL']))):
            with kafka.Connection(ports[name]) as c:
                for b in (calls.metadata(c, [])['Brokers'][0],
                          c.ask('DescribeCluster', 1)['Brokers'][0]):
                    self.assertEqual((b['Host'], b['Port']), address)

    def test_ipv6(self):
        if not has_v6():
            self.skipTest('no IPv6 here')
        with socket.create_connection(('::1', self.ports()['V6']), 30) as s:
            data = messages.request('Metadata', 12, {'Topics': []})
            s.sendall(len(data).to_bytes(4, 'big') + data)
            size = int.from_bytes(s.recv(4, socket.MSG_WAITALL), 'big')
            answer = messages.response('Metadata', 12, s.recv(size, socket.MSG_WAITALL)[4:])
        self.assertEqual([(b['Host'], b['Port']) for b in answer['Brokers']],
                         [('::1', self.ports()['V6'])])


if __name__ == '__main__':
    broker.main()
