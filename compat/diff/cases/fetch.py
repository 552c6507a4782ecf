"""Fetch: with and without sessions, by name and by id."""
import uuid

from batch import batch


def run(c):
    ids = c.topic('fe-t', 3)
    c.topic('fe-u', 1)
    for size in (10, 100, 30):
        for p in (0, 1):
            c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [{'Name': 'fe-t', 'PartitionData': [
                {'Index': p, 'Records': batch([b'x' * size] * 3, timestamp=1_750_000_000_000)}]}]}, note='prepared')
    for v in range(4, 19):
        def topic(*parts, name='fe-t', i=ids, v=v):
            key = {'Topic': name} if v < 13 else {'TopicId': i}
            return {**key, 'Partitions': list(parts)}

        def part(index=0, offset=0, n=100_000, **f):
            return {'Partition': index, 'FetchOffset': offset, 'PartitionMaxBytes': n, **f}

        def ask(note, *topics, v=v, **f):
            return c.ask('Fetch', v, {'ReplicaId': -1, 'MaxWaitMs': 10, 'MinBytes': 0, 'MaxBytes': 1 << 20,
                                      'Topics': list(topics), **f}, note=note)
        ask('all of one', topic(part()))
        ask('from 3', topic(part(0, 3)))
        ask('from within a batch', topic(part(0, 4)))
        ask('at the end', topic(part(0, 9)))
        ask('beyond', topic(part(0, 10)))
        ask('negative', topic(part(0, -1)))
        ask('empty one', topic(part(2, 0)))
        ask('two', topic(part(0), part(1)))
        ask('two and an unknown', topic(part(0), part(7), part(1)))
        ask('one byte of a partition', topic(part(0, 0, 1)))
        ask('one byte in all', topic(part(0), part(1)), MaxBytes=1)
        ask('no byte', topic(part(0, 0, 0)), MaxBytes=0)
        ask('just under two batches', topic(part(0, 0, 400)))
        ask('committed only', topic(part()), IsolationLevel=1)
        ask('isolation 9', topic(part()), IsolationLevel=9)
        ask('nothing', **{})
        ask('unknown topic', topic(part(), name='fe-none', i=uuid.UUID(int=5 << 77)))
        ask('bad name', topic(part(), name='a b', i=uuid.UUID(int=0)))
        ask('minimum of 1, at the end', topic(part(0, 9)), MinBytes=1)
        ask('another replica', topic(part()), ReplicaId=7)
        ask('twice', topic(part(0, 0), part(0, 3)))
        if v >= 9:
            ask('later epoch', topic(part(CurrentLeaderEpoch=77)))
            ask('earlier epoch', topic(part(CurrentLeaderEpoch=-1)))
        if v >= 12:
            ask('diverging', topic(part(0, 9, LastFetchedEpoch=-1)))
            ask('diverging later', topic(part(0, 9, LastFetchedEpoch=50)))
        if v >= 7:
            on = f'session{v}'

            def inside(note, session, epoch, *topics, v=v, on=on, **f):
                self = {'ReplicaId': -1, 'MaxWaitMs': 10, 'MinBytes': 0, 'MaxBytes': 1 << 20,
                        'SessionId': session, 'SessionEpoch': epoch, 'Topics': list(topics), **f}
                c.note = note
                answers = c.ask('Fetch', v, self, on=on, compare=False)
                c.note = note
                found = [a.get('SessionId') if isinstance(a, dict) else None for a in answers]
                for a in answers:
                    if isinstance(a, dict) and a.get('SessionId'):
                        a['SessionId'] = '<session>'
                c.compare('Fetch', v, answers)
                return found
            from both import Each
            sessions = Each(inside('session made', 0, 0, topic(part(0, 0), part(1, 9))))
            inside('nothing new', sessions, 1)
            inside('moved', sessions, 2, topic(part(0, 9)))
            inside('nothing new again', sessions, 3)
            inside('added', sessions, 4, topic(part(2, 0)))
            inside('wrong epoch', sessions, 9)
            inside('forgotten', sessions, 5, ForgottenTopicsData=[
                {('Topic' if v < 13 else 'TopicId'): 'fe-t' if v < 13 else ids, 'Partitions': [1]}])
            inside('ended', sessions, -1)
            inside('after its end', sessions, 6)
            inside('unknown session', 12345, 1)
