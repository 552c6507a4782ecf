"""Record batches of magic 2, built with every field in the caller's hand, and read: what the batch
says and each of its records."""
import collections
import functools
import struct
import subprocess
import zlib

from kafka import crc32c, read_varint, varint

CODECS = ('none', 'gzip', 'snappy', 'lz4', 'zstd')
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64
HEAD = struct.Struct('>qiibIhiqqqhii')

Record = collections.namedtuple('Record', 'offset timestamp key value headers')
Batch = collections.namedtuple('Batch', 'base length leader_epoch magic crc attributes last_delta '
                               'base_timestamp max_timestamp producer_id producer_epoch sequence '
                               'count records data')


def field(data):
    return varint(-1) if data is None else varint(len(data)) + data


def record(delta, timestamp_delta, key, value, headers=()):
    body = b'\0' + varint(timestamp_delta) + varint(delta) + field(key) + field(value) + \
        varint(len(headers)) + b''.join(varint(len(k)) + k + field(v) for k, v in headers)
    return varint(len(body)) + body


def compress(codec, data):
    if codec == 'gzip':
        z = zlib.compressobj(wbits=31)
        return z.compress(data) + z.flush()
    if codec == 'snappy':  # a bare block of literals
        head, n = bytearray(), len(data)
        while n > 0x7F:
            head.append(n & 0x7F | 0x80)
            n >>= 7
        head.append(n)
        return bytes(head) + b''.join(bytes([(len(data[i:i + 60]) - 1) << 2]) + data[i:i + 60]
                                      for i in range(0, len(data), 60))
    if codec == 'lz4':
        return run(['lz4', '-c', '-q', '-BI', '--no-frame-crc'], data)
    return run(['zstd', '-c', '-q'], data) if codec == 'zstd' else data


def run(command, data):
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def snappy_block(data):
    n = shift = at = 0
    while True:
        n |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            break
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        kind, size = tag & 3, tag >> 2
        if kind == 0:
            if size >= 60:
                extra = size - 59
                size = int.from_bytes(data[at:at + extra], 'little')
                at += extra
            out += data[at:at + size + 1]
            at += size + 1
            continue
        if kind == 1:
            size, back, extra = (size & 7) + 4, tag >> 5 << 8 | data[at], 1
        else:
            extra = 2 if kind == 2 else 4
            size, back = size + 1, int.from_bytes(data[at:at + extra], 'little')
        at += extra
        for _ in range(size):
            out.append(out[-back])
    assert len(out) == n
    return bytes(out)


def snappy(data):
    """Java's stream of blocks, or one bare block."""
    if not data.startswith(b'\x82SNAPPY\0'):
        return snappy_block(data)
    assert struct.unpack_from('>ii', data, 8) == (1, 1)
    out, at = b'', 16
    while at < len(data):
        n = struct.unpack_from('>i', data, at)[0]
        out += snappy_block(data[at + 4:at + 4 + n])
        at += 4 + n
    return out


def decompress(codec, data):
    if codec == 'gzip':
        return zlib.decompress(data, wbits=31)
    if codec == 'snappy':
        return snappy(data)
    return run([codec, '-dc', '-q'], data) if codec in ('lz4', 'zstd') else data


def build(records, codec='none', attributes=0, producer=(-1, -1, -1), body=None, **over):
    """records: (timestamp, key, value[, headers]), or bytes as they are; body: they, compressed by
    the caller. over: fields of HEAD by their names in Batch, instead of the right ones."""
    first = next((r[0] for r in records if not isinstance(r, bytes)), 0)
    times = [r[0] for r in records if not isinstance(r, bytes)]
    if body is None:
        body = compress(codec, b''.join(r if isinstance(r, bytes) else
                                        record(i, r[0] - first, *r[1:])
                                        for i, r in enumerate(records)))
    n = len(records)
    f = {'base': 0, 'length': HEAD.size - 12 + len(body), 'leader_epoch': -1, 'magic': 2,
         'attributes': attributes | CODECS.index(codec), 'last_delta': n - 1,
         'base_timestamp': first, 'max_timestamp': max(times, default=-1), 'count': n}
    f['producer_id'], f['producer_epoch'], f['sequence'] = producer
    f.update(over)
    covered = struct.pack('>hiqqqhii', f['attributes'], f['last_delta'], f['base_timestamp'],
                          f['max_timestamp'], f['producer_id'], f['producer_epoch'], f['sequence'],
                          f['count']) + body
    return struct.pack('>qiibI', f['base'], f['length'], f['leader_epoch'], f['magic'],
                       f.get('crc', crc32c(covered))) + covered


def read_records(b, body):
    at, out = 0, []
    for _ in range(b.count):
        size, at = read_varint(body, at)
        end = at + size
        time_delta, at = read_varint(body, at + 1)
        delta, at = read_varint(body, at)
        parts = []
        for _ in range(2):
            n, at = read_varint(body, at)
            parts.append(None if n < 0 else bytes(body[at:at + n]))
            at += max(n, 0)
        n, at = read_varint(body, at)
        headers = []
        for _ in range(n):
            k, at = read_varint(body, at)
            key, at = bytes(body[at:at + k]), at + k
            v, at = read_varint(body, at)
            headers.append((key, None if v < 0 else bytes(body[at:at + v])))
            at += max(v, 0)
        assert at == end, 'a record of %d bytes' % size
        log_time = b.attributes & LOG_APPEND_TIME
        out.append(Record(b.base + delta,
                          b.max_timestamp if log_time else b.base_timestamp + time_delta, *parts,
                          tuple(headers)))
    assert at == len(body), '%d bytes behind the records' % (len(body) - at)
    return out


@functools.lru_cache(1 << 12)
def read_one(data):
    """A whole batch, with a CRC that holds. What is read over and over is not computed again."""
    b = Batch(*HEAD.unpack_from(data), None, data)
    assert b.magic == 2 and b.crc == crc32c(data[21:]), 'the batch at offset %d' % b.base
    return b._replace(records=read_records(b, decompress(CODECS[b.attributes & 7],
                                                         data[HEAD.size:])))


def read(data):
    """Whole batches; one that is cut at the end is left out."""
    out, at = [], 0
    while len(data) - at >= HEAD.size:
        size = 12 + struct.unpack_from('>i', data, at + 8)[0]
        if len(data) - at < size:
            break
        out.append(read_one(data[at:at + size]))
        at += size
    return out
