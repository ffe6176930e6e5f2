#!/usr/bin/env bash
# Sets up what is missing and runs every test that this machine can run.
#
#   tests/run.sh           release build with all tests, then what needs no LibTorch, and stages in LibTorch, under address and
#                          undefined-behaviour sanitizers with a bounded run of the fuzzers, and what starts threads under the
#                          thread sanitizer
#   tests/run.sh --quick   the release build only
#   tests/run.sh --all     full products where the tests run a covering selection by default; and a debug build, in which each
#                          source is compiled alone
#
# Prints what was skipped and why. The last line is "N passed, N failed, N skipped", GoogleTest cases of all builds together;
# exit code 1 if one failed, 2 if packages are missing.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
presets=(release asan-ubsan tsan)
only_built=()
for argument in "$@"; do
  case $argument in
    --quick) presets=(release) ;;
    --all) export SIPHON_TEST_ALL=1; only_built=(debug) ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "tests: unknown argument '$argument'; known: --quick, --all, --help" >&2; exit 2 ;;
  esac
done

launch/setup.sh || exit $?

# Pages are looked at with a real browser, where Debian has one. Without it those tests say that they are skipped.
install_browser() {
  local apt=(apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -qq)
  { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends chromium; } >/dev/null 2>&1
}
if ! command -v chromium >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  echo "tests: installing chromium ..."
  DEBIAN_FRONTEND=noninteractive install_browser || echo "tests: chromium cannot be installed; its tests are skipped"
fi

# Threads of LibTorch that wait would spin on cores that other tests need (2 threads a worker: 17 s instead of 3 s).
export OMP_WAIT_POLICY=passive

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

build_folder() { if [ "$1" = release ]; then echo "$root/build"; else echo "$root/build-$1"; fi; }

# The release build was made by setup.sh.
build_preset() {
  local preset=$1 begin=$SECONDS
  if [ "$preset" = release ]; then return; fi
  echo "tests: building $preset ..."
  # Each time: a preset may have changed since the folder was made.
  cmake --preset "$preset" >"$results/log" 2>&1 || { tail -n 30 "$results/log"; return 1; }
  cmake --build "$(build_folder "$preset")" --parallel "$(nproc)" >"$results/log" 2>&1 ||
    { grep -v '^\[[0-9]*/[0-9]*\] ' "$results/log" | tail -n 60; return 1; }
  echo "tests: building $preset: $((SECONDS - begin)) s"
}

# The thread sanitizer wants the memory layout of kernels with less address randomisation.
runner() {
  if [ "$1" = tsan ] && setarch -R true 2>/dev/null; then setarch -R "${@:2}"; else "${@:2}"; fi
}

build_or_say() { build_preset "$1" || { echo "tests: $1 does not build" | tee "$results/$1.broken"; return 1; }; }

summed=("${presets[@]}")
for preset in "${only_built[@]}"; do build_or_say "$preset" || summed+=("$preset"); done
for preset in "${presets[@]}"; do
  build_or_say "$preset" || continue
  begin=$SECONDS
  echo "tests: running $preset ..."
  # What became of each case, of the last run.
  find "$(build_folder "$preset")/Testing/cases" -name '*.xml' -delete 2>/dev/null
  runner "$preset" ctest --test-dir "$(build_folder "$preset")" --label-exclude bench --parallel "$(nproc)" \
    --output-on-failure --output-junit "$results/$preset.xml" >"$results/log" 2>&1
  ctest --test-dir "$(build_folder "$preset")" --label-exclude bench --show-only=json-v1 >"$results/$preset.json"
  # A line for each passed or skipped test or case helps nobody; the rest is what failed, with its output.
  awk '/^\[ RUN /{begun = $0 "\n"; next} /^\[ +(OK|SKIPPED) +\]/{begun = ""; next} {printf "%s", begun; begun = ""; print}' \
    "$results/log" |
    grep -v -E '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .*(Passed|\*\*\*Skipped))|^(Internal ctest|Test project|Label Time|\s*$)' |
    grep -v -E '^(The following tests did not run|\s*[0-9]+ - .*\(Skipped\))|sec\*proc|^Total Test time|tests passed'
  echo "tests: running $preset: $((SECONDS - begin)) s"
done

/usr/bin/python3 tests/summarize_results.py "$results" "${summed[@]}"
