#!/usr/bin/env bash
# build_free_threaded.sh FOLDER: CPython 3.13 without the GIL, from Debian's source; ten minutes on two cores.
#
# No archive that Debian knows has one ready. It needs a C compiler and the headers that CPython is
# built with (libssl-dev, libffi-dev, libsqlite3-dev, zlib1g-dev, libbz2-dev, liblzma-dev).
# FOLDER/bin/python3.13t makes virtual environments.
set -euo pipefail
folder=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists" "$work/cache"
sources=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{sources,list} 2>/dev/null || true)
archive=$(awk '/^URIs:/ { print $2; exit }
               /^deb / { sub(/\[[^]]*\]/, ""); print $2; exit }' <<<"$sources")
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb-src [signed-by=$key] $archive trixie main" > "$work/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
cd "$work"
"${apt[@]}" source --download-only python3.13
tar xf python3.13_*.orig.tar.xz
cd Python-3.13*/
./configure -q --disable-gil --prefix="$folder"
make -s -j"$(nproc)" > /dev/null 2>&1
make -s install > /dev/null 2>&1
"$folder/bin/python3.13t" -c 'import ctypes, lzma, sqlite3, ssl, sys, zlib
assert not sys._is_gil_enabled()
print(sys.version)'
