"""Groups: membership, offsets, administration (classic protocol)."""
import uuid

from both import Each


def subscription(*topics):
    out = b'\0\0' + len(topics).to_bytes(4, 'big')
    for t in topics:
        out += len(t).to_bytes(2, 'big') + t.encode()
    return out + b'\xff\xff\xff\xff'


RANGE = [{'Name': 'range', 'Metadata': subscription('gr-t')}]


class Member:
    """A member of a group on both brokers, with a connection of its own."""

    def __init__(self, c, group, name, v=9, protocols=None, instance=None, session_ms=10_000,
                 rebalance_ms=10_000, kind='consumer'):
        self.c, self.group, self.name, self.v = c, group, name, v
        self.id = Each(['', ''])
        self.generation = Each([-1, -1])
        self.fields = {'GroupId': group, 'SessionTimeoutMs': session_ms, 'RebalanceTimeoutMs': rebalance_ms,
                       'ProtocolType': kind, 'Protocols': RANGE if protocols is None else protocols}
        if instance is not None and v >= 5:
            self.fields['GroupInstanceId'] = instance
        self.instance = instance

    def begin_join(self, **f):
        return self.c.begin('JoinGroup', self.v, {**self.fields, 'MemberId': self.id, **f}, on=self.name)

    def end_join(self, asked, note='', compare=True):
        self.c.note = f'{note} v{self.v}'
        answers = self.c.end(asked, compare=False)
        for side, a in zip(self.c.sides, answers):
            if isinstance(a, dict) and a.get('MemberId'):
                side.words.append((a['MemberId'], f'<member {self.name}>'))
        if compare:
            self.c.compare('JoinGroup', self.v, answers)
        if all(isinstance(a, dict) for a in answers):
            self.id = Each([a['MemberId'] for a in answers])
            self.generation = Each([a['GenerationId'] for a in answers])
        return answers

    def join(self, note='', **f):
        """With the second request that a new dynamic member of v4 and later needs."""
        answers = self.end_join(self.begin_join(**f), note)
        if all(isinstance(a, dict) and a['ErrorCode'] == 79 for a in answers):
            answers = self.end_join(self.begin_join(**f), note + ', with its id')
        return answers

    def sync(self, assignments=(), note='', v=None, **f):
        v = min(self.v, 5) if v is None else v
        fields = {'GroupId': self.group, 'GenerationId': self.generation, 'MemberId': self.id,
                  'ProtocolType': 'consumer', 'ProtocolName': 'range',
                  'Assignments': [{'MemberId': m.id, 'Assignment': a} for m, a in assignments], **f}
        if self.instance is not None and v >= 3:
            fields['GroupInstanceId'] = self.instance
        return self.c.ask('SyncGroup', v, fields, on=self.name, note=note)

    def heartbeat(self, note='', v=4, **f):
        return self.c.ask('Heartbeat', v, {'GroupId': self.group, 'GenerationId': self.generation,
                                           'MemberId': self.id, **f}, on=self.name, note=note)

    def stable(self):
        self.join('made stable')
        self.sync([(self, b'\0\0\0\0\0\0\0\0\0\0')], 'made stable')
        return self


def finding(c):
    for v in range(7):
        one = (lambda k, t=0: {'Key': k, 'KeyType': t}) if v < 4 else \
            (lambda k, t=0: {'CoordinatorKeys': [k], 'KeyType': t})
        c.poll('FindCoordinator', v, one('gr-any'), lambda a: (a['Coordinators'][0] if 'Coordinators' in a and
                                                               a['Coordinators'] else a)['ErrorCode'] == 0)
        c.ask('FindCoordinator', v, one('gr-any'), note='a group')
        c.ask('FindCoordinator', v, one(''), note='empty')
        c.ask('FindCoordinator', v, one('x', 9), note='unknown type')
        c.ask('FindCoordinator', v, one('x', 2), note='share')
        if v >= 4:
            c.ask('FindCoordinator', v, {'CoordinatorKeys': []}, note='none')
            c.ask('FindCoordinator', v, {'CoordinatorKeys': ['a', 'b', 'a']}, note='three')
    c.ask('Metadata', 12, {'Topics': [{'Name': '__consumer_offsets'}]}, note='the topic of offsets')
    # every partition of it is loaded
    c.poll('OffsetFetch', 8, {'Groups': [{'GroupId': f'gr-{i}', 'Topics': None} for i in range(50)]},
           lambda a: all(g['ErrorCode'] == 0 for g in a['Groups']))


def joining(c):
    c.poll('ListGroups', 5, {}, lambda a: a['ErrorCode'] == 0)  # no coordinator is loading
    for v in range(10):
        g = f'gr-join-{v}'
        m = Member(c, g, f'm{v}', v)
        if v == 9:
            m.end_join(m.begin_join(Reason='because'), 'first of two')
        m.join('alone')
        m.sync([(m, b'assigned')], 'leader')
        m.sync([], 'again')
        m.heartbeat('stable', min(v, 4))
        m.heartbeat('wrong generation', min(v, 4), GenerationId=99)
        m.heartbeat('wrong member', min(v, 4), MemberId='nobody')
        c.ask('DescribeGroups', 5, {'Groups': [g]}, note='stable')
        m.end_join(m.begin_join(), 'leader joins again')
        m.sync([(m, b'other')], 'after it')
        ask = lambda note, **f: c.ask('JoinGroup', v, {**m.fields, **f}, on='x', note=f'{note} v{v}')  # noqa: E731,B023
        ask('empty group', GroupId='')
        ask('session too short', SessionTimeoutMs=1)
        ask('session too long', SessionTimeoutMs=2_000_000)
        ask('unknown member', MemberId='nobody')
        ask('unknown member, unknown group', MemberId='nobody', GroupId=f'{g}-none')
        ask('other type', ProtocolType='other')
        ask('other protocol', Protocols=[{'Name': 'sticky', 'Metadata': b''}])
        ask('no protocols', Protocols=[])
        ask('no protocols, new group', Protocols=[], GroupId=f'{g}-new')
        ask('no type, new group', ProtocolType='', GroupId=f'{g}-new2')
        c.ask_until_alike('ListGroups', 5, {}, note='after the empty ones')
        if v < 5:
            c.ask('Heartbeat', v, {'GroupId': '', 'MemberId': m.id}, note='no group')
            c.ask('Heartbeat', v, {'GroupId': f'{g}-none', 'MemberId': m.id}, note='unknown group')
        if v < 6:
            c.ask('SyncGroup', v, {'GroupId': '', 'MemberId': m.id, 'ProtocolType': 'consumer',
                                   'ProtocolName': 'range'}, note='no group')
            c.ask('SyncGroup', v, {'GroupId': f'{g}-none', 'MemberId': m.id, 'ProtocolType': 'consumer',
                                   'ProtocolName': 'range'}, note='unknown group')
            c.ask('SyncGroup', v, {'GroupId': f'{g}-none', 'MemberId': m.id}, note='unknown group, no protocol')
        leave = {'MemberId': m.id} if v < 3 else {'Members': [{'MemberId': m.id}]}
        c.ask('LeaveGroup', min(v, 5), {'GroupId': g, **leave}, note='leaves')
        c.ask('LeaveGroup', min(v, 5), {'GroupId': g, **leave}, note='left already')
        c.ask('LeaveGroup', min(v, 5), {'GroupId': f'{g}-none', **leave}, note='unknown group')
        c.ask('LeaveGroup', min(v, 5), {'GroupId': '', **leave}, note='no group')
        c.ask('DescribeGroups', 5, {'Groups': [g]}, note='empty')


def two_members(c):
    for v in (2, 5, 9):
        g = f'gr-two-{v}'
        a, b = Member(c, g, f'a{v}', v).stable(), Member(c, g, f'b{v}', v)
        if v >= 4:
            b.end_join(b.begin_join(), 'second asks')
            a.heartbeat('one is pending')
        joining_b = b.begin_join()
        c.poll('DescribeGroups', 5, {'Groups': [g]}, lambda d: d['Groups'][0]['GroupState'] == 'PreparingRebalance')
        c.ask('DescribeGroups', 5, {'Groups': [g]}, note='preparing')
        a.heartbeat('rebalance', min(v, 4))
        c.ask('OffsetCommit', 8, {'GroupId': g, 'GenerationIdOrMemberEpoch': a.generation, 'MemberId': a.id,
                                  'Topics': [{'Name': 'gr-t', 'Partitions': [{'PartitionIndex': 0,
                                                                              'CommittedOffset': 5}]}]}, note='preparing')
        a.sync([], 'preparing')
        a.end_join(a.begin_join(), 'leader of two')
        b.end_join(joining_b, 'second of two')
        b.heartbeat('completing', min(v, 4))
        c.ask('OffsetCommit', 8, {'GroupId': g, 'GenerationIdOrMemberEpoch': a.generation, 'MemberId': a.id,
                                  'Topics': [{'Name': 'gr-t', 'Partitions': [{'PartitionIndex': 0,
                                                                              'CommittedOffset': 5}]}]}, note='completing')
        waiting = c.begin('SyncGroup', min(v, 5), {'GroupId': g, 'GenerationId': b.generation, 'MemberId': b.id,
                                                   'ProtocolType': 'consumer', 'ProtocolName': 'range'}, on=b.name)
        a.sync([(a, b'for a'), (b, b'for b')], 'leader')
        c.note = 'follower'
        c.end(waiting)
        b.end_join(b.begin_join(), 'follower joins unchanged')
        b.sync([], 'stored assignment')
        b.sync([], 'wrong type', ProtocolType='x', v=5)
        b.sync([], 'wrong name', ProtocolName='x', v=5)
        b.sync([], 'null name', ProtocolName=None, v=5)
        b.sync([], 'old generation', GenerationId=0)
        b.sync([], 'unknown member', MemberId='nobody')
        c.ask('DescribeGroups', 5, {'Groups': [g], 'IncludeAuthorizedOperations': True}, note='two')
        c.ask('DeleteGroups', 2, {'GroupsNames': [g]}, note='not empty')
        c.ask('OffsetDelete', 0, {'GroupId': g, 'Topics': [{'Name': 'gr-t', 'Partitions': [{'PartitionIndex': 0}]},
                                                           {'Name': 'gr-u', 'Partitions': [{'PartitionIndex': 0}]}]},
              note='subscribed and not')
        c.ask('LeaveGroup', 3, {'GroupId': g, 'Members': [{'MemberId': 'nobody'}, {'MemberId': a.id}, {'MemberId': ''},
                                                          {'MemberId': b.id}]}, note='several leave')
        c.ask('DescribeGroups', 5, {'Groups': [g]}, note='all left')


def full(c):
    """group.max.size is 3."""
    for v in (0, 4, 9):
        g = f'gr-full-{v}'
        members = [Member(c, g, f'f{v}-0', v).stable()]
        for i in (1, 2):
            m = Member(c, g, f'f{v}-{i}', v)
            if v >= 4:
                m.end_join(m.begin_join(), 'with room')
            joins = [(m, m.begin_join())]
            c.poll('DescribeGroups', 5, {'Groups': [g]},
                   lambda a: a['Groups'][0]['GroupState'] == 'PreparingRebalance')
            joins += [(m, m.begin_join()) for m in members]
            for m, asked in joins:
                m.end_join(asked, compare=False)
            members.append(joins[0][0])
            members[0].sync([(m, b'') for m in members], 'makes it full')
        fourth = Member(c, g, f'f{v}-3', v)
        fourth.end_join(fourth.begin_join(), 'no room')
        fourth.end_join(fourth.begin_join(MemberId='nobody'), 'no room, with an id')


def static_members(c):
    for v in (5, 8, 9):
        g = f'gr-static-{v}'
        a = Member(c, g, f's{v}', v, instance='one').stable()
        old = a.id
        again = Member(c, g, f't{v}', v, instance='one')
        again.end_join(again.begin_join(), 'comes back')
        again.sync([], 'comes back')
        a.id = old
        a.heartbeat('fenced', GroupInstanceId='one')
        a.heartbeat('old id, no instance')
        again.heartbeat('fine', GroupInstanceId='one')
        again.heartbeat('unknown instance', GroupInstanceId='two')
        c.ask('DescribeGroups', 5, {'Groups': [g]}, note='static')
        c.ask('LeaveGroup', 5, {'GroupId': g, 'Members': [{'MemberId': old, 'GroupInstanceId': 'one'},
                                                          {'MemberId': '', 'GroupInstanceId': 'two'},
                                                          {'MemberId': '', 'GroupInstanceId': 'one'}]}, note='leaves')


def offsets(c):
    ids = c.topic('gr-o', 3)
    for v in range(2, 11):
        name = {'Name': 'gr-o'} if v < 10 else {'TopicId': ids}

        def commit(note, g=f'gr-off-{v}', generation=-1, member='', t=name, index=0, offset=7, meta='m', v=v, **f):
            c.ask('OffsetCommit', v, {'GroupId': g, 'GenerationIdOrMemberEpoch': generation, 'MemberId': member,
                                      'Topics': [{**t, 'Partitions': [
                                          {'PartitionIndex': index, 'CommittedOffset': offset, 'CommittedMetadata': meta}]}],
                                      **f}, note=note)
        commit('simple')
        commit('simple, a member', member='x')
        commit('generation of an unknown group', g=f'gr-off-{v}-none', generation=3)
        commit('empty group', g='')
        commit('empty group, a generation', g='', generation=1)
        commit('unknown partition', index=9)
        commit('unknown topic', t={'Name': 'gr-none'} if v < 10 else {'TopicId': uuid.UUID(int=1 << 99)})
        commit('unknown topic, bad generation', t={'Name': 'gr-none'} if v < 10 else {'TopicId': uuid.UUID(int=1 << 99)},
               generation=9)
        commit('bad name', t={'Name': 'a b'}) if v < 10 else None
        commit('negative offset', index=1, offset=-5)
        commit('null metadata', index=2, meta=None)
        commit('long metadata', meta='x' * 4097)
        commit('metadata of two bytes', meta='é' * 4096)
        commit('an instance', GroupInstanceId='i') if v >= 7 else None
        commit('retention', RetentionTimeMs=60_000) if v <= 4 else None
        c.ask('OffsetCommit', v, {'GroupId': f'gr-off-{v}', 'Topics': []}, note='nothing')
        c.ask('OffsetCommit', v, {'GroupId': f'gr-off-{v}', 'Topics': [{**name, 'Partitions': [
            {'PartitionIndex': 0, 'CommittedOffset': 1}, {'PartitionIndex': 7, 'CommittedOffset': 1},
            {'PartitionIndex': 0, 'CommittedOffset': 2}]}]}, note='twice and an unknown')
        none = {'Name': 'gr-none'} if v < 10 else {'TopicId': uuid.UUID(int=1 << 99)}
        several = lambda note, *ts: c.ask('OffsetCommit', v, {'GroupId': f'gr-off-{v}', 'Topics': [  # noqa: E731,B023
            {**t, 'Partitions': [{'PartitionIndex': p, 'CommittedOffset': 1} for p in ps]} for t, ps in ts]}, note=note)
        several('a topic twice', (name, [0]), (name, [1, 0]))
        several('a topic twice and an unknown one', (name, [0]), (none, [1]), (name, [1]))
        several('two topics twice', (none, [2]), (name, [9, 0]), (none, [1]), (name, [1, 8, 0]))
        several('refused in the last', (name, [0]), (name, [1, 9]))
        several('no partitions', (name, []), (none, []), (name, [1]))
    for v in range(1, 11):
        name = {'Name': 'gr-o'} if v < 10 else {'TopicId': ids}

        def fetch(note, g='gr-off-3', topics='one', v=v, **f):
            t = [{**name, 'PartitionIndexes': [0, 1, 2, 9]}] if topics == 'one' else topics
            if v < 8:
                c.ask('OffsetFetch', v, {'GroupId': g, 'Topics': t, **f}, note=note)
            else:
                c.ask('OffsetFetch', v, {'Groups': [{'GroupId': g, 'Topics': t}], **f}, note=note)
        fetch('some')
        fetch('unknown group', 'gr-off-none')
        fetch('empty group', '')
        fetch('no topics', topics=[])
        fetch('unknown topic', topics=[{'Name': 'gr-none', 'PartitionIndexes': [0]} if v < 10 else
                                       {'TopicId': uuid.UUID(int=1 << 98), 'PartitionIndexes': [0]}])
        fetch('zero id', topics=[{'TopicId': uuid.UUID(int=0), 'PartitionIndexes': [0]}]) if v >= 10 else None
        if v >= 2:
            fetch('all', topics=None)
            fetch('all of an unknown group', 'gr-off-none', topics=None)
        if v >= 7:
            fetch('stable', RequireStable=True)
        if v >= 8:
            c.ask('OffsetFetch', v, {'Groups': []}, note='no groups')
            c.ask('OffsetFetch', v, {'Groups': [{'GroupId': g, 'Topics': None} for g in ('gr-off-3', 'gr-off-4', 'zz')]},
                  note='three groups')
        if v >= 9:
            c.ask('OffsetFetch', v, {'Groups': [{'GroupId': 'gr-off-3', 'MemberId': 'x', 'MemberEpoch': 1,
                                                 'Topics': None}]}, note='a member')


def administration(c):
    for v in range(7):
        c.ask('DescribeGroups', v, {'Groups': ['gr-off-3', 'gr-none', '']}, note='several')
        c.ask('DescribeGroups', v, {'Groups': []}, note='none')
        if v >= 3:
            c.ask('DescribeGroups', v, {'Groups': ['gr-off-3', 'gr-none'], 'IncludeAuthorizedOperations': True}, note='rights')
    for v in range(6):
        c.ask('ListGroups', v, {}, note='all')
        if v >= 4:
            for states in (['Empty'], ['EMPTY'], [' Empty '], ['Stable'], ['None'], ['Dead'], ['Empty', 'Stable']):
                c.ask('ListGroups', v, {'StatesFilter': states}, note=str(states))
        if v >= 5:
            for types in (['Classic'], ['Classic'], [' classic'], ['Consumer'], ['None']):
                c.ask('ListGroups', v, {'TypesFilter': types}, note=str(types))
    for v in range(4):
        c.ask('DeleteGroups', v, {'GroupsNames': [f'gr-off-{5 + v}', 'gr-none', f'gr-off-{5 + v}']}, note='several')
        c.ask('DeleteGroups', v, {'GroupsNames': ['']}, note='empty')
        c.ask('DeleteGroups', v, {'GroupsNames': []}, note='none')
        c.ask('OffsetFetch', 5, {'GroupId': f'gr-off-{5 + v}', 'Topics': None}, note='after it')
    delete = lambda note, g='gr-off-3', *ts: c.ask('OffsetDelete', 0, {'GroupId': g, 'Topics': [  # noqa: E731
        {'Name': t, 'Partitions': [{'PartitionIndex': p} for p in ps]} for t, ps in ts]}, note=note)
    delete('two', 'gr-off-3', ('gr-o', [0, 9]))
    delete('topics twice', 'gr-off-3', ('gr-o', [1]), ('gr-none', [0]), ('gr-o', [9, 1]), ('gr-none', [1]))
    delete('a topic twice', 'gr-off-3', ('gr-o', [1]), ('gr-o', [0, 1]))
    delete('no partitions', 'gr-off-3', ('gr-o', []), ('gr-none', []))
    delete('unknown topic', 'gr-off-3', ('gr-none', [0]))
    delete('unknown group', 'gr-none', ('gr-o', [0]))
    delete('empty group', '', ('gr-o', [0]))
    delete('nothing', 'gr-off-3')
    delete('nothing of an unknown', 'gr-none')
    c.ask('OffsetFetch', 5, {'GroupId': 'gr-off-3', 'Topics': None}, note='after it')


def run(c):
    c.topic('gr-t', 4)
    c.topic('gr-u', 1)
    finding(c)
    joining(c)
    two_members(c)
    full(c)
    static_members(c)
    offsets(c)
    administration(c)
