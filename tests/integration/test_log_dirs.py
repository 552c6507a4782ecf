"""Several log directories in a broker: partitions are spread, one that fails takes its own replicas
with it, what does not belong together is refused."""
import os
import shutil

import broker
import calls
import cluster
import kafka

STORAGE_ERROR = 56
SOON = {'replica.high.watermark.checkpoint.interval.ms': 50}  # a failed disk is noticed then


def properties(directory):
    with open(os.path.join(directory, 'meta.properties')) as f:
        return dict(line.strip().split('=', 1) for line in f if '=' in line)


def partitions_in(directory):
    return sorted(name for name in os.listdir(directory)
                  if os.path.isdir(os.path.join(directory, name)) and name[0] != '_')


def describe(c):
    """{path: (error, {(topic, partition)})}"""
    answer = c.ask('DescribeLogDirs', 4, Topics=None)
    return {r['LogDir']: (r['ErrorCode'], {(t['Name'], p['PartitionIndex']) for t in r['Topics']
                                           for p in t['Partitions']})
            for r in answer['Results']}


class Several(broker.PollingTest):
    NAMES = 'abc'

    def setUp(self):
        self.broker = broker.Broker(SOON)
        self.addCleanup(self.broker.close)
        self.dirs = [os.path.join(self.broker.directory, name) for name in self.NAMES]
        self.broker.data = ','.join(self.dirs)

    def fill(self, c, partitions=6):
        self.assertEqual(c.create_topic('t', partitions), 0)
        for i in range(partitions):
            self.assertEqual(c.produce('t', i, [b'%d' % i])[0], 0)

    def check(self, c, indexes):
        for i in indexes:
            self.assertEqual([value for _, value in c.read_all('t', i)], [b'%d' % i])

    def restarted(self):
        self.broker.start()
        return self.broker.connect()

    def test_partitions_are_spread(self):
        self.broker.start()
        with self.broker.connect() as c:
            self.fill(c)
            found = describe(c)
            self.assertEqual(set(found), set(self.dirs))
            self.assertEqual([len(found[d][1]) for d in self.dirs], [2, 2, 2])
        ids = [properties(d) for d in self.dirs]
        self.assertEqual(len({p['directory.id'] for p in ids}), 3)
        self.assertEqual(len({(p['cluster.id'], p['node.id']) for p in ids}), 1)
        self.assertEqual([os.path.exists(os.path.join(d, '__cluster_metadata-0'))
                          for d in self.dirs], [True, False, False])
        self.broker.kill()
        with self.restarted() as c:
            self.check(c, range(6))
            self.assertEqual(describe(c), found)
        self.assertEqual(self.broker.stop(), 0)
        for d in self.dirs:
            self.assertTrue(os.path.exists(os.path.join(d, '.kafka_cleanshutdown')))
            self.assertEqual(len(partitions_in(d)), 2)
        with self.restarted() as c:
            self.check(c, range(6))

    def lose(self, directory):
        os.rename(directory, directory + '.away')

    def test_one_fails(self):
        """Its partitions have no leader then, for there is no other broker; the rest goes on."""
        self.broker.start()
        with self.broker.connect() as c:
            self.fill(c)
            lost = {i for _, i in describe(c)[self.dirs[1]][1]}
            self.lose(self.dirs[1])
            some = min(set(range(6)) - lost)

            def offline():
                calls.produce(c, 't', some, kafka.batch([b'more']))  # something to be checkpointed
                parts = calls.metadata(c, ['t'])['Topics'][0]['Partitions']
                return {p['PartitionIndex'] for p in parts if p['LeaderId'] == -1} == lost
            self.poll(offline, self.broker.log())
            for i in range(6):
                error = calls.produce(c, 't', i, kafka.batch([b'more']))['ErrorCode']
                self.assertEqual(error, STORAGE_ERROR if i in lost else 0)
                self.assertEqual(c.fetch('t', i, 0)[0], STORAGE_ERROR if i in lost else 0)
            self.assertEqual(describe(c)[self.dirs[1]], (STORAGE_ERROR, set()))
            self.assertEqual(c.create_topic('u', 4), 0)
            self.assertEqual([len([p for p in describe(c)[d][1] if p[0] == 'u'])
                              for d in self.dirs], [2, 0, 2])
        self.assertEqual(self.broker.stop(), 0)
        self.assertFalse(os.path.exists(self.dirs[1]))
        os.rename(self.dirs[1] + '.away', self.dirs[1])
        with self.restarted() as c:
            c.wait_for_leaders('t', 6)
            self.check(c, lost)
            for i in lost:
                self.assertEqual(c.produce('t', i, [b'again'])[0], 0)
        self.assertEqual(self.broker.stop(), 0)

    def test_the_metadata_logs_fails(self):
        self.broker.start()
        with self.broker.connect() as c:
            self.fill(c)
            self.lose(self.dirs[0])
            try:
                for _ in range(1000):
                    calls.produce(c, 't', 1, kafka.batch([b'more']))
            except (OSError, kafka.Closed):
                pass
        self.assertEqual(self.broker.process.wait(30), 1)
        self.assertIn(self.dirs[0], self.broker.log_lines('node_failed')[0])

    def test_one_cannot_be_read_at_the_start(self):
        self.broker.start()
        with self.broker.connect() as c:
            self.fill(c)
            lost = {i for _, i in describe(c)[self.dirs[2]][1]}
        self.assertEqual(self.broker.stop(), 0)
        self.lose(self.dirs[2])
        with open(self.dirs[2], 'w'):
            pass
        with self.restarted() as c:
            self.check(c, set(range(6)) - lost)
            for i in lost:
                self.assertEqual(c.fetch('t', i, 0)[0], STORAGE_ERROR)
            self.assertEqual(describe(c)[self.dirs[2]], (STORAGE_ERROR, set()))
        self.assertEqual(self.broker.stop(), 0)
        os.unlink(self.dirs[2])
        os.rename(self.dirs[2] + '.away', self.dirs[2])
        with self.restarted() as c:
            c.wait_for_leaders('t', 6)
            self.check(c, range(6))
        self.assertEqual(self.broker.stop(), 0)

    def refused(self, *says):
        status, text = self.broker.run_refused()
        self.assertEqual(status, 78, text)
        for word in says:
            self.assertIn(word, text)

    def test_what_is_refused(self):
        a, b, c = self.dirs
        meta = os.path.join(b, 'meta.properties')
        self.broker.start()
        self.assertEqual(self.broker.stop(), 0)
        with open(meta) as f:
            text = f.read()

        def written(what):
            with open(meta, 'w') as f:
                f.write(what)
        shutil.copy(os.path.join(a, 'meta.properties'), meta)
        self.refused(a, b, 'same directory.id')
        written(text.replace(properties(a)['cluster.id'], cluster.CLUSTER_ID))
        self.refused(a, b, cluster.CLUSTER_ID)
        written(text.replace('node.id=1', 'node.id=2'))
        self.refused(b, 'node.id=2')
        os.unlink(meta)
        self.refused(b, 'is not empty')
        os.rename(b, b + '.away')
        self.refused(b, 'is empty', 'dohle format')
        os.rename(b, b + '.made')
        os.rename(b + '.away', b)
        written(text)
        os.mkdir(os.path.join(b, '__cluster_metadata-0'))
        self.refused(b, 'has a metadata log', a)
        os.rmdir(os.path.join(b, '__cluster_metadata-0'))
        self.broker.data = ','.join([a, b, os.path.join(a, '..', 'b')])
        self.refused('named twice')
        self.broker.data = ','.join([a, b, a + '/'])
        self.refused('twice')
        self.broker.data = ','.join([b, a])
        self.refused(a, 'has a metadata log')
        self.broker.data = ','.join([a, b, c])
        self.broker.start()
        self.assertEqual(self.broker.stop(), 0)

    def test_a_partition_twice(self):
        self.broker.start()
        with self.broker.connect() as c:
            self.fill(c)
        self.assertEqual(self.broker.stop(), 0)
        name = partitions_in(self.dirs[1])[0]
        shutil.copytree(os.path.join(self.dirs[1], name), os.path.join(self.dirs[2], name))
        with self.assertRaisesRegex(RuntimeError, 'two log directories'):
            self.broker.start()
        for directory in self.dirs[1:]:
            self.assertIn(directory, self.broker.log_lines('partition_found_twice')[0])
        shutil.rmtree(os.path.join(self.dirs[2], name))
        with self.restarted() as c:
            self.check(c, range(6))

    def test_a_metadata_log_apart(self):
        """metadata.log.dir need not be one of log.dirs; no partition goes there."""
        apart = os.path.join(self.broker.directory, 'm')
        self.broker.settings['metadata.log.dir'] = apart
        self.broker.start()
        with self.broker.connect() as c:
            self.fill(c)
            self.assertEqual(set(describe(c)), set(self.dirs))
        self.assertEqual(partitions_in(apart), [])
        self.assertTrue(os.path.exists(os.path.join(apart, '__cluster_metadata-0')))
        self.assertEqual(self.broker.stop(), 0)
        with self.restarted() as c:
            self.check(c, range(6))
            self.lose(self.dirs[0])

            def one_less():
                calls.produce(c, 't', 1, kafka.batch([b'more']))
                return describe(c)[self.dirs[0]][0] == STORAGE_ERROR
            self.poll(one_less, self.broker.log())
        self.assertEqual(self.broker.stop(), 0)

    def test_some_are_cordoned(self):
        self.broker.start()
        with self.broker.connect() as c:
            answer = c.ask('IncrementalAlterConfigs', 1, Resources=[
                {'ResourceType': 4, 'ResourceName': '1', 'Configs': [
                    {'Name': 'cordoned.log.dirs', 'ConfigOperation': 0,
                     'Value': ','.join(self.dirs[1:])}]}])
            self.assertEqual(answer['Responses'][0]['ErrorCode'], 0)
            self.poll(lambda: [r['IsCordoned'] for r in
                               c.ask('DescribeLogDirs', 5, Topics=[])['Results']] ==
                      [False, True, True])
            self.fill(c, 3)
            self.assertEqual([len(describe(c)[d][1]) for d in self.dirs], [3, 0, 0])
        self.assertEqual(self.broker.stop(), 0)


class Replicated(broker.PollingTest):
    """Three nodes, two log directories each."""
    PARTITIONS = range(6)

    def setUp(self):
        self.c = cluster.Cluster(settings=SOON)
        self.addCleanup(self.c.close)
        for node in self.c.nodes:
            node.dirs = [os.path.join(node.directory, name) for name in 'ab']
            node.data = ','.join(node.dirs)
        self.c.start()
        self.c.create_topic('t', partitions=6, configs={'min.insync.replicas': '2'})
        for i in self.PARTITIONS:
            self.c.produce('t', i, kafka.batch([b'before']))

    def seen(self, field):
        found = [self.c.partition('t', i) for i in self.PARTITIONS]
        return [p[field] if p else None for p in found]

    def whole(self):
        return all(isr is not None and set(isr) == {1, 2, 3} for isr in self.seen('IsrNodes'))

    def held(self, node, directory):
        with node.connect() as c:
            return {i for topic, i in describe(c)[directory][1] if topic == 't'}

    def check(self, values):
        for i in self.PARTITIONS:
            with self.c.leader('t', i).connect() as c:
                found = [value for _, value in c.read_all('t', i)]
            for value in values:
                self.assertIn(value, found)

    def test_one_fails(self):
        """Of a node that leads: others lead, it leaves those ISRs, and no other."""
        self.poll(self.whole)
        node = self.c.nodes[1]
        lost = self.held(node, node.dirs[1])
        self.assertEqual(len(lost), 3)
        os.rename(node.dirs[1], node.dirs[1] + '.away')
        for i in self.PARTITIONS:
            self.c.produce('t', i, kafka.batch([b'meanwhile']))
        self.poll(lambda: {i for i, isr in enumerate(self.seen('IsrNodes'))
                           if isr and node.id not in isr} == lost, node.log())
        self.assertFalse({i for i, leader in enumerate(self.seen('LeaderId'))
                          if leader == node.id} & lost)
        self.assertEqual({i for i, off in enumerate(self.seen('OfflineReplicas')) if off}, lost)
        for i in self.PARTITIONS:
            self.c.produce('t', i, kafka.batch([b'after']))
        self.assertFalse(node.ended())
        self.assertEqual(node.term().wait(30), 0, node.log()[-2000:])
        os.rename(node.dirs[1] + '.away', node.dirs[1])
        node.launch()
        self.c.wait_ready([node])
        self.poll(self.whole)
        self.check([b'before', b'meanwhile', b'after'])

    def test_a_disk_is_replaced(self):
        """Its replicas are made again, in whatever directory, and may lead."""
        self.poll(self.whole)
        node = self.c.nodes[2]
        node.kill()
        shutil.rmtree(node.dirs[1])
        self.assertEqual(node.format('--ignore-formatted'), 0)
        node.launch()
        self.c.wait_ready([node])
        self.poll(self.whole)
        others = [n for n in self.c.nodes if n is not node]
        self.assertEqual(others[0].term().wait(30), 0)
        self.poll(lambda: None not in self.seen('LeaderId') and -1 not in self.seen('LeaderId'))
        for i in self.PARTITIONS:
            self.c.produce('t', i, kafka.batch([b'after']))
        self.check([b'before', b'after'])


if __name__ == '__main__':
    broker.main()
