#!/bin/bash
# Three nodes that lose nothing: compat/cluster/run.sh DOHLE [quick] [--minutes M] [--seed N] [--kafka]. Producers and
# groups of librdkafka and of the Java client go on while nodes are killed, stopped, emptied, cut off, and partitions
# move; then a checker of our own and Apache Kafka's DumpLogSegments read what is on the three disks. quick: two
# minutes, without what needs a JVM. --kafka: three nodes of Apache Kafka instead.
dohle=$1
shift
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../kafka.sh"
. "$here/../python.sh"

quick= options=()
while [ $# -gt 0 ]; do
    case $1 in
    quick) quick=yes options=(--minutes 2 "${options[@]}") ;;
    --kafka) broker_kind=kafka ;;
    *) options+=("$1") ;;
    esac
    shift
done

install() {
    here=$compat/confluent-kafka make_venv
}

build() {
    fetch_kafka && javac -Xlint:all -Werror -cp "$kafka_jars/*" -d "$classes" "$compat/java/Client.java" "$here/Load.java"
}

# What a run leaves outlives this script when it fails.
left=$(mktemp -d "${TMPDIR:-/tmp}/dohle-cluster.XXXXXX")
classes=$left/classes
check "install" install || finish
programs="\"librdkafka\": [$(json_words "$python" "$here/producer.py"), $(json_words "$python" "$compat/confluent-kafka/client.py")]"
if [ -z "$quick" ] || [ "$broker_kind" = kafka ]; then
    check "build" build || finish
    java=(java -Xms32m -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1)
    log4j=$(work=$left kafka_log4j ERROR)
    client=("${java[@]}" "$log4j" -cp "$classes:$kafka_jars/*")
    programs+=", \"java\": [$(json_words "${client[@]}" Load), $(json_words "${client[@]}" Client)]"
    options+=(--dump "$(json_words env DOHLE_COMPAT_BROKER="$broker_kind" "$compat/kafka-dump/dump.sh")")
fi
if [ "$broker_kind" = kafka ]; then
    log4j=$(work=$left kafka_log4j INFO)
    options+=(--java "$(json_words java -Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "$log4j" -cp "$kafka_jars/*")")
fi
rm -rf "$work"
trap - EXIT INT TERM
exec python3 "$here/main.py" --dohle "$dohle" --directory "$left" --programs "{$programs}" "${options[@]}"
