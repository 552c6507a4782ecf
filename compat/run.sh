#!/bin/bash
# compat/run.sh [NAME...] [quick]: real clients against the broker; all of them without a NAME, or with
# quick alone those that need only Debian's packages. The binary is $DOHLE, by default build/dohle. A
# client that is not installed is an error. compat/run.sh packages [NAME...] [quick] lists what they
# need of Debian beyond ./dev setup. README.md has the rest. Options (--seed N) are for the one NAME.
cd "$(dirname "$0")/.." || exit 1
debians="dohle kcat librdkafka"
list_packages= quick= names= options=()
while [ $# -gt 0 ]; do
    case $1 in
    packages) list_packages=yes ;;
    quick) quick=quick ;;
    --kafka) options+=("$1") ;;
    --*) options+=("$1" "${2:-}") && shift ;;
    *) names="$names $1" ;;
    esac
    shift
done
if [ -z "$names" ] && [ -n "$quick" ]; then
    names=$debians
elif [ -z "$names" ]; then
    names=$(for file in compat/*/run.sh; do basename "$(dirname "$file")"; done)
fi
for name in $names; do
    [ -x "compat/$name/run.sh" ] || { echo "no client $name" >&2; exit 2; }
done
case ${#options[@]}:${names# } in
0:* | *:cluster | *:librdkafka-suite) ;;
*)
    echo "only cluster and librdkafka-suite have options" >&2
    exit 2
    ;;
esac

if [ -n "$list_packages" ]; then
    [ "${DOHLE_COMPAT_BROKER:-}" != kafka ] || names="$names java"
    for name in $names; do
        [ ! -e "compat/$name/packages" ] || cat "compat/$name/packages"
    done | sort -u
    exit
fi

dohle=$(realpath "${DOHLE:-build/dohle}")
[ -x "$dohle" ] || { echo "$dohle is missing: ./dev build" >&2; exit 1; }
status=0
for name in $names; do
    echo "== $name"
    "compat/$name/run.sh" "$dohle" $quick "${options[@]}" || status=1
done
exit $status
