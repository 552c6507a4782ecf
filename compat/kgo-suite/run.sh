#!/bin/bash
# franz-go's own tests of its package kgo, those of a broker, beside what Apache Kafka 4.4 does (suite.sh):
# compat/kgo-suite/run.sh DOHLE [quick] [TEST...], whole tests without their parts. All take three minutes;
# quick sends less. In kafka.txt are, by hand, the tests that make a client and fail without a broker; those
# of SASL are not, as no listener has it.
dohle=$1
shift
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../suite.sh"

records=50000 limit=600 wanted=()
for word in "$@"; do
    whole=no
    case $word in
    quick) records=5000 ;;
    *) wanted+=("$word") ;;
    esac
done

# As build_go of go.sh: Go is on the PATH, as new as go.mod says.
suite_go() {
    (cd "$here" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly go "$@")
}

build() {
    suite_go test -c -o /dev/null github.com/twmb/franz-go/pkg/kgo
}

is_wanted() { # NAME
    [ ${#wanted[@]} -eq 0 ] || case " ${wanted[*]} " in *" ${1%%/*} "*) ;; *) return 1 ;; esac
}

run_tests() { # NAME...
    KGO_SEEDS=$broker KGO_TEST_RF=1 KGO_TEST_RECORDS=$records KGO_LOG_LEVEL=${KGO_LOG_LEVEL:-none} \
        suite_go test -json -count=1 -vet=off -timeout "${limit}s" -run "^($(IFS='|' && echo "$*"))\$" \
        github.com/twmb/franz-go/pkg/kgo 2> "$results/stderr" | "$here/verdicts.py" "$results"
}

check "build" build || finish
start_broker || exit 1
check "versions" begin_suite || finish
names=() tops=()
for name in "${suite_tests[@]}"; do
    is_wanted "$name" || continue
    names+=("$name")
    case $name in
    */*) ;;
    *) [ -n "$(waits_for "$name")" ] || tops+=("$name") ;;
    esac
done
run_tests "${tops[@]}"
end_suite "${names[@]}"
finish
