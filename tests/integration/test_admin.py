"""The APIs of tools and admin clients: what they change is there at once and after a restart, what
they tell is what there is."""
import broker
import kafka


class CreatePartitions(broker.BrokerTest):
    def grow(self, c, *topics, **options):
        """(name, error) of each; topics: (name, count[, brokers of each new one])."""
        answer = c.ask('CreatePartitions', 3, TimeoutMs=10000, Topics=[
            {'Name': t[0], 'Count': t[1],
             'Assignments': [{'BrokerIds': b} for b in t[2]] if len(t) > 2 else None}
            for t in topics], **options)
        return [(r['Name'], r['ErrorCode']) for r in answer['Results']]

    def partitions(self, c, topic):
        answer = c.ask('Metadata', 12, Topics=[{'Name': topic}])
        return [(p['PartitionIndex'], p['LeaderId']) for p in answer['Topics'][0]['Partitions']]

    def test_led_at_once_and_after_a_restart(self):
        with self.broker.connect() as c:
            c.create_topic('t')
            self.assertEqual(c.produce('t', 0, [b'0']), (0, 0))
            self.assertEqual(c.produce('t', 1, [b'1'])[0], 3)
            self.assertEqual(self.grow(c, ('t', 3), ('none', 2), ('t2', 2), ('t2', 3)),
                             [('t', 0), ('none', 3), ('t2', 42)])
            for p in (1, 2):
                self.assertEqual(c.produce('t', p, [b'%d' % p]), (0, 0))
            self.assertEqual(self.partitions(c, 't'), [(0, 1), (1, 1), (2, 1)])
        for stop in (self.broker.stop, self.broker.kill):
            stop()
            self.broker.start()
            with self.broker.connect() as c:
                for p in range(3):
                    self.assertEqual(c.read_all('t', p), [(0, b'%d' % p)])

    def test_refused(self):
        with self.broker.connect() as c:
            c.create_topic('t', 2)
            self.assertEqual(self.grow(c, ('t', 2)), [('t', 37)])
            self.assertEqual(self.grow(c, ('t', 3, [[9]])), [('t', 39)])
            self.assertEqual(self.grow(c, ('t', 2 ** 31 - 1)), [('t', 44)])
            self.assertEqual(self.grow(c, ('t', 5), ValidateOnly=True), [('t', 0)])
            self.assertEqual(self.partitions(c, 't'), [(0, 1), (1, 1)])
            self.assertEqual(self.grow(c, ('t', 3, [[1]])), [('t', 0)])
            self.assertEqual(len(self.partitions(c, 't')), 3)


if __name__ == '__main__':
    broker.main()
