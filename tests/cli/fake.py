"""Brokers that say what a test tells them to: any answer, true or not, on any number of ports. Old versions
without tagged fields; ApiVersions only in version 0, so that a client has to ask again.

    with Fake() as fake:
        fake.topics["t"] = {0: 1}                        # partition -> leader
        fake.answer[DESCRIBE_CONFIGS] = lambda r: ...    # bytes; None closes the connection; SILENCE: it stays open, for nothing
        fake.requests[DESCRIBE_CONFIGS]                  # bodies that came
"""
import os
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import batches  # pylint: disable=wrong-import-position

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 1, 2, 3, 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 15, 16, 18, 19, 20
DELETE_RECORDS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS, CREATE_PARTITIONS = 21, 22, 32, 37
DELETE_GROUPS, INCREMENTAL_ALTER_CONFIGS, CONSUMER_GROUP_DESCRIBE = 42, 44, 69
VERSIONS = {PRODUCE: 8, FETCH: 11, LIST_OFFSETS: 5, METADATA: 8, OFFSET_COMMIT: 7, OFFSET_FETCH: 5,
            FIND_COORDINATOR: 2, JOIN_GROUP: 5, HEARTBEAT: 3, LEAVE_GROUP: 2, SYNC_GROUP: 3, DESCRIBE_GROUPS: 4, LIST_GROUPS: 2, API_VERSIONS: 0, CREATE_TOPICS: 4,
            DELETE_TOPICS: 3, DELETE_RECORDS: 1, INIT_PRODUCER_ID: 1, DESCRIBE_CONFIGS: 2,
            CREATE_PARTITIONS: 1, DELETE_GROUPS: 1, INCREMENTAL_ALTER_CONFIGS: 0}


SILENCE = object()


def i8(n):
    return struct.pack(">b", n)


def i16(n):
    return struct.pack(">h", n)


def i32(n):
    return struct.pack(">i", n)


def i64(n):
    return struct.pack(">q", n)


def text(s):
    if s is None:
        return i16(-1)
    data = s if isinstance(s, bytes) else s.encode()
    return i16(len(data)) + data


def blob(data):
    return i32(-1) if data is None else i32(len(data)) + data


def array(items):
    return i32(len(items)) + b"".join(items)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, form, n):
        return struct.unpack(form, self.take(n))[0]

    def i8(self):
        return self.number(">b", 1)

    def i16(self):
        return self.number(">h", 2)

    def i32(self):
        return self.number(">i", 4)

    def i64(self):
        return self.number(">q", 8)

    def text(self):
        n = self.i16()
        return None if n < 0 else self.take(n).decode()

    def blob(self):
        n = self.i32()
        return None if n < 0 else self.take(n)

    def array(self, element):
        return [element() for _ in range(self.i32())]


class Node:
    """One port; answers until it is stopped."""

    def __init__(self, fake, node_id):
        self.fake, self.id = fake, node_id
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            silent = False
            while True:
                size = struct.unpack(">i", self.receive(connection, 4))[0]
                r = Reader(self.receive(connection, size))
                api, version, correlation_id, _ = r.i16(), r.i16(), r.i32(), r.text()
                body = self.fake.respond(self, api, version, r)
                if body is None:
                    break
                silent |= body is SILENCE
                if not silent:
                    connection.sendall(i32(len(body) + 4) + i32(correlation_id) + body)
        except (OSError, EOFError):
            pass
        connection.close()

    @staticmethod
    def receive(connection, n):
        data = b""
        while len(data) < n:
            part = connection.recv(n - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def stop(self):
        # accept() in another thread ends by shutdown, not by close.
        for s in [self.listener, *self.connections]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


class Fake:
    def __init__(self, nodes=1):
        self.lock = threading.Lock()
        self.topics = {}
        self.answer = {}
        self.requests = {}
        self.asked = {}  # api -> ids of the nodes that were asked
        self.offsets = {}  # (topic, partition) -> (start, end)
        self.nodes = [Node(self, i + 1) for i in range(nodes)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.stop()

    @property
    def address(self):
        return f"127.0.0.1:{self.nodes[0].port}"

    def respond(self, node, api, version, r):
        with self.lock:
            if api == API_VERSIONS:
                return self.versions(version)
            self.requests.setdefault(api, []).append(r.data[r.at:])
            self.asked.setdefault(api, []).append(node.id)
            assert version == VERSIONS[api], f"api {api} version {version}"
            own = {METADATA: self.metadata, LIST_OFFSETS: self.list_offsets,
                   FIND_COORDINATOR: self.find_coordinator, INIT_PRODUCER_ID: self.init_producer_id}
            return self.answer.get(api, own.get(api, lambda _: None))(r)

    def versions(self, version):
        served = array([i16(k) + i16(0 if k == API_VERSIONS else min(1, v)) + i16(v)
                        for k, v in VERSIONS.items()])
        return i16(35 if version > 0 else 0) + served

    def metadata(self, r):
        names = r.array(r.text) if r.i32() >= 0 and not setattr(r, "at", r.at - 4) else list(self.topics)
        brokers = [i32(n.id) + text("127.0.0.1") + i32(n.port) + text(None) for n in self.nodes]
        topics = []
        for name in names:
            partitions = [i16(0 if leader >= 0 else 5) + i32(p) + i32(leader) + i32(0) + array([i32(leader)]) * 2 +
                          array([]) for p, leader in self.topics.get(name, {}).items()]
            topics.append(i16(0 if name in self.topics else 3) + text(name) + i8(0) + array(partitions) +
                          i32(-1 << 31))
        return i32(0) + array(brokers) + text("fake") + i32(self.nodes[0].id) + array(topics) + i32(-1 << 31)

    def list_offsets(self, r):
        r.i32(), r.i8()

        def partition(topic):
            index, _, time = r.i32(), r.i32(), r.i64()
            start, end = self.offsets.get((topic, index), (0, 0))
            return i32(index) + i16(0) + i64(-1) + i64(start if time == -2 else end) + i32(0)

        def topic():
            name = r.text()
            return text(name) + array(r.array(lambda: partition(name)))

        return i32(0) + array(r.array(topic))

    def find_coordinator(self, r):
        node = self.nodes[-1]
        return i32(0) + i16(0) + text(None) + i32(node.id) + text("127.0.0.1") + i32(node.port)

    def init_producer_id(self, r):
        return i32(0) + i16(0) + i64(1000) + i16(0)


# ---------------------------------------------------------------- record batches

def batch(base, records, attributes=0, producer_id=-1):
    """records are (key, value)."""
    return batches.build([(1700000000000, *r) for r in records], attributes=attributes, producer=(producer_id, 0, -1),
                         base=base)


TRANSACTIONAL, CONTROL = batches.TRANSACTIONAL, batches.CONTROL


def marker(base, producer_id, commit):
    return batch(base, [(i16(0) + i16(1 if commit else 0), i16(0) + i32(0))], TRANSACTIONAL | CONTROL, producer_id)


def fetch_request(r):
    """partition -> offset."""
    r.take(4 + 4 + 4 + 4 + 1 + 4 + 4)
    asked = {}

    def partition():
        index, _, offset, _, _ = r.i32(), r.i32(), r.i64(), r.i64(), r.i32()
        asked[index] = offset

    r.array(lambda: (r.text(), r.array(partition)))
    return asked


def fetch_answer(topic, partitions):
    """partitions: index -> (error, data, aborted) ; aborted: (producer id, first offset)."""
    return i32(0) + i16(0) + i32(0) + array([text(topic) + array([
        i32(p) + i16(error) + i64(1 << 40) + i64(1 << 40) + i64(0) + array([i64(a) + i64(b) for a, b in aborted]) +
        i32(-1) + blob(data) for p, (error, data, aborted) in partitions.items()])])


def produce_request(r):
    """partition -> bytes of the batch."""
    r.text(), r.i16(), r.i32()
    sent = {}

    def partition():
        index = r.i32()
        sent[index] = r.blob()

    r.array(lambda: (r.text(), r.array(partition)))
    return sent


def produce_answer(topic, errors):
    """errors: partition -> code."""
    return array([text(topic) + array([i32(p) + i16(e) + i64(0) + i64(-1) + i64(0) + array([]) + text(None)
                                       for p, e in errors.items()])]) + i32(0)


def read_batch(data):
    """(base sequence, producer id, values)"""
    b = batches.read_one(data)
    return b.sequence, b.producer_id, [r.value for r in b.records]
