#!/usr/bin/env bash
# By which engines a job's tensors are copied to the host and back, and beside what: swap_job.yaml with CUPTI's records, and a table.
#
#   tests/gpu/recorded_copies.sh SIPHON RECORDER COPY_REPORT RESULTS
#
# The table goes to RESULTS/copies.md. Exit code 1 where the job fails or its copies are not as they should be.
set -uo pipefail
if [ $# != 4 ]; then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 2
fi
siphon=$1 recorder=$2 report=$3 results=$(realpath "$4")
activity=$results/activity
rm -rf "$activity" && mkdir -p "$activity" || exit 1
# The driver loads the recorder into each worker.
SIPHON_ACTIVITY_FOLDER=$activity CUDA_INJECTION64_PATH=$recorder \
  "$siphon" train "$(dirname "$0")/swap_job.yaml" --set output.directory="$results/siphon_run_swap_job" || exit 1
"$report" "$activity"/*.activity >"$results/copies.md"
code=$?
cat "$results/copies.md"
rm -rf "$activity"
exit $code
