#!/bin/bash
# The binary's own commands as a client, with real files: compat/dohle/run.sh DOHLE [quick]. What goes in
# comes out, as text and as JSON, in order and once, with every compression, after a clean restart and
# after kill -9; members of a group share it and go on over all of that.
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"

bytes=100000000 limit=300
[ -z "$quick" ] || bytes=4000000 limit=60
broker_settings+=(group.initial.rebalance.delay.ms=0 offsets.topic.num.partitions=4)

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

# ------------------------------------------------------------------ a group

declare -A member_pid
sent=0

start_member() { # NAME
    "$dohle" consume shared -g team --json --timeout 200 -b "$broker" > "$work/member-$1" 2> "$work/member-$1.err" &
    member_pid[$1]=$!
    members+=($!)
}

stop_member() { # NAME
    kill -INT "${member_pid[$1]}" && wait "${member_pid[$1]}" || { cat "$work/member-$1.err"; return 1; }
}

kill_member() { # NAME
    kill -9 "${member_pid[$1]}"
    wait "${member_pid[$1]}" 2> /dev/null
    true
}

# The partitions that each member has, in order: "3 3".
shares() {
    run groups describe team | awk '$1 == "shared" && $6 != "-" { n[$6]++ } END { for (m in n) print n[m] }' |
        sort -n | xargs
}

have() { # COUNT...
    [ "$(shares)" = "$*" ]
}

share() { # COUNT...
    wait_for 60 have "$@" || { shares; cat "$work"/member-*.err; return 1; }
}

committed_all() {
    [ "$(run groups describe team | awk '$1 == "shared" { n += $3 } END { print n + 0 }')" = "$sent" ]
}

caught_up() {
    wait_for "$limit" committed_all || { run groups describe team; cat "$work"/member-*.err; return 1; }
}

send_part() { # N, from 0
    run produce shared "$work/part.$1" -z lz4 && sent=$((sent + $(wc -l < "$work/part.$1")))
}

# What the members wrote is the topic, each record once; --again: some of them more than once.
all_read() {
    run consume shared -e --json | LC_ALL=C sort > "$work/all"
    cat "$work"/member-? | LC_ALL=C sort ${1:+-u} | cmp - "$work/all" && [ "$(wc -l < "$work/all")" -eq "$sent" ]
}

begins_behind() { # NAME N: what it read is N records, none of which another had read
    [ "$(wc -l < "$work/member-$1")" -eq "$2" ] && all_read --again
}

group_at_rest() {
    check "create a topic for a group" create shared 6
    check "send to a group" send_part 0
    start_member a
    check "one member reads" caught_up
    start_member b
    check "two members share" share 3 3
    check "send more" send_part 1
    check "both read" caught_up
    check "one leaves" stop_member b
    check "the other has all" share 6
    check "everything came once" all_read
}

# Kafka's coordinator is told of a member that died when its session ends.
group_goes_on() {
    start_member c
    check "a third member joins" share 3 3
    kill_member c
    check "send on" send_part 2
    check "stop under members" stop_broker
    check "start under members" start_broker
    check "a killed member's partitions are read" caught_up
    kill_broker
    check "start under members after kill -9" start_broker
    check "send after that" send_part 3
    check "the member reads on" caught_up
    check "it leaves" stop_member a
    check "nothing is lost" all_read --again
    check "send to nobody" send_part 4
    start_member d
    check "a new member reads" caught_up
    check "it begins at the commit" begins_behind d "$(wc -l < "$work/part.4")"
    check "the new member leaves" stop_member d
    check "delete the group" run groups delete team
}

# ------------------------------------------------------------------ all of it

make_input "$work/input" "$bytes" || exit 1
split -n l/5 -d -a 1 "$work/input" "$work/part."
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
group_at_rest
! can_restart || group_goes_on
[ "$broker_kind" != dohle ] || check_memory
check "stop at the end" stop_broker
finish
