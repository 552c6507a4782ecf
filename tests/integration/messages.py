"""Requests and answers of any version as dicts with Kafka's field names. What stands where is read
from the descriptions that the broker's own tables are made from; that those are Kafka's, the golden
frames prove. A field that is left out has its default; one that the version lacks is not sent."""
import os
import struct
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'src',
                                'wire'))
import gen  # pylint: disable=wrong-import-position

SCHEMA = os.path.join(os.path.dirname(gen.__file__), 'schema', 'api')
FORMS = {'bool': '?', 'int8': 'b', 'int16': 'h', 'uint16': 'H', 'int32': 'i', 'uint32': 'I',
         'int64': 'q', 'float64': 'd'}
NO_ID = uuid.UUID(int=0)

_messages = {}


def message(name):
    """'FetchRequest', 'FetchResponse'"""
    if name not in _messages:
        api = gen.snake(name.removesuffix('Request').removesuffix('Response'))
        with open(os.path.join(SCHEMA, api + '.txt'), encoding='utf-8') as f:
            _messages.update((m.name, m) for m in gen.parse(f.read().split('\n')))
    return _messages[name]


def key(field):
    """Kafka begins nearly all names with a capital; here all are."""
    return field.name[0].upper() + field.name[1:]


def default(field):
    if field.array or field.by_pointer():
        return None if field.default == 'null' else [] if field.array else {}
    if field.struct:
        return {}
    if field.element == 'uuid':
        return NO_ID
    if field.element in ('string', 'bytes', 'records'):
        return None if field.default == 'null' else b''
    if field.element == 'bool':
        return field.default == 'true'
    return int(field.default or '0', 0)


class Writer:
    def __init__(self, version, flexible):
        self.version, self.flexible, self.out = version, flexible, bytearray()

    def varint(self, n):
        while n > 0x7F:
            self.out.append(n & 0x7F | 0x80)
            n >>= 7
        self.out.append(n)

    def length(self, n, form):
        """-1 for null."""
        if self.flexible:
            self.varint(n + 1)
        else:
            self.out += struct.pack('>' + form, n)

    def struct(self, shape, values):
        unknown = set(values) - {key(f) for f in shape.fields}
        assert not unknown, '%s has no %s' % (shape.name, unknown)
        tags = {}
        for f in shape.fields:
            if not f.first <= self.version <= f.last:
                continue
            if f.tag < 0:
                self.field(f, values.get(key(f), default(f)))
            elif key(f) in values:
                nested = Writer(self.version, self.flexible)
                nested.field(f, values[key(f)])
                tags[f.tag] = nested.out
        if self.flexible:
            self.varint(len(tags))
            for tag, data in sorted(tags.items()):
                self.varint(tag)
                self.varint(len(data))
                self.out += data

    def field(self, f, value):
        if f.array:
            self.length(-1 if value is None else len(value), 'i')
            for element in value or []:
                self.element(f, element)
        else:
            if f.by_pointer() and f.tag >= 0:
                self.varint(value is not None)
            elif f.by_pointer():
                self.out += struct.pack('>b', -1 if value is None else 1)
            if value is not None or not f.by_pointer():
                self.element(f, value)

    def element(self, f, value):
        if f.struct:
            self.struct(f.struct, value)
        elif f.element == 'uuid':
            self.out += value.bytes
        elif f.element in FORMS:
            self.out += struct.pack('>' + FORMS[f.element], value)
        else:
            data = value.encode() if isinstance(value, str) else value
            self.length(-1 if data is None else len(data), 'h' if f.element == 'string' else 'i')
            self.out += data or b''


class Reader:
    def __init__(self, data, version, flexible):
        self.data, self.at, self.version, self.flexible = data, 0, version, flexible

    def take(self, n):
        assert len(self.data) - self.at >= n, 'the answer is short'
        self.at += n
        return self.data[self.at - n:self.at]

    def varint(self):
        n = shift = 0
        while True:
            byte = self.take(1)[0]
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return n

    def fixed(self, form):
        return struct.unpack('>' + form, self.take(struct.calcsize('>' + form)))[0]

    def length(self, form):
        return self.varint() - 1 if self.flexible else self.fixed(form)

    def struct(self, shape):
        fields = [f for f in shape.fields if f.first <= self.version <= f.last]
        out = {key(f): self.field(f) if f.tag < 0 else default(f) for f in fields}
        if not self.flexible:
            return out
        last = -1
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            nested = Reader(self.take(size), self.version, True)
            field = next(f for f in fields if f.tag == tag)
            out[key(field)] = nested.field(field)
            assert nested.at == size and tag > last
            last = tag
        return out

    def field(self, f):
        if f.array:
            n = self.length('i')
            return None if n < 0 else [self.element(f) for _ in range(n)]
        if f.by_pointer() and (self.varint() == 0 if f.tag >= 0 else self.fixed('b') < 0):
            return None
        return self.element(f)

    def element(self, f):
        if f.struct:
            return self.struct(f.struct)
        if f.element == 'uuid':
            return uuid.UUID(bytes=self.take(16))
        if f.element in FORMS:
            return self.fixed(FORMS[f.element])
        n = self.length('h' if f.element == 'string' else 'i')
        data = None if n < 0 else self.take(n)
        return data.decode() if data is not None and f.element == 'string' else data


def request(name, version, values, correlation_id=1, client='test'):
    """A frame without its length; client None: null."""
    m = message(name + 'Request')
    flexible = version >= m.flexible
    client = None if client is None else client.encode()
    head = struct.pack('>hhih', m.key, version, correlation_id, -1 if client is None else len(client))
    w = Writer(version, flexible)
    w.struct(m.root, values)
    return head + (client or b'') + (b'\0' if flexible else b'') + bytes(w.out)


def answer(name, version, values, correlation_id):
    """What a server sends, without its length."""
    m = message(name + 'Response')
    flexible = version >= m.flexible
    w = Writer(version, flexible)
    w.struct(m.root, values)
    head = b'\0' if flexible and name != 'ApiVersions' else b''
    return struct.pack('>i', correlation_id) + head + bytes(w.out)


def response(name, version, data):
    """data: what follows the correlation id."""
    m = message(name + 'Response')
    flexible = version >= m.flexible
    r = Reader(data, version, flexible)
    if flexible and name != 'ApiVersions':
        assert r.varint() == 0, 'tags in the header'
    out = r.struct(m.root)
    assert r.at == len(data), '%d bytes behind the answer' % (len(data) - r.at)
    return out
