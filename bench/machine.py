"""What the figures were taken on."""
import os
import platform

import disk
import network


def first(path, word):
    with open(path, encoding='utf-8') as f:
        for line in f:
            if line.startswith(word):
                return line.split(':', 1)[1].strip()
    return '?'


def facts(directory):
    memory_gb = int(first('/proc/meminfo', 'MemTotal').split()[0]) / 1e6
    return '%d x %s, %.0f GB, Linux %s, %s, read-ahead %s kB, load %.1f before' % (
        os.cpu_count(), first('/proc/cpuinfo', 'model name'), memory_gb, platform.release(), network.control(),
        disk.read_ahead_kb(directory) or '?', os.getloadavg()[0])
