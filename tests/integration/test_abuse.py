"""Clients that mean ill or are broken: a closed connection with one log line, or an answer that
waits; everybody else is served on, within the memory that was granted."""
import os
import select
import socket
import struct
import threading
import time

import broker
import kafka
from broker import MB


class WithData(broker.BrokerTest):
    settings = {'socket.request.max.bytes': 32 * MB}

    def fill(self, topic, megabytes):
        with self.broker.connect() as c:
            c.create_topic(topic)
            body = kafka.produce_body(topic, 0, kafka.batch([b'x' * (MB // 2)]))
            for _ in range(2 * megabytes):
                self.assertEqual(kafka.produce_answer(c.call(kafka.PRODUCE, body))[0], 0)


class Abuse(WithData):
    def reasons(self):
        """Lines that say why a connection was closed."""
        return len(self.broker.log_lines('connection_closed')) + \
            len(self.broker.log_lines('request_refused'))

    def closed_with_a_line(self, data):
        before = self.reasons()
        with self.broker.connect() as c:
            try:
                c.send(data)
            except kafka.Closed:
                pass
            self.assertTrue(c.ends(), data[:40])
        self.assertEqual(self.reasons(), before + 1)

    def test_garbage(self):
        rng = kafka.seeded()
        self.closed_with_a_line(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
        self.closed_with_a_line(b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + bytes(300))
        for _ in range(10):  # the length is positive and small, so that the rest is looked at
            body = kafka.random_bytes(rng, rng.randint(8, 3000))
            self.closed_with_a_line(struct.pack('>iH', len(body) + 2, 0x7000) + body)
        time.sleep(1.1)  # log lines are limited to so many a second
        self.closed_with_a_line(b'\xff' * 100000)
        self.served_on()

    def test_lying_lengths(self):
        for length in (-1, -2**31, 0, 1, 7, 2**31 - 1, 32 * MB + 1):
            self.closed_with_a_line(struct.pack('>i', length) + b'\0' * 16)
        self.served_on()

    def test_frames_of_random_bytes(self):
        """A known API and version, then anything."""
        rng = kafka.seeded()
        with self.broker.connect() as c:
            served = c.ask('ApiVersions', 3, ClientSoftwareName='t', ClientSoftwareVersion='1')
        for i in range(600):
            api = rng.choice(served['ApiKeys'])
            version = rng.randint(0, api['MaxVersion'] + 1)
            api = api['ApiKey']
            body = kafka.random_bytes(rng, rng.randint(0, 200))
            with self.broker.connect() as c:
                c.send(kafka.frame(api, body, i, version))
                c.socket.shutdown(socket.SHUT_WR)
                self.assertTrue(c.ends())
        self.served_on()

    def test_unserved_api_and_version(self):
        self.closed_with_a_line(kafka.frame(kafka.PRODUCE, b'\0' * 20, version=2))
        self.closed_with_a_line(kafka.frame(999, b'\0' * 20, version=0))
        with self.broker.connect() as c:
            data = c.call(kafka.API_VERSIONS, b'', version=99)
            self.assertEqual(struct.unpack_from('>h', data)[0], 35)
            data = c.call(kafka.API_VERSIONS, b'')
            self.assertEqual(struct.unpack_from('>h', data)[0], 0)
        self.served_on()

    def test_over_request_max_bytes(self):
        with self.broker.connect() as c:
            c.create_topic('big')
        self.closed_with_a_line(struct.pack('>i', 32 * MB + 1) + bytes(MB))
        with self.broker.connect() as c:  # as large as it may be, but not a batch
            error, _ = kafka.produce_answer(c.call(kafka.PRODUCE, kafka.produce_body(
                'big', 0, bytes(20 * MB))))
            self.assertNotEqual(error, 0)
        self.served_on()

    def test_many_large_frames(self):
        """Whole ones, together several times the memory there is: each waits for its turn."""
        with self.broker.connect() as c:
            c.create_topic('big')
        data = kafka.frame(kafka.PRODUCE, kafka.produce_body('big', 0, bytes(15 * MB)))
        answers = []

        def client():
            with self.broker.connect(timeout_s=60) as c:
                c.send(data)
                answers.append(kafka.produce_answer(c.answer()[1])[0])

        threads = [threading.Thread(target=client) for _ in range(16)]
        for t in threads:
            t.start()
        self.alive()
        for t in threads:
            t.join()
        self.assertEqual(len(answers), 16)
        self.assertNotIn(0, answers)
        self.served_on()

    def test_slow_reader(self):
        self.fill('big', 20)
        with self.broker.connect(receive_bytes=4096) as slow:
            for _ in range(50):
                slow.send(kafka.frame(kafka.FETCH, kafka.fetch_body('big', 0, 0)))
            end = time.monotonic() + 3
            while time.monotonic() < end:
                slow.receive(500)
                begin = time.monotonic()
                self.alive()
                self.assertLess(time.monotonic() - begin, 5)
        self.served_on()

    def test_many_slow_readers(self):
        """Answers that wait are not all in memory."""
        self.fill('big', 4)
        clients = [self.broker.connect(receive_bytes=4096) for _ in range(200)]
        for c in clients:
            for _ in range(20):
                c.send(kafka.frame(kafka.FETCH, kafka.fetch_body('big', 0, 0)))
        self.served_on()
        for c in clients:
            c.close()
        self.served_on()


class Idle(broker.BrokerTest):
    N = 10000

    def test_idle_connections(self):
        if broker.raise_fd_limit() < self.N + 100:
            self.skipTest('only %d descriptors' % broker.raise_fd_limit())
        before, _ = self.broker.rss()
        idle = []
        for i in range(self.N):
            c = self.broker.connect()
            idle.append(c)
            if i % 100 == 0:
                c.call(kafka.API_VERSIONS, b'')
        self.alive()
        with open('/proc/%d/stat' % self.broker.process.pid) as f:
            ticks = sum(map(int, f.read().rsplit(')', 1)[1].split()[11:13]))
        time.sleep(1)
        with open('/proc/%d/stat' % self.broker.process.pid) as f:
            ticks = sum(map(int, f.read().rsplit(')', 1)[1].split()[11:13])) - ticks
        now, _ = self.broker.rss()
        print('%d idle connections: %d bytes each, %d ticks of CPU in a second' %
              (self.N, (now - before) // self.N, ticks))
        if not broker.SANITIZED:
            self.assertLess(ticks, 10)
        for c in idle[::1000]:
            c.call(kafka.API_VERSIONS, b'')
        for c in idle:
            c.close()
        self.served_on()


class Deadlines(WithData):
    """What is closed after half a minute, in one wait."""

    def half_frames(self, n, length, part):
        clients = []
        for _ in range(n):
            c = self.broker.connect()
            c.send(struct.pack('>i', length) + bytes(part))
            clients.append(c)
        return clients

    def end_within(self, clients, end):
        waiting = {c.socket.fileno(): c for c in clients}
        while waiting and time.monotonic() < end:
            readable = select.select(list(waiting), [], [], max(0, end - time.monotonic()))[0]
            for fd in readable:
                if waiting[fd].ends(0.5):
                    del waiting[fd]
        return not waiting

    def test_unfinished_frames_and_unread_answers(self):
        self.fill('big', 4)
        never = self.broker.connect(receive_bytes=4096)
        never.socket.setblocking(False)
        try:
            for _ in range(10000):
                never.socket.send(kafka.frame(kafka.FETCH, kafka.fetch_body('big', 0, 0)))
        except BlockingIOError:
            pass
        small = self.half_frames(50, 1000, 500)
        # Together they claim ten times the memory there is.
        large = self.half_frames(20, 32 * MB, 100000)
        cut = self.half_frames(5, 1000, 0)
        begin = time.monotonic()
        self.alive()
        self.assertLess(time.monotonic() - begin, 5)
        self.check_memory()
        time.sleep(25)
        self.alive()
        self.assertTrue(self.end_within(small + large + cut, begin + 45))
        end = time.monotonic() + 15
        while not self.broker.log_lines('the client took no bytes') and time.monotonic() < end:
            time.sleep(0.2)
        self.assertEqual(len(self.broker.log_lines('the client took no bytes')), 1)
        for c in small + large + cut + [never]:
            c.close()
        self.served_on()


class Neighbours(broker.BrokerTest):
    def test_second_process_on_the_directory(self):
        other = broker.Broker(directory=self.broker.directory)
        status, text = other.run_refused()
        self.assertEqual(status, 78)
        self.assertIn('another process', text)
        self.assertIn(os.path.basename(self.broker.directory), text)
        self.served_on()

    def test_port_in_use(self):
        other = broker.Broker()
        other.port = self.broker.port
        try:
            status, text = other.run_refused()
        finally:
            other.close()
        self.assertEqual(status, 78)
        self.assertIn('port %d is in use' % self.broker.port, text)
        self.served_on()

    def test_max_connections(self):
        broker_of_two = broker.Broker({'max.connections': 2})
        self.addCleanup(broker_of_two.close)
        broker_of_two.start()
        first, second = broker_of_two.connect(), broker_of_two.connect()
        first.call(kafka.API_VERSIONS, b'')
        second.call(kafka.API_VERSIONS, b'')
        third = broker_of_two.connect()
        third.send(kafka.frame(kafka.API_VERSIONS, b''))
        self.assertEqual(select.select([third.socket], [], [], 0.3)[0], [])
        first.close()
        third.answer()
        second.close()
        third.close()
        self.assertEqual(broker_of_two.stop(), 0, broker_of_two.log()[-3000:])


if __name__ == '__main__':
    broker.main()
