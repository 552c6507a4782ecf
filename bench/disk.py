"""The read-ahead of the disk under the bench's directory: Linux's default while it runs, the machine's own again
after. Where it is megabytes, each page fault in a mapped, sparse file (Kafka's indexes are 10 MB each) fills as
many megabytes with zeroes, and a server with a thousand of them would be measured by that."""
import contextlib
import os

DEFAULT_KB = 128


def path_of(directory):
    """Of the device that the directory, or what there is of its path, is on."""
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    device = os.stat(directory).st_dev
    return '/sys/class/bdi/%d:%d/read_ahead_kb' % (os.major(device), os.minor(device))


def read_ahead_kb(directory):
    """None: not told, as of a file system without a device."""
    try:
        with open(path_of(directory), encoding='ascii') as f:
            return int(f.read())
    except OSError:
        return None


def put(directory, kb):
    with open(path_of(directory), 'w', encoding='ascii') as f:
        f.write(str(kb))


@contextlib.contextmanager
def default_read_ahead(directory):
    """Yields whether it is the default now: it may not be ours to change."""
    before = read_ahead_kb(directory)
    if before in (None, DEFAULT_KB):
        yield True
        return
    try:
        put(directory, DEFAULT_KB)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        put(directory, before)
