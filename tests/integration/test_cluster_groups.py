"""Groups on several nodes: their coordinator is who leads their partition of __consumer_offsets, and
moves with it, by kill -9 and by a clean stop. Members go on as the members that they were, and what
was committed stays so."""
import time

import broker
import calls
import cluster
import consumer
import kafka

NOT_COORDINATOR = 16
OFFSETS = '__consumer_offsets'
PARTITIONS, CONSUMERS = 4, 3
GAP_S = 60 if broker.SANITIZED else 20  # until all go on; a silent broker's session is 9 s
SETTINGS = {'offsets.topic.num.partitions': 3, 'group.initial.rebalance.delay.ms': 200}


class GroupsTest(broker.PollingTest):
    def begin(self):
        self.c = cluster.Cluster(settings=SETTINGS)
        self.addCleanup(self.c.close)
        return self.c

    def coordinator(self, group='g', timeout_s=30):
        """The node's id, of which all running ones say the same."""
        found = []

        def agreed():
            found[:] = []
            for node in self.c.running():
                with node.connect() as c:
                    found.append(c.ask('FindCoordinator', 4, CoordinatorKeys=[group])
                                 ['Coordinators'][0])
            return len({(f['NodeId'], f['ErrorCode']) for f in found}) == 1 and \
                found[0]['ErrorCode'] == 0
        self.poll(agreed, 'no coordinator', timeout_s)
        return self.c.nodes[found[0]['NodeId'] - 1]

    def committed(self, partition, group='g'):
        """At whoever coordinates it."""
        answer = []

        def told():
            try:
                with self.coordinator(group).connect() as c:
                    answer[:] = calls.committed(c, group, 't', partition)
            except (OSError, kafka.Closed):
                return False
            return answer[0] == 0
        self.poll(told, 'nobody tells what is committed')
        return answer[1]


class Three(GroupsTest):
    def setUp(self):
        self.begin().start()
        self.c.create_topic('t', partitions=PARTITIONS)
        self.ends = [0] * PARTITIONS
        self.consumers = [consumer.Consumer(self.c, 'g', 't') for _ in range(CONSUMERS)]
        for each in self.consumers:
            self.addCleanup(each.end)
            each.start()
        self.write(5)
        self.poll(self.all_committed, 'the group does not begin', 60)

    def write(self, n):
        for partition in range(PARTITIONS):
            for _ in range(n):
                offset = self.c.produce('t', partition, kafka.batch([b'x']))
                self.ends[partition] = offset + 1

    def all_committed(self):
        for each in self.consumers:
            self.assertIsNone(each.failed)
        acked = {}
        for each in self.consumers:
            for partition, offset in each.acked.items():
                acked[partition] = max(offset, acked.get(partition, 0))
        return all(acked.get(p) == end for p, end in enumerate(self.ends))

    def all_rest(self, away_from, since):
        return all(each.rested > since and each.coordinator not in (None, away_from.id)
                   for each in self.consumers)

    def generation(self):
        found = {each.generation for each in self.consumers}
        self.assertEqual(len(found), 1, found)
        return found.pop()

    def moved(self, node, end):
        """The coordinator ends; the members go on."""
        generation = self.generation()
        acked = [self.committed(p) for p in range(PARTITIONS)]
        self.assertEqual(acked, self.ends)
        begun = time.monotonic()
        end(node)
        self.write(3)
        self.poll(lambda: self.all_committed() and self.all_rest(node, begun),
                  'the group does not go on', GAP_S)
        self.assertEqual(self.generation(), generation, 'nobody came or went')
        self.assertEqual([self.committed(p) for p in range(PARTITIONS)], self.ends)
        print('%s: the group went on after %.1f s' % (self._testMethodName,
                                                      time.monotonic() - begun), flush=True)
        node.launch()
        self.c.wait_ready([node])
        self.poll(lambda: all(set(self.c.partition(OFFSETS, p)['IsrNodes']) == {1, 2, 3}
                              for p in range(SETTINGS['offsets.topic.num.partitions'])),
                  'the ISR is not whole')

    def all_was_read(self):
        read = {(p, offset) for each in self.consumers for p, offset, _ in each.read}
        self.assertEqual(read, {(p, offset) for p, end in enumerate(self.ends)
                                for offset in range(end)})

    def test_the_coordinator_is_killed(self):
        for _ in range(2):
            self.moved(self.coordinator(), lambda node: node.kill())
        self.all_was_read()

    def test_the_coordinator_is_stopped(self):
        for _ in range(2):
            self.moved(self.coordinator(), lambda node: self.assertEqual(node.term().wait(30), 0))
        self.all_was_read()

    def test_only_the_coordinator_answers(self):
        """Each lists its own groups only."""
        node = self.coordinator()
        for other in self.c.nodes:
            with other.connect() as c:
                groups = [g['GroupId'] for g in c.ask('ListGroups', 5, StatesFilter=[],
                                                      TypesFilter=[])['Groups']]
                self.assertEqual(groups, ['g'] if other is node else [])
                described = c.ask('DescribeGroups', 5, Groups=['g'])['Groups'][0]
                self.assertEqual(described['ErrorCode'], 0 if other is node else NOT_COORDINATOR)
                self.assertEqual(len(described['Members']), CONSUMERS if other is node else 0)
                if other is not node:
                    self.assertEqual(calls.commit(c, 'g', 't', 0, 1), NOT_COORDINATOR)
                    self.assertEqual(calls.committed(c, 'g', 't', 0), (NOT_COORDINATOR, -1))
                    deleted = c.ask('DeleteGroups', 2, GroupsNames=['g'])['Results'][0]
                    self.assertEqual(deleted['ErrorCode'], NOT_COORDINATOR)


class Starting(GroupsTest):
    def test_all_nodes_get_a_replica(self):
        """Who is first asked does not make the topic of what has come so far."""
        c = self.begin()
        c.choose_ports()
        for node in c.nodes[:2]:
            node.launch()
        self.assertTrue(c.wait_ready(c.nodes[:2]))
        with c.nodes[0].connect() as connection:
            found = connection.ask('FindCoordinator', 4, CoordinatorKeys=['g'])['Coordinators'][0]
            self.assertEqual((found['ErrorCode'], found['NodeId'], found['Port']), (15, -1, -1))
        c.nodes[2].launch()
        self.assertTrue(c.wait_ready(c.nodes[2:]))
        self.coordinator()
        for p in range(SETTINGS['offsets.topic.num.partitions']):
            self.assertEqual(set(c.partition(OFFSETS, p)['ReplicaNodes']), {1, 2, 3})


if __name__ == '__main__':
    broker.main()
