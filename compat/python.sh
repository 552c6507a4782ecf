# What the clients in Python have in common: program.py is on their path. Sourced after common.sh.
export PYTHONPATH=$compat/python PYTHONDONTWRITEBYTECODE=1 PYTHONFAULTHANDLER=1

# make_venv: the packages of $here/requirements.txt; $python is then the interpreter that has them.
# One directory per content of that file.
make_venv() {
    local dir
    dir=$(cache_dir "$(basename "$here")-$(cksum < "$here/requirements.txt" | cut -d ' ' -f 1)")
    python=$dir/bin/python
    [ -e "$dir/.complete" ] && return
    python3 -m venv --clear "$dir" &&
        "$python" -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: \
            -r "$here/requirements.txt" &&
        touch "$dir/.complete"
}
