#!/usr/bin/env bash
# From a fresh checkout to a trained language model: sets up what is missing, builds, trains configs/jobs/quickstart.yaml on
# the King James Bible, and lets the model write. Arguments go to `siphon train`, for example --set train.steps=50.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
begin=$SECONDS
launch/setup.sh siphon

text=runs/data/bible.txt
if [ ! -s "$text" ]; then
  mkdir -p "$(dirname "$text")"
  # Under a temporary name first: what bears the real name is complete.
  bible -f gen1:1-rev22:21 >"$text.$$"
  mv "$text.$$" "$text"
  echo "quickstart: wrote $text ($(stat -c %s "$text") bytes of the King James Bible)"
fi
echo "quickstart: set up after $((SECONDS - begin)) s; training"

begin=$SECONDS
epoch=$(date +%s)
code=0
build/siphon train configs/jobs/quickstart.yaml "$@" || code=$?
if [ "$code" -ne 0 ]; then exit "$code"; fi
echo "quickstart: trained in $((SECONDS - begin)) s"

# Arguments may have sent this run's checkpoints elsewhere: an older run's are none of ours.
newest=$(find runs/quickstart/checkpoints -mindepth 1 -maxdepth 1 -type d -name 'step-*' -newermt "@$epoch" 2>/dev/null |
  sort | tail -n 1)
if [ -n "$newest" ]; then
  echo "quickstart: build/siphon generate --checkpoint $newest --prompt 'In the beginning '"
  build/siphon generate --checkpoint "$newest" --prompt 'In the beginning '
fi
