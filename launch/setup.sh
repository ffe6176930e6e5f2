#!/usr/bin/env bash
# Makes a checkout ready to use: Debian packages, LibTorch in .venv, the release build in build/.
#
#   launch/setup.sh [TARGET...]   builds these CMake targets (default: all)
#
# Works from any directory, as root and as an ordinary user, again and again, and after an interruption: whatever is
# finished already is not done again. Exit code 2: packages are missing and only root could install them.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
requirements=$root/launch/requirements.txt
venv=$root/.venv
started=$SECONDS

say() { printf 'setup: %s\n' "$*"; }

# step TEXT COMMAND...: runs the command, says how long it took.
step() {
  local text=$1 begin=$SECONDS
  shift
  say "$text ..."
  "$@" 9>&-  # whatever outlives the command must not keep the lock
  say "$text: $((SECONDS - begin)) s"
}

missing_packages() {
  local wanted installed
  wanted=$(sed 's/#.*//' "$root/launch/packages.txt" | xargs -n1 | sort -u)
  # dpkg-query fails when one is unknown to it; its answers for the others are complete all the same.
  installed=$(xargs dpkg-query -W -f='${db:Status-Status} ${Package}\n' <<<"$wanted" 2>/dev/null |
    awk '$1 == "installed" { print $2 }' | sort -u) || true
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$installed") | xargs
}

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  local apt=(apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -qq)
  dpkg --configure -a >"$log" 2>&1 || { cat "$log" >&2; return 1; }  # an earlier run may have been interrupted
  "${apt[@]}" update >"$log" 2>&1 || { cat "$log" >&2; return 1; }
  # shellcheck disable=SC2086  # a list of words
  "${apt[@]}" install -y --no-install-recommends $1 >"$log" 2>&1 || { tail -n 30 "$log" >&2; return 1; }
}

ensure_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "this is no Debian or Ubuntu: install what launch/packages.txt lists (under your system's names) by hand" >&2
    exit 2
  fi
  local missing
  missing=$(missing_packages)
  if [ -z "$missing" ]; then return; fi
  if [ "$(id -u)" -ne 0 ]; then
    {
      say "Debian packages are missing, and only root can install them. Run"
      printf '\n  sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n\n' "$missing"
      say "and start this again."
    } >&2
    exit 2
  fi
  step "installing Debian packages ($missing)" install_packages "$missing"
  missing=$(missing_packages)
  if [ -n "$missing" ]; then
    say "apt-get reported success, yet these packages are not installed: $missing" >&2
    exit 1
  fi
}

install_libtorch() {
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --progress-bar off \
    --retries 5 --no-deps --requirement "$requirements"
}

# The stamp is written last and names the pins, so an interrupted or outdated installation is done again.
ensure_libtorch() {
  local stamp=$venv/.siphon-complete pins
  pins=$(sha256sum <"$requirements")
  if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$pins" ]; then return; fi
  step "installing LibTorch into .venv (1.2 GB)" install_libtorch
  printf '%s\n' "$pins" >"$stamp.new"
  mv "$stamp.new" "$stamp"
  rm -f "$root/build/CMakeCache.txt"  # it may name files of the earlier installation
}

# One compiler for each core, and no more than memory allows: files that include LibTorch take up to 2 GiB.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo)
  if [ "$memory" -lt 1 ]; then memory=1; fi
  echo $((cores < memory ? cores : memory))
}

configure() { (cd "$root" && cmake --preset release --fresh >"$log" 2>&1) || { tail -n 30 "$log" >&2; return 1; }; }

# A terminal gets Ninja's own status line; elsewhere one line for each tenth, and at the end only what went wrong.
build() {
  local command=(cmake --build "$root/build" --parallel "$(build_jobs)")
  if [ ${#targets[@]} -gt 0 ]; then command+=(--target "${targets[@]}"); fi
  if [ -t 1 ]; then "${command[@]}"; return; fi
  "${command[@]}" 2>&1 | tee "$log" | awk -F '[][/]' '
      /^\[[0-9]+\/[0-9]+\]/ && int(10 * $2 / $3) > tenth {
        tenth = int(10 * $2 / $3); print "setup:   " $2 " of " $3; fflush() }' ||
    { grep -v '^\[[0-9]*/[0-9]*\] ' "$log" | tail -n 60 >&2; return 1; }
}

ensure_build() {
  local cache=$root/build/CMakeCache.txt
  # Ninja configures again by itself when CMake files change; a moved checkout or an unfinished configuration it cannot mend.
  if [ ! -e "$root/build/build.ninja" ] || ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    step "configuring build/" configure
  fi
  # Asking costs 0.1 s. It also says no when CMake files changed.
  if ninja -C "$root/build" -n "${targets[@]}" 2>/dev/null | grep -q 'no work to do'; then return; fi
  step "building ${targets[*]:-everything} in build/ with $(build_jobs) jobs" build
}

targets=("$@")
mkdir -p "$root/.setup"
exec 9>"$root/.setup/lock"
if ! flock -n 9; then
  say "another setup is at work in this checkout; waiting for it"
  flock 9
fi
log=$(mktemp "$root/.setup/log.XXXXXX")
trap 'rm -f "$log"' EXIT

ensure_packages
ensure_libtorch
ensure_build
say "ready after $((SECONDS - started)) s"
