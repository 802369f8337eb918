#!/usr/bin/env bash
# CPython 3.13.18 and 3.14.10: Ctrl-C may pass a `finally`, an `except` or the end of a `with`.
#
# It comes between two instructions; if that is the jump from a false `if` at the end of a loop back
# to its beginning, the KeyboardInterrupt is raised outside of the `try` or `with` that the loop is
# in: what is to be closed stays open, and a lock stays taken. CPython 3.13 does so for the jump of
# a `while` with a condition, too. A statement after the `if`, even `pass`, helps. 3.15 is right.
# Seen, of 200 interrupts each, in loops that call nothing, locks that stayed taken: 3.13.18 `for`
# with `if` 200, `while` 200, `for` with `if` and `pass` 0; 3.14.10 200, 0, 0; 3.15.2 0, 0, 0.
#
# Needs Debian or its like on x86-64, with the keyring of its archive, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{lists,cache,debs,root}
sources=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{sources,list} 2>/dev/null || true)
archive=$(awk '/^URIs:/ { print $2; exit }
               /^deb / { sub(/\[[^]]*\]/, ""); print $2; exit }' <<<"$sources")
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key] $archive sid main" >"$folder/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
cd "$folder/debs"
for version in 3.13=3.13.18-1 3.14=3.14.10-1 3.15=3.15.2-1; do
    name=${version%=*} pinned=${version#*=}
    "${apt[@]}" download "python$name-minimal=$pinned" "libpython$name-minimal=$pinned" \
        "libpython$name-stdlib=$pinned"
done
"${apt[@]}" download libc6=2.43-7 libexpat1=2.9.0-1 zlib1g=1:1.3.dfsg+really1.3.2-4
for package in *.deb; do dpkg -x "$package" "$folder/root"; done
libraries=$(dirname "$(find "$folder/root/usr/lib" -path '*linux-gnu/libc.so.6')")
loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -1)
cat >"$folder/interrupts.py" <<'PYTHON'
import itertools
import signal
import sys
import threading


def interrupt(*_):
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    raise KeyboardInterrupt


def for_if(lock):
    with lock:
        for n in itertools.repeat(0):
            if n:
                print(n)


def for_if_pass(lock):
    with lock:
        for n in itertools.repeat(0):
            if n:
                print(n)
            pass


def while_condition(lock):
    numbers = [1]
    with lock:
        while numbers:
            numbers[0] += 1


def taken(function):
    count = 0
    for _ in range(200):
        lock = threading.Lock()
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.002, 0.5)
            function(lock)
        except KeyboardInterrupt:
            count += lock.locked()
    return count


signal.signal(signal.SIGVTALRM, interrupt)
counts = [taken(function) for function in (for_if, while_condition, for_if_pass)]
print(sys.version.split()[0], *counts)
expected = {13: [True, True, False], 14: [True, False, False], 15: [False, False, False]}
assert [count > 0 for count in counts] == expected[sys.version_info[1]]
PYTHON
for name in 3.13 3.14 3.15; do
    "$loader" --library-path "$libraries" "$folder/root/usr/bin/python$name" "$folder/interrupts.py"
done
