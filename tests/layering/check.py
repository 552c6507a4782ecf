#!/usr/bin/env python3
"""The direction law of docs/ARCHITECTURE.md ("The house"), read from its table and held against
  - CMakeLists.txt: each dohle_library() names what the table names;
  - every #include of src/: only folders that the table allows; inside.h and *_impl.h only at home;
    in the deterministic folders only the system headers of allowed.txt;
  - every static library (nm): undefined symbols come from allowed folders or, in the deterministic
    ones, from allowed.txt; no mutable globals there.

  check.py --source DIR [--build DIR] [--nm NM]     without --build only the first two
  check.py --self-test                              shows that each violation is found
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINE = {"os", "net", "cli"}  # the folders that touch the machine
INSTRUMENTATION = re.compile(r"^(__asan_|__ubsan_|__tsan_|__sanitizer_|__sancov|__odr_asan|__gcov_|"
                             r"__llvm_|__stack_chk|_GLOBAL_OFFSET_TABLE_|__start___sanc|__stop___sanc)")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def table(source):
    """folder -> folders its line names, from the page's table."""
    uses = {}
    for row in re.findall(r"^\| `([\w/]+?)/?` \| ([^|]*)\|", read(f"{source}/docs/ARCHITECTURE.md"), re.M):
        uses[row[0]] = [w for w in re.split(r"[,\s]+", row[1]) if w]
    return uses


def closure(uses):
    """folder -> itself and all it may use."""
    allowed = {}

    def visit(folder, path):
        if folder in path:
            raise SystemExit(f"layering: the table has a circle at {folder}")
        if folder not in allowed:
            allowed[folder] = {folder}.union(*(visit(u, path | {folder}) for u in uses[folder]))
        return allowed[folder]

    for folder in uses:
        visit(folder, frozenset())
    return allowed


def read_allowed(path):
    """(section, "headers" or "symbols") -> names."""
    names, section = {}, None
    for line in read(path).splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            section = line[1:-1]
        elif line:
            kind, *rest = line.split()
            names.setdefault((section, kind), set()).update(rest)
    return names


class Check:
    def __init__(self, source, build, nm, allowed_file):
        self.source, self.build, self.nm = source, build, nm
        self.errors = []
        self.includes = self.symbols = 0
        self.uses = table(source)
        unknown = {u for us in self.uses.values() for u in us} - set(self.uses)
        if not self.uses or unknown:
            raise SystemExit(f"layering: no table in docs/ARCHITECTURE.md, or unknown folders {sorted(unknown)}")
        self.allowed = closure(self.uses)
        self.system = read_allowed(allowed_file)

    def error(self, text):
        self.errors.append(text)

    def folder_of(self, path):
        """The folder of a path below src/, longest name first."""
        fits = [f for f in self.uses if path.startswith(f + "/") and "/" not in path[len(f) + 1:]]
        return max(fits, key=len) if fits else None

    def system_names(self, folder, kind):
        return self.system.get(("inside", kind), set()) | self.system.get((folder, kind), set())

    # ---- CMakeLists.txt

    def check_cmake(self):
        text = read(f"{self.source}/CMakeLists.txt")
        built = {m[0]: m[1].split() for m in re.findall(r"^dohle_library\(([\w/]+)([^)]*)\)", text, re.M)}
        for folder in sorted(set(built) | set(self.uses)):
            if sorted(built.get(folder, ["?"])) != sorted(self.uses.get(folder, ["?"])):
                self.error(f"CMakeLists.txt: {folder} uses {built.get(folder)}, the page says {self.uses.get(folder)}")

    # ---- includes

    def check_include(self, where, folder, quoted, name):
        self.includes += 1
        if not quoted:
            if folder not in MACHINE and name not in self.system_names(folder, "headers"):
                self.error(f"{where}: <{name}> is not allowed in {folder}")
            return
        at_home = "/" not in name and os.path.exists(f"{self.source}/src/{folder}/{name}")
        used = folder if at_home else self.folder_of(name)
        if used is None:
            self.error(f"{where}: \"{name}\" names no folder of the table")
        elif used not in self.allowed[folder]:
            self.error(f"{where}: {folder} may not use {used} (\"{name}\")")
        elif used != folder and re.search(r"(^|/)inside\.h$|_impl\.h$", name):
            self.error(f"{where}: \"{name}\" is private to {used}")

    def check_includes(self):
        root = f"{self.source}/src"
        for directory, _, files in sorted(os.walk(root)):
            for file in sorted(files):
                if not file.endswith((".c", ".h")):
                    continue
                path = os.path.join(directory, file)
                inside = os.path.relpath(path, root)
                folder = self.folder_of(inside)
                if folder is None:
                    self.error(f"src/{inside}: its folder is not in the table")
                    continue
                for n, line in enumerate(read(path).splitlines(), 1):
                    m = re.match(r"\s*#\s*include\s*([<\"])([^>\"]+)[>\"]", line)
                    if m:
                        self.check_include(f"src/{inside}:{n}", folder, m[1] == '"', m[2])
                    elif re.match(r"\s*#\s*include\b", line):
                        self.error(f"src/{inside}:{n}: an include that cannot be read")

    # ---- symbols

    def read_library(self, path):
        """(defined, undefined, mutable): names of a static library."""
        out = subprocess.run([self.nm, "--format=sysv", path], check=True, capture_output=True, text=True).stdout
        defined, undefined, mutable = set(), set(), set()
        for line in out.splitlines():
            columns = [c.strip() for c in line.split("|")]
            if len(columns) != 7:
                continue
            name, kind, section = columns[0], columns[2], columns[6]
            if INSTRUMENTATION.match(name):
                continue
            if kind in "Uwv" or section == "*UND*":
                undefined.add(name)
                continue
            if kind.isupper():
                defined.add(name)
            if re.match(r"\.t?(data|bss)(?!\.rel\.ro)|\*COM\*|\.l?common", section):
                mutable.add(name)
        return defined, undefined - defined, mutable

    def check_symbols(self):
        libraries = {}
        for folder in self.uses:
            sources = [f for f in os.listdir(f"{self.source}/src/{folder}") if f.endswith(".c") and f != "main.c"] \
                if os.path.isdir(f"{self.source}/src/{folder}") else []
            path = f"{self.build}/libdohle_{folder.replace('/', '_')}.a"
            if sources and not os.path.exists(path):
                self.error(f"{path} is missing: build first")
            elif sources:
                libraries[folder] = self.read_library(path)
        owner = {name: folder for folder, (defined, _, _) in libraries.items() for name in defined}
        for folder, (_, undefined, mutable) in libraries.items():
            for name in sorted(undefined):
                self.check_symbol(folder, name, owner.get(name))
            if folder not in MACHINE:
                for name in sorted(mutable):
                    self.error(f"{folder}: {name} is a mutable global")

    def check_symbol(self, folder, name, owner):
        self.symbols += 1
        if owner is not None:
            if owner not in self.allowed[folder]:
                self.error(f"{folder}: calls {name} of {owner}")
            return
        if folder in MACHINE:
            return
        plain = re.sub(r"^__(?:isoc\d+_)?(\w+?)(?:_chk)?$", r"\1", name)
        names = self.system_names(folder, "symbols")
        if name not in names and plain not in names:
            self.error(f"{folder}: takes {name} from outside; if it is pure, tests/layering/allowed.txt is the place")

    def run(self):
        self.check_cmake()
        self.check_includes()
        if self.build:
            self.check_symbols()
        return self.errors


# ---- self-test: a small tree that obeys, then one violation at a time

PAGE = "| folder | uses | holds |\n|---|---|---|\n" \
       "| `base/` | | x |\n| `core/a` | base | x |\n| `core/b` | core/a | x |\n| `os/` | base | x |\n"
CMAKE = "dohle_library(base)\ndohle_library(core/a base)\ndohle_library(core/b core/a)\ndohle_library(os base)\n"
TREE = {
    "docs/ARCHITECTURE.md": PAGE,
    "CMakeLists.txt": CMAKE,
    "src/base/x.h": "int base_x(void);\n",
    "src/base/x.c": '#include "base/x.h"\n#include <string.h>\nint base_x(void) { return (int)strlen("x"); }\n',
    "src/core/a/a.h": "int a(void);\n",
    "src/core/a/inside.h": "enum { A = 1 };\n",
    "src/core/a/a.c": '#include "core/a/inside.h"\n#include "core/a/a.h"\n#include "base/x.h"\n'
                      "static const char *const names[] = {\"n\"};\n"
                      "int a(void) { return base_x() + A + names[0][0]; }\n",
    "src/core/b/b.h": "int b(void);\n",
    "src/core/b/b.c": '#include "core/a/a.h"\n#include "core/b/b.h"\nint b(void) { return a(); }\n',
    "src/os/o.h": "long o(void);\n",
    "src/os/o.c": '#include <time.h>\n#include "os/o.h"\nstatic long calls;\n'
                  "long o(void) { return time(NULL) + ++calls; }\n",
}
VIOLATIONS = [
    ("an include upwards", {"src/core/a/up.c": '#include "core/b/b.h"\n'}, "core/a may not use core/b"),
    ("an include of the machine", {"src/base/m.c": '#include "os/o.h"\n'}, "base may not use os"),
    ("a private header", {"src/core/b/p.c": '#include "core/a/inside.h"\n'}, "is private to core/a"),
    ("an include without folder", {"src/base/n.c": '#include "b.h"\n'}, "names no folder"),
    ("a hidden include", {"src/base/h.c": "#define F <time.h>\n#include F\n"}, "cannot be read"),
    ("a system header", {"src/base/t.c": "#include <time.h>\n"}, "<time.h> is not allowed in base"),
    ("a folder outside the table", {"src/core/c/c.c": "int c;\n"}, "its folder is not in the table"),
    ("a library with other uses", {"CMakeLists.txt": CMAKE.replace("(core/a base)", "(core/a base core/b)")},
     "the page says"),
    ("a symbol upwards", {"src/core/a/s.c": "int b(void);\nint s(void);\nint s(void) { return b(); }\n"},
     "calls b of core/b"),
    ("a clock", {"src/base/c.c": "long time(long *);\nlong c(void);\nlong c(void) { return time(0); }\n"},
     "takes time from outside"),
    ("a random number", {"src/core/b/r.c": "int rand(void);\nint r(void);\nint r(void) { return rand(); }\n"},
     "takes rand from outside"),
    ("errno", {"src/base/e.c": "int *__errno_location(void);\nint e(void);\nint e(void) { return *__errno_location(); }\n"},
     "takes __errno_location from outside"),
    ("a mutable global", {"src/base/g.c": "int g(void);\nint g(void) { static int n; return ++n; }\n"},
     "is a mutable global"),
    ("an initialised mutable global", {"src/core/a/g.c": "int global = 1;\n"}, "global is a mutable global"),
    ("a thread's own global", {"src/core/a/t.c": "_Thread_local int own;\n"}, "own is a mutable global"),
]


def build_tree(root, files, cc, ar):
    for name, text in files.items():
        os.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
        with open(f"{root}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    os.makedirs(f"{root}/build", exist_ok=True)
    objects = {}
    for name in files:
        if name.endswith(".c"):
            folder = os.path.dirname(name)[4:]
            out = f"{root}/build/{name.replace('/', '_')}.o"
            # What does not compile is looked at by its includes alone.
            if subprocess.run([cc, "-c", "-I", f"{root}/src", f"{root}/{name}", "-o", out],
                              capture_output=True).returncode == 0:
                objects.setdefault(folder, []).append(out)
    for folder, files_of in objects.items():
        subprocess.run([ar, "rcs", f"{root}/build/libdohle_{folder.replace('/', '_')}.a", *files_of], check=True)


def self_test(cc, ar, nm):
    failed = 0
    for name, change, want in [("a tree that obeys", {}, None)] + VIOLATIONS:
        with tempfile.TemporaryDirectory() as root:
            build_tree(root, {**TREE, **change}, cc, ar)
            errors = Check(root, f"{root}/build", nm, f"{HERE}/allowed.txt").run()
        good = not errors if want is None else any(want in e for e in errors)
        failed += not good
        print(f"{'ok' if good else 'FAILED'}: {name}" + ("" if good else f": {errors}"))
    print(f"layering self-test: {1 + len(VIOLATIONS) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--source")
    p.add_argument("--build")
    p.add_argument("--nm", default="nm")
    p.add_argument("--cc", default="cc")
    p.add_argument("--ar", default="ar")
    p.add_argument("--self-test", action="store_true")
    args = p.parse_args()
    if args.self_test:
        return self_test(args.cc, args.ar, args.nm)
    check = Check(args.source, args.build, args.nm, f"{HERE}/allowed.txt")
    errors = check.run()
    for e in errors:
        print(e)
    print(f"layering: {len(check.uses)} folders, {check.includes} includes, {check.symbols} undefined symbols, "
          f"{len(errors)} violations")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
