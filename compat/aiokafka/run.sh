#!/bin/bash
# aiokafka: compat/aiokafka/run.sh DOHLE [quick].
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../python.sh"
. "$here/../scenario.sh"

bytes=20000000 limit=300
[ -z "$quick" ] || bytes=2000000 limit=60
check "install" make_venv || finish
client=("$python" "$here/client.py")
scenario
finish
