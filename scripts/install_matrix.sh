#!/usr/bin/env bash
# Install breakscope as users do, beside several versions of Python and torch, and scan a script there.
#
#     scripts/install_matrix.sh                                   # what the table of docs/compatibility.md holds
#     scripts/install_matrix.sh python3.12=2.9.1 python3.13=newest
#
# Each argument is a Python and the torch to install for it. Three ways are tried: in the environment that has
# torch (pip must keep that torch as it is); from an environment of its own, without torch, with --python; and
# from there while the environment with torch is the active one. Prints a row of the table for each argument,
# and ends with 1 if anything failed. KEEP=DIR keeps the environments there for another run. torch from a
# package index brings gigabytes of CUDA libraries unless pip is told of an index with builds for the CPU.
set -uo pipefail
cd "$(dirname "$0")/.."
at=${KEEP:-$(mktemp -d)}
mkdir -p "$at"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$at"' EXIT
[ $# -gt 0 ] || set -- python3.11=2.13.0 python3.12=2.9.1 python3.13=newest
failed=0

make_environment() { # FOLDER PYTHON
  [ -x "$1/bin/python" ] || { "$2" -m venv "$1" && "$1/bin/python" -m pip install --quiet --upgrade pip; }
}

installed() { # FOLDER PACKAGE: its version and when pip wrote it, or "none"
  "$1/bin/python" - "$2" <<'PYTHON'
import sys
from importlib.metadata import PackageNotFoundError, distribution
try:
    found = distribution(sys.argv[1])
    print(found.version, found._path.stat().st_mtime_ns)
except PackageNotFoundError:
    print("none")
PYTHON
}

# Works if the scan ends well, and torch and Python of the report are those of the environment with torch.
scan() { # FOLDER-WITH-TORCH COMMAND...
  local theirs=$1 folder
  shift
  folder=$(mktemp -d "$at/scan.XXXXXX")
  cp fixtures/plain_training.py "$folder/train.py"
  (cd "$folder" && "$@" --output report.json train.py >log.txt 2>&1)
  "$theirs/bin/python" - "$folder/report.json" <<'PYTHON' && echo works || { tail -5 "$folder/log.txt" >&2; echo "**fails**"; }
import json, platform, sys
from importlib.metadata import version
run = json.load(open(sys.argv[1]))["run"]
theirs = run["torch"].split("+")[0] == version("torch").split("+")[0] and run["python"] == platform.python_version()
sys.exit(0 if run["status"] == "ok" and run["targets"] and theirs else 1)
PYTHON
}

make_environment "$at/build" "${1%%=*}" &&
  "$at/build/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$at/dist" . || exit 1
wheel=$(ls -t "$at"/dist/*.whl | head -1)

echo "| Python | torch | beside torch | own environment, \`--python\` | own environment, active one |"
echo "|---|---|---|---|---|"
for pair in "$@"; do
  python=${pair%%=*} wanted=${pair#*=}
  if ! command -v "$python" >/dev/null || ! "$python" -c ''; then
    echo "| $python | $wanted | not tried: no such Python here | | |"
    continue
  fi
  theirs=$at/$python-torch-$wanted tool=$at/$python-tool
  requirement=torch
  [ "$wanted" = newest ] || requirement=torch==$wanted
  make_environment "$theirs" "$python" && "$theirs/bin/python" -m pip install --quiet "$requirement" numpy || {
    echo "| $python | $wanted | **pip could not install torch** | | |"
    failed=1
    continue
  }
  before=$(installed "$theirs" torch)
  "$theirs/bin/python" -m pip install --quiet --force-reinstall --no-deps "$wheel"
  "$theirs/bin/python" -m pip install --quiet "$wheel"
  beside=$(scan "$theirs" "$theirs/bin/breakscope" scan)
  [ "$before" = "$(installed "$theirs" torch)" ] || beside="**torch replaced**"
  make_environment "$tool" "$python"
  "$tool/bin/python" -m pip install --quiet --force-reinstall "$wheel"
  named=$(scan "$theirs" "$tool/bin/breakscope" scan --python "$theirs/bin/python")
  active=$(scan "$theirs" env VIRTUAL_ENV="$theirs" PATH="$theirs/bin:$PATH" "$tool/bin/breakscope" scan)
  [ "$(installed "$tool" torch)" = none ] || named="**torch installed for the tool**"
  row="| $("$theirs/bin/python" -c 'import platform; print(platform.python_version())') | ${before%% *} | $beside | $named | $active |"
  echo "$row"
  case $row in *"**"*) failed=1 ;; esac
done
exit $failed
