# shellcheck shell=bash
# Sourced by run.sh: a step that is a program of GoogleTest's, or a part of one.
#
#   suite NAME LIMIT PROGRAM FILTER SHARD SHARDS [VARIABLE=VALUE...]
#
# Where it is cut or left out, unfinished_cases says of which cases; run.sh's `step` asks it.

suite() {
  local name=$1 limit=$2 program=$3 filter=$4 shard=$5 shards=$6
  shift 6
  local suite=("${ours[@]}" GTEST_FILTER="$filter" "$@" "${start[@]}" "$here/$program")
  step "$name" "$limit" env GTEST_OUTPUT="xml:$work/logs/$name.xml" GTEST_TOTAL_SHARDS="$shards" GTEST_SHARD_INDEX="$shard" "${suite[@]}"
}

# Nothing where the step is no suite.
unfinished_cases() { # log
  local log=$1 at rest
  if [ ${#suite[@]} = 0 ]; then return; fi
  if [ ! -e "$log" ]; then log=/dev/null; fi
  at=$(sed -n 's/^\[ RUN *\] //p' "$log" | grep -v -x -F -f <(sed -n 's/^\[ *\(OK\|FAILED\|SKIPPED\) *\] \([^ ,]*\).*/\2/p' "$log"))
  # GoogleTest lists all that the filter leaves, and gives each shard one in turn.
  rest=$(timeout -k 5 10 "${suite[@]}" --gtest_list_tests 2>/dev/null </dev/null |
    awk -v shard="$shard" -v shards="$shards" '/^[^ ]/ { suite = $1 } /^  / && number++ % shards == shard { print suite $1 }' |
    grep -v -x -F -f <(sed -n 's/^\[ RUN *\] //p' "$log"))
  echo "; did not end: $(paste -sd ' ' <<<"${at:-none}"); not begun: $(paste -sd ' ' <<<"${rest:-none}")"
}
