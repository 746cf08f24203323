#!/usr/bin/env bash
# Sets up all that `make sim`, `make test` and `make check` need, in steps; a step that is done is passed over.
#
# A step is done when .setup/NAME.done holds the hash of all it is made of. The hash is written last, so a step
# that failed or was interrupted is done again at the next run. Output of the steps goes to .setup/NAME.log.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh

STATE=.setup
VENV=.venv
MIN_FREE_MB=5000   # what the virtual environment (2.8 GB), the build, the scene cache and the downloads take
STEPS=5

# What Debian must bring. PACKAGE or PACKAGE/NAME-IT-HAS-IN-LATER-RELEASES.
SYSTEM_PACKAGES="gcc g++ libc6-dev ca-certificates
  libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libgles2 libglib2.0-0/libglib2.0-0t64
  espeak-ng"

say() { printf '%s\n' "$*"; }

fail() {
  printf '\nset-up: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# hash_of FILE...: one line that changes when the content or the name of any of them does.
hash_of() { sha256sum "$@" | sha256sum | cut -d' ' -f1; }

is_done() { [ "$(cat "$STATE/$1.done" 2>/dev/null)" = "$2" ]; }

# step NUMBER NAME KEY "what it does" "what to do when it fails" COMMAND...
step() {
  local number=$1 name=$2 key=$3 what=$4 advice=$5 log=$STATE/$2.log started=$SECONDS
  shift 5
  rm -f "$STATE/$name.done"
  say "[$number/$STEPS] $what (log: $log)"
  ("$@") >"$log" 2>&1 </dev/null &
  CHILD=$!
  local told=0
  while kill -0 "$CHILD" 2>/dev/null; do
    sleep 0.2
    local seconds=$((SECONDS - started))
    if [ -t 1 ]; then
      printf '\r\033[K      %4d s  %s' "$seconds" "$(tail -c 4000 "$log" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1 | cut -c1-90 || true)"
    elif [ $((seconds / 20)) -gt $told ]; then
      told=$((seconds / 20))
      say "      $seconds s ..."
    fi
  done
  [ -t 1 ] && printf '\r\033[K'
  if wait "$CHILD"; then CHILD=; else
    CHILD=
    say "----- the last lines of $log"
    tail -n 15 "$log" | sed 's/^/  /'
    fail "step $number of $STEPS failed: $what" "$advice" "The whole log: $log" "Then run the same command again; finished steps are kept."
  fi
  say "      done in $((SECONDS - started)) s"
  printf '%s\n' "$key" >"$STATE/$name.done"
}

interrupted() {
  trap - INT TERM
  [ -n "${CHILD:-}" ] && kill -TERM -- "-$CHILD" 2>/dev/null
  printf '\nset-up: interrupted; run the same command again to go on\n' >&2
  exit 130
}

is_installed() {
  local name
  for name in ${1//\// }; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && return 0
  done
  return 1
}

missing_packages() {
  local package
  for package in $SYSTEM_PACKAGES $PYTHON_PACKAGES; do
    is_installed "$package" || printf '%s ' "${package%%/*}"
  done
}

# A Python that can make a virtual environment and for which the ROS 2 wheels exist, or nothing.
find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 /usr/bin/python3 python3.13 python3.12 python3.11 python3.10}; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null; then
      "$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable))'
      return
    fi
  done
}

install_packages() {
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get -o Acquire::Retries=3 update
  "${as_root[@]}" apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@"
}

make_venv() {
  rm -rf "$VENV"
  "$PYTHON" -m venv "$VENV"
  # The build tools first, then all the rest with them; both from the lock, so nothing is resolved or built anew.
  local lock=requirements/lock/py$VERSION.txt build=$STATE/build.lock
  grep -A1 -E "^($(sed -n 's/==.*//p' requirements/build.txt | paste -sd'|'))==" "$lock" | grep -v '^--$' >"$build"
  "$VENV/bin/python" -m pip install --no-deps --require-hashes -r "$build"
  "$VENV/bin/python" -m pip install --no-deps --require-hashes --no-build-isolation --progress-bar off -r "$lock"
  "$VENV/bin/python" -m pip check
}

build_messages() {
  local prefix=$PWD/$VENV package
  export PATH=$prefix/bin:$PATH AMENT_PREFIX_PATH=$prefix
  for package in msg/compat/tf2_msgs msg; do
    local build=$STATE/build/$package
    rm -rf "$build"
    cmake -S "$package" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
      -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_PREFIX_PATH="$prefix" -DPython3_EXECUTABLE="$prefix/bin/python" \
      -DCMAKE_PROJECT_INCLUDE="$PWD/cmake/wheel_paths.cmake"
    cmake --build "$build"
    cmake --install "$build"
  done
  python -c 'from failure_dialogue_msgs.msg import Decision; from tf2_msgs.msg import TFMessage'
}

install_project() {
  "$VENV/bin/python" -m pip install --no-deps --no-build-isolation --editable .
  "$VENV/bin/failure-dialogue" --help
}

main() {
  [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail \
    "this machine is $(uname -s) on $(uname -m); the ROS 2 wheels exist for Linux on x86-64 only" \
    "Install ROS 2 Jazzy for this machine and build with colcon: README.md, 'With ROS 2 installed'."
  mkdir -p "$STATE"
  exec 9>"$STATE/lock"
  if ! flock -n 9; then
    say "another set-up runs in this folder; waiting for it (at most 30 minutes)"
    flock -w 1800 9 || fail "another set-up has held $PWD/$STATE/lock for 30 minutes" "End it and try again."
  fi
  set -m          # each step in a process group of its own, so that Ctrl-C ends all of it
  trap interrupted INT TERM

  local python_given=${PYTHON:-}
  PYTHON=$(find_python)
  [ -n "$PYTHON" ] || [ -z "$python_given" ] || fail "PYTHON=$python_given is no Python 3.10 to 3.13" "Give another, or none."
  PYTHON_PACKAGES=
  if [ -z "$PYTHON" ] || [ "$(dirname "$PYTHON")" = /usr/bin ]; then
    local series=${PYTHON##*/}   # python3.11; without any Python yet, Debian's default
    PYTHON_PACKAGES="${series:-python3} ${series:-python3}-venv ${series:-python3}-dev"
  fi

  local missing
  if command -v dpkg-query >/dev/null; then missing=$(missing_packages); else
    command -v g++ >/dev/null || fail "this is no Debian or Ubuntu system and has no g++" \
      "Install a C++ compiler, the Python headers, Mesa's EGL and espeak-ng, then try again."
    missing=
  fi
  if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
      command -v sudo >/dev/null || fail "system packages are missing and there is no sudo: $missing" \
        "As root: apt-get install --no-install-recommends $missing"
      sudo -v || fail "system packages are missing: $missing" "As root: apt-get install --no-install-recommends $missing"
    fi
    # shellcheck disable=SC2086
    step 1 system "$missing" "Debian packages: $missing" \
      "Check the network and /etc/apt, or install them yourself: apt-get install --no-install-recommends $missing" \
      install_packages $missing
    PYTHON=${PYTHON:-$(find_python)}
    [ -n "$PYTHON" ] || fail "Debian's python3 is not 3.10 to 3.13" "Install one of these and run: make PYTHON=/path/to/python3.12"
  fi

  VERSION=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  local key
  key=$(hash_of "requirements/lock/py$VERSION.txt" requirements/build.txt)-$PYTHON-$PWD
  if ! is_done packages "$key" || ! "$VENV/bin/python" -c '' 2>/dev/null; then
    local free
    free=$(df -Pm . | awk 'NR == 2 {print $4}')
    [ "$free" -ge $MIN_FREE_MB ] || fail "$free MB are free in $PWD; set-up needs $MIN_FREE_MB MB" "Make room and try again."
    rm -f "$STATE"/{messages,project,scenes}.done
    step 2 packages "$key" "Python $VERSION packages into $VENV, about 2 minutes" \
      "Check the network and pip's configuration (pip config list)." make_venv
  fi

  key=$(hash_of $(find msg cmake -type f | LC_ALL=C sort))
  is_done messages "$key" || step 3 messages "$key" "Messages failure_dialogue_msgs, about a minute" \
    "A message file may be at fault: the log names it." build_messages

  key=$(hash_of setup.py setup.cfg)-$PWD
  is_done project "$key" || step 4 project "$key" "The project itself into $VENV" \
    "setup.py or setup.cfg may be at fault." install_project

  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/failure_dialogue/scenes
  key=$(hash_of sim_bridge/scene_*.py "requirements/lock/py$VERSION.txt")-$cache
  is_done scenes "$key" && [ -d "$cache" ] || step 5 scenes "$key" "Simulated scenes into $cache, about a minute" \
    "Scenes are built by LIBERO and MuJoCo; the log says which failed." "$VENV/bin/failure-dialogue" prepare-scenes
}

main
