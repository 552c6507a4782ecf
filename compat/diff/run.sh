#!/bin/bash
# The same requests to Apache Kafka and to the broker, answers compared field by field:
# compat/diff/run.sh DOHLE [CASES...]. What may differ is listed in differences.txt.
dohle=$1
shift
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../kafka.sh"

settings=(offsets.topic.num.partitions=5 group.initial.rebalance.delay.ms=0 num.partitions=4 broker.rack=RACK1
    process.roles=broker,controller node.id=1 group.max.size=3)
start_kafka "$work/kafka" "${settings[@]}" || { echo "Apache Kafka does not start"; exit 1; }
kafka_port=$port port=0
cluster_id=$(sed -n "s/^cluster.id=//p" "$work/kafka/meta.properties")
start_dohle "${settings[@]/#/--set=}" --set "cluster.id=$cluster_id" || exit 1
PYTHONDONTWRITEBYTECODE=1 python3 "$here/diff.py" "$kafka_port" "$work/kafka" "$port" "$work/data" "$@"
