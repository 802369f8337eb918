#!/usr/bin/env bash
# Sybil 10.1.0 and pytest 9.2.0: a block that leaves a socket open ends the session, where it should fail.
#
# With warnings as errors, pytest raises its own warning about the ResourceWarning after the block has
# run. The traceback of that error has no entry behind Sybil's own, and Sybil's filter of tracebacks
# takes that one: IndexError. pytest prints INTERNALERROR, exits with 3, and runs no
# other test. In a test function the same code fails that test alone, and the exit code is 1.
# Seen: exit code 3 and "IndexError" for the page, though its second block is right; 1 and "1 failed,
# 1 passed" for the functions.
#
# Needs Python 3.11 or later, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sybil==10.1.0 pytest==9.2.0
mkdir "$folder/page" "$folder/function"
cat >"$folder/page/conftest.py" <<'PYTHON'
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil([PythonCodeBlockParser()], patterns=["*.md"]).pytest()
PYTHON
cat >"$folder/page/page.md" <<'MARKDOWN'
```python
import gc, socket
socket.socket()
gc.collect()
```

```python
assert 1 + 1 == 2
```
MARKDOWN
cat >"$folder/function/test_function.py" <<'PYTHON'
import gc, socket

def test_first():
    socket.socket()
    gc.collect()

def test_second():
    assert 1 + 1 == 2
PYTHON
for kind in page function; do
    code=0
    (cd "$folder/$kind" && "$folder/venv/bin/python" -m pytest -q -W error) >"$folder/$kind.log" 2>&1 || code=$?
    echo "$kind: exit code $code, $(grep -c INTERNALERROR "$folder/$kind.log") lines of INTERNALERROR, $(tail -n 1 "$folder/$kind.log")"
    echo "$code" >"$folder/$kind.code"
done
[[ $(<"$folder/page.code") == 3 && $(<"$folder/function.code") == 1 ]]
grep -q "IndexError: list index out of range" "$folder/page.log"
grep -q "1 failed, 1 passed" "$folder/function.log"
