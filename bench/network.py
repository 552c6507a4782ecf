"""The bench's own loopback: a network namespace, so that nothing of the machine's is in the way. Its congestion
control is Linux's default, cubic: one that paces (bbr) has a timer for each connection, also on loopback, and
would be measured with every server."""
import ctypes
import fcntl
import socket
import struct

CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1
CONTROL = '/proc/sys/net/ipv4/tcp_congestion_control'


def control():
    with open(CONTROL, encoding='ascii') as f:
        return f.read().strip()


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack('16sH14x', b'lo', IFF_UP))


def enter():
    """For this process and those it starts. False: not allowed, the machine's network is measured with."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return False
    loopback_up()
    try:
        with open(CONTROL, 'w', encoding='ascii') as f:
            f.write('cubic')
    except OSError:
        pass  # said with the figures
    return True
