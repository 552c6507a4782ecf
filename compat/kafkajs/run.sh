#!/bin/bash
# kafkajs, JavaScript without librdkafka: compat/kafkajs/run.sh DOHLE [quick]. The codecs that it lacks
# are packages of their own; it reads in groups only, so the first part of the scenario needs them too.
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../scenario.sh"

install() {
    cache=$(cache_dir "kafkajs-$(cksum < "$here/package-lock.json" | cut -d ' ' -f 1)")
    [ -e "$cache/.complete" ] && return
    cp "$here/package.json" "$here/package-lock.json" "$cache" &&
        npm ci --prefix "$cache" --ignore-scripts --no-audit --no-fund && touch "$cache/.complete"
}

bytes=20000000 limit=300
[ -z "$quick" ] || bytes=2000000 limit=60
check "install" install || finish
export NODE_PATH=$cache/node_modules
client=(node "$here/client.js")
scenario
finish
