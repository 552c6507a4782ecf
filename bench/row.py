"""A row: one thing measured, of each server in turn, several times."""
import statistics


class Row:
    """group, name: how it is chosen and where it stands. columns: the figures in its table, as keys of
    COLUMNS. run(server, bench) gives a dict of figures; before(server, bench) and after(server, bench)
    stand around all rounds of a server. goals: a list of Goal. servers: names, if not all. rounds: at most.
    fresh: run() starts servers itself; what it gets only says of which kind."""

    def __init__(self, group, name, columns, run, before=None, after=None, goals=(), servers=None,
                 rounds=None, fresh=False):
        self.group, self.name, self.columns, self.run = group, name, columns, run
        self.before, self.after = before, after
        self.goals, self.servers, self.rounds, self.fresh = list(goals), servers, rounds, fresh

    @property
    def full_name(self):
        return '%s/%s' % (self.group, self.name)


# key -> (heading, decimals)
COLUMNS = {
    'rate': ('requests/s', 0), 'cpu_us': ('CPU us/request', 2), 'gb_s': ('GB/s', 2),
    'cpu_s_gb': ('CPU s/GB', 3), 'p50_us': ('p50 us', 0), 'p99_us': ('p99 us', 0), 'p999_us': ('p99.9 us', 0),
    'ms': ('ms', 1), 'mb': ('MB', 1), 'kb_each': ('kB each', 2), 'records_s': ('records/s', 0),
    'mb_s': ('MB/s', 1), 'cpu_s_m': ('CPU s/million records', 2), 'at_rate': ('requests/s offered', 0),
    's': ('s', 2), 'idle_mb': ('MB idle', 1), 'create_s': ('s to create', 2), 'failover_s': ('s to fail over', 2),
    'idle_pct': ('% of a core, idle', 1), 'alone_rate': ('requests/s alone', 0), 'alone_cpu_us': ('CPU us/request alone', 2),
}


class Goal:
    """value(figures) of the medians, {server: {key: figure}}, held against a bound; with base, another row's full
    name, value(figures, figures of that row)."""

    def __init__(self, text, value, sign, bound, base=None):
        self.text, self.value, self.sign, self.bound, self.base = text, value, sign, bound, base

    def judge(self, *figures):
        """(value, met); value is None when a server is missing, or took too little to be seen."""
        try:
            v = self.value(*figures)
        except (KeyError, ZeroDivisionError):
            return None, None
        return v, v >= self.bound if self.sign == '>=' else v <= self.bound


def ratio(key, other='Kafka'):
    """Dohle's figure by another's."""
    return lambda f: f['Dohle'][key] / f[other][key]


def medians(rounds):
    """rounds: figures of each round of one server."""
    return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
