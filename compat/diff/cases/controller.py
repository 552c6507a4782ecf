"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments, UpdateFeatures,
UnregisterBroker: what one node can show of them."""


def elect(c):
    c.topic('el-t', 2)
    for v in range(3):
        kind = lambda t: {'ElectionType': t} if v >= 1 else {}  # noqa: E731,B023
        ask = lambda note, t, *topics, **f: c.ask(  # noqa: E731
            'ElectLeaders', v, {'TopicPartitions': [{'Topic': n, 'Partitions': list(p)} for n, p in topics],
                                **kind(t), **f}, note=note)  # noqa: B023
        for t in (0, 1) if v >= 1 else (0,):
            ask(f'led, {t}', t, ('el-t', [0, 1]))
            ask(f'unknown partition, {t}', t, ('el-t', [0, 7, -1]))
            ask(f'unknown topic, {t}', t, ('el-none', [0]))
            ask(f'no partitions, {t}', t, ('el-t', []))
        ask('none', 0)
        ask('no time', 0, ('el-t', [0]), TimeoutMs=0)
        ask('empty name', 0, ('', [0]))
        ask('partition twice', 0, ('el-t', [0, 0]))
        ask('topic twice', 0, ('el-t', [0]), ('el-t', [1]))
        if v >= 1:
            ask('unknown type', 2, ('el-t', [0]))
            ask('negative type', -1, ('el-t', [0]))
        answers = c.ask('ElectLeaders', v, {'TopicPartitions': None, **kind(0)}, note='all', compare=False)
        for a in answers:  # in Kafka's hash order
            a['ReplicaElectionResults'].sort(key=lambda r: r['Topic'])
        c.compare('ElectLeaders', v, answers)


def reassign(c):
    c.topic('ra-t', 2)
    for v in range(2):
        ask = lambda note, *topics, **f: c.ask(  # noqa: E731
            'AlterPartitionReassignments', v, {'Topics': [{'Name': n, 'Partitions': [
                {'PartitionIndex': p, 'Replicas': r} for p, r in parts]} for n, parts in topics],
                **f}, note=note)  # noqa: B023
        ask('as it is', ('ra-t', [(0, [1]), (1, [1])]))
        ask('cancel', ('ra-t', [(0, None)]))
        ask('to a stranger', ('ra-t', [(0, [9])]))
        ask('to nobody', ('ra-t', [(0, [])]))
        ask('twice to one', ('ra-t', [(0, [1, 1])]))
        ask('more replicas', ('ra-t', [(0, [1, 2])]))
        ask('unknown partition', ('ra-t', [(7, [1]), (-1, None)]))
        ask('unknown topic', ('ra-none', [(0, [1])]))
        ask('empty name', ('', [(0, [1])]))
        ask('no partitions', ('ra-t', []))
        ask('none')
        ask('no time', ('ra-t', [(0, [1])]), TimeoutMs=0)
        ask('no time for none', TimeoutMs=0)
        ask('topic twice', ('ra-t', [(0, [1])]), ('ra-t', [(1, [1])]))
        if v >= 1:
            ask('the factor stays', ('ra-t', [(0, [1])]), AllowReplicationFactorChange=False)
            ask('the factor would change', ('ra-t', [(0, [])]), AllowReplicationFactorChange=False)
    ask = lambda note, **f: c.ask('ListPartitionReassignments', 0, f, note=note)  # noqa: E731
    ask('all', Topics=None)
    ask('none', Topics=[])
    ask('one', Topics=[{'Name': 'ra-t', 'PartitionIndexes': [0, 1]}])
    ask('unknown', Topics=[{'Name': 'ra-none', 'PartitionIndexes': [0]},
                           {'Name': 'ra-t', 'PartitionIndexes': [7, -1]}])
    ask('no time', Topics=None, TimeoutMs=0)


def features(c):
    for v in range(3):
        update = lambda n, level, kind=1: {'Feature': n, 'MaxVersionLevel': level,  # noqa: E731
                                           **({'UpgradeType': kind} if v >= 1 else {})}  # noqa: B023
        ask = lambda note, *u, **f: c.ask('UpdateFeatures', v, {'FeatureUpdates': list(u), **f},  # noqa: E731
                                          note=note)  # noqa: B023
        ask('as it is', update('group.version', 1))
        ask('two as they are', update('group.version', 1), update('transaction.version', 2))
        ask('none')
        ask('no time', update('group.version', 1), TimeoutMs=0)
        ask('unknown', update('no.such', 1))
        ask('unknown, level 0', update('no.such', 0))
        ask('empty name', update('', 1))
        ask('too high', update('group.version', 2))
        ask('negative', update('group.version', -1))
        ask('one good, one bad', update('group.version', 1), update('share.version', 9))
        ask('downgrade as upgrade', update('group.version', 0))
        ask('metadata.version as it is', update('metadata.version', 33))
        ask('metadata.version too high', update('metadata.version', 35))
        ask('metadata.version too low', update('metadata.version', 3))
        if v == 0:
            ask('downgrade allowed', {**update('group.version', 0), 'AllowDowngrade': True})
            continue
        ask('only validate', update('transaction.version', 1, 2), ValidateOnly=True)
        ask('only validate a bad one', update('share.version', 9), ValidateOnly=True)
        ask('unknown type', update('group.version', 1, 0))
        ask('unknown type 4', update('group.version', 1, 4))
        ask('upgrade as downgrade', update('group.version', 1, 2))
        ask('metadata.version down', update('metadata.version', 32, 2))
        ask('metadata.version down by force', update('metadata.version', 32, 3))
        ask('kraft.version as it is', update('kraft.version', 1))
        ask('kraft.version down', update('kraft.version', 0, 2))


def unregister(c):
    c.ask('UnregisterBroker', 0, {'BrokerId': 9}, note='unknown')
    c.ask('UnregisterBroker', 0, {'BrokerId': -1}, note='negative')


def run(c):
    elect(c)
    reassign(c)
    features(c)
    unregister(c)
