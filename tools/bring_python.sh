#!/usr/bin/env bash
# bring_python.sh VERSION FOLDER: CPython of Debian's newest suite on an older Debian, in 100 MB.
#
# It comes with its own C library and what else it links to, so that nothing is installed in the
# system; patchelf, which has to be on the PATH, makes it look for them there. The archive is that
# from which this machine takes its packages. FOLDER/bin/pythonVERSION makes virtual environments;
# it cannot be moved. To compile extensions: CPATH=FOLDER/sys/usr/include.
set -euo pipefail
version=$1 folder=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists" "$work/cache" "$work/debs"
sources=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{sources,list} 2>/dev/null || true)
archive=$(awk '/^URIs:/ { print $2; exit }
               /^deb / { sub(/\[[^]]*\]/, ""); print $2; exit }' <<<"$sources")
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key] $archive sid main" > "$work/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
cd "$work/debs"
"${apt[@]}" download "python$version" "python$version-minimal" "python$version-venv" \
    "python$version-dev" "libpython$version" "libpython$version-minimal" \
    "libpython$version-stdlib" "libpython$version-dev" libbz2-1.0 libc6 libcrypt1 libdb5.3t64 \
    libexpat1 libffi8 libgcc-s1 liblzma5 libncursesw6 libreadline8t64 libsqlite3-0 libssl3t64 \
    libstdc++6 libtinfo6 libuuid1 libzstd1 zlib1g
rm -rf "$folder"
mkdir -p "$folder/sys" "$folder/bin"
for package in *.deb; do dpkg -x "$package" "$folder/sys"; done
libraries=$(dirname "$(find "$folder/sys/usr/lib" -path '*linux-gnu/libc.so.6')")
python=$folder/sys/usr/bin/python$version
loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -1)
patchelf --set-interpreter "$loader" --set-rpath "$libraries" "$python"
find "$folder/sys/usr/lib/python$version/lib-dynload" -name '*.so' \
    -exec patchelf --set-rpath "$libraries" {} +
"$python" -VV
"$python" -c 'import ctypes, lzma, sqlite3, ssl, zlib'
ln -s "../sys/usr/bin/python$version" "$folder/bin/python$version"
