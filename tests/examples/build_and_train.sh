#!/usr/bin/env bash
# Uses Siphon as a stranger does: installs a build to a new prefix, copies the two examples out of the tree, builds them
# against the installed package, trains each, and checks that it learned.
#
#   tests/examples/build_and_train.sh [BUILD_FOLDER]      default: build
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build_dir=$(cd "${1:-$source_dir/build}" && pwd)
steps=30

work=$(mktemp -d "${TMPDIR:-/tmp}/siphon_examples.XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$work/log

fail() {
  echo "build_and_train.sh: $1" >&2
  [[ -s $log ]] && tail -n 40 "$log" >&2
  exit 1
}

# quietly WHAT COMMAND...: the output is shown only if the command fails.
quietly() {
  local what=$1 begin=$SECONDS
  shift
  "$@" >"$log" 2>&1 || fail "$what failed: $*"
  echo "$what: $((SECONDS - begin)) s"
}

build_example() {
  quietly "configuring the $1 example" \
    cmake -S "$work/$1" -B "$work/$1/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix"
  quietly "building the $1 example" cmake --build "$work/$1/build"
}

# check_metrics FILE: one object a step, and the loss at the end is less than half of that at the start.
check_metrics() {
  [[ -f $1 ]] || fail "no $1"
  python3 - "$1" "$steps" <<'PYTHON' || fail "training did not go as it should: $1"
import json, sys
records = [json.loads(line) for line in open(sys.argv[1])]
steps = [record["step"] for record in records]
losses = [record["loss"] for record in records]
print(f"  {len(records)} steps, loss {losses[0]:.4f} -> {losses[-1]:.4f}")
complete = len(steps) == int(sys.argv[2]) and steps == list(range(steps[0], steps[0] + len(steps)))
sys.exit(0 if complete and losses[-1] < losses[0] / 2 else 1)
PYTHON
}

quietly "installing" cmake --install "$build_dir" --prefix "$work/prefix"
cp -r "$source_dir/tests/examples/library" "$source_dir/tests/examples/plugin" "$work"

build_example library
quietly "training with siphon::Trainer" "$work/library/build/conv_net" "$work/runs/library"
check_metrics "$work/runs/library/metrics.jsonl"

build_example plugin
cd "$work/plugin"
quietly "training the plugin with siphon train" "$work/prefix/bin/siphon" train job.yaml
check_metrics "$work/plugin/runs/plugin/metrics.jsonl"
echo "both examples were built and trained"
