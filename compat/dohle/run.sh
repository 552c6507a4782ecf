#!/bin/bash
# The binary's own commands as a client, with real files: compat/dohle/run.sh DOHLE [quick]. What goes in
# comes out, as text and as JSON, in order and once, with every compression, after a clean restart and
# after kill -9.
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"

bytes=100000000 limit=300
[ -z "$quick" ] || bytes=4000000 limit=60

run() { # COMMAND...
    timeout "$limit" "$dohle" "$@" -b "$broker"
}

create() { # TOPIC PARTITIONS
    run topics create "$1" -p "$2" -r 1
}

same() { # TOPIC FILE
    [ "$(run consume "$1" -e | sum_of)" = "$(sum_of < "$2")" ]
}

same_lines() { # TOPIC FILE, in any order
    [ "$(run consume "$1" -e | LC_ALL=C sort | sum_of)" = "$(LC_ALL=C sort "$2" | sum_of)" ]
}

create_and_produce() { # CODEC
    create "list-$1" 1 && run produce "list-$1" "$work/input" -z "$1"
}

all_same() {
    local codec
    for codec in $codecs; do
        check "$1: $codec" same "list-$codec" "$work/input"
    done
}

# Of several partitions: JSON there and back again, each record to its own partition.
json_comes_back() {
    create spread 4 && run produce spread "$work/input" -z zstd || return
    run consume spread -e --json > "$work/json" && create again 4 &&
        run produce again "$work/json" --json --same-partition -z lz4 || return
    run consume again -e --json | sed 's/"topic":"again"/"topic":"spread"/' | LC_ALL=C sort > "$work/json-again"
    LC_ALL=C sort "$work/json" | cmp - "$work/json-again" && same_lines again "$work/input"
}

# Binary: any bytes but the delimiter's.
binary() {
    head -c 1000000 /dev/urandom > "$work/binary"
    create binary 1 && run produce binary "$work/binary" -d '\0\n\0' -z gzip || return
    run consume binary -e -d '' 2> /dev/null && return 1 # an empty delimiter is refused
    run consume binary -e -d '\0\n\0' | head -c 1000000 | cmp - "$work/binary"
}

# The console tools' keys: the same key in the same partition, in order.
with_keys() {
    awk 'NR <= 5000 { print "key-" NR % 97 "\t" $0 }' "$work/input" > "$work/keyed"
    create keyed 3 && run produce keyed "$work/keyed" -K '\t' -z snappy || return
    for p in 0 1 2; do
        run consume keyed -e -K '\t' -p "$p" > "$work/keyed-$p" || return
    done
    [ "$(cut -f 1 "$work"/keyed-? | LC_ALL=C sort -u | wc -l)" -eq 97 ] || return
    for p in 0 1 2; do # what a partition holds of the file, in the file's order
        cut -f 1 "$work/keyed-$p" | LC_ALL=C sort -u > "$work/keys"
        awk -F '\t' 'NR == FNR { mine[$1]; next } $1 in mine' "$work/keys" "$work/keyed" |
            cmp - "$work/keyed-$p" || return
    done
}

# Goes on over kill -9 and restart: nothing lost, nothing twice.
killed_while_producing() {
    create torn 1 || return
    run produce torn "$work/input" -z lz4 --timeout 200 &
    client_pid=$!
    kill_under_client torn && same torn "$work/input"
}

make_input "$work/input" "$bytes" || exit 1
check "start" start_broker || finish
for codec in $codecs; do
    check "produce: $codec" create_and_produce "$codec"
done
all_same "consume"
check "JSON comes back" json_comes_back
check "binary" binary
check "keys" with_keys
check "stop" stop_broker
check "start again" start_broker
all_same "after a restart"
kill_broker
check "start after kill -9" start_broker
check "after kill -9: several partitions" same_lines again "$work/input"
[ "$broker_kind" != dohle ] || check "killed while producing" killed_while_producing
[ "$broker_kind" != dohle ] || check_memory
check "stop at the end" stop_broker
finish
