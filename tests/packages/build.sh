#!/bin/sh
# Builds the Debian packages of a version with the debhelper of this machine, and makes those of an
# older one of them, which differ by their version alone: build.sh TOP PYTHON OLD NEW
# The packages are put next to this script.
set -eu

top=$1 python=$2 old=$3 new=$4
place=$(dirname -- "$0")
export DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1
export DEBIAN_FRONTEND=noninteractive PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels PYTHONDONTWRITEBYTECODE=1
apt-get -qq update
apt-get -qq install --yes --no-install-recommends ca-certificates debhelper dpkg-dev lintian make python3 >/dev/null
"$top/packaging/build-deb" "$python" "$top"/dist/huai-*.whl "$place" "$new"
for package in "$place"/*_"${new}"_*.deb; do
  dpkg-deb --raw-extract "$package" /tmp/opened
  sed -i "s/$new/$old/" /tmp/opened/DEBIAN/control
  dpkg-deb -Znone --build /tmp/opened "$place" >/dev/null
  rm -r /tmp/opened
done
