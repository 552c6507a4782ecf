"""What a request names twice: Kafka creates, writes and answers it once."""
import struct

import broker
import kafka


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from('>' + form, self.data, self.at)
        self.at += struct.calcsize('>' + form)
        return values[0] if len(values) == 1 else values

    def string(self):
        n = max(self.take('h'), 0)
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def ids(self):
        return [self.take('i') for _ in range(self.take('i'))]


def metadata(c, topics):
    """(error, name, number of partitions) of each, in the answer's order."""
    r = Reader(c.call(kafka.METADATA, struct.pack('>i', len(topics)) +
                      b''.join(map(kafka.string, topics)) + struct.pack('>bbb', 1, 0, 0)))
    r.take('i')
    for _ in range(r.take('i')):
        r.take('i'), r.string(), r.take('i'), r.string()
    r.string(), r.take('i')
    out = []
    for _ in range(r.take('i')):
        error, name, _ = r.take('h'), r.string(), r.take('b')
        partitions = r.take('i')
        for _ in range(partitions):
            r.take('hiii'), r.ids(), r.ids(), r.ids()
        r.take('i')
        out.append((error, name, partitions))
    r.take('i')
    assert r.at == len(r.data)
    return out


def produce(c, entries):
    """entries: (topic, [(partition, value)]). (topic, [(partition, error, offset)]) of each."""
    body = struct.pack('>hhii', -1, -1, 10000, len(entries))
    for topic, parts in entries:
        body += kafka.string(topic) + struct.pack('>i', len(parts))
        for partition, value in parts:
            data = kafka.batch([value])
            body += struct.pack('>ii', partition, len(data)) + data
    r = Reader(c.call(kafka.PRODUCE, body))
    out = []
    for _ in range(r.take('i')):
        topic, parts = r.string(), []
        for _ in range(r.take('i')):
            partition, error, offset, _, _ = r.take('ihqqq')
            for _ in range(r.take('i')):
                r.take('i'), r.string()
            r.string()
            parts.append((partition, error, offset))
        out.append((topic, parts))
    return out


class Repeats(broker.BrokerTest):
    def test_unknown_topic_in_metadata(self):
        with self.broker.connect() as c:
            self.assertEqual(metadata(c, ['b', 'a', 'b', 'not/valid', 'c', 'a']),
                             [(0, 'b', 1), (0, 'a', 1), (17, 'not/valid', 0), (0, 'c', 1)])
            self.assertEqual(metadata(c, ['a', 'd', 'a']), [(0, 'a', 1), (0, 'd', 1)])

    def test_many_unknown_topics_in_metadata(self):
        """More than one request may create: all are refused, none holds the node up."""
        names = ['t%d' % i for i in range(20000)]
        with self.broker.connect() as c:
            self.assertEqual(metadata(c, names), [(3, name, 0) for name in names])

    def test_partition_in_produce(self):
        with self.broker.connect() as c:
            c.create_topic('p', 3)
            c.create_topic('q')
            self.assertEqual(
                produce(c, [('p', [(0, b'1'), (2, b'2'), (0, b'3')]), ('q', [(0, b'4')]),
                            ('p', [(2, b'5'), (1, b'6')]), ('q', [(0, b'7')])]),
                [('p', [(0, 0, 0)]), ('p', [(2, 0, 0), (1, 0, 0)]), ('q', [(0, 0, 0)])])
            self.assertEqual(c.read_all('p', 0), [(0, b'3')])
            self.assertEqual(c.read_all('p', 2), [(0, b'5')])
            self.assertEqual(c.read_all('q', 0), [(0, b'7')])

    def test_many_partitions_in_produce(self):
        """A large request, most of whose partitions there are not."""
        with self.broker.connect() as c:
            c.create_topic('p')
            n = 20000
            answer = produce(c, [('p', [(i, b'') for i in range(n)])])
            self.assertEqual(answer, [('p', [(0, 0, 0)] + [(i, 3, -1) for i in range(1, n)])])


if __name__ == '__main__':
    broker.main()
