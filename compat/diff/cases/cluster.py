"""DescribeLogDirs, DescribeQuorum."""
from batches import batch


def run(c):
    c.topic('cl-t', 2)
    c.ask('Produce', 9, {'acks': -1, 'timeoutMs': 15000, 'topicData': [{'name': 'cl-t', 'partitionData': [
        {'index': 0, 'records': batch([b'x' * 100])}]}]}, note='prepared')
    for v in range(1, 6):
        def ask(note, topics, v=v):
            answers = c.ask('DescribeLogDirs', v, {'topics': topics}, compare=False)
            for a in answers:
                for r in a.get('results', []) if isinstance(a, dict) else []:
                    for key in ('totalBytes', 'usableBytes'):
                        if key in r:
                            r[key] = r[key] > 0
            c.note = note
            c.compare('DescribeLogDirs', v, answers)
        ask('one', [{'topic': 'cl-t', 'partitions': [0, 1]}])
        ask('one partition', [{'topic': 'cl-t', 'partitions': [0]}])
        ask('unknown partition', [{'topic': 'cl-t', 'partitions': [7]}])
        ask('unknown topic', [{'topic': 'cl-none', 'partitions': [0]}])
        ask('none', [])
        ask('no partitions', [{'topic': 'cl-t', 'partitions': []}])
        ask('twice', [{'topic': 'cl-t', 'partitions': [0, 0]}])
    for v in range(3):
        def quorum(note, topic='__cluster_metadata', partitions=(0,), v=v):
            answers = c.ask('DescribeQuorum', v, {'topics': [{'topicName': topic, 'partitions': [
                {'partitionIndex': p} for p in partitions]}]}, compare=False)
            for a in answers:  # how long each metadata log is is its own
                for t in a.get('topics', []) if isinstance(a, dict) else []:
                    for p in t['partitions']:
                        for key in ('highWatermark', 'leaderEpoch'):
                            p[key] = p[key] > 0
                        for voter in p['currentVoters'] + p['observers']:
                            voter['logEndOffset'] = voter['logEndOffset'] > 0
            c.note = note
            c.compare('DescribeQuorum', v, answers)
        quorum('it')
        quorum('another topic', 'cl-t')
        quorum('another partition', partitions=(1,))
        quorum('two partitions', partitions=(0, 1))
        quorum('no partitions', partitions=())
        c.ask('DescribeQuorum', v, {'topics': []}, note='none')
