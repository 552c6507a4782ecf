#!/usr/bin/env python3
"""Does the simulator notice? Each mutation of mutations.txt, one wrong line in place of a right one, is
built on its own and run over seeds until a violation names it. One that nothing notices is a hole in the
invariants, or a rule that nobody needs: both are failures.

    mutate.py [--quick] [NAME...]     --quick: those marked quick; names: just those
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
SEEDS = 400        # unless the mutation says another number
CHUNK = 4          # seeds of a run: the binary ends at its first violation
JOBS = os.cpu_count() or 1


class Mutation:
    def __init__(self, name, words, path, right, wrong):
        self.name, self.path, self.right, self.wrong = name, path, right, wrong
        self.quick = 'quick' in words
        self.nodes = next((w[6:] for w in words if w.startswith('nodes=')), '3')
        self.seeds = int(next((w[6:] for w in words if w.startswith('seeds=')), SEEDS))


def read_mutations(path):
    found = []
    for block in re.split(r'\n\s*\n', path.read_text()):
        lines = [x for x in block.splitlines() if x.strip() and not x.startswith('#')]
        if not lines:
            continue
        head = lines[0].split()
        right = '\n'.join(x[2:] for x in lines[2:] if x.startswith('- '))
        wrong = '\n'.join(x[2:] for x in lines[2:] if x.startswith('+ '))
        found.append(Mutation(head[0], head[1:], lines[1].strip(), right, wrong))
    return found


def copy_new(source, target):
    """Files that are as they were keep their times, for the build."""
    wanted = {x.relative_to(source) for x in source.rglob('*') if x.is_file()}
    for old in [x for x in target.rglob('*') if x.is_file()]:
        if old.relative_to(target) not in wanted:
            old.unlink()
    for name in wanted:
        to = target / name
        if not to.exists() or to.read_bytes() != (source / name).read_bytes():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, to)


def make_tree():
    TREE.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            copy_new(source, TREE / name)
        elif source.exists():
            shutil.copy2(source, TREE / name)
    launcher = ['-DCMAKE_C_COMPILER_LAUNCHER=ccache'] if shutil.which('ccache') else []
    subprocess.run(['cmake', '-S', TREE, '-B', TREE / 'out', '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Release',
                    *launcher], check=True, stdout=subprocess.DEVNULL)


def build():
    done = subprocess.run(['cmake', '--build', TREE / 'out', '--target', 'sim', '-j', str(JOBS)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit('it does not build:\n' + done.stdout[-3000:])


def start(seed, mutation):
    return subprocess.Popen([TREE / 'out' / 'sim', '--seed', str(seed), '--seeds', str(CHUNK), '--nodes',
                             mutation.nodes], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def hunt(mutation):
    """The seeds that were run, and what the simulator said; None: nothing."""
    running, next_seed = {}, 1
    said = None
    while said is None and (running or next_seed <= mutation.seeds):
        while len(running) < JOBS and next_seed <= mutation.seeds:
            running[next_seed] = start(next_seed, mutation)
            next_seed += CHUNK
        first = min(running)
        process = running.pop(first)
        out, _ = process.communicate()
        if process.returncode != 0:
            lines = [x for x in out.splitlines() if x]
            said = next((x for x in lines if x.startswith('violation')), lines[-1] if lines else '?')
            next_seed = first + CHUNK
    for process in running.values():
        process.kill()
        process.communicate()
    return next_seed - 1, said


def try_one(mutation):
    target = TREE / mutation.path
    text = target.read_text()
    if text.count(mutation.right) != 1:
        print(f'{mutation.name}: {mutation.path} has its line {text.count(mutation.right)} times, not once')
        return False
    begun = time.monotonic()
    target.write_text(text.replace(mutation.right, mutation.wrong))
    try:
        build()
        seeds, said = hunt(mutation)
    finally:
        target.write_text(text)
    took = time.monotonic() - begun
    if said is None:
        print(f'{mutation.name}: NOT FOUND in {seeds} seeds, {took:.0f} s', flush=True)
        return False
    print(f'{mutation.name}: found within {seeds} seeds, {took:.0f} s: {said[:150]}', flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    mutations = read_mutations(pathlib.Path(__file__).with_name('mutations.txt'))
    unknown = set(args.names) - {m.name for m in mutations}
    if unknown:
        sys.exit(f'no such mutation: {" ".join(sorted(unknown))}')
    chosen = [m for m in mutations if (not args.quick or m.quick) and (not args.names or m.name in args.names)]
    make_tree()
    build()
    found = sum([try_one(m) for m in chosen])
    print(f'mutations {len(chosen)}, found {found}')
    sys.exit(0 if found == len(chosen) else 1)


if __name__ == '__main__':
    main()
