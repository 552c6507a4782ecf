#!/usr/bin/env python3
"""Does the simulator notice? Each mutation of mutations.txt, wrong lines in place of right ones, is built on
its own and run: the script that it names, or else seeds, until a violation is found. One that nothing notices
within its number of seeds is a hole in the invariants, or a rule that nobody needs: both are failures.

    mutate.py [--quick] [-j N] [NAME...]    --quick: those marked quick; names: just those
    mutate.py --write DIR NAME              its files, mutated, into DIR
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = ROOT / 'build' / 'mutate'
COPIED = ['CMakeLists.txt', 'CMakePresets.json', 'bench', 'cmake', 'compat', 'src', 'tests']
WRONG, RIGHT = 'out/sim', 'sim-right'
SEEDS = 400
LIMIT = 600        # seconds of a run: one that goes on for ever is found too


class Mutation:
    """name; quick; script or None; nodes and seeds, of runs without it; edits: (path, right, wrong)"""

    def __init__(self, block):
        head = block[0].split()
        self.name, words, self.edits = head[0], head[1:], []
        self.quick = 'quick' in words
        self.script = words[words.index('script') + 1] if 'script' in words else None
        self.nodes = 1 if 'single' in words else 3
        self.seeds = int(words[words.index('within') + 1]) if 'within' in words else SEEDS
        for line in block[1:]:
            if line[:2] not in ('- ', '+ '):
                self.edits.append((line.strip(), [], []))
            else:
                self.edits[-1][1 if line[0] == '-' else 2].append(line[2:])

    def mutated(self):
        """path -> text, or an error"""
        texts = {}
        for path, right, wrong in self.edits:
            text = texts.get(path) or (ROOT / path).read_text()
            right, wrong = '\n'.join(right), '\n'.join(wrong)
            if text.count(right) != 1:
                raise ValueError(f'{self.name}: {path} has its line {text.count(right)} times, not once')
            texts[path] = text.replace(right, wrong)
        return texts


def read_mutations():
    text = pathlib.Path(__file__).with_name('mutations.txt').read_text()
    blocks = [[x for x in b.splitlines() if x.strip() and not x.startswith('#')] for b in re.split(r'\n\s*\n', text)]
    return [Mutation(b) for b in blocks if b]


def write_changed(path, data):
    """Files that are as they were keep their times, for the build."""
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def copy_new(source, target):
    wanted = {x.relative_to(source) for x in source.rglob('*') if x.is_file()}
    for old in [x for x in target.rglob('*') if x.is_file()]:
        if old.relative_to(target) not in wanted:
            old.unlink()
    for name in wanted:
        write_changed(target / name, (source / name).read_bytes())
        shutil.copymode(source / name, target / name)


def make_tree():
    TREE.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            copy_new(source, TREE / name)
        elif source.exists():
            write_changed(TREE / name, source.read_bytes())
    launcher = ['-DCMAKE_C_COMPILER_LAUNCHER=ccache'] if shutil.which('ccache') else []
    subprocess.run(['cmake', '-S', TREE, '-B', TREE / 'out', '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Release',
                    '-DDOHLE_WERROR=OFF',  # a wrong line may well deserve a warning
                    *launcher], check=True, stdout=subprocess.DEVNULL)


def build(jobs):
    done = subprocess.run(['cmake', '--build', TREE / 'out', '--target', 'sim', '-j', str(jobs)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit('it does not build:\n' + done.stdout[-3000:])


def start(sim, *args):
    return subprocess.Popen([TREE / sim, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors='replace')


def said_by(process):
    """What it found; None: nothing."""
    try:
        out, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f'it does not end within {LIMIT} s'
    if process.returncode == 0:
        return None
    lines = [x for x in out.splitlines() if x]
    return next((x for x in lines if x.startswith('violation')), lines[-1] if lines else '?')


def hunt(most, nodes, jobs):
    """The last seed that was run, and what the simulator said. A seed with which the right simulator finds
    something too says nothing."""
    running, next_seed, seed, said = {}, 1, 0, None
    while said is None and (running or next_seed <= most):
        while len(running) < jobs and next_seed <= most:
            running[next_seed] = start(WRONG, '--seed', next_seed, '--nodes', nodes)
            next_seed += 1
        seed = min(running)
        said = said_by(running.pop(seed))
        if said is not None and said_by(start(RIGHT, '--seed', seed, '--nodes', nodes)) is not None:
            print(f'seed {seed} fails without a mutation', flush=True)
            said = None
    for process in running.values():
        process.kill()
        process.communicate()
    return seed, said


def find(mutation, jobs):
    if mutation.script:
        return f'by script {mutation.script}', said_by(start(WRONG, '--script', mutation.script))
    seeds, said = hunt(mutation.seeds, mutation.nodes, jobs)
    return f'within {seeds} seeds', said


def try_one(mutation, jobs):
    try:
        texts = mutation.mutated()
    except ValueError as e:
        print(e)
        return False
    begun = time.monotonic()
    try:
        for path, text in texts.items():
            (TREE / path).write_text(text)
        build(jobs)
        how, said = find(mutation, jobs)
    finally:
        for path in texts:
            shutil.copyfile(ROOT / path, TREE / path)
    found = 'NOT FOUND' if said is None else 'found'
    print(f'{mutation.name}: {found} {how}, {time.monotonic() - begun:.0f} s: {(said or "")[:150]}', flush=True)
    return said is not None


def write(mutation, folder):
    for path, text in mutation.mutated().items():
        write_changed(folder / pathlib.Path(path).name, text.encode())
        os.utime(folder / pathlib.Path(path).name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--write', type=pathlib.Path, metavar='DIR')
    parser.add_argument('-j', type=int, default=os.cpu_count() or 1, metavar='N')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    mutations = read_mutations()
    unknown = set(args.names) - {m.name for m in mutations}
    if unknown:
        sys.exit(f'no such mutation: {" ".join(sorted(unknown))}')
    chosen = [m for m in mutations if (not args.quick or m.quick) and (not args.names or m.name in args.names)]
    if args.write:
        for mutation in chosen:
            write(mutation, args.write)
        return
    make_tree()
    build(args.j)
    shutil.copy2(TREE / WRONG, TREE / RIGHT)
    found = sum([try_one(m, args.j) for m in chosen])
    print(f'mutations {len(chosen)}, found {found}')
    sys.exit(0 if found == len(chosen) else 1)


if __name__ == '__main__':
    main()
