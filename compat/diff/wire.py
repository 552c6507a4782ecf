"""Requests and answers of any API at any version, from the project's own descriptions in
src/wire/schema. Values are dicts by the fields' names as in Kafka's JSON (lower camel case); what is
left out has its default, what a version does not have is left out of the bytes."""
import glob
import os
import struct
import sys
import uuid

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path.insert(0, os.path.join(ROOT, 'src', 'wire'))
import gen  # noqa: E402

NUMBERS = {'int8': '>b', 'int16': '>h', 'int32': '>i', 'int64': '>q', 'uint16': '>H', 'uint32': '>I',
           'float64': '>d', 'bool': '>?'}
ZERO_UUID = uuid.UUID(int=0)


def _load():
    requests, responses = {}, {}
    for path in glob.glob(os.path.join(ROOT, 'src', 'wire', 'schema', 'api', '*.txt')):
        with open(path, encoding='utf-8') as file:
            for message in gen.parse(file.read().split('\n')):
                if message.kind == 'request':
                    requests[message.name[:-len('Request')]] = message
                elif message.kind == 'response':
                    responses[message.name[:-len('Response')]] = message
    return requests, responses


REQUESTS, RESPONSES = _load()


def _unsigned(n):
    out = bytearray()
    while n > 0x7F:
        out.append((n & 0x7F) | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _length(n, form, flexible):
    """Of a string (form >h), bytes or an array (form >i); n is -1 for null."""
    return _unsigned(n + 1) if flexible else struct.pack(form, n)


def _encode_one(field, value, version, flexible):
    kind = field.element
    if field.struct:
        if field.by_pointer() and not field.array:
            if value is None:
                return b'\xff'
            return b'\x01' + encode_struct(field.struct, value, version, flexible)
        return encode_struct(field.struct, value, version, flexible)
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    if kind == 'uuid':
        return value.bytes
    data = value.encode('utf-8', 'surrogateescape') if isinstance(value, str) else value
    flexible = flexible and not field.inflexible
    form = '>h' if kind == 'string' else '>i'
    return _length(-1 if data is None else len(data), form, flexible) + (data or b'')


def _default(field):
    if field.default == 'null':
        return None
    if field.array:
        return []
    if field.struct:
        return {}
    if field.element in NUMBERS:
        text = field.default or '0'
        return text == 'true' if field.element == 'bool' else \
            float(text) if field.element == 'float64' else int(text, 0)
    if field.element == 'uuid':
        return ZERO_UUID
    if field.element == 'records':
        return None
    return '' if field.element == 'string' else b''


def _encode_field(field, value, version, flexible):
    if not field.array:
        return _encode_one(field, value, version, flexible)
    if value is None:
        return _length(-1, '>i', flexible)
    return _length(len(value), '>i', flexible) + \
        b''.join(_encode_one(field, v, version, flexible) for v in value)


def encode_struct(description, value, version, flexible):
    names = {f.json for f in description.fields}
    unknown = set(value) - names
    assert not unknown, f'{description.id} has no {unknown}'
    out, tags = b'', []
    for field in description.fields:
        if not field.first <= version <= field.last:
            continue
        v = value.get(field.json, _default(field))
        if field.tag < 0:
            out += _encode_field(field, v, version, flexible)
        elif v != _default(field):
            tags.append((field.tag, _encode_field(field, v, version, flexible)))
    if flexible:
        out += _unsigned(len(tags))
        for tag, data in sorted(tags):
            out += _unsigned(tag) + _unsigned(len(data)) + data
    return out


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise ValueError('the answer is cut')
        out = self.data[self.at:self.at + n]
        self.at += n
        return out

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def unsigned(self):
        n = shift = 0
        while True:
            byte = self.take(1)[0]
            n |= (byte & 0x7F) << shift
            if byte < 0x80:
                return n
            shift += 7


def _read_length(reader, form, flexible):
    return reader.unsigned() - 1 if flexible else reader.number(form)


def _decode_one(field, reader, version, flexible):
    kind = field.element
    if field.struct:
        if field.by_pointer() and not field.array and reader.number('>b') < 0:
            return None
        return decode_struct(field.struct, reader, version, flexible)
    if kind in NUMBERS:
        return reader.number(NUMBERS[kind])
    if kind == 'uuid':
        return uuid.UUID(bytes=reader.take(16))
    n = _read_length(reader, '>h' if kind == 'string' else '>i', flexible and not field.inflexible)
    if n < 0:
        return None
    data = reader.take(n)
    return data.decode('utf-8', 'replace') if kind == 'string' else data


def _decode_field(field, reader, version, flexible):
    if not field.array:
        return _decode_one(field, reader, version, flexible)
    n = _read_length(reader, '>i', flexible)
    return None if n < 0 else [_decode_one(field, reader, version, flexible) for _ in range(n)]


def decode_struct(description, reader, version, flexible):
    out = {}
    for field in description.fields:
        if field.first <= version <= field.last:
            out[field.json] = _default(field) if field.tag >= 0 else \
                _decode_field(field, reader, version, flexible)
    if flexible:
        tagged = {f.tag: f for f in description.fields if f.tag >= 0 and f.first <= version <= f.last}
        for _ in range(reader.unsigned()):
            tag, size = reader.unsigned(), reader.unsigned()
            part = Reader(reader.take(size))
            if tag in tagged:
                out[tagged[tag].json] = _decode_field(tagged[tag], part, version, flexible)
            else:
                out[f'tag{tag}'] = part.data.hex()
    return out


def frame(api, version, body, correlation_id, client_id='diff'):
    """Length, header and body (bytes) of a request; also of versions that do not exist."""
    message = REQUESTS[api]
    data = struct.pack('>hhi', message.key, version, correlation_id)
    name = client_id.encode()
    data += struct.pack('>h', len(name)) + name
    if version >= message.flexible:
        data += b'\0'
    return struct.pack('>i', len(data) + len(body)) + data + body


def request_body(api, version, fields):
    message = REQUESTS[api]
    return encode_struct(message.root, fields, version, version >= message.flexible)


def answer(api, version, data):
    """The fields behind the correlation id; what is left over is a field of its own."""
    message = RESPONSES[api]
    flexible = version >= message.flexible
    reader = Reader(data)
    if flexible and api != 'ApiVersions' and reader.unsigned() != 0:
        raise ValueError('tagged fields in the header')
    out = decode_struct(message.root, reader, version, flexible)
    if reader.at != len(data):
        out['leftOver'] = data[reader.at:].hex()
    return out
