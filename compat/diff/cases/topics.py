"""CreateTopics, DeleteTopics, CreatePartitions, DescribeTopicPartitions."""
import uuid

from batch import batch


def created(name, n=1, rf=1, configs=(), assignments=()):
    return {'Name': name, 'NumPartitions': n, 'ReplicationFactor': rf,
            'Configs': [{'Name': k, 'Value': v} for k, v in configs],
            'Assignments': [{'PartitionIndex': i, 'BrokerIds': b} for i, b in assignments]}


def create(c):
    for v in range(2, 8):
        ask = lambda note, *topics, **f: c.ask(  # noqa: E731
            'CreateTopics', v, {'Topics': list(topics), 'TimeoutMs': 15000, **f}, note=note)  # noqa: B023
        name = f'tp-{v}'
        ask('one', created(name, 2))
        ask('again', created(name, 2))
        ask('only validate', created(f'{name}-v', 2), ValidateOnly=True)
        ask('defaults', created(f'{name}-d', -1, -1)) if v >= 4 else None
        ask('no partitions', created(f'{name}-0', 0))
        ask('negative partitions', created(f'{name}-n', -2))
        ask('replication factor 0', created(f'{name}-0', 1, 0))
        ask('replication factor -2', created(f'{name}-0', 1, -2))
        ask('replication factor 2', created(f'{name}-2', 1, 2))
        ask('bad name', created('a b'))
        ask('empty name', created(''))
        ask('dot', created('.'))
        ask('249 characters', created('%s-' % v + 'x' * 247))
        ask('250 characters', created('x' * 250))
        ask('colliding name', created(f'{name}_c'), created(f'{name}.c'))
        ask('twice', created(f'{name}-t'), created(f'{name}-t', 3))
        ask('two', created(f'{name}-a'), created(f'{name}-b'))
        ask('none')
        ask('no time', created(f'{name}-q'), TimeoutMs=0)
        ask('config', created(f'{name}-c', configs=[('retention.ms', '1000'), ('cleanup.policy', 'compact')]))
        ask('unknown config', created(f'{name}-u', configs=[('no.such', '1')]))
        ask('bad config', created(f'{name}-u', configs=[('retention.ms', 'x')]))
        ask('config below its least', created(f'{name}-u', configs=[('segment.bytes', '1')]))
        ask('null config', created(f'{name}-u', configs=[('retention.ms', None)]))
        ask('config twice', created(f'{name}-w', configs=[('retention.ms', '1'), ('retention.ms', '2')]))
        ask('assignment', created(f'{name}-m', -1, -1, assignments=[(0, [1]), (1, [1])]))
        ask('assignment and count', created(f'{name}-e', 2, -1, assignments=[(0, [1])]))
        ask('assignment with a gap', created(f'{name}-e', -1, -1, assignments=[(0, [1]), (2, [1])]))
        ask('assignment to nobody', created(f'{name}-e', -1, -1, assignments=[(0, [])]))
        ask('assignment to a stranger', created(f'{name}-e', -1, -1, assignments=[(0, [9])]))
        ask('assignment twice to one', created(f'{name}-e', -1, -1, assignments=[(0, [1, 1])]))
        ask('assignment named twice', created(f'{name}-e', -1, -1, assignments=[(0, [1]), (0, [1])]))
        ask('internal', created('__consumer_offsets', 50)) if v == 2 else None


def delete(c):
    for v in range(1, 7):
        ids = c.topic(f'td-{v}-id') if v >= 6 else None
        c.topic(f'td-{v}')
        names = lambda *ns: {'TopicNames': list(ns), 'TimeoutMs': 15000} if v < 6 else \
            {'Topics': [{'Name': n} for n in ns], 'TimeoutMs': 15000}  # noqa: E731,B023
        ask = lambda note, f: c.ask('DeleteTopics', v, f, note=note)  # noqa: E731,B023
        ask('one', names(f'td-{v}'))
        ask('again', names(f'td-{v}'))
        ask('unknown', names('td-none'))
        ask('bad name', names('a b'))
        ask('twice', names('td-none', 'td-none'))
        ask('none', names())
        ask('no time', {**names('td-none'), 'TimeoutMs': 0})
        if v >= 6:
            by = lambda *ts: {'Topics': list(ts), 'TimeoutMs': 15000}  # noqa: E731
            ask('name and id', by({'Name': f'td-{v}-id', 'TopicId': ids}))
            ask('neither', by({'Name': None}))
            ask('by id', by({'Name': None, 'TopicId': ids}))
            ask('unknown id', by({'Name': None, 'TopicId': uuid.UUID(int=9 << 70)}))
            ask('id twice', by({'Name': None, 'TopicId': uuid.UUID(int=9 << 70)},
                               {'Name': None, 'TopicId': uuid.UUID(int=9 << 70)}))


def create_again(c):
    """What was deleted is a new topic once Metadata says so, whatever the old one's files still need."""
    c.topic('tr', 9)
    for i in range(5):
        parts = [{'Index': p, 'Records': batch([b'x' * 1000] * (i + 1))} for p in range(9)]
        c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [{'Name': 'tr', 'PartitionData': parts}]},
              note=f'topic {i}')
        c.ask('Fetch', 12, {'ReplicaId': -1, 'MaxWaitMs': 10, 'MinBytes': 0, 'MaxBytes': 1000, 'Topics': [
            {'Topic': 'tr', 'Partitions': [{'Partition': 0, 'FetchOffset': i + 1, 'PartitionMaxBytes': 1000}]}]},
            note=f'the end of topic {i}')
        c.ask('DeleteTopics', 5, {'TopicNames': ['tr'], 'TimeoutMs': 15000}, note=f'topic {i}')
        c.ask('CreateTopics', 6, {'Topics': [created('tr', 9)], 'TimeoutMs': 15000}, note=f'topic {i + 1}')
        c.poll('Metadata', 12, {'Topics': [{'Name': 'tr'}]}, lambda a: a['Topics'][0]['ErrorCode'] == 0 and
               all(p['LeaderId'] >= 0 for p in a['Topics'][0]['Partitions']))
        # Apache Kafka's metadata is a moment ahead of its partitions.
        c.poll('ListOffsets', 5, {'ReplicaId': -1, 'Topics': [{'Name': 'tr', 'Partitions': [
            {'PartitionIndex': p, 'CurrentLeaderEpoch': -1, 'Timestamp': -1} for p in range(9)]}]},
            lambda a: all(p['ErrorCode'] == 0 for p in a['Topics'][0]['Partitions']), of=1)


def grow(c):
    for v in range(4):
        name = f'tg-{v}'
        c.topic(name, 2)
        part = lambda n, count, a=None: {'Name': n, 'Count': count, 'Assignments': None if a is None else  # noqa: E731
                                         [{'BrokerIds': b} for b in a]}
        ask = lambda note, *ts, **f: c.ask('CreatePartitions', v, {  # noqa: E731
            'Topics': list(ts), 'TimeoutMs': 15000, **f}, note=note)  # noqa: B023
        ask('only validate', part(name, 5), ValidateOnly=True)
        ask('more', part(name, 3))
        ask('as many', part(name, 3))
        ask('fewer', part(name, 1))
        ask('none at all', part(name, 0))
        ask('negative', part(name, -1))
        ask('unknown topic', part('tg-none', 3))
        ask('twice', part(name, 7), part(name, 8))
        ask('no topics')
        ask('assignments', part(name, 5, [[1], [1]]))
        ask('too few assignments', part(name, 8, [[1]]))
        ask('too many assignments', part(name, 6, [[1], [1]]))
        ask('a stranger', part(name, 6, [[9]]))
        ask('nobody', part(name, 6, [[]]))
        ask('two replicas', part(name, 6, [[1, 1]]))
        ask('too many', part(name, 100_000_000))
        ask('too many by one', part(name, 10_006))
        ask('too many of one, too few of another', part(name, 10_006), part('tg-0', -100))
        ask('twice and unknown', part('tg-none', 3), part(name, 5), part('tg-none', 4))
        ask('empty name', part('', 3))
        ask('bad name', part('a b', 3))
        ask('the metadata topic', part('__cluster_metadata', 3))
        ask('no time', part(name, 9), part('tg-none', 9), part('tg-none', 10), TimeoutMs=0)
        ask('no time for none', part('tg-none', 9), part('tg-none', 10), TimeoutMs=0)
        ask('as many, assigned', part(name, 5, [[1]]))
        c.poll('Metadata', 12, {'Topics': [{'Name': name}]}, lambda a: len(
            [p for p in a['Topics'][0]['Partitions'] if p['LeaderId'] >= 0]) == 5)
        c.ask('Metadata', 12, {'Topics': [{'Name': name}]}, note='after it')


def describe(c):
    for n in 'abc':
        c.topic(f'tz-{n}', 3)
    ask = lambda note, *names, **f: c.ask('DescribeTopicPartitions', 0, {  # noqa: E731
        'Topics': [{'Name': n} for n in names], **f}, note=note)
    page = lambda note, limit, *names: ask(note, *names, ResponsePartitionLimit=limit)  # noqa: E731
    at = lambda note, topic, index, *names, **f: ask(  # noqa: E731
        note, *names, Cursor={'TopicName': topic, 'PartitionIndex': index}, **f)
    ask('one', 'tz-a')
    ask('unordered', 'tz-c', 'tz-a', 'tz-b')
    ask('unknown', 'tz-none')
    ask('bad names', 'a b', '.', '..', 'x' * 300, 'tz-b')
    ask('empty name', 'tz-a', '')
    ask('unknown and internal', '__share_group_state', '__cluster_metadata')
    ask('twice', 'tz-a', 'tz-a', 'tz-none', 'tz-none')
    for limit in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, -1, 3000):
        page('page of %d' % limit, limit, 'tz-c', 'tz-a', 'tz-b')
        page('page of %d with unknown ones' % limit, limit, 'tz-0', 'tz-a', 'tz-aa', 'tz-b', 'tz-z')
    for index in (0, 1, 3, 9, -1):
        at('cursor at %d' % index, 'tz-b', index, 'tz-c', 'tz-a', 'tz-b')
        at('cursor at %d, page of 2' % index, 'tz-b', index, 'tz-c', 'tz-a', 'tz-b', ResponsePartitionLimit=2)
    at('largest cursor', 'tz-b', 2 ** 31 - 1, 'tz-c', 'tz-a', 'tz-b')
    at('cursor at an unknown one', 'tz-bb', 2, 'tz-c', 'tz-bb')
    at('cursor before all', 'tz-0', 0, 'tz-b', 'tz-c')
    at('cursor behind all', 'tz-z', 0, 'tz-b', 'tz-c')
    at('empty cursor', '', 0, 'tz-b', 'tz-c')
    at('all from a cursor', 'tz-b', 1)
    at('all from where none is', 'tz-bb', 1)
    at('all from behind', 'zzz', 1)
    at('all from a negative partition', 'tz-b', -1)
    page('all, two', 2)


def run(c):
    create(c)
    delete(c)
    create_again(c)
    grow(c)
    describe(c)
