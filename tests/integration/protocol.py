"""Kafka requests by name, of any version, from the descriptions in src/wire/schema (its README tells
the notation): fields that are left out have their default. Records are not spoken here.

    with Client(port) as c:
        c.call('Heartbeat', 4, GroupId='g', GenerationId=1, MemberId='m')     # the answer, a dict

A request that may wait: c.send(...), then c.receive() or c.waits().
"""
import os
import select
import socket
import struct
import uuid

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'src', 'wire', 'schema')
NUMBERS = {'bool': '?', 'int8': 'b', 'int16': 'h', 'uint16': 'H', 'int32': 'i', 'uint32': 'I',
           'int64': 'q', 'float64': 'd'}


class Range:
    def __init__(self, text):
        first, _, last = text.rstrip('+').partition('-')
        if text == 'none':
            first, last = '1', '0'
        self.first = int(first)
        self.last = 99 if text.endswith('+') else int(last or first)

    def __contains__(self, version):
        return self.first <= version <= self.last


class Field:
    def __init__(self, words):
        self.name, self.versions = words[0], Range(words[2])
        self.array = words[1].startswith('[]')
        self.type = words[1].lstrip('[]')
        self.null, self.tag, self.default = Range('none'), None, None
        self.flexible = True
        rest = iter(words[3:])
        for word in rest:
            if word == 'null':
                self.null = Range(next(rest))
            elif word == 'tag':
                self.tag = int(next(rest).partition('@')[0])
            elif word == 'default':
                self.default = next(rest)
            elif word == 'flexible':
                self.flexible = next(rest) != 'none'

    def value(self, values):
        if self.name in values:
            return values[self.name]
        if self.default == 'null':
            return None
        if self.array:
            return []
        if self.type in NUMBERS:
            default = self.default or '0'
            return default == 'true' if self.type == 'bool' else int(default, 0)
        return {'string': '', 'bytes': b'', 'uuid': uuid.UUID(int=0)}.get(self.type, {})


class Message:
    def __init__(self, words):
        self.name = words[1]
        facts = dict(zip(words[3::2], words[4::2]))
        self.api = int(facts.get('api', -1))
        self.flexible = Range(facts['flexible'])
        self.fields, self.structs = [], {}


def load(path):
    """The messages of one file, by name."""
    messages = {}
    message, levels = None, []
    with open(path) as f:
        for line in f:
            words = line.split()
            if not words or words[0].startswith('#'):
                continue
            depth = (len(line) - len(line.lstrip())) // 2
            if words[0] == 'message':
                message = messages[words[1]] = Message(words)
                levels = [message.fields]
                continue
            del levels[depth:]
            if words[0] == 'struct':
                levels.append(message.structs.setdefault(words[1], []))
                continue
            field = Field(words)
            levels[depth - 1].append(field)
            base = field.type
            levels.append([] if base in NUMBERS or base in ('string', 'bytes', 'uuid', 'records')
                          else message.structs.setdefault(base, []))
    return messages


class Writer:
    def __init__(self, message, version):
        self.message, self.version = message, version
        self.flexible = version in message.flexible
        self.out = bytearray()

    def varint(self, n):
        while n > 0x7F:
            self.out.append((n & 0x7F) | 0x80)
            n >>= 7
        self.out.append(n)

    def length(self, n, compact, form):
        if compact:
            self.varint(n + 1)
        else:
            self.out += struct.pack(form, n)

    def struct(self, fields, values):
        unknown = set(values) - {f.name for f in fields}
        assert not unknown, unknown
        tags = []
        for f in fields:
            if self.version not in f.versions:
                continue
            if f.tag is None:
                self.field(f, f.value(values))
            elif f.name in values:
                tags.append(f)
        if self.flexible:
            self.varint(len(tags))
        for f in sorted(tags, key=lambda t: t.tag):
            inner = Writer(self.message, self.version)
            inner.field(f, values[f.name])
            self.varint(f.tag)
            self.varint(len(inner.out))
            self.out += inner.out

    def field(self, f, value):
        if not f.array:
            self.one(f, value)
            return
        self.length(-1 if value is None else len(value), self.flexible, '>i')
        for item in value or []:
            self.one(f, item)

    def one(self, f, value):
        if f.type in NUMBERS:
            self.out += struct.pack('>' + NUMBERS[f.type], value)
        elif f.type == 'uuid':
            self.out += value.bytes
        elif f.type in ('string', 'bytes'):
            data = value.encode() if isinstance(value, str) else value
            self.length(-1 if data is None else len(data), self.flexible and f.flexible,
                        '>h' if f.type == 'string' else '>i')
            self.out += data or b''
        else:
            self.struct(self.message.structs[f.type], value)


class Reader:
    def __init__(self, message, version, data):
        self.message, self.version = message, version
        self.flexible = version in message.flexible
        self.data, self.at = data, 0

    def take(self, n):
        assert self.at + n <= len(self.data), 'the answer is too short'
        self.at += n
        return bytes(self.data[self.at - n:self.at])

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def varint(self):
        n = shift = 0
        while True:
            byte = self.take(1)[0]
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return n

    def length(self, compact, form):
        return self.varint() - 1 if compact else self.unpack(form)

    def struct(self, fields):
        values = {f.name: self.field(f) for f in fields
                  if self.version in f.versions and f.tag is None}
        if self.flexible:
            by_tag = {f.tag: f for f in fields if f.tag is not None}
            for _ in range(self.varint()):
                tag, n = self.varint(), self.varint()
                values[by_tag[tag].name] = self.field(by_tag[tag])
                assert n >= 0
        return values

    def field(self, f):
        if not f.array:
            return self.one(f)
        n = self.length(self.flexible, '>i')
        return None if n < 0 else [self.one(f) for _ in range(n)]

    def one(self, f):
        if f.type in NUMBERS:
            return self.unpack('>' + NUMBERS[f.type])
        if f.type == 'uuid':
            return uuid.UUID(bytes=self.take(16))
        if f.type in ('string', 'bytes'):
            n = self.length(self.flexible and f.flexible, '>h' if f.type == 'string' else '>i')
            data = None if n < 0 else self.take(n)
            return data.decode() if f.type == 'string' and data is not None else data
        return self.struct(self.message.structs[f.type])


MESSAGES = {}


def find(name):
    """Both messages of an API, by Kafka's name of it."""
    if name + 'Request' not in MESSAGES:
        file = ''.join('_' + c.lower() if c.isupper() else c for c in name).lstrip('_')
        MESSAGES.update(load(os.path.join(SCHEMA, 'api', file + '.txt')))
    return MESSAGES[name + 'Request'], MESSAGES[name + 'Response']


class Closed(Exception):
    """The broker closed the connection."""


class Client:
    def __init__(self, port, client_id='test', timeout_s=30):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self.sent, self.correlation_id = [], 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, api, version, **values):
        request, response = find(api)
        body = Writer(request, version)
        body.struct(request.fields, values)
        self.correlation_id += 1
        client = (self.client_id or '').encode()
        header = struct.pack('>hhih', request.api, version, self.correlation_id,
                             -1 if self.client_id is None else len(client)) + client
        if version in request.flexible:
            header += b'\0'
        self.sent.append((self.correlation_id, response, version))
        self.socket.sendall(struct.pack('>i', len(header) + len(body.out)) + header + body.out)
        return self

    def exactly(self, n):
        data = bytearray()
        while len(data) < n:
            part = self.socket.recv(n - len(data))
            if not part:
                raise Closed
            data += part
        return bytes(data)

    def receive(self):
        """The answer to the oldest request that has none yet."""
        expected, response, version = self.sent.pop(0)
        data = self.exactly(struct.unpack('>i', self.exactly(4))[0])
        correlation_id, at = struct.unpack_from('>i', data)[0], 4
        assert correlation_id == expected
        if version in response.flexible and response.name != 'ApiVersionsResponse':
            assert data[4] == 0
            at = 5
        reader = Reader(response, version, memoryview(data)[at:])
        values = reader.struct(response.fields)
        assert reader.at == len(reader.data), 'bytes behind the answer'
        return values

    def waits(self, for_s=0.05):
        """Nothing has come within a moment."""
        return not select.select([self.socket], [], [], for_s)[0]

    def call(self, api, version, **values):
        return self.send(api, version, **values).receive()
