#!/bin/bash
# kafka-go: compat/kafka-go/run.sh DOHLE [quick].
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../go.sh"
. "$here/../scenario.sh"

bytes=20000000 limit=300
[ -z "$quick" ] || bytes=2000000 limit=60
check "build" build_go || finish
client=("$program")
client_modes="plain" # it has no idempotence
scenario
finish
