#!/usr/bin/env python3
"""Runs cases that end in every way under ctest, and compares what summarize_results.py says of them.

usage: check_summary.py ENDINGS_PROGRAM
"""
import difflib
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

EXPECTED = """\
skipped 4, because it is disabled in the source
    release: Ordinary.DISABLED_IsNotRun
    release: Crashing.DISABLED_ComesAfter
    release: OnCuda.Ordinary.DISABLED_IsNotRun
    and 1 more
skipped 1, because no reason is known, as its process failed later
    release: Crashing.IsSkippedBefore
skipped 3, because there is nothing to do
    release: Ordinary.IsSkipped
    release: OnCuda.Ordinary.IsSkipped
    release: OnCuda.Crashing.IsSkippedBefore
FAILED release: Ordinary.Fails
FAILED release: Crashing.FailsBefore
FAILED release: Crashing.Aborts
FAILED release: Crashing.ComesAfter: not run, as its process failed before
FAILED release: Leaving.Exits
FAILED release: Leaving.ComesAfter: not run, as its process failed before
FAILED release: FailingAtItsEnd: its process failed outside of its cases
FAILED release: OnCuda.Ordinary.Fails
FAILED release: OnCuda.Crashing.FailsBefore
FAILED release: OnCuda.Crashing.Aborts
FAILED release: OnCuda.Leaving.Exits
FAILED release: OnCuda.FailingAtItsEnd: its process failed outside of its cases
FAILED release: NoProgram_NOT_BUILT
FAILED missing: did not build or did not run
18 passed, 14 failed, 8 skipped
"""


def suites(program, folder, shards, prefix):
    return (f"siphon_add_suites(PROGRAM {program} FOLDER {folder} SHARDS {shards} PREFIX [==[{prefix}]==]"
            f" PROPERTIES WORKING_DIRECTORY {folder} LABELS unit TIMEOUT 60)\n")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "CTestTestfile.cmake").write_text(
            f"include({ROOT}/launch/cmake/SiphonAddSuites.cmake)\n" + suites(program, folder / "one", 1, "") +
            suites(program, folder / "two", 2, "OnCuda.") + suites("NoProgram", folder / "none", 1, ""))
        ctest = ["ctest", "--test-dir", str(folder)]
        subprocess.run(ctest + ["--output-junit", str(folder / "release.xml")], capture_output=True, check=False)
        listed = subprocess.run(ctest + ["--show-only=json-v1"], capture_output=True, text=True, check=True)
        (folder / "release.json").write_text(listed.stdout)
        done = subprocess.run([sys.executable, str(ROOT / "tests/summarize_results.py"), str(folder), "release", "missing"],
                              capture_output=True, text=True, check=False)
    if done.stdout == EXPECTED and done.returncode == 1:
        return 0
    print("".join(difflib.unified_diff(EXPECTED.splitlines(True), done.stdout.splitlines(True), "expected", "said")))
    print(f"exit code {done.returncode}, on standard error:\n{done.stderr}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
