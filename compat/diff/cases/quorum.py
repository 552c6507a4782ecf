"""The quorum: what it is, and voters that cannot join or leave. How long the metadata log is, how many elections there were and where the controller
listens is each broker's own."""

import uuid

METADATA = '__cluster_metadata'
NOBODY, DISK = 99, uuid.UUID(int=0x99)


def neutral(answer):
    """The same words for what may differ, once it was seen to fit together."""
    p = answer['Topics'][0]['Partitions'][0]
    for voter in p['CurrentVoters']:
        assert voter['LogEndOffset'] >= p['HighWatermark'] > 0, answer
        voter['LogEndOffset'] = '<end>'
    assert p['LeaderEpoch'] > 0, answer
    p.update(HighWatermark='<high watermark>', LeaderEpoch='<epoch>')
    for node in answer.get('Nodes') or []:
        for listener in node['Listeners']:
            assert listener['Name'] and listener['Host'] and listener['Port'] > 0, answer
            listener.update(Name='<name>', Host='<host>', Port='<port>')
    return answer


def voters(c):
    """Of a quorum of one. None of these changes it; with the right listener, which only one of the two brokers has here,
    tests/integration/test_quorum.py asks."""
    listeners = [{'Name': 'OTHER', 'Host': '127.0.0.1', 'Port': 1}]
    for v in range(2):
        add = lambda note, **f: c.ask('AddRaftVoter', v, {  # noqa: E731,B023
            'ClusterId': None, 'TimeoutMs': 3000, 'VoterId': NOBODY, 'VoterDirectoryId': DISK,
            'Listeners': listeners, **f}, note=note)
        add('another cluster', ClusterId='another')
        add('no listener', Listeners=[])
        add('another listener')
    remove = lambda note, **f: c.ask('RemoveRaftVoter', 0, {  # noqa: E731
        'ClusterId': None, 'VoterId': NOBODY, 'VoterDirectoryId': DISK, **f}, note=note)
    remove('another cluster', ClusterId='another')
    remove('no voter')
    remove('another disk of a voter', VoterId=1)


def run(c):
    voters(c)
    c.topic('dq-t', 1)
    for v in range(3):
        topic = lambda n, *parts: {'TopicName': n, 'Partitions': [  # noqa: E731
            {'PartitionIndex': p} for p in parts]}
        ask = lambda note, *ts, **f: c.ask('DescribeQuorum', v, {'Topics': list(ts)}, note=note, **f)  # noqa: E731,B023
        answers = ask('the metadata log', topic(METADATA, 0), compare=False)
        c.compare('DescribeQuorum', v, [neutral(a) for a in answers])
        ask('none')
        ask('no partitions', topic(METADATA))
        ask('another partition', topic(METADATA, 1))
        ask('two partitions', topic(METADATA, 0, 1))
        ask('partition twice', topic(METADATA, 0, 0))
        ask('topic twice', topic(METADATA, 0), topic(METADATA, 0))
        ask('another topic', topic('dq-t', 0))
        ask('another topic too', topic(METADATA, 0), topic('dq-t', 0, 7))
        ask('unknown topic', topic('dq-none', 0))
        ask('empty name', topic('', -1))
