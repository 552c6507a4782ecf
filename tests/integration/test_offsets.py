"""Committed offsets, request by request and version by version: finding the coordinator, commits,
fetches, deletions, lists (groups.md 1, 3 and 7), what kill -9 leaves, what ends by itself."""
import threading
import uuid

import broker
import kafka
import protocol

NONE, UNKNOWN_TOPIC, TOO_LARGE, NOT_AVAILABLE = 0, 3, 12, 15
ILLEGAL_GENERATION, INVALID_GROUP, INVALID_REQUEST = 22, 24, 42
NOT_FOUND, UNKNOWN_ID = 69, 100
NOT_READY = {14, 15, 16}
NO_OFFSET = dict(CommittedOffset=-1, CommittedLeaderEpoch=-1, Metadata='', ErrorCode=NONE)


def part(index, offset, metadata='', **more):
    return dict(PartitionIndex=index, CommittedOffset=offset, CommittedMetadata=metadata, **more)


def topic(name, *parts):
    key = 'TopicId' if isinstance(name, uuid.UUID) else 'Name'
    return {key: name, 'Partitions': list(parts)}


def asked(name, *indexes):
    key = 'TopicId' if isinstance(name, uuid.UUID) else 'Name'
    return {key: name, 'PartitionIndexes': list(indexes)}


class Offsets(broker.BrokerTest):
    settings = {'offsets.topic.num.partitions': 4}

    def setUp(self):
        super().setUp()
        self.open()
        with self.broker.connect() as c:
            c.create_topic('t', 2)
            c.create_topic('u', 1)

    def open(self):
        self.c = protocol.Client(self.broker.port)
        self.addCleanup(self.c.close)

    def ready(self):
        """The coordinator's partitions are there and loaded."""
        def look():
            found = self.c.call('FindCoordinator', 4, CoordinatorKeys=['g'])['Coordinators'][0]
            listed = self.c.call('ListGroups', 5)['ErrorCode']
            fetched = [self.fetch('g%d' % i)['ErrorCode'] for i in range(16)]
            return not {found['ErrorCode'], listed, *fetched} & NOT_READY
        self.poll(look)

    def restart(self, how):
        how()
        self.broker.start()
        self.open()
        self.ready()

    # ---------------------------------------------------------------- requests

    def commit(self, group, topics, version=9, generation=-1, member='', **more):
        r = self.c.call('OffsetCommit', version, GroupId=group, MemberId=member,
                        GenerationIdOrMemberEpoch=generation, Topics=topics, **more)
        return [(t.get('Name', t.get('TopicId')),
                 [(p['PartitionIndex'], p['ErrorCode']) for p in t['Partitions']])
                for t in r['Topics']]

    def commit_one(self, group, offset, name='t', index=0, **more):
        return self.commit(group, [topic(name, part(index, offset))], **more)[0][1][0][1]

    def fetch(self, group, topics=None, version=9, **more):
        return self.c.call('OffsetFetch', version, Groups=[dict(GroupId=group, Topics=topics)],
                           **more)['Groups'][0]

    def offset(self, group, name='t', index=0):
        r = self.fetch(group, [asked(name, index)])
        self.assertEqual(r['ErrorCode'], NONE)
        return r['Topics'][0]['Partitions'][0]['CommittedOffset']

    def groups(self, **filters):
        r = self.c.call('ListGroups', 5, **filters)
        self.assertEqual(r['ErrorCode'], NONE)
        return [g['GroupId'] for g in r['Groups']]

    def delete(self, *names, version=3):
        r = self.c.call('DeleteGroups', version, GroupsNames=names)
        return [(g['GroupId'], g['ErrorCode']) for g in r['Results']]

    def delete_topic(self, name):
        r = self.c.call('DeleteTopics', 5, TopicNames=[name], TimeoutMs=30000)
        self.assertEqual(r['Responses'][0]['ErrorCode'], NONE)

    def topic_id(self, name):
        r = self.c.call('Metadata', 12, Topics=[dict(Name=name)], AllowAutoTopicCreation=False)
        return r['Topics'][0]['TopicId']


class Finding(Offsets):
    def test_every_version(self):
        here = dict(NodeId=1, Host='127.0.0.1', Port=self.broker.port, ErrorCode=NONE)
        for version in range(4):
            r = self.c.call('FindCoordinator', version, Key='g')
            self.assertEqual({k: r[k] for k in here}, here)
            if version >= 1:
                self.assertEqual(r['ErrorMessage'], 'NONE')
        for version in range(4, 7):
            r = self.c.call('FindCoordinator', version, CoordinatorKeys=['g', '', 'h'])
            self.assertEqual([c.pop('Key') for c in r['Coordinators']], ['g', '', 'h'])
            for c in r['Coordinators']:
                self.assertEqual(c, dict(here, ErrorMessage=''))

    def test_what_is_not_served(self):
        nowhere = dict(NodeId=-1, Host='', Port=-1, ErrorCode=INVALID_REQUEST)
        for kind in (1, 2, 7):
            r = self.c.call('FindCoordinator', 2, Key='g', KeyType=kind)
            self.assertEqual({k: r[k] for k in nowhere}, nowhere)
            r = self.c.call('FindCoordinator', 6, CoordinatorKeys=['g'], KeyType=kind)
            self.assertEqual({k: r['Coordinators'][0][k] for k in nowhere}, nowhere)

    def test_topic_is_made_once(self):
        clients = [protocol.Client(self.broker.port) for _ in range(5)]
        for c in clients:
            self.addCleanup(c.close)
            c.send('FindCoordinator', 4, CoordinatorKeys=['g'])
        for c in clients:
            self.assertEqual(c.receive()['Coordinators'][0]['ErrorCode'], NONE)
        r = self.c.call('Metadata', 12, Topics=[dict(Name='__consumer_offsets')])['Topics'][0]
        self.assertTrue(r['IsInternal'])
        self.assertEqual(len(r['Partitions']), 4)
        self.assertEqual(self.commit_one('g', 5), NONE)


class Unready(broker.BrokerTest):
    """Nothing but defaults, no automatic topics; then more replicas than there are brokers."""
    settings = {'auto.create.topics.enable': 'false'}

    def metadata(self, c):
        return c.call('Metadata', 12, Topics=[dict(Name='__consumer_offsets')])['Topics'][0]

    def test_defaults_serve_one_broker(self):
        with protocol.Client(self.broker.port) as c:
            self.assertEqual(self.metadata(c)['ErrorCode'], UNKNOWN_TOPIC)
            r = c.call('FindCoordinator', 4, CoordinatorKeys=['g'])['Coordinators'][0]
            self.assertEqual(r['ErrorCode'], NONE)
            self.assertEqual(len(self.metadata(c)['Partitions']), 50)

    def test_metadata_makes_it_too(self):
        self.broker.stop()
        self.broker.settings['auto.create.topics.enable'] = 'true'
        self.broker.start()
        with protocol.Client(self.broker.port) as c:
            self.assertEqual(len(self.metadata(c)['Partitions']), 50)

    def test_too_many_replicas_asked_for(self):
        self.broker.stop()
        self.broker.settings['offsets.topic.replication.factor'] = 3
        self.broker.start()
        with protocol.Client(self.broker.port) as c:
            r = c.call('FindCoordinator', 4, CoordinatorKeys=['g'])['Coordinators'][0]
            self.assertEqual((r['ErrorCode'], r['NodeId']), (NOT_AVAILABLE, -1))
            r = c.call('OffsetFetch', 9, Groups=[dict(GroupId='g', Topics=None)])['Groups'][0]
            self.assertEqual(r['ErrorCode'], 16)


class Commits(Offsets):
    def setUp(self):
        super().setUp()
        self.ready()

    def test_unknown_group(self):  # rows 1 and 2
        for version in range(8, 10):
            r = self.fetch('g', [asked('t', 0, 99), asked('nope', 0)], version)
            self.assertEqual(r['ErrorCode'], NONE)
            for t in r['Topics']:
                for p in t['Partitions']:
                    p.pop('PartitionIndex')
                    self.assertEqual(p, NO_OFFSET)
        for version in range(2, 11):
            name = self.topic_id('t') if version == 10 else 't'
            error = NOT_FOUND if version >= 9 else ILLEGAL_GENERATION
            self.assertEqual(self.commit('g', [topic(name, part(0, 5))], version, generation=0),
                             [(name, [(0, error)])])
        self.assertEqual(self.groups(), [])

    def test_every_version(self):  # row 3
        for version in range(2, 10):
            group = 'g%d' % version
            self.assertEqual(self.commit(group, [topic('t', part(1, 5, 'm'), part(0, 6, None))],
                                         version, member='x'), [('t', [(1, NONE), (0, NONE)])])
            for v in range(1, 8):
                r = self.c.call('OffsetFetch', v, GroupId=group, Topics=[asked('t', 0, 1, 7)])
                parts = r['Topics'][0]['Partitions']
                self.assertEqual([(p['CommittedOffset'], p['Metadata'], p['ErrorCode'])
                                  for p in parts], [(6, '', 0), (5, 'm', 0), (-1, '', 0)])
                if v >= 2:
                    r = self.c.call('OffsetFetch', v, GroupId=group, Topics=None)
                    self.assertEqual(len(r['Topics'][0]['Partitions']), 2)
            for v in range(8, 10):
                for stable in (False, True):
                    r = self.fetch(group, version=v, RequireStable=stable)
                    self.assertEqual([p['CommittedOffset'] for p in r['Topics'][0]['Partitions']],
                                     [6, 5])
        r = self.c.call('ListGroups', 5)
        self.assertEqual(sorted(g['GroupId'] for g in r['Groups']),
                         ['g%d' % v for v in range(2, 10)])
        for g in r['Groups']:
            self.assertEqual((g['ProtocolType'], g['GroupState'], g['GroupType']),
                             ('', 'Empty', 'classic'))

    def test_by_topic_id(self):  # GR-11
        t, foreign, none = self.topic_id('t'), uuid.uuid4(), uuid.UUID(int=0)
        self.assertEqual(self.commit('g', [topic(t, part(0, 3)), topic(foreign, part(0, 3)),
                                           topic(none, part(0, 3))], 10),
                         [(foreign, [(0, UNKNOWN_ID)]), (none, [(0, UNKNOWN_ID)]),
                          (t, [(0, NONE)])])
        r = self.fetch('g', [asked(foreign, 0), asked(t, 0, 1)], 10)
        self.assertEqual([x['TopicId'] for x in r['Topics']], [t, foreign])
        self.assertEqual([p['CommittedOffset'] for p in r['Topics'][0]['Partitions']], [3, -1])
        self.assertEqual(r['Topics'][1]['Partitions'][0]['ErrorCode'], UNKNOWN_ID)
        self.delete_topic('t')
        with self.broker.connect() as c:
            c.create_topic('t', 2)
        self.assertEqual(self.commit('g', [topic(t, part(0, 4))], 10), [(t, [(0, UNKNOWN_ID)])])
        self.poll(lambda: self.fetch('g', version=10)['Topics'] == [])
        self.assertEqual(self.fetch('g', [asked(self.topic_id('t'), 0)], 10)['Topics'][0]
                         ['Partitions'][0]['CommittedOffset'], -1)

    def test_what_is_refused_comes_first(self):  # GR-11
        self.assertEqual(
            self.commit('g', [topic('u', part(0, 1)),
                              topic('t', part(0, 5), part(99, 1), part(1, 6)),
                              topic('nope', part(0, 1))]),
            [('t', [(99, UNKNOWN_TOPIC), (0, NONE), (1, NONE)]), ('nope', [(0, UNKNOWN_TOPIC)]),
             ('u', [(0, NONE)])])
        self.assertEqual(self.offset('g', 't', 1), 6)

    def test_topics_named_twice(self):
        """Kafka merges them once it has refused something, of whichever topic."""
        self.assertEqual(self.commit('g', [topic('t', part(0, 1)), topic('u', part(0, 1)),
                                           topic('t', part(1, 1))]),
                         [('t', [(0, NONE)]), ('u', [(0, NONE)]), ('t', [(1, NONE)])])
        self.assertEqual(
            self.commit('g', [topic('t', part(0, 1)), topic('nope', part(1, 1)), topic('u', part(0, 1)),
                              topic('nope', part(0, 1)), topic('t', part(0, 2))]),
            [('nope', [(1, UNKNOWN_TOPIC), (0, UNKNOWN_TOPIC)]), ('t', [(0, NONE), (0, NONE)]),
             ('u', [(0, NONE)])])
        self.assertEqual(
            self.commit('g', [topic('t', part(0, 3)), topic('u', part(9, 1)),
                              topic('t', part(1, 1), part(8, 1))]),
            [('u', [(9, UNKNOWN_TOPIC)]), ('t', [(8, UNKNOWN_TOPIC), (0, NONE), (1, NONE)])])
        self.assertEqual(self.commit('g', [topic('t'), topic('nope'), topic('t', part(1, 1))]),
                         [('nope', []), ('t', [(1, NONE)])])
        t, none = self.topic_id('t'), uuid.UUID(int=5)
        self.assertEqual(
            self.commit('g', [topic(t, part(0, 1)), topic(none, part(1, 1)), topic(t, part(1, 1))], 10),
            [(none, [(1, UNKNOWN_ID)]), (t, [(0, NONE), (1, NONE)])])

    def test_topics_are_looked_at_before_the_group(self):  # row 6
        self.assertEqual(self.commit('g', [topic('nope', part(0, 1))], generation=5),
                         [('nope', [(0, UNKNOWN_TOPIC)])])
        self.assertEqual(self.commit('g', [topic('t', part(0, 1), part(9, 1))], generation=5),
                         [('t', [(9, UNKNOWN_TOPIC), (0, NOT_FOUND)])])
        self.assertEqual(self.commit('g', [topic('t')]), [])
        self.assertEqual(self.groups(), [])

    def test_metadata(self):  # row 7
        self.assertEqual(self.commit('g', [topic('t', part(0, 1, 'é' * 4096),
                                                 part(1, 1, 'x' * 4097))]),
                         [('t', [(0, NONE), (1, TOO_LARGE)])])
        self.assertEqual(self.fetch('g')['Topics'][0]['Partitions'][0]['Metadata'], 'é' * 4096)

    def test_several_groups_at_once(self):
        self.commit_one('a', 1)
        self.commit_one('b', 2)
        r = self.c.call('OffsetFetch', 8, Groups=[
            dict(GroupId='b', Topics=None), dict(GroupId='nobody', Topics=None),
            dict(GroupId='a', Topics=[asked('t', 0)]), dict(GroupId='a', Topics=[])])['Groups']
        self.assertEqual([g['GroupId'] for g in r], ['b', 'nobody', 'a', 'a'])
        self.assertEqual([[p['CommittedOffset'] for t in g['Topics'] for p in t['Partitions']]
                          for g in r], [[2], [], [1], []])

    def test_offset_delete(self):
        def delete(group, *topics):
            r = self.c.call('OffsetDelete', 0, GroupId=group, Topics=[
                dict(Name=n, Partitions=[dict(PartitionIndex=i) for i in v]) for n, *v in topics])
            return r['ErrorCode'], [(t['Name'], [(p['PartitionIndex'], p['ErrorCode'])
                                                 for p in t['Partitions']]) for t in r['Topics']]
        self.assertEqual(delete('g', ('nope', 0)), (NOT_FOUND, []))
        self.assertEqual(delete('', ('t', 0)), (INVALID_GROUP, []))
        self.commit('g', [topic('t', part(0, 5), part(1, 6)), topic('u', part(0, 7))])
        self.assertEqual(delete('g', ('u', 0), ('t', 0, 9), ('nope', 0)),
                         (NONE, [('t', [(9, UNKNOWN_TOPIC), (0, NONE)]),
                                 ('nope', [(0, UNKNOWN_TOPIC)]), ('u', [(0, NONE)])]))
        self.assertEqual(delete('g', ('u', 0)), (NONE, [('u', [(0, NONE)])]))  # nothing is there
        self.assertEqual(delete('g', ('t', 0), ('u', 0), ('t', 0)),
                         (NONE, [('t', [(0, NONE)]), ('u', [(0, NONE)]), ('t', [(0, NONE)])]))
        self.assertEqual(delete('g', ('t', 0), ('nope',), ('t', 0, 9)),
                         (NONE, [('nope', []), ('t', [(9, UNKNOWN_TOPIC), (0, NONE), (0, NONE)])]))
        self.assertEqual([self.offset('g', 't', 0), self.offset('g', 't', 1)], [-1, 6])

    def test_delete_groups(self):
        for version in range(4):
            for g in ('a', 'b', ''):
                self.commit_one(g, 5)
            self.assertEqual(self.delete('a', 'nobody', 'a', 'b', version=version),
                             [('a', NONE), ('nobody', NOT_FOUND), ('b', NONE)])
            self.assertEqual(self.groups(), [''])
            self.assertEqual(self.offset('a'), -1)
            self.assertEqual(self.delete(''), [('', NONE)])

    def test_list_filters(self):
        self.commit_one('g', 5)
        for states in ([], ['Empty'], [' eMPTY\t'], ['Dead', 'Empty']):
            self.assertEqual(self.groups(StatesFilter=states), ['g'])
        for states in (['Stable'], ['Emp'], ['']):
            self.assertEqual(self.groups(StatesFilter=states), [])
        self.assertEqual(self.groups(TypesFilter=['CLASSIC', 'x']), ['g'])
        for types in (['consumer'], [' classic']):
            self.assertEqual(self.groups(TypesFilter=types), [])
        self.assertEqual(self.groups(StatesFilter=['Empty'], TypesFilter=['share']), [])
        for version in range(5):
            self.assertEqual(len(self.c.call('ListGroups', version)['Groups']), 1)

    def test_deleted_topics_take_their_offsets(self):
        self.commit('g', [topic('t', part(0, 5)), topic('u', part(0, 6))])
        self.delete_topic('t')
        self.poll(lambda: self.offset('g') == -1)
        self.assertEqual(self.offset('g', 'u'), 6)


class Retention(Offsets):
    settings = {'offsets.topic.num.partitions': 4, 'offsets.retention.check.interval.ms': 50}

    def test_explicit_retention(self):  # GR-08
        self.ready()
        self.assertEqual(self.commit_one('g', 5, version=4, RetentionTimeMs=1), NONE)
        self.assertEqual(self.commit_one('h', 5, version=4, RetentionTimeMs=-1), NONE)
        self.assertEqual(self.commit_one('i', 5, version=2, RetentionTimeMs=600000), NONE)
        self.poll(lambda: 'g' not in self.groups())
        self.assertEqual(self.offset('g'), -1)
        self.assertEqual(sorted(self.groups()), ['h', 'i'])
        self.restart(self.broker.kill)
        self.assertEqual(sorted(self.groups()), ['h', 'i'])


class Committer(threading.Thread):
    """Commits rising offsets for one group until the connection breaks."""

    def __init__(self, port, group):
        super().__init__(daemon=True)
        self.port, self.group = port, group
        self.sent = self.acked = -1
        self.error = None

    def run(self):
        try:
            with protocol.Client(self.port) as c:
                while True:
                    self.sent += 1
                    r = c.call('OffsetCommit', 9, GroupId=self.group, Topics=[
                        topic('t', part(0, self.sent, 'm' * 500), part(1, self.sent))],
                        GenerationIdOrMemberEpoch=-1)
                    errors = {p['ErrorCode'] for p in r['Topics'][0]['Partitions']}
                    if errors != {NONE}:
                        self.error = 'commit answered %s' % errors
                        return
                    self.acked = self.sent
        except (protocol.Closed, OSError):
            pass


class Crash(Offsets):
    def test_kill_under_load(self):
        rng = kafka.seeded()
        for n in range(3):
            self.ready()
            threads = [Committer(self.broker.port, 'round%d-%d' % (n, i)) for i in range(6)]
            for t in threads:
                t.start()
            target = rng.randint(1, 50)
            self.poll(lambda: all(t.acked >= target for t in threads))
            self.broker.kill()
            for t in threads:
                t.join(30)
                self.assertFalse(t.is_alive())
                self.assertIsNone(t.error)
            self.broker.start()
            self.open()
            self.ready()
            for t in threads:
                found = {self.offset(t.group, 't', i) for i in range(2)}
                self.assertEqual(len(found), 1, 'half a commit')
                self.assertTrue(t.acked <= found.pop() <= t.sent)
        self.restart(self.broker.stop)
        self.assertEqual(len(self.groups()), 3 * 6)


class Memory(Offsets):
    settings = {'offsets.topic.num.partitions': 4, 'dohle.memory.max.bytes': 16 * broker.MB}

    def test_full_memory_refuses_and_heals(self):
        self.ready()
        n, error = 0, NONE
        while error == NONE and n < 20000:
            error = self.commit('g%d' % n, [topic('t', part(0, n, 'm' * 4096),
                                                  part(1, n, 'm' * 4096))])[0][1][0][1]
            n += 1
        self.assertEqual(error, NOT_AVAILABLE)
        self.assertGreater(n, 100)
        self.assertEqual(self.offset('g1'), 1)
        for i in range(2, 50):
            self.assertEqual(self.delete('g%d' % i), [('g%d' % i, NONE)])
        self.assertEqual(self.commit_one('again', 5), NONE)
        self.check_memory()


if __name__ == '__main__':
    broker.main()
