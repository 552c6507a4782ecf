"""DescribeLogDirs, DescribeQuorum."""
from batch import batch


def run(c):
    c.topic('cl-t', 2)
    c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [{'Name': 'cl-t', 'PartitionData': [
        {'Index': 0, 'Records': batch([b'x' * 100])}]}]}, note='prepared')
    for v in range(1, 6):
        def ask(note, topics, v=v):
            answers = c.ask('DescribeLogDirs', v, {'Topics': topics}, compare=False)
            for a in answers:
                for r in a.get('Results', []) if isinstance(a, dict) else []:
                    for key in ('TotalBytes', 'UsableBytes'):
                        if key in r:
                            r[key] = r[key] > 0
            c.note = note
            c.compare('DescribeLogDirs', v, answers)
        ask('one', [{'Topic': 'cl-t', 'Partitions': [0, 1]}])
        ask('one partition', [{'Topic': 'cl-t', 'Partitions': [0]}])
        ask('unknown partition', [{'Topic': 'cl-t', 'Partitions': [7]}])
        ask('unknown topic', [{'Topic': 'cl-none', 'Partitions': [0]}])
        ask('none', [])
        ask('no partitions', [{'Topic': 'cl-t', 'Partitions': []}])
        ask('twice', [{'Topic': 'cl-t', 'Partitions': [0, 0]}])
    for v in range(3):
        def quorum(note, topic='__cluster_metadata', partitions=(0,), v=v):
            answers = c.ask('DescribeQuorum', v, {'Topics': [{'TopicName': topic, 'Partitions': [
                {'PartitionIndex': p} for p in partitions]}]}, compare=False)
            for a in answers:  # how long each metadata log is is its own
                for t in a.get('Topics', []) if isinstance(a, dict) else []:
                    for p in t['Partitions']:
                        for key in ('HighWatermark', 'LeaderEpoch'):
                            p[key] = p[key] > 0
                        for voter in p['CurrentVoters'] + p['Observers']:
                            voter['LogEndOffset'] = voter['LogEndOffset'] > 0
            c.note = note
            c.compare('DescribeQuorum', v, answers)
        quorum('it')
        quorum('another topic', 'cl-t')
        quorum('another partition', partitions=(1,))
        quorum('two partitions', partitions=(0, 1))
        quorum('no partitions', partitions=())
        c.ask('DescribeQuorum', v, {'Topics': []}, note='none')
