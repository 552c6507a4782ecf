"""What was measured: raw in results.json, as tables in RESULTS.md, as a plot per group. A run replaces its
own rows; the others stay as they were, with the commit they were measured at."""
import json
import os
import subprocess
import time

import machine
import plot
import row as rows_of

SERVERS = ('Dohle', 'Kafka', 'limit')


def git(*words):
    return subprocess.run(('git',) + words, cwd=os.path.dirname(os.path.abspath(__file__)),
                          stdout=subprocess.PIPE, check=True).stdout.decode().strip()


def commit():
    changed = git('status', '--porcelain', '--', ':/src', ':/bench/*.c', ':/bench/*.h', ':/bench/*.py')
    return git('rev-parse', '--short=10', 'HEAD') + (' and changes' if changed else '')


def number(v, decimals):
    return '' if v is None else format(v, ',.%df' % decimals).replace(',', ' ')


class Store:
    def __init__(self, directory, command, known, work):
        """known: all rows there are, in their order; work: where the servers' files are."""
        os.makedirs(directory, exist_ok=True)
        self.directory, self.known = directory, known
        self.path = os.path.join(directory, 'results.json')
        self.run = {'command': command.strip(), 'commit': commit(), 'date': time.strftime('%Y-%m-%d %H:%M'),
                    'machine': machine.facts(work)}
        self.rows = {}
        if os.path.exists(self.path):
            with open(self.path, encoding='utf-8') as f:
                self.rows = json.load(f)

    def put(self, row, taken):
        rounded = {s: [{k: float('%.5g' % v) for k, v in r.items()} for r in rounds]
                   for s, rounds in taken.items()}
        self.rows[row.full_name] = {**self.run, 'rounds': rounded}

    def save(self):
        with open(self.path, 'w', encoding='utf-8') as f:
            f.write('{\n' + ',\n'.join('%s: %s' % (json.dumps(k), json.dumps(v))
                                       for k, v in sorted(self.rows.items())) + '\n}\n')

    def figures_of(self, full_name):
        """{server: medians}"""
        return {s: rows_of.medians(r) for s, r in self.rows[full_name]['rounds'].items()}

    def figures(self, row):
        return self.figures_of(row.full_name)

    def write(self):
        self.save()
        measured = [r for r in self.known if r.full_name in self.rows]
        text = [HEAD] + self.goals(measured)
        for group in dict.fromkeys(r.group for r in measured):
            text += self.group(group, [r for r in measured if r.group == group])
        with open(os.path.join(self.directory, 'RESULTS.md'), 'w', encoding='utf-8') as f:
            f.write('\n'.join(text) + '\n')

    def goals(self, measured):
        out, met_n = [], 0
        for row in measured:
            for goal in row.goals:
                if goal.base is not None and goal.base not in self.rows:
                    continue
                base = [] if goal.base is None else [self.figures_of(goal.base)]
                value, met = goal.judge(self.figures(row), *base)
                if value is None:
                    continue
                met_n += met
                out.append('| %s | %s | %s %g | %.3g | %s |' % (row.full_name, goal.text, goal.sign, goal.bound,
                                                               value, 'met' if met else '**not met**'))
        return ['## Goals', '', '%d of %d are met.' % (met_n, len(out)), '',
                '| row | goal | | is | |', '|---|---|---|---|---|'] + out + ['']

    def group(self, group, rows):
        out = ['## %s' % group.capitalize(), '', '![%s](%s.svg)' % (group, group), '']
        for columns in dict.fromkeys(tuple(r.columns) for r in rows):
            out += self.table([r for r in rows if tuple(r.columns) == columns], columns)
        runs = dict.fromkeys('%(date)s, commit %(commit)s, `%(command)s`, %(machine)s' % self.rows[r.full_name]
                             for r in rows)
        out += ['Measured: ' + run + '.' for run in runs] + ['']
        plot.write(os.path.join(self.directory, group + '.svg'), group,
                   [(r, self.figures(r)) for r in rows])
        return out

    def table(self, rows, columns):
        figures = {r: self.figures(r) for r in rows}
        there = [s for s in SERVERS if any(s in f for f in figures.values())]
        heads = ['%s %s' % (s, rows_of.COLUMNS[c][0]) for c in columns for s in there]
        out = ['| row | ' + ' | '.join(heads) + ' |', '|---|' + '--:|' * len(heads)]
        for r in rows:
            cells = [number(figures[r].get(s, {}).get(c), rows_of.COLUMNS[c][1]) for c in columns for s in there]
            out.append('| %s | %s |' % (r.name, ' | '.join(cells)))
        return out + ['']


HEAD = '''# What was measured

Made by `./dev bench` from results.json, which has every round; bench/README.md tells how. Figures are medians of
the rounds. Only those of one row compare: its servers took turns, round by round.
'''
