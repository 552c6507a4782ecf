#!/bin/bash
# Apache Kafka's DumpLogSegments over all logs, indexes and snapshots of a log directory, and check.py over what it
# says. Sourced after common.sh and kafka.sh; or compat/kafka-dump/dump.sh DIR, with DOHLE_COMPAT_BROKER=kafka when
# Apache Kafka wrote it.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    alone=yes dohle=
    . "$(dirname "$(realpath "$0")")/../common.sh"
    . "$compat/kafka.sh"
fi

files_of() { # NAME...: find's patterns; one word with commas, as --files wants it
    local name names=()
    for name in "$@"; do
        names+=(-o -path "$name")
    done
    (cd "$data" && find . \( -false "${names[@]}" \) -not -path '*-delete/*') | sed 's,^\./,,' | LC_ALL=C sort | paste -sd,
}

dump() { # OPTIONS PATTERN...
    local options=$1 files
    shift
    files=$(files_of "$@")
    [ -n "$files" ] || return 0
    # shellcheck disable=SC2086
    (cd "$data" && kafka_tool DumpLogSegments $options --files "$files") >> "$work/dump" 2>> "$work/dump.errors"
}

dump_all() {
    local indexes='*.index *.timeindex *.txnindex'
    local sane=$indexes
    # Apache Kafka leaves those of its own metadata log preallocated, which the tool calls corrupt.
    [ "$broker_kind" = dohle ] || sane='./[!_]*.index ./[!_]*.timeindex'
    set -f
    : > "$work/dump" > "$work/dump.errors"
    # shellcheck disable=SC2086
    dump --deep-iteration './[!_]*.log' &&
        dump --cluster-metadata-decoder './__cluster_metadata-0/*.log' '*.checkpoint' &&
        dump --offsets-decoder './__consumer_offsets-*.log' &&
        dump --transaction-log-decoder './__transaction_state-*.log' &&
        dump "" $indexes '*.snapshot' &&
        dump --index-sanity-check $sane &&
        dump --verify-index-only $indexes
    local code=$?
    set +f
    return $code
}

dump_is_sound() {
    dump_all || { echo "the tool failed:"; head -5 "$work/dump.errors"; return 1; }
    "$compat/kafka-dump/check.py" "$data" "$work/dump" "$work/dump.errors" > "$work/counted"
}

if [ -n "${alone:-}" ]; then
    data=$(realpath "$1") limit=600
    fetch_kafka && dump_is_sound
    exit
fi
