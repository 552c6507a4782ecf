"""DeleteRecords, and what there is afterwards."""
from batch import batch


def run(c):
    for v in range(3):
        name = f'dr-{v}'
        c.topic(name, 3)
        c.topic(f'{name}-compact', 1, {'cleanup.policy': 'compact'})
        c.topic(f'{name}-both', 1, {'cleanup.policy': 'compact,delete'})
        c.topic(f'{name}-neither', 1, {'cleanup.policy': ''})
        for p in (0, 1):
            for _ in range(3):
                c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [
                    {'Name': name, 'PartitionData': [{'Index': p, 'Records': batch([b'x'] * 3)}]}]}, note='prepared')
        topic = lambda n, *parts: {'Name': n, 'Partitions': [  # noqa: E731
            {'PartitionIndex': p, 'Offset': o} for p, o in parts]}
        ask = lambda note, *ts, **f: c.ask('DeleteRecords', v, {  # noqa: E731
            'Topics': list(ts), 'TimeoutMs': 15000, **f}, note=note)  # noqa: B023
        ask('none')
        ask('no partitions', topic(name))
        ask('from 0', topic(name, (0, 0)))
        ask('inside a batch', topic(name, (0, 4)))
        ask('again', topic(name, (0, 4)))
        ask('below', topic(name, (0, 1)))
        ask('beyond', topic(name, (0, 10)))
        ask('far beyond', topic(name, (0, 2 ** 63 - 1)))
        ask('-2', topic(name, (0, -2)))
        ask('the least', topic(name, (0, -2 ** 63)))
        ask('unknown topic', topic('dr-none', (0, 0), (1, 0)))
        ask('bad name', topic('a b', (0, 0)))
        ask('empty name', topic('', (0, 0)))
        ask('unknown partitions', topic(name, (3, 0), (-1, 0)))
        ask('the metadata topic', topic('__cluster_metadata', (0, 0)))
        ask('unknown internal topic', topic('__share_group_state', (0, 0)))
        ask('compacted', topic(f'{name}-compact', (0, 0)))
        ask('compacted, beyond', topic(f'{name}-compact', (0, 100)))
        ask('compacted, unknown partition', topic(f'{name}-compact', (4, 0)))
        ask('compacted and deleted', topic(f'{name}-both', (0, 0)))
        ask('neither', topic(f'{name}-neither', (0, 0)))
        ask('partition twice', topic(name, (1, 1), (1, 2)))
        ask('partition twice, falling', topic(name, (1, 4), (1, 3)))
        ask('partition twice, the first beyond', topic(name, (1, 100), (1, 4)))
        ask('partition twice, the second beyond', topic(name, (1, 5), (1, 100)))
        ask('topic twice', topic(name, (1, 5)), topic(name, (0, 5)), topic(name, (1, 6)))
        ask('all kinds', topic(name, (0, 5), (1, 100), (7, 0)), topic('dr-none', (0, 0)),
            topic(f'{name}-compact', (0, 0)))
        ask('no time', topic(name, (0, 6)), TimeoutMs=0)
        ask('less than no time', topic(name, (0, 7)), TimeoutMs=-1)
        for timestamp in (-1, -2, -4, 0):
            c.ask('ListOffsets', 8, {'ReplicaId': -1, 'Topics': [{'Name': name, 'Partitions': [
                {'PartitionIndex': 0, 'CurrentLeaderEpoch': -1, 'Timestamp': timestamp}]}]}, note='after it')
        for offset in (6, 7, 8):
            c.ask('Fetch', 12, {'ReplicaId': -1, 'MaxWaitMs': 10, 'MinBytes': 0, 'MaxBytes': 1 << 20, 'Topics': [
                {'Topic': name, 'Partitions': [{'Partition': 0, 'FetchOffset': offset, 'PartitionMaxBytes': 1 << 20}]}]},
                note='after it')
        ask('all', topic(name, (0, -1), (1, -1), (2, -1)))
        c.ask('Fetch', 12, {'ReplicaId': -1, 'MaxWaitMs': 10, 'MinBytes': 0, 'MaxBytes': 1 << 20, 'Topics': [
            {'Topic': name, 'Partitions': [{'Partition': 0, 'FetchOffset': 9, 'PartitionMaxBytes': 1 << 20}]}]},
            note='after all')
        c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [
            {'Name': name, 'PartitionData': [{'Index': 0, 'Records': batch([b'x'] * 3)}]}]}, note='after all')
