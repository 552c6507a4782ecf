#!/bin/bash
# compat/run.sh [NAME...] [quick]: real clients against the broker; all of them without a NAME, or with
# quick alone those that need only Debian's packages. The binary is $DOHLE, by default build/dohle. A
# client that is not installed is an error. compat/run.sh packages [NAME...] [quick] lists what they
# need of Debian beyond ./dev setup. README.md has the rest.
cd "$(dirname "$0")/.." || exit 1
debians="dohle kcat librdkafka"
list_packages= quick= names=
for word in "$@"; do
    case $word in
    packages) list_packages=yes ;;
    quick) quick=quick ;;
    *) names="$names $word" ;;
    esac
done
if [ -z "$names" ] && [ -n "$quick" ]; then
    names=$debians
elif [ -z "$names" ]; then
    names=$(for file in compat/*/run.sh; do basename "$(dirname "$file")"; done)
fi
for name in $names; do
    [ -x "compat/$name/run.sh" ] || { echo "no client $name" >&2; exit 2; }
done

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
    "compat/$name/run.sh" "$dohle" $quick || status=1
done
exit $status
