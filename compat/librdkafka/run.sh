#!/bin/bash
# A librdkafka program in C with real files: compat/librdkafka/run.sh DOHLE [quick]. Each message's
# delivery report is checked, what goes in comes out, after a clean restart and after kill -9.
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"

bytes=100000000 limit=300
[ -z "$quick" ] || bytes=4000000 limit=60
program=$work/roundtrip

build() {
    make -s -C "$here" OUT="$program"
}

produce() { # TOPIC CODEC FILE [CHUNK]
    timeout "$limit" "$program" produce "$broker" "$@"
}

same() { # TOPIC FILE [CHUNK]
    timeout "$limit" "$program" consume "$broker" "$1" "$work/got" "${3:-0}" && cmp "$work/got" "$2"
}

all_same() {
    local codec
    for codec in $codecs; do
        check "$1: $codec lines" same "line-$codec" "$work/input"
        check "$1: $codec chunks" same "chunk-$codec" "$work/input" 1
    done
}

killed_while_producing() { # TOPIC CODEC CHUNK
    produce "$1" "$2" "$work/input" "$3" &
    client_pid=$!
    kill_under_client "$1" && same "$1" "$work/input" "$3"
}

check "build" build
[ -x "$program" ] || finish
make_input "$work/input" "$bytes" || exit 1
check "start" start_broker || finish
for codec in $codecs; do
    check "produce: $codec lines" produce "line-$codec" "$codec" "$work/input"
    check "produce: $codec chunks" produce "chunk-$codec" "$codec" "$work/input" 300000
done
all_same "consume"
check_memory
check "stop" stop_broker
check "start again" start_broker
all_same "after a restart"
check "produce before kill -9" produce late zstd "$work/input"
kill_broker
check "start after kill -9" start_broker
check "after kill -9" same late "$work/input"
check "killed while producing lines" killed_while_producing torn-lines lz4 0
check "killed while producing chunks" killed_while_producing torn-chunks none 100000
check "offsets" timeout "$limit" "$program" offsets "$broker" line-none "$(wc -l < "$work/input")"
check_memory
check "stop at the end" stop_broker
finish
