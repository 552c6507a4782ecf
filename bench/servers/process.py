"""Processes as /proc shows them, ports, limits."""
import os
import resource
import socket


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def raise_fd_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def memory_mb(pid, field='VmRSS'):
    with open('/proc/%d/status' % pid, encoding='ascii') as f:
        for line in f:
            if line.startswith(field + ':'):
                return int(line.split()[1]) / 1024
    raise OSError('no %s of %d' % (field, pid))


def cpu_seconds(pid):
    """User and system time so far."""
    with open('/proc/%d/stat' % pid, encoding='ascii') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
