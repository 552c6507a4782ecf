"""kill -9 under load, ten rounds: with acks=all and flush.messages=1 every acknowledged record is
there afterwards, at its offset, in order, once; and what was read after one crash is there after
the next."""
import threading
import time

import broker
import kafka

ROUNDS = 10
PARTITIONS = 3
IN_FLIGHT = 5


class Producer(threading.Thread):
    """Sends batches of numbered values to one partition, several unanswered at a time, each once,
    until the connection breaks."""

    def __init__(self, port, partition, name, rng):
        super().__init__(daemon=True)
        self.port, self.partition, self.label, self.rng = port, partition, name, rng
        self.sent_n = 0
        self.acked = []  # (offset, value)
        self.error = None

    def make(self):
        values = []
        for _ in range(self.rng.randint(1, 20)):
            filler = kafka.random_bytes(self.rng, self.rng.choice((0, 10, 100, 2000)))
            values.append(b'%s %d ' % (self.label, self.sent_n) + filler)
            self.sent_n += 1
        return values

    def run(self):
        flying = []
        try:
            with kafka.Connection(self.port) as c:
                while True:
                    while len(flying) < IN_FLIGHT:
                        values = self.make()
                        c.send(kafka.frame(kafka.PRODUCE, kafka.produce_body(
                            'torture', self.partition, kafka.batch(values))))
                        flying.append(values)
                    error, offset = kafka.produce_answer(c.answer()[1])
                    if error != 0:
                        self.error = 'produce answered %d' % error
                        return
                    self.acked += enumerate(flying.pop(0), offset)
        except (kafka.Closed, OSError):
            pass


class Crash(broker.BrokerTest):
    def read(self, least=(0,) * PARTITIONS):
        """What each partition holds, once it shows as many records: what was recovered is synced
        before it is served again."""
        end = time.monotonic() + 20
        with self.broker.connect() as c:
            c.wait_for_leaders('torture', PARTITIONS)
            while True:
                found = [c.read_all('torture', p) for p in range(PARTITIONS)]
                if all(len(f) >= n for f, n in zip(found, least)) or time.monotonic() > end:
                    return found
                time.sleep(0.05)

    def check(self, partition, records, producers, before):
        """records: all of the partition; before: what it held after the last crash."""
        self.assertEqual([r[0] for r in records], list(range(len(records))), 'a gap')
        self.assertEqual(records[:len(before)], before, 'an old record changed')
        values = [r[1] for r in records]
        self.assertEqual(len(values), len(set(values)), 'a record is there twice')
        for p in producers:
            if p.partition != partition:
                continue
            for offset, value in p.acked:
                self.assertLess(offset, len(records), 'acknowledged at %d and lost' % offset)
                self.assertEqual(records[offset][1], value)
            numbers = [int(v.split()[1]) for v in values if v.startswith(p.label + b' ')]
            self.assertEqual(numbers, list(range(len(numbers))), 'not in the order sent')

    def round(self, n, rng, before):
        producers = [Producer(self.broker.port, i % PARTITIONS, b'round%d-%d' % (n, i), rng)
                     for i in range(PARTITIONS + 1)]
        for p in producers:
            p.start()
        wait_s = rng.uniform(0.1, 0.8)
        end = time.monotonic() + 20
        while not any(p.acked for p in producers) and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(wait_s)
        self.broker.kill()
        for p in producers:
            p.join(30)
            self.assertFalse(p.is_alive())
            self.assertIsNone(p.error)
        self.broker.start()
        found = self.read([max([len(before[i])] + [offset + 1 for p in producers if p.partition == i
                                                   for offset, _ in p.acked])
                           for i in range(PARTITIONS)])
        for partition in range(PARTITIONS):
            self.check(partition, found[partition], producers, before[partition])
        acked_n = sum(len(p.acked) for p in producers)
        print('round %d: %d acknowledged, %d sent, %d records in all' %
              (n, acked_n, sum(p.sent_n for p in producers), sum(map(len, found))), flush=True)
        self.assertGreater(acked_n, 0)
        return found

    def test_kill_under_load(self):
        rng = kafka.seeded()
        with self.broker.connect() as c:
            self.assertEqual(c.create_topic('torture', PARTITIONS, {
                'flush.messages': '1', 'segment.bytes': '1048576'}), 0)
        found = [[] for _ in range(PARTITIONS)]
        for n in range(ROUNDS):
            found = self.round(n, rng, found)
        self.check_memory()
        self.assertEqual(self.broker.stop(), 0)
        self.broker.start()
        self.assertEqual(self.read([len(f) for f in found]), found, 'a clean restart changed something')


if __name__ == '__main__':
    broker.main()
