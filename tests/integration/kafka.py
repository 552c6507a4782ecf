"""The few Kafka requests that the tests send, byte by byte and without a client library: what is
sent when, and what comes back, is the test's alone. Versions before the flexible ones; any other by
name, with messages.py."""
import random
import socket
import struct
import time

import messages

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS = 0, 1, 2, 3, 18, 19
VERSIONS = {PRODUCE: 8, FETCH: 11, LIST_OFFSETS: 5, METADATA: 8, API_VERSIONS: 0, CREATE_TOPICS: 4}
STORAGE_ERROR = 56
NOT_YET = (3, 5, 6, 9)  # no such partition, no leader, another leader, no such replica


def _crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


_CRC = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    table = _CRC
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(n):
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 0x7F:
        out.append((n & 0x7F) | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def read_varint(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (n >> 1) ^ -(n & 1), at


def batch(values, timestamp_ms=1700000000000):
    """A record batch v2, uncompressed, without producer id."""
    records = bytearray()
    for i, value in enumerate(values):
        record = b'\0' + varint(0) + varint(i) + varint(-1) + varint(len(value)) + value + varint(0)
        records += varint(len(record)) + record
    n = len(values)
    body = struct.pack('>hiqqqhii', 0, n - 1, timestamp_ms, timestamp_ms, -1, -1, -1, n) + records
    head = struct.pack('>ibI', -1, 2, crc32c(body))
    return struct.pack('>qi', 0, len(head) + len(body)) + head + body


def read_batches(data):
    """(offset, value) of each record of whole batches; a cut one at the end is left out."""
    at, out = 0, []
    while len(data) - at >= 61:
        base, length = struct.unpack_from('>qi', data, at)
        if len(data) - at - 12 < length:
            break
        count = struct.unpack_from('>i', data, at + 57)[0]
        assert crc32c(memoryview(data)[at + 21:at + 12 + length]) == \
            struct.unpack_from('>I', data, at + 17)[0], 'CRC of the batch at offset %d' % base
        record = at + 61
        for _ in range(count):
            size, p = read_varint(data, record)
            record = p + size
            _, p = read_varint(data, p + 1)
            delta, p = read_varint(data, p)
            key_n, p = read_varint(data, p)
            value_n, p = read_varint(data, p + max(key_n, 0))
            out.append((base + delta, bytes(data[p:p + value_n])))
        at += 12 + length
    return out


def string(s):
    data = s.encode()
    return struct.pack('>h', len(data)) + data


def produce_body(topic, partition, data, acks=-1):
    return struct.pack('>hhii', -1, acks, 10000, 1) + string(topic) + \
        struct.pack('>iii', 1, partition, len(data)) + data


def fetch_body(topic, partition, offset, max_wait_ms=0, max_bytes=1 << 20):
    return struct.pack('>iiiibiii', -1, max_wait_ms, 1, max_bytes, 0, 0, -1, 1) + string(topic) + \
        struct.pack('>iiiqqi', 1, partition, -1, offset, -1, max_bytes) + struct.pack('>ih', 0, 0)


def frame(api, body, correlation_id=0, version=None):
    version = VERSIONS[api] if version is None else version
    data = struct.pack('>hhi', api, version, correlation_id) + string('test') + body
    return struct.pack('>i', len(data)) + data


class Closed(Exception):
    """The broker closed the connection."""


class Connection:
    def __init__(self, port, timeout_s=30, receive_bytes=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(timeout_s)
        self.correlation_id = 0
        try:
            self.socket.connect(('127.0.0.1', port))
        except OSError:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (ConnectionError, BrokenPipeError) as e:
            raise Closed from e

    def receive(self, n):
        parts = bytearray()
        while len(parts) < n:
            try:
                part = self.socket.recv(min(n - len(parts), 1 << 20))
            except ConnectionError as e:
                raise Closed from e
            if not part:
                raise Closed
            parts += part
        return bytes(parts)

    def answer(self):
        """The next one: correlation id and body."""
        size = struct.unpack('>i', self.receive(4))[0]
        data = self.receive(size)
        return struct.unpack_from('>i', data)[0], data[4:]

    def call(self, api, body, version=None):
        self.correlation_id += 1
        self.send(frame(api, body, self.correlation_id, version))
        correlation_id, data = self.answer()
        assert correlation_id == self.correlation_id
        return data

    def post(self, name, version, **fields):
        """A request of messages.py, whose answer is taken later; its correlation id."""
        self.correlation_id += 1
        data = messages.request(name, version, fields, self.correlation_id)
        self.send(struct.pack('>i', len(data)) + data)
        return self.correlation_id

    def ask(self, name, version, **fields):
        """A request of messages.py and its answer."""
        sent = self.post(name, version, **fields)
        correlation_id, data = self.answer()
        assert correlation_id == sent
        return messages.response(name, version, data)

    def ends(self, timeout_s=5):
        """The broker closes it within the time, whatever it sends before."""
        self.socket.settimeout(timeout_s)
        try:
            while self.socket.recv(1 << 16):
                pass
        except socket.timeout:
            return False
        except ConnectionError:
            pass
        return True

    def create_topic(self, name, partitions=1, configs=None):
        configs = configs or {}
        body = struct.pack('>i', 1) + string(name) + struct.pack('>ihi', partitions, 1, 0) + \
            struct.pack('>i', len(configs))
        for key, value in configs.items():
            body += string(key) + string(value)
        data = self.call(CREATE_TOPICS, body + struct.pack('>ib', 10000, 0))
        name_n = struct.unpack_from('>h', data, 8)[0]
        error = struct.unpack_from('>h', data, 10 + name_n)[0]
        self.wait_for_leaders(name, partitions)
        return error

    def wait_for_leaders(self, topic, partitions):
        """As a client does when it is told that a broker does not lead yet."""
        for partition in range(partitions):
            end = time.monotonic() + 10
            while self.fetch(topic, partition, 0)[0] in NOT_YET and time.monotonic() < end:
                time.sleep(0.02)

    def produce(self, topic, partition, values):
        """Error code and offset of the first."""
        return produce_answer(self.call(PRODUCE, produce_body(topic, partition, batch(values))))

    def fetch(self, topic, partition, offset, **options):
        """Error code, high watermark and the bytes of the batches."""
        return fetch_answer(self.call(FETCH, fetch_body(topic, partition, offset, **options)))

    def read_all(self, topic, partition):
        """Every record up to the high watermark."""
        out, next_offset = [], 0
        while True:
            error, high_watermark, data = self.fetch(topic, partition, next_offset)
            assert error == 0, 'fetch error %d' % error
            records = [r for r in read_batches(data) if r[0] >= next_offset]
            if not records:
                assert next_offset == high_watermark, 'stuck at %d of %d' % (next_offset,
                                                                             high_watermark)
                return out
            out += records
            next_offset = records[-1][0] + 1


def produce_answer(data):
    name_n = struct.unpack_from('>h', data, 4)[0]
    return struct.unpack_from('>hq', data, 6 + name_n + 4 + 4)


def fetch_answer(data):
    error = struct.unpack_from('>h', data, 4)[0]
    assert error == 0
    name_n = struct.unpack_from('>h', data, 14)[0]
    at = 16 + name_n + 4
    _, error, high_watermark, _, _, aborted_n = struct.unpack_from('>ihqqqi', data, at)
    at += 34 + max(aborted_n, 0) * 16 + 4
    size = struct.unpack_from('>i', data, at)[0]
    return error, high_watermark, data[at + 4:at + 4 + max(size, 0)]


def random_bytes(rng, n):
    return rng.getrandbits(8 * n).to_bytes(n, 'little') if n else b''


def seeded():
    seed = random.randrange(1 << 32)
    print('seed %d' % seed, flush=True)
    return random.Random(seed)
