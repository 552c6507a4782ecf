"""What a request names twice: Kafka creates, writes and answers it once."""
import broker
import kafka


def metadata(c, topics):
    """(error, name, number of partitions) of each, in the answer's order."""
    answer = c.ask('Metadata', 8, Topics=[{'Name': t} for t in topics],
                   AllowAutoTopicCreation=True)
    return [(t['ErrorCode'], t['Name'], len(t['Partitions'])) for t in answer['Topics']]


def produce(c, entries):
    """entries: (topic, [(partition, value)]). (topic, [(partition, error, offset)]) of each."""
    answer = c.ask('Produce', 8, Acks=-1, TimeoutMs=10000, TopicData=[
        {'Name': topic, 'PartitionData': [{'Index': index, 'Records': kafka.batch([value])}
                                          for index, value in parts]} for topic, parts in entries])
    return [(t['Name'], [(p['Index'], p['ErrorCode'], p['BaseOffset'])
                         for p in t['PartitionResponses']]) for t in answer['Responses']]


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
