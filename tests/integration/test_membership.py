"""Members of classic groups, request by request (groups.md 7, rows 4, 5, 8 to 14 and 16): joining,
syncing, leaving, static members, errors in Kafka's order, what a restart keeps. What a request waits
for is seen in DescribeGroups, never waited out."""
import struct
import time

import broker
import protocol

NONE, TOO_LARGE, NOT_AVAILABLE, NOT_READY = 0, 12, 15, (14, 15, 16)
ILLEGAL_GENERATION, INCONSISTENT, INVALID_GROUP, UNKNOWN_MEMBER = 22, 23, 24, 25
INVALID_SESSION, REBALANCING, NON_EMPTY, NOT_FOUND = 26, 27, 68, 69
ID_REQUIRED, GROUP_FULL, FENCED = 79, 81, 82
HIGHEST = {'JoinGroup': 9, 'SyncGroup': 5, 'Heartbeat': 4, 'LeaveGroup': 5, 'DescribeGroups': 6}


def subscription(*topics):
    """A consumer's, version 0."""
    out = struct.pack('>hi', 0, len(topics))
    for t in topics:
        out += struct.pack('>h', len(t)) + t.encode()
    return out + struct.pack('>i', -1)


class Member:
    """A client of one group with a connection of its own."""

    def __init__(self, test, group, instance=None, version=9, client_id='client', session_ms=30000,
                 rebalance_ms=60000, protocols=(('range', b'm'),)):
        self.test, self.group, self.instance, self.version = test, group, instance, version
        self.session_ms, self.rebalance_ms, self.protocols = session_ms, rebalance_ms, protocols
        self.c = protocol.Client(test.broker.port, client_id)
        test.addCleanup(self.c.close)
        self.id, self.generation, self.joined, self.asked = '', -1, None, {}

    def send_join(self, version=None, **values):
        self.asked = values
        version = self.version if version is None else version
        fields = dict(GroupId=self.group, MemberId=self.id, SessionTimeoutMs=self.session_ms,
                      ProtocolType='consumer',
                      Protocols=[dict(Name=n, Metadata=m) for n, m in self.protocols])
        if version >= 1:
            fields['RebalanceTimeoutMs'] = self.rebalance_ms
        if version >= 5:
            fields['GroupInstanceId'] = self.instance
        fields.update(values)
        self.c.send('JoinGroup', version, **fields)
        return self

    def receive_join(self):
        """The answer; an id that is required is taken, and asked with."""
        r = self.c.receive()
        if r['ErrorCode'] == ID_REQUIRED:
            self.id = r['MemberId']
            return self.send_join(**self.asked).receive_join()
        if r['ErrorCode'] == NONE:
            self.id, self.generation = r['MemberId'], r['GenerationId']
        self.joined = r
        return r

    def join(self, version=None, **values):
        return self.send_join(version, **values).receive_join()

    def begin_join(self, **values):
        """A Join that waits: it returns when it is parked."""
        self.send_join(**values)
        if self.id == '' and self.instance is None and self.version >= 4:
            self.id = self.c.receive()['MemberId']
            self.send_join(**values)
        self.test.until(self.group, 'PreparingRebalance')
        return self

    @property
    def leads(self):
        return self.joined['Leader'] == self.id

    def send_sync(self, assignments=(), version=None, **values):
        version = HIGHEST['SyncGroup'] if version is None else version
        fields = dict(GroupId=self.group, MemberId=self.id, GenerationId=self.generation,
                      Assignments=[dict(MemberId=m, Assignment=a) for m, a in assignments])
        if version >= 3:
            fields['GroupInstanceId'] = self.instance
        if version >= 5:
            fields.update(ProtocolType='consumer', ProtocolName=self.protocols[0][0])
        fields.update(values)
        self.c.send('SyncGroup', version, **fields)
        return self

    def sync(self, assignments=(), version=None, **values):
        return self.send_sync(assignments, version, **values).c.receive()

    def beat(self, **values):
        fields = dict(GroupId=self.group, MemberId=self.id, GenerationId=self.generation,
                      GroupInstanceId=self.instance)
        fields.update(values)
        return self.c.call('Heartbeat', 4, **fields)['ErrorCode']

    def commit(self, topic='t', generation=None, member=None):
        r = self.c.call('OffsetCommit', 9, GroupId=self.group,
                        MemberId=self.id if member is None else member,
                        GenerationIdOrMemberEpoch=self.generation if generation is None
                        else generation, GroupInstanceId=self.instance,
                        Topics=[dict(Name=topic, Partitions=[
                            dict(PartitionIndex=0, CommittedOffset=5, CommittedMetadata='')])])
        return r['Topics'][0]['Partitions'][0]['ErrorCode']


class MembershipTest(broker.BrokerTest):
    settings = {'offsets.topic.num.partitions': 4, 'offsets.topic.replication.factor': 1,
                'group.initial.rebalance.delay.ms': 0, 'group.min.session.timeout.ms': 100}

    def setUp(self):
        super().setUp()
        self.admin = protocol.Client(self.broker.port)
        self.addCleanup(lambda: self.admin.close())
        with self.broker.connect() as c:
            c.create_topic('t')
        self.wait_for_coordinator()

    def wait_for_coordinator(self):
        """Its topic is made, its partitions are loaded."""
        def ready():
            found = self.admin.call('FindCoordinator', 4, KeyType=0, CoordinatorKeys=['g'])
            listed = self.admin.call('ListGroups', 5)
            left = self.leave('g', [('x', None)])
            return not {found['Coordinators'][0]['ErrorCode'], listed['ErrorCode'],
                        left['ErrorCode']} & set(NOT_READY)
        self.poll(ready)

    def describe(self, group, version=6, **values):
        return self.admin.call('DescribeGroups', version, Groups=[group], **values)['Groups'][0]

    def until(self, group, state):
        self.poll(lambda: self.describe(group)['GroupState'] == state)

    def leave(self, group, members, version=5):
        if version <= 2:
            return self.admin.call('LeaveGroup', version, GroupId=group, MemberId=members[0][0])
        return self.admin.call('LeaveGroup', version, GroupId=group, Members=[
            dict(MemberId=m, GroupInstanceId=i) for m, i in members])

    def pair(self, group, **options):
        """Two static members "a", who leads, and "b", Stable, with assignments A and B."""
        a = Member(self, group, instance='a', **options)
        b = Member(self, group, instance='b', **options)
        a.join()
        b.begin_join()
        a.join()
        b.receive_join()
        self.assertTrue(a.leads)
        b.send_sync()
        self.assertEqual(a.sync([(a.id, b'A'), (b.id, b'B')])['Assignment'], b'A')
        self.assertEqual(b.c.receive()['Assignment'], b'B')
        return a, b

    # ---------------------------------------------------------------- JoinGroup

    def test_errors_of_joins(self):
        m = Member(self, 'g')
        for version in range(10):
            for values, error, member_id in (
                    (dict(GroupId='', SessionTimeoutMs=1, MemberId='x'), INVALID_GROUP, 'x'),
                    (dict(SessionTimeoutMs=99, MemberId='x'), INVALID_SESSION, 'x'),
                    (dict(SessionTimeoutMs=1800001, MemberId='x'), INVALID_SESSION, 'x'),
                    (dict(GroupId='unknown', MemberId='x'), UNKNOWN_MEMBER, 'x'),
                    (dict(Protocols=[]), INCONSISTENT, ''),
                    (dict(ProtocolType=''), INCONSISTENT, ''),
                    (dict(MemberId='x'), UNKNOWN_MEMBER, 'x')):
                r = m.join(version, **values)
                self.assertEqual(r['ErrorCode'], error, (version, values))
                self.assertEqual(r['GenerationId'], -1)
                self.assertEqual(r['MemberId'], member_id)
                self.assertEqual((r['Leader'], r['Members']), ('', []))
                self.assertEqual(r['ProtocolName'], None if version >= 7 else '')
                self.assertIsNone(r.get('ProtocolType'))

    def test_refused_join_makes_the_group(self):  # row 8
        r = Member(self, 'new').join(Protocols=[])
        self.assertEqual(r['ErrorCode'], INCONSISTENT)
        self.assertIn(('new', 'Empty', 'classic', ''), [
            (g['GroupId'], g['GroupState'], g['GroupType'], g['ProtocolType'])
            for g in self.admin.call('ListGroups', 5)['Groups']])

    def test_id_required(self):  # row 9
        m = Member(self, 'g')
        r = m.send_join().c.receive()
        self.assertEqual(r['ErrorCode'], ID_REQUIRED)
        self.assertTrue(r['MemberId'].startswith('client-'))
        self.assertEqual(len(r['MemberId']), len('client-') + 36)
        m.id = r['MemberId']
        self.assertEqual(m.beat(), UNKNOWN_MEMBER)
        self.assertEqual(self.describe('g')['Members'], [])
        again = Member(self, 'g').send_join().c.receive()
        self.assertEqual(again['ErrorCode'], ID_REQUIRED)
        self.assertNotEqual(again['MemberId'], m.id)
        self.assertEqual(m.join()['ErrorCode'], NONE)
        self.assertEqual(Member(self, 'g', client_id=None).send_join().c.receive()['MemberId'][0],
                         '-')

    def test_old_versions_join_at_once(self):
        for version in range(4):
            m = Member(self, 'v%d' % version, version=version)
            r = m.join()
            self.assertEqual((r['ErrorCode'], r['GenerationId'], r['Leader']), (NONE, 1, m.id))
            self.assertEqual(r['Members'][0]['Metadata'], b'm')
            self.assertEqual(m.sync([(m.id, b'x')], version=min(version, 2))['Assignment'], b'x')

    def test_pending_id_blocks_a_rebalance(self):  # row 10
        m = Member(self, 'g')
        m.join()
        m.sync()
        Member(self, 'g', session_ms=2000).send_join().c.receive()
        begun = time.monotonic()
        m.join()
        self.assertGreater(time.monotonic() - begun, 1.7)
        self.assertEqual(m.generation, 2)

    def test_pending_id_blocks_no_longer_than_the_rebalance_timeout(self):  # GR-02
        m = Member(self, 'g', rebalance_ms=1000)
        m.join()
        m.sync()
        for _ in range(2):
            Member(self, 'g', session_ms=600000, rebalance_ms=1000).send_join().c.receive()
        begun = time.monotonic()
        m.join()
        self.assertLess(time.monotonic() - begun, 20)
        self.assertEqual([d['MemberId'] for d in self.describe('g')['Members']], [m.id])

    def test_two_members_converge(self):  # GR-05
        a = Member(self, 'g', protocols=(('range', b''), ('rr', b'1')))
        b = Member(self, 'g', protocols=(('range', b'bb'),))
        a.join()
        self.assertEqual((a.generation, a.leads, len(a.joined['Members'])), (1, True, 1))
        a.sync([(a.id, b'all')])
        b.begin_join()
        self.assertEqual(a.beat(), REBALANCING)
        a.join()
        b.receive_join()
        self.assertEqual((a.generation, b.generation), (2, 2))
        self.assertEqual(b.joined['Members'], [])
        self.assertEqual(b.joined['Leader'], a.id)
        self.assertEqual(sorted((m['MemberId'], m['Metadata']) for m in a.joined['Members']),
                         sorted([(a.id, b''), (b.id, b'bb')]))
        self.assertEqual(a.joined['ProtocolName'], 'range')
        b.send_sync()  # before the leader's: it waits
        self.until('g', 'CompletingRebalance')
        self.assertTrue(b.c.waits())
        self.assertEqual(a.sync([('stranger', b's'), (a.id, b'\0\1')])['Assignment'], b'\0\1')
        r = b.c.receive()
        self.assertEqual((r['ErrorCode'], r['Assignment']), (NONE, b''))
        self.assertEqual((r['ProtocolType'], r['ProtocolName']), ('consumer', 'range'))
        for m in (a, b):
            self.assertEqual(m.beat(), NONE)
            self.assertEqual(m.beat(GenerationId=1), ILLEGAL_GENERATION)
        self.assertEqual(b.join()['GenerationId'], 2)  # nothing changed
        self.assertEqual(a.sync([(a.id, b'new')])['Assignment'], b'\0\1')

    def test_full_group(self):
        self.broker.settings['group.max.size'] = 1
        self.broker.stop()
        self.broker.start()
        self.admin.close()
        self.admin = protocol.Client(self.broker.port)
        self.wait_for_coordinator()
        Member(self, 'g').join()
        for values in ({}, dict(MemberId='x'), dict(GroupInstanceId='i'), dict(Protocols=[])):
            r = Member(self, 'g').send_join(**values).c.receive()
            self.assertEqual((r['ErrorCode'], r['MemberId']), (GROUP_FULL, ''))

    def test_client_that_goes_while_parked(self):
        """The member stays until its session ends; it is in the next generation, which goes on."""
        a = Member(self, 'g')
        b = Member(self, 'g', session_ms=1000)
        a.join()
        a.sync()
        b.begin_join()
        b.c.close()
        a.join()
        self.assertEqual((a.generation, len(a.joined['Members'])), (2, 2))
        a.sync()
        self.poll(lambda: a.beat() == REBALANCING)
        self.assertEqual(len(self.describe('g')['Members']), 1)
        self.assertEqual(len(a.join()['Members']), 1)

    # ---------------------------------------------------------------- static members

    def test_static_leader_comes_back(self):  # rows 11 and 12, GR-03
        a, b = self.pair('g')
        again = Member(self, 'g', instance='a', protocols=(('range', b'other'),))
        r = again.join()
        self.assertEqual((r['GenerationId'], r['SkipAssignment'], r['Leader']),
                         (a.generation, True, again.id))
        self.assertNotEqual(again.id, a.id)
        self.assertEqual(sorted((m['MemberId'], m['GroupInstanceId'], m['Metadata'])
                                for m in r['Members']),
                         sorted([(again.id, 'a', b'other'), (b.id, 'b', b'm')]))
        self.assertEqual(a.beat(), FENCED)
        self.assertEqual(a.beat(GroupInstanceId=None), UNKNOWN_MEMBER)
        self.assertEqual(a.sync()['ErrorCode'], FENCED)
        self.assertEqual(a.join()['ErrorCode'], FENCED)
        self.assertEqual(a.commit(), FENCED)
        self.assertEqual(again.sync()['Assignment'], b'A')
        eight = Member(self, 'g', instance='a', version=8)
        r = eight.join()
        self.assertEqual((r['Leader'], r['Members'], r['GenerationId']),
                         (again.id, [], a.generation))
        self.assertEqual(b.beat(), NONE)
        self.assertEqual(self.describe('g')['GroupState'], 'Stable')

    def test_static_member_comes_back_while_parked(self):  # GR-03
        a, b = self.pair('g')
        a.begin_join()
        again = Member(self, 'g', instance='a').send_join()
        r = a.c.receive()
        self.assertEqual((r['ErrorCode'], r['MemberId']), (FENCED, a.id))
        b.join()
        again.receive_join()
        self.assertEqual(again.generation, a.generation + 1)
        b.send_sync()
        self.until('g', 'CompletingRebalance')
        last = Member(self, 'g', instance='b').send_join()
        self.assertEqual(b.c.receive()['ErrorCode'], FENCED)  # its Sync
        again.join()
        self.assertEqual(last.receive_join()['GenerationId'], again.generation)

    def test_static_member_keeps_its_place_until_its_session_ends(self):
        a, b = self.pair('g', session_ms=1500)
        b.c.close()
        self.assertEqual(len(self.describe('g')['Members']), 2)
        self.poll(lambda: a.beat() == REBALANCING)
        self.assertEqual([m['GroupInstanceId'] for m in self.describe('g')['Members']], ['a'])

    # ---------------------------------------------------------------- Sync, Heartbeat, Leave

    def test_errors_of_syncs(self):
        m = Member(self, 'g')
        self.assertEqual(m.sync(GroupId='unknown', ProtocolName=None)['ErrorCode'],
                         INCONSISTENT)  # row 13
        self.assertEqual(m.sync(GroupId='', ProtocolType=None)['ErrorCode'], INCONSISTENT)
        self.assertEqual(m.sync(GroupId='')['ErrorCode'], INVALID_GROUP)
        self.assertEqual(m.sync(GroupId='unknown')['ErrorCode'], UNKNOWN_MEMBER)
        m.join()
        self.assertEqual(m.sync(MemberId='x', GenerationId=9)['ErrorCode'], UNKNOWN_MEMBER)
        self.assertEqual(m.sync(GroupInstanceId='i')['ErrorCode'], UNKNOWN_MEMBER)
        self.assertEqual(m.sync(GenerationId=9, ProtocolName='x')['ErrorCode'],
                         ILLEGAL_GENERATION)
        self.assertEqual(m.sync(ProtocolName='x')['ErrorCode'], INCONSISTENT)
        self.assertEqual(m.sync(ProtocolType='x')['ErrorCode'], INCONSISTENT)
        self.assertEqual(m.sync()['ErrorCode'], NONE)
        n = Member(self, 'g').begin_join()
        self.assertEqual(m.sync()['ErrorCode'], REBALANCING)
        m.join()
        n.receive_join()
        n.send_sync()
        self.until('g', 'CompletingRebalance')
        Member(self, 'g').begin_join()
        self.assertEqual(n.c.receive()['ErrorCode'], REBALANCING)

    def test_errors_of_heartbeats(self):
        m = Member(self, 'g')
        self.assertEqual(m.beat(GroupId=''), INVALID_GROUP)
        self.assertEqual(m.beat(GroupId='unknown'), UNKNOWN_MEMBER)
        m.join()
        for version in range(5):
            values = dict(GroupInstanceId=None) if version >= 3 else {}
            r = m.c.call('Heartbeat', version, GroupId='g', MemberId=m.id, GenerationId=1, **values)
            self.assertEqual(r['ErrorCode'], NONE)
            r = m.c.call('Heartbeat', version, GroupId='g', MemberId=m.id, GenerationId=2, **values)
            self.assertEqual(r['ErrorCode'], ILLEGAL_GENERATION)

    def test_leave(self):  # row 14
        r = self.leave('unknown', [('x', 'i'), ('', None)], 3)
        self.assertEqual((r['ErrorCode'], r['Members']),
                         (NONE, [dict(MemberId='x', GroupInstanceId='i', ErrorCode=UNKNOWN_MEMBER),
                                 dict(MemberId='', GroupInstanceId=None,
                                      ErrorCode=UNKNOWN_MEMBER)]))
        for version in range(3):
            self.assertEqual(self.leave('unknown', [('x', None)], version)['ErrorCode'],
                             UNKNOWN_MEMBER)
        for version in range(6):
            self.assertEqual(self.leave('', [('x', None)], version)['ErrorCode'], INVALID_GROUP)
        a, b = self.pair('g')
        r = self.leave('g', [('', 'a'), ('', 'a'), ('x', 'b'), (b.id, None)])
        self.assertEqual([m['ErrorCode'] for m in r['Members']],
                         [NONE, UNKNOWN_MEMBER, FENCED, NONE])
        d = self.describe('g')
        self.assertEqual((d['GroupState'], d['ProtocolType'], d['Members']),
                         ('Empty', 'consumer', []))
        self.assertEqual(a.beat(), UNKNOWN_MEMBER)

    def test_leave_of_a_parked_member(self):
        a, b = self.pair('g')
        a.begin_join()
        self.leave('g', [(a.id, 'a')])
        r = a.c.receive()
        self.assertEqual((r['ErrorCode'], r['MemberId']), (UNKNOWN_MEMBER, ''))
        self.assertTrue(b.join()['Leader'] == b.id)

    # ---------------------------------------------------------------- with offsets

    def test_commits_of_members(self):  # rows 4 and 5
        m = Member(self, 'g')
        m.join()
        self.assertEqual(m.commit(), REBALANCING)  # Completing
        m.sync()
        self.assertEqual(m.commit(), NONE)
        self.assertEqual(m.commit(generation=-1, member=''), UNKNOWN_MEMBER)
        self.assertEqual(m.commit(generation=-1), ILLEGAL_GENERATION)
        self.assertEqual(m.commit(generation=-1, member='zz'), UNKNOWN_MEMBER)
        self.assertEqual(m.commit(topic='nope', generation=7), 3)
        Member(self, 'g').begin_join()
        self.assertEqual(m.commit(), NONE)  # Preparing

    def test_offset_delete_of_subscribed_topics(self):  # row 16
        with self.broker.connect() as c:
            c.create_topic('free')

        def delete(group, *topics):
            r = self.admin.call('OffsetDelete', 0, GroupId=group, Topics=[
                dict(Name=t, Partitions=[dict(PartitionIndex=0)]) for t in topics])
            return r['ErrorCode'], [t['Partitions'][0]['ErrorCode'] for t in r['Topics']]
        m = Member(self, 'g', protocols=(('range', subscription('t')),))
        m.join()
        m.sync()
        self.assertEqual((m.commit(), m.commit('free')), (NONE, NONE))
        self.assertEqual(delete('g', 't', 'free'), (NONE, [86, NONE]))
        other = Member(self, 'connect')
        other.join(ProtocolType='connect')
        self.assertEqual(delete('connect', 't')[0], 68)

    def test_delete_of_a_group_with_members(self):
        def delete(*groups):
            r = self.admin.call('DeleteGroups', 2, GroupsNames=groups)
            return {g['GroupId']: g['ErrorCode'] for g in r['Results']}
        m = Member(self, 'g')
        m.join()
        m.sync()
        self.assertEqual(m.commit(), NONE)
        self.assertEqual(delete('g', 'none'), {'g': NON_EMPTY, 'none': NOT_FOUND})
        self.assertEqual((m.beat(), m.commit()), (NONE, NONE))
        self.leave('g', [(m.id, None)])
        self.assertEqual(delete('g'), {'g': NONE})
        self.assertEqual(self.describe('g')['GroupState'], 'Dead')
        self.assertEqual(m.beat(), UNKNOWN_MEMBER)

    # ---------------------------------------------------------------- DescribeGroups, restarts

    def test_describe(self):
        a, b = self.pair('g')
        Member(self, 'g').send_join().c.receive()  # an id that is not used is not shown
        for version in range(7):
            values = dict(IncludeAuthorizedOperations=True) if version >= 3 else {}
            d = self.describe('g', version, **values)
            self.assertEqual((d['ErrorCode'], d['GroupState'], d['ProtocolType'],
                              d['ProtocolData']), (NONE, 'Stable', 'consumer', 'range'))
            self.assertEqual(sorted((m['MemberId'], m['ClientId'], m['ClientHost'],
                                     m['MemberMetadata'], m['MemberAssignment'])
                                    for m in d['Members']),
                             sorted([(a.id, 'client', '/127.0.0.1', b'm', b'A'),
                                     (b.id, 'client', '/127.0.0.1', b'm', b'B')]))
            self.assertEqual(d.get('AuthorizedOperations', 3400), 3400)
        self.assertEqual(self.describe('g')['AuthorizedOperations'], -(1 << 31))
        for version in range(6):
            d = self.describe('none', version)
            self.assertEqual((d['ErrorCode'], d['GroupState']), (NONE, 'Dead'))
        d = self.describe('none')
        self.assertEqual((d['ErrorCode'], d['GroupState'], d['ErrorMessage']),
                         (NOT_FOUND, 'Dead', 'Group none not found.'))
        a.begin_join()
        d = self.describe('g')
        self.assertEqual((d['GroupState'], d['ProtocolData']), ('PreparingRebalance', ''))
        self.assertEqual({m['MemberMetadata'] for m in d['Members']}, {b''})
        self.assertEqual({m['MemberAssignment'] for m in d['Members']}, {b'A', b'B'})

    def test_restart_keeps_a_stable_group(self):
        a, b = self.pair('g')
        self.leave('gone', [('x', None)])
        self.broker.kill()
        self.broker.start()
        self.admin.close()
        self.admin = protocol.Client(self.broker.port)
        self.wait_for_coordinator()
        for m in (a, b):
            m.c.close()
            m.c = protocol.Client(self.broker.port)
            self.addCleanup(m.c.close)
            self.assertEqual(m.beat(), NONE)
        self.assertEqual(b.sync()['Assignment'], b'B')
        self.assertEqual(b.commit(), NONE)
        self.assertEqual(self.describe('g')['GroupState'], 'Stable')
        a.begin_join()
        b.join()
        self.assertEqual(a.receive_join()['GenerationId'], a.generation)
        self.assertEqual((a.generation, a.leads), (b.generation, True))

    def test_stop_with_parked_members(self):
        """tearDown stops it: a Join and a Sync wait."""
        a = Member(self, 'g')
        a.join()
        a.sync()
        Member(self, 'g').begin_join()
        c, d = Member(self, 'h'), Member(self, 'h')
        c.join()
        c.sync()
        d.begin_join()
        c.join()
        d.receive_join()
        d.send_sync()
        self.until('h', 'CompletingRebalance')


class Limits(MembershipTest):
    """What a group may hold, with memory for little."""
    settings = {**MembershipTest.settings, 'dohle.memory.max.bytes': 16 * broker.MB,
                'offset.metadata.max.bytes': 10, 'group.max.size': 3,
                'group.max.session.timeout.ms': 60000}

    def test_of_the_configuration(self):
        m = Member(self, 'g')
        for session_ms in (99, 60001):
            self.assertEqual(m.join(SessionTimeoutMs=session_ms)['ErrorCode'], INVALID_SESSION)
        m.join()
        m.sync()
        others = [Member(self, 'g').begin_join() for _ in range(2)]
        full = Member(self, 'g').send_join().c.receive()  # two are parked, and a third may be
        self.assertEqual(full['ErrorCode'], ID_REQUIRED)
        m.join()
        for o in others:
            self.assertEqual(o.receive_join()['ErrorCode'], NONE)
        self.assertEqual(Member(self, 'g').send_join().c.receive()['ErrorCode'], GROUP_FULL)
        r = Member(self, 'g').send_join(MemberId=full['MemberId']).c.receive()
        self.assertEqual((r['ErrorCode'], r['MemberId']), (GROUP_FULL, ''))
        m.sync()
        r = self.admin.call('OffsetCommit', 9, GroupId='g', MemberId=m.id,
                            GenerationIdOrMemberEpoch=m.generation, Topics=[
                                dict(Name='t', Partitions=[
                                    dict(PartitionIndex=0, CommittedOffset=1,
                                         CommittedMetadata='x' * n)]) for n in (11, 10)])
        self.assertEqual([p['ErrorCode'] for t in r['Topics'] for p in t['Partitions']],
                         [TOO_LARGE, NONE])

    def test_flood_of_pending_ids(self):
        """They take the memory that groups may have, and give it back; who is a member stays."""
        m = Member(self, 'g')
        m.join()
        m.sync()
        flood = Member(self, 'flood', client_id='x' * 30000, session_ms=5000)
        asked, errors = 0, set()
        while errors <= {ID_REQUIRED} and asked < 20000:
            for _ in range(50):
                flood.send_join()
            errors = {flood.c.receive()['ErrorCode'] for _ in range(50)}
            asked += 50
            self.assertEqual(m.beat(), NONE)
        self.assertEqual(errors - {ID_REQUIRED}, {NOT_AVAILABLE})
        self.assertEqual(self.describe('flood')['Members'], [])
        self.poll(lambda: flood.send_join().c.receive()['ErrorCode'] == ID_REQUIRED)
        self.poll(lambda: Member(self, 'h').join()['ErrorCode'] == NONE)
        self.assertEqual(m.beat(), NONE)
        print('%d ids were asked for' % asked)
        self.check_memory()


if __name__ == '__main__':
    broker.main()
