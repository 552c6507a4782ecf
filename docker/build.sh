#!/bin/bash
# docker/build.sh [TAG]: the image, by default dohle:latest. docker/build.sh --root: only its files, in build/docker/root.
set -eu
cd "$(dirname "$(realpath "$0")")/.."
./dev build static
root=build/docker/root
rm -rf build/docker
mkdir -p $root/usr/bin $root/etc $root/var/lib/dohle
cp build/static/dohle $root/usr/bin/
echo 'dohle:x:1000:1000::/var/lib/dohle:/' > $root/etc/passwd
echo 'dohle:x:1000:' > $root/etc/group
echo "files of the image: $root"
[ "${1:-}" = --root ] || docker build -t "${1:-dohle:latest}" -f docker/Dockerfile build/docker
