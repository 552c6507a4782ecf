"""DescribeProducers."""
from batch import batch


def run(c):
    c.topic('dp-t', 2)
    c.topic('dp-u', 1)
    produce = lambda note, topic, p, data: c.ask('Produce', 9, {  # noqa: E731
        'Acks': -1, 'TimeoutMs': 15000, 'TopicData': [
            {'Name': topic, 'PartitionData': [{'Index': p, 'Records': data}]}]}, note=note)
    topic = lambda n, *parts: {'Name': n, 'PartitionIndexes': list(parts)}  # noqa: E731
    ask = lambda note, *ts: c.ask('DescribeProducers', 0, {'Topics': list(ts)}, note=note)  # noqa: E731
    ask('none')
    ask('no partitions', topic('dp-t'))
    ask('no producers', topic('dp-t', 0, 1))
    produce('first', 'dp-t', 0, batch([b'x'] * 3, producer=(700, 0, 0), timestamp=1_750_000_000_000))
    produce('goes on', 'dp-t', 0, batch([b'x'] * 2, producer=(700, 0, 3), timestamp=1_750_000_000_005))
    produce('another', 'dp-t', 0, batch([b'x'], producer=(699, 4, 0), timestamp=1_750_000_000_001))
    produce('elsewhere', 'dp-t', 1, batch([b'x'], producer=(700, 0, 8), timestamp=1_750_000_000_002))
    ask('two partitions', topic('dp-t', 0, 1))
    produce('a repeat', 'dp-t', 0, batch([b'x'] * 3, producer=(700, 0, 0), timestamp=1_750_000_000_000))
    produce('a gap', 'dp-t', 0, batch([b'x'], producer=(700, 0, 9), timestamp=1_750_000_000_009))
    ask('after a repeat and a gap', topic('dp-t', 0))
    produce('a new epoch', 'dp-t', 0, batch([b'x'], producer=(700, 1, 0), timestamp=1_750_000_000_000))
    ask('after a new epoch', topic('dp-t', 0))
    ask('twice', topic('dp-t', 1, 1), topic('dp-t', 1))
    ask('unknown partitions', topic('dp-t', 2, -1, 0))
    ask('unknown topic', topic('dp-none', 0, 1))
    ask('bad name', topic('a b', 0))
    ask('empty name', topic('', 0))
    ask('the metadata topic', topic('__cluster_metadata', 0))
    ask('some of all', topic('dp-u', 0), topic('dp-none', 0), topic('a b', 0), topic('dp-t', 1))
