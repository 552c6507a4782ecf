"""One run of bench-load, and what one asks of its result."""
import json
import subprocess


class LoadFailed(Exception):
    pass


def run(program, kind, server, **options):
    """Options by their names with _ for -; the broker's CPU time is taken. The result as a dict."""
    command = [program, kind, '--port', str(server.port), '--pid', str(server.pid)]
    for name, value in options.items():
        command += ['--' + name.replace('_', '-'), str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise LoadFailed('%s: %s\n%s' % (server.name, ' '.join(command), done.stderr.decode().strip()))
    return json.loads(done.stdout)


def small(r):
    """Figures of requests whose number counts."""
    n = r['requests']
    return {'rate': n / r['seconds'], 'cpu_us': r['broker_cpu_seconds'] / n * 1e6,
            'load_us': r['own_cpu_seconds'] / n * 1e6}


def large(r):
    """Figures of requests whose bytes count."""
    gb = r['bytes'] / 1e9
    return {'gb_s': gb / r['seconds'], 'cpu_s_gb': r['broker_cpu_seconds'] / gb,
            'load_s_gb': r['own_cpu_seconds'] / gb}


def latency(r):
    return {k: r[k] for k in ('p50_us', 'p99_us', 'p999_us', 'max_us')}
