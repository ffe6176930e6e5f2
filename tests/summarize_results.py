#!/usr/bin/env python3
"""Sums up what ctest ran: what was skipped and why, what failed, and one last line with the counts of GoogleTest's cases.

usage: summarize_results.py FOLDER PRESET...
  FOLDER/PRESET.xml     ctest's JUnit file
  FOLDER/PRESET.json    of the same tests: ctest --show-only=json-v1
  FOLDER/PRESET.broken  stands for a failed build
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

# GoogleTest prints the message of GTEST_SKIP() behind the place: "file.cc:12: Skipped\nmessage\n".
GOOGLETEST_REASON = re.compile(r": Skipped\n(.*?)\n(?:\n|\[ )", re.DOTALL)
SCRIPT_REASON = re.compile(r"^(skipped, because.*)$", re.MULTILINE)
PREFIX = "skipped, because "
# "[       OK ] Suite.Case (3 ms)", "[  FAILED  ] Suite.Case/1, where GetParam() = 2 (3 ms)"
ENDED = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] ([^ ,]+).* \(\d+ ms\)$", re.MULTILINE)

PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"
Case = collections.namedtuple("Case", "name outcome reason")


def one_line(reason):
    return " ".join(reason.split()).removeprefix(PREFIX).removeprefix("because ") or "no reason was given"


def was_skipped(test):
    """Not run on purpose; ctest gives the same status to a test whose program is missing."""
    element = test.find("skipped")
    return test.get("status") == "disabled" or (element is not None and element.get("message", "").startswith("SKIP_"))


def case_alone(test):
    """A CTest test that is one case."""
    # Behind "#" CTest repeats the parameter that stands in the name already.
    name, output = test.get("name").split("  # ")[0], test.findtext("system-out") or ""
    if test.get("status") == "run":
        return Case(name, PASSED, "")
    if test.get("status") == "disabled":
        return Case(name, SKIPPED, "it is disabled in the source")
    if was_skipped(test):
        found = GOOGLETEST_REASON.search(output) or SCRIPT_REASON.search(output)
        return Case(name, SKIPPED, one_line(found.group(1) if found else ""))
    return Case(name, FAILED, "")


def cases_written(path):
    """Of a process that came to its end, as GoogleTest wrote them."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.get("status") == "notrun":
            yield Case(name, SKIPPED, "it is disabled in the source")
        elif case.find("failure") is not None:
            yield Case(name, FAILED, "")
        elif skipped is not None:
            # The place, then the message.
            yield Case(name, SKIPPED, one_line("".join((skipped.text or skipped.get("message", "")).split("\n", 1)[1:])))
        else:
            yield Case(name, PASSED, "")


def cases_listed(command):
    """The names of what the command would run."""
    done = subprocess.run(command + ["--gtest_list_tests"], capture_output=True, text=True, timeout=60, check=False)
    suite = ""
    for line in done.stdout.splitlines() if done.returncode == 0 else []:
        name = line.split("  # ")[0]
        if name.startswith("  "):
            yield suite + name.strip()
        elif " " not in name and name.endswith("."):
            suite = name


def cases_of_the_dead(command, output):
    """Of a process that ended in the middle: what it had not come to the end of has failed."""
    ended = {name: outcome for outcome, name in ENDED.findall(output)}
    for name in cases_listed(command):
        if ".DISABLED_" in name or name.startswith("DISABLED_"):
            yield Case(name, SKIPPED, "it is disabled in the source")
        elif ended.get(name) == "OK":
            yield Case(name, PASSED, "")
        elif ended.get(name) == "SKIPPED":
            yield Case(name, SKIPPED, "no reason is known, as its process failed later")
        elif name in ended or f"[ RUN      ] {name}\n" in output:
            yield Case(name, FAILED, "")
        else:
            yield Case(f"{name}: not run, as its process failed before", FAILED, "")


def cases_of(tests, commands):
    """CTest tests of one name, which suites of several programs may have, as the cases in them."""
    written = [[part.split(":", 1)[1] for part in command if part.startswith("--gtest_output=xml:")] for command in commands]
    if not all(written) or any(map(was_skipped, tests)):
        return [case_alone(test) for test in tests]
    name, output = tests[0].get("name"), "".join(test.findtext("system-out") or "" for test in tests)
    cases = []
    for command, [path] in zip(commands, written):
        cases += cases_written(path) if pathlib.Path(path).exists() else cases_of_the_dead(command, output)
    complete = all(pathlib.Path(path).exists() for [path] in written) and all(test.get("status") == "run" for test in tests)
    prefix = "OnCuda." if name.startswith("OnCuda.") else ""
    cases = [case._replace(name=prefix + case.name) for case in cases]
    if not complete and not any(case.outcome == FAILED for case in cases):
        # For example while it ended, or there are none.
        cases.append(Case(f"{name}: its process failed outside of its cases", FAILED, ""))
    return cases


def by_name(items, name_of):
    found = collections.defaultdict(list)
    for item in items:
        found[name_of(item)].append(item)
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    passed, failed, skipped = 0, [], collections.defaultdict(list)
    for preset in sys.argv[2:]:
        path = folder / f"{preset}.xml"
        if (folder / f"{preset}.broken").exists() or not path.exists():
            failed.append(f"{preset}: did not build or did not run")
            continue
        tests = list(ElementTree.parse(path).getroot().iter("testcase"))
        if not tests:
            failed.append(f"{preset}: no tests found")
        known = by_name(json.loads((folder / f"{preset}.json").read_text())["tests"], lambda test: test["name"])
        for name, alike in by_name(tests, lambda test: test.get("name")).items():
            for case in cases_of(alike, [test.get("command", []) for test in known[name]]):
                if case.outcome == PASSED:
                    passed += 1
                elif case.outcome == SKIPPED:
                    skipped[case.reason].append(f"{preset}: {case.name}")
                else:
                    failed.append(f"{preset}: {case.name}")
    for reason, names in sorted(skipped.items()):
        print(f"skipped {len(names)}, because {reason}")
        for name in names[:3]:
            print(f"    {name}")
        if len(names) > 3:
            print(f"    and {len(names) - 3} more")
    for name in failed:
        print(f"FAILED {name}")
    print(f"{passed} passed, {len(failed)} failed, {sum(map(len, skipped.values()))} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
