"""DescribeLogDirs."""
from batch import batch


def run(c):
    c.topic('ld-t', 3)
    c.topic('ld-u', 1)
    c.ask('Produce', 9, {'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [{'Name': 'ld-t', 'PartitionData': [
        {'Index': 1, 'Records': batch([b'x' * 1000] * 3)}]}]}, note='prepared')
    for v in range(1, 6):
        topic = lambda n, *parts: {'Topic': n, 'Partitions': list(parts)}  # noqa: E731
        ask = lambda note, *ts: c.ask('DescribeLogDirs', v, {'Topics': list(ts)}, note=note)  # noqa: E731,B023
        ask('none')
        ask('all of one', topic('ld-t', 0, 1, 2))
        ask('two', topic('ld-u', 0), topic('ld-t', 1))
        ask('twice', topic('ld-t', 1, 1), topic('ld-t', 1, 0))
        ask('unknown ones', topic('ld-t', 7, -1), topic('ld-none', 0), topic('a b', 0), topic('', 0))
        ask('the metadata topic', topic('__cluster_metadata', 0))
        ask('no partitions', topic('ld-t'))
        ask('some without partitions', topic('ld-t'), topic('ld-u', 0))
        answers = c.ask('DescribeLogDirs', v, {'Topics': None}, compare=False)
        for a in answers:  # other cases' topics may be on their way out
            for d in a['Results']:
                d['Topics'] = [t for t in d['Topics'] if t['Name'].startswith('ld-')]
        c.note = 'all'
        c.compare('DescribeLogDirs', v, answers)
