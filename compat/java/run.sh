#!/bin/bash
# Apache Kafka's Java clients: compat/java/run.sh DOHLE [quick].
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../kafka.sh"
. "$here/../scenario.sh"

bytes=20000000 limit=300
[ -z "$quick" ] || bytes=2000000 limit=60

build() {
    fetch_kafka && javac -Xlint:all -Werror -cp "$kafka_jars/*" -d "$work/classes" "$here/Client.java"
}

check "build" build || finish
client=(java "${kafka_jvm[@]}" "$(kafka_log4j ERROR)" -cp "$work/classes:$kafka_jars/*" Client)
client_protocols="classic consumer"
scenario
finish
