#!/bin/bash
# rdkafka, Rust over the librdkafka that it brings: compat/rdkafka/run.sh DOHLE [quick]. Without TLS and
# unoptimized, except librdkafka: it is built once.
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../scenario.sh"

build() {
    target=$(cache_dir rdkafka)
    cargo build --quiet --locked --manifest-path "$here/Cargo.toml" --target-dir "$target"
}

bytes=20000000 limit=300
[ -z "$quick" ] || bytes=2000000 limit=60
check "build" build || finish
client=("$target/debug/client")
client_protocols="classic consumer"
scenario
finish
