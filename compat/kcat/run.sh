#!/bin/bash
# kcat with real files: compat/kcat/run.sh DOHLE [quick]. What goes in comes out, in order and once,
# with every compression, after a clean restart and after kill -9.
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
command -v kcat > /dev/null || { echo "kcat is not installed: ./dev setup" >&2; exit 1; }

bytes=100000000 limit=300
[ -z "$quick" ] || bytes=4000000 limit=60

produce() { # TOPIC CODEC FILE [kcat options]
    local topic=$1 codec=$2 file=$3
    shift 3
    timeout "$limit" kcat -P -b "$broker" -t "$topic" -z "$codec" -X acks=all "$@" < "$file"
}

consume() { # TOPIC [kcat options]
    local topic=$1
    shift
    timeout "$limit" kcat -C -b "$broker" -t "$topic" -o beginning -e -q -X check.crcs=true "$@"
}

same() { # TOPIC FILE
    [ "$(consume "$1" | sum_of)" = "$(sum_of < "$2")" ]
}

same_lines() { # TOPIC FILE, in any order
    [ "$(consume "$1" | LC_ALL=C sort | sum_of)" = "$(LC_ALL=C sort "$2" | sum_of)" ]
}

all_same() {
    local codec
    for codec in $codecs; do
        check "$1: $codec" same "list-$codec" "$work/input"
    done
}

# Keys and headers, printed as they were sent.
with_keys() {
    awk 'NR <= 5000 { print "key-" NR % 97 "\t" $0 }' "$work/input" > "$work/keyed"
    produce keyed lz4 "$work/keyed" -K '\t' -H source=apt -H empty= || return 1
    consume keyed -f '%k\t%s\t%h\n' > "$work/got"
    awk '{ print $0 "\tsource=apt,empty=" }' "$work/keyed" | cmp - "$work/got"
}

# The idempotent producer goes on over kill -9 and restart: nothing lost, nothing twice. -E: kcat
# ends at the first lost connection otherwise.
killed_while_producing() {
    produce torn lz4 "$work/input" -E -X enable.idempotence=true -X message.timeout.ms=200000 \
        -X linger.ms=1 -X reconnect.backoff.max.ms=500 &
    client_pid=$!
    kill_under_client torn && same torn "$work/input"
}

echo "kcat $(kcat -V | sed -n 's/^Version //p')"
make_input "$work/input" "$bytes" || exit 1
cat "$work/input" "$work/input" > "$work/twice"
check "start" start_broker || finish
for codec in $codecs; do
    check "produce: $codec" produce "list-$codec" "$codec" "$work/input"
done
all_same "consume"
check "keys and headers" with_keys
check_memory
check "stop" stop_broker
broker_settings=(num.partitions=4)
check "start again" start_broker
all_same "after a restart"
check "produce to several partitions" produce spread zstd "$work/input"
check "consume from several partitions" same_lines spread "$work/input"
check "append" produce list-snappy snappy "$work/input"
kill_broker
broker_settings=()
check "start after kill -9" start_broker
check "after kill -9: appended" same list-snappy "$work/twice"
check "after kill -9: several partitions" same_lines spread "$work/input"
check "killed while producing" killed_while_producing
check_memory
check "stop at the end" stop_broker
finish
