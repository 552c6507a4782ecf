"""Idempotent producers over restarts (PR-10): ids are given out once, sequences go on, what was
answered is answered again with its first offset, gaps and old epochs are refused, and retries of
what kill -9 left unanswered make no second copy."""
import os
import threading
import time

import batches
import broker
import calls
import kafka

OUT_OF_ORDER, FENCED, NOT_READY = 45, 47, 14
NOW = int(time.time() * 1000)  # a producer of old times is forgotten at a start
ROUNDS = 6
IN_FLIGHT = 5


def batch(producer_id, epoch, sequence, *values):
    return batches.build([(NOW, None, v) for v in values],
                         producer=(producer_id, epoch, sequence))


def new_ids(c, n):
    """As a client does: it asks again while the broker has no block of ids."""
    ids = []
    end = time.monotonic() + 30
    while len(ids) < n and time.monotonic() < end:
        sent = [c.post('InitProducerId', 4, TransactionalId=None) for _ in range(n - len(ids))]
        for _ in sent:
            answer = kafka.messages.response('InitProducerId', 4, c.answer()[1])
            assert answer['ErrorCode'] in (0, NOT_READY), answer
            if answer['ErrorCode'] == 0:
                assert answer['ProducerEpoch'] == 0
                ids.append(answer['ProducerId'])
    return ids


class Restarts(broker.BrokerTest):
    def send(self, c, producer_id, sequence, epoch=0, topic='t'):
        answer = calls.produce(c, topic, 0, batch(producer_id, epoch, sequence, b'v'))
        return answer['ErrorCode'], answer['BaseOffset']

    def each_restart(self):
        for end in (self.broker.kill, self.broker.stop, self.broker.kill):
            end()
            self.broker.start()
            yield end

    def test_ids_are_given_out_once(self):
        """More than a block of them between restarts, and less; blocks are of 1000."""
        with self.broker.connect() as c:
            ids = new_ids(c, 2500)
        for n, _ in zip((1, 1200, 3), self.each_restart()):
            with self.broker.connect() as c:
                ids += new_ids(c, n)
        self.assertEqual(len(ids), 3704)
        self.assertEqual(len(set(ids)), 3704)

    def test_epochs_stay_fenced(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            self.assertEqual(self.send(c, 7, 0, epoch=3), (0, 0))
            self.assertEqual(self.send(c, 7, 0, epoch=4), (0, 1))
        for i, _ in enumerate(self.each_restart()):
            with self.broker.connect() as c:
                self.assertEqual(self.send(c, 7, 1, epoch=3)[0], FENCED)
                self.assertEqual(self.send(c, 7, 0, epoch=3)[0], FENCED)
                self.assertEqual(self.send(c, 7, 1, epoch=5)[0], OUT_OF_ORDER)
                self.assertEqual(self.send(c, 7, i, epoch=4), (0, i + 1))  # again
                self.assertEqual(self.send(c, 7, i + 1, epoch=4), (0, i + 2))
        with self.broker.connect() as c:
            self.assertEqual(self.send(c, 7, 0, epoch=5), (0, 5))

    def test_known_by_a_snapshot(self):
        """Nothing of what the producer wrote is in the log any more: the snapshot of a clean stop
        has its last batch."""
        with self.broker.connect() as c:
            calls.ready(c, 't', 1, {'segment.bytes': 1 << 20})
            for i in range(6):
                self.assertEqual(self.send(c, 7, i), (0, i))
            for i in range(7):  # two in a segment
                data = batches.build([(NOW, None, bytes(400000))])
                self.assertEqual(calls.produce(c, 't', 0, data)['BaseOffset'], 6 + i)
            answer = c.ask('DeleteRecords', 2, TimeoutMs=10000, Topics=[
                {'Name': 't', 'Partitions': [{'PartitionIndex': 0, 'Offset': 11}]}])
            self.assertEqual(answer['Topics'][0]['Partitions'][0]['ErrorCode'], 0)
        self.wait_for_segments(10, 12)
        for _ in range(2):
            for end in (self.broker.stop, self.broker.kill):
                end()
                self.broker.start()
                with self.broker.connect() as c:
                    self.assertEqual(calls.offset_of(c, 't', 0, calls.EARLIEST)[2], 11)
                    self.assertEqual(self.send(c, 7, 5), (0, 5))
                    self.assertEqual(self.send(c, 7, 4)[0], OUT_OF_ORDER)
                    self.assertEqual(self.send(c, 7, 7)[0], OUT_OF_ORDER)
                    self.assertEqual(calls.end_of(c, 't'), 13)
        with self.broker.connect() as c:
            self.assertEqual(self.send(c, 7, 6), (0, 13))

    def wait_for_segments(self, *bases):
        want = ['%020d.log' % base for base in bases]
        self.poll(lambda: want == sorted(n for n in os.listdir(os.path.join(self.broker.data, 't-0'))
                                         if n.endswith('.log')), want)

    def test_many_producers_go_on(self):
        n = 300
        with self.broker.connect() as c:
            calls.ready(c, 't')
            for i in range(n):
                self.assertEqual(self.send(c, i, 0), (0, i))
        for r, _ in enumerate(self.each_restart(), 1):
            with self.broker.connect() as c:
                for i in range(n):
                    self.assertEqual(self.send(c, i, r - 1), (0, (r - 1) * n + i))
                    self.assertEqual(self.send(c, i, r + 1)[0], OUT_OF_ORDER)
                for i in range(n):
                    self.assertEqual(self.send(c, i, r), (0, r * n + i))


class Producer(threading.Thread):
    """One id for good. It sends numbered records until the connection breaks; the next run begins
    with what was not answered."""

    def __init__(self, port, producer_id, partition, rng, unanswered=(), sequence=0):
        super().__init__(daemon=True)
        self.port, self.id, self.partition, self.rng = port, producer_id, partition, rng
        self.unanswered = list(unanswered)  # (sequence, values)
        self.sequence = sequence
        self.acked = []  # (offset, value)
        self.error = None
        self.quiet = False  # only what was not answered

    def again(self, port, quiet=False):
        p = Producer(port, self.id, self.partition, self.rng, self.unanswered, self.sequence)
        p.quiet = quiet
        return p

    def make(self):
        values = [b'%d %d' % (self.id, self.sequence + i)
                  for i in range(self.rng.randint(1, 4))]
        self.unanswered.append((self.sequence, values))
        self.sequence += len(values)

    def post(self, c, sequence, values):
        c.post('Produce', 9, Acks=-1, TimeoutMs=10000, TopicData=[
            {'Name': 't', 'PartitionData': [
                {'Index': self.partition, 'Records': batch(self.id, 0, sequence, *values)}]}])

    def take(self, c):
        answer = kafka.messages.response('Produce', 9, c.answer()[1])
        part = answer['Responses'][0]['PartitionResponses'][0]
        if part['ErrorCode'] != 0:
            self.error = 'sequence %d: error %d' % (self.unanswered[0][0], part['ErrorCode'])
        else:
            self.acked += enumerate(self.unanswered.pop(0)[1], part['BaseOffset'])

    def run(self):
        try:
            with kafka.Connection(self.port) as c:
                for b in self.unanswered:
                    self.post(c, *b)
                while self.error is None and (self.unanswered or not self.quiet):
                    while len(self.unanswered) < IN_FLIGHT and not self.quiet:
                        self.make()
                        self.post(c, *self.unanswered[-1])
                    self.take(c)
        except (kafka.Closed, OSError):
            pass


class Retries(broker.BrokerTest):
    def test_retries_after_a_kill(self):
        """Every record of every producer once, in order, at the offset that was answered."""
        rng = kafka.seeded()
        with self.broker.connect() as c:
            calls.ready(c, 't', 2, {'segment.bytes': 1 << 20})
            ids = new_ids(c, 4)
        producers = [Producer(self.broker.port, i, n % 2, rng) for n, i in enumerate(ids)]
        acked = {0: {}, 1: {}}
        retried = 0
        for n in range(ROUNDS + 1):
            target = rng.randint(1, 60)
            for p in producers:
                p.start()
            end = time.monotonic() + 30
            while n < ROUNDS and time.monotonic() < end and \
                    any(len(p.acked) < target and p.is_alive() for p in producers):
                pass
            if n < ROUNDS:
                self.broker.kill()
            for p in producers:
                p.join(30)
                self.assertFalse(p.is_alive())
                self.assertIsNone(p.error)
                acked[p.partition].update(p.acked)
            if n < ROUNDS:
                retried += sum(len(p.unanswered) for p in producers)
                self.broker.start()
                with self.broker.connect() as c:
                    c.wait_for_leaders('t', 2)
                producers = [p.again(self.broker.port, n == ROUNDS - 1) for p in producers]
        print('%d batches sent again' % retried)
        self.assertGreater(retried, 0)
        with self.broker.connect() as c:
            for partition, known in acked.items():
                found = c.read_all('t', partition)
                self.assertEqual(dict(found), known)
                for p in producers:
                    if p.partition == partition:
                        mine = [int(v.split()[1]) for _, v in found if v.startswith(b'%d ' % p.id)]
                        self.assertEqual(mine, list(range(p.sequence)))


if __name__ == '__main__':
    broker.main()
