"""The same request to Apache Kafka and to Dohle, and what differs in the two answers. What can not be
equal (ids, ports, directories, the time) is replaced by a word first, the same for both."""
import json
import os
import re
import socket
import struct
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tests',
                                'integration'))
import messages  # noqa: E402
from coverage import Coverage  # noqa: E402

CLOSED, SILENT = 'CONNECTION CLOSED', 'NO ANSWER'
UUID_TEXT = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
NEAR_MS = 3_600_000


class Each:
    """A value that is another one for each broker."""

    def __init__(self, values):
        self.values = values


def resolved(value, side):
    if isinstance(value, Each):
        return value.values[side]
    if isinstance(value, dict):
        return {k: resolved(v, side) for k, v in value.items()}
    if isinstance(value, list):
        return [resolved(v, side) for v in value]
    return value


def raw_request(api, version, body, correlation_id):
    """Also of versions that there are not."""
    m = messages.message(api + 'Request')
    head = struct.pack('>hhih', m.key, version, correlation_id, 4) + b'diff'
    return head + (b'\0' if version >= m.flexible else b'') + body


class Side:
    """One broker: its connections by name, what is its own."""

    def __init__(self, index, port, directory):
        self.index, self.port = index, port
        self.connections, self.correlation_id = {}, 0
        self.words = [(directory, '<directory>')]  # texts that are replaced
        self.ids = {messages.NO_ID: messages.NO_ID}

    def connection(self, name):
        if name not in self.connections:
            s = socket.create_connection(('127.0.0.1', self.port))
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections[name] = s
        return self.connections[name]

    def drop(self, name):
        s = self.connections.pop(name, None)
        if s is not None:
            s.close()

    def send(self, name, api, version, fields, body):
        """body: bytes instead of fields."""
        self.correlation_id += 1
        data = raw_request(api, version, body, self.correlation_id) if fields is None else \
            messages.request(api, version, resolved(fields, self.index), self.correlation_id)
        try:
            self.connection(name).sendall(struct.pack('>i', len(data)) + data)
        except OSError:
            pass  # receive() tells
        return self.correlation_id

    def receive(self, name, timeout_s):
        s = self.connection(name)
        s.settimeout(timeout_s)
        try:
            size = struct.unpack('>i', self._read(s, 4))[0]
            return self._read(s, size)
        except socket.timeout:
            self.drop(name)
            return SILENT
        except (OSError, EOFError):
            self.drop(name)
            return CLOSED

    @staticmethod
    def _read(s, n):
        data = b''
        while len(data) < n:
            part = s.recv(n - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def neutral(self, value, key=''):
        if isinstance(value, dict):
            return {k: self.neutral(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.neutral(v, key) for v in value]
        if isinstance(value, uuid.UUID):
            return str(self.ids.get(value, '<id>'))
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, str):
            for text, word in self.words:
                value = value.replace(text, word)
            return UUID_TEXT.sub('<uuid>', value)
        if isinstance(value, int) and not isinstance(value, bool):
            if key == 'UsableBytes' and value >= 0:  # changes from moment to moment
                return '<room>'
            if value == self.port:
                return '<port>'
            if value > 1 << 40 and abs(value - time.time() * 1000) < NEAR_MS:
                return '<now>'
        return value


class Both:
    def __init__(self, kafka, dohle, known):
        self.sides, self.known = [kafka, dohle], known
        self.asked = self.equal = 0
        self.found = []  # (api, version, note, path, kafka's, ours)
        self.used = set()
        self.note = ''
        self.coverage, self.counted = Coverage(), False

    # ---- asking

    def begin(self, api, version, fields, on='a', body=None):
        ids = [s.send(on, api, version, fields if body is None else None, body) for s in self.sides]
        return api, version, on, ids

    def end(self, asked, timeout_s=15, compare=True):
        api, version, on, ids = asked
        raws = [s.receive(on, timeout_s) for s in self.sides]
        answers = [self._decoded(api, version, raw, i) for raw, i in zip(raws, ids)]
        if compare:
            self.compare(api, version, answers)
        return answers

    def ask(self, api, version, fields=None, on='a', body=None, note=None, compare=True, timeout_s=15):
        """Both answers; note says what is special about the request."""
        self.note = note or ''
        self.counted = body is None
        return self.end(self.begin(api, version, fields or {}, on, body), timeout_s, compare)

    @staticmethod
    def _decoded(api, version, raw, correlation_id):
        if isinstance(raw, str):
            return raw
        if struct.unpack_from('>i', raw)[0] != correlation_id:
            return 'ANOTHER CORRELATION ID'
        m = messages.message(api + 'Response')
        try:
            return messages.response(api, version if m.first <= version <= m.last else 0, raw[4:])
        except (AssertionError, StopIteration, ValueError) as e:
            return f'UNREADABLE: {e}'

    def ask_until_alike(self, api, version, fields, note, seconds=3):
        """What follows a change that a broker acts upon a little later than it answers."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answers = self.ask(api, version, fields, compare=False)
            if len({json.dumps(s.neutral(a), sort_keys=True) for s, a in zip(self.sides, answers)}) == 1:
                break
            time.sleep(0.05)
        self.ask(api, version, fields, note=note)

    def poll(self, api, version, fields, ready, seconds=20, of=2):
        """Asks until ready(answer) on both, or of Apache Kafka alone; not compared."""
        end = time.monotonic() + seconds
        while True:
            answers = self.ask(api, version, fields, on='poll', compare=False)
            if all(not isinstance(a, str) and ready(a) for a in answers[:of]):
                return answers
            if time.monotonic() > end:
                raise TimeoutError(f'{api} {version}: {answers}')
            time.sleep(0.05)

    # ---- what both have

    def topic(self, name, partitions=1, configs=None):
        """A topic that both lead; its id for each."""
        self.ask('CreateTopics', 7, {'Topics': [{
            'Name': name, 'NumPartitions': partitions, 'ReplicationFactor': 1,
            'Configs': [{'Name': k, 'Value': v} for k, v in (configs or {}).items()]}],
            'TimeoutMs': 15000}, on='poll', compare=False)

        def led(answer):
            topic = answer['Topics'][0]
            return topic['ErrorCode'] == 0 and len(topic['Partitions']) == partitions and \
                all(p['LeaderId'] >= 0 for p in topic['Partitions'])
        answers = self.poll('Metadata', 12, {'Topics': [{'Name': name}]}, led)
        ids = [a['Topics'][0]['TopicId'] for a in answers]
        for side, i in zip(self.sides, ids):
            side.ids[i] = f'<id of {name}>'
        for p in range(partitions):  # led in the broker's own eyes too
            self.poll('ListOffsets', 5, {'ReplicaId': -1, 'Topics': [{'Name': name, 'Partitions': [
                {'PartitionIndex': p, 'CurrentLeaderEpoch': -1, 'Timestamp': -1}]}]},
                lambda a: a['Topics'][0]['Partitions'][0]['ErrorCode'] == 0)
        return Each(ids)

    # ---- comparing

    def compare(self, api, version, answers):
        self.asked += 1
        if self.counted:
            self.coverage.count(api, version, answers[0])
        kafka, dohle = (s.neutral(a) for s, a in zip(self.sides, answers))
        before = len(self.found)
        if kafka != dohle:
            self._differ(api, version, '', kafka, dohle)
        self.equal += len(self.found) == before

    def _differ(self, api, version, path, kafka, dohle):
        if isinstance(kafka, dict) and isinstance(dohle, dict):
            for key in sorted(set(kafka) | set(dohle)):
                self._differ(api, version, f'{path}.{key}' if path else key, kafka.get(key, '<absent>'),
                             dohle.get(key, '<absent>'))
        elif isinstance(kafka, list) and isinstance(dohle, list) and kafka != dohle:
            by = lambda v: json.dumps(v, sort_keys=True)  # noqa: E731
            if sorted(map(by, kafka)) == sorted(map(by, dohle)):
                self._tell(api, version, path + '[order]', [by(v)[:60] for v in kafka],
                           [by(v)[:60] for v in dohle])
            elif len(kafka) == len(dohle):
                for a, b in zip(self._sorted(kafka), self._sorted(dohle)):
                    self._differ(api, version, path, a, b)
            else:
                self._tell(api, version, path + '[n]', kafka, dohle)
        elif kafka != dohle:
            self._tell(api, version, path, kafka, dohle)

    @staticmethod
    def _sorted(values):
        """By what names an entry, so that equal entries meet whatever their order."""
        def key(v):
            if not isinstance(v, dict):
                return str(v)
            names = [k for k in ('Name', 'TopicName', 'GroupId', 'MemberId', 'PartitionIndex', 'ResourceName',
                                 'Partition', 'ApiKey', 'Topic') if k in v]
            return str([v[k] for k in names])
        return sorted(values, key=key)

    def _tell(self, api, version, path, kafka, dohle):
        for entry in self.known:
            if entry.matches(api, self.note, path, kafka, dohle):
                self.used.add(entry)
                return
        self.found.append((api, version, self.note, path, kafka, dohle))
