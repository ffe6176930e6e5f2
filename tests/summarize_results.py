#!/usr/bin/env python3
"""Sums up the JUnit files that ctest wrote: what was skipped and why, what failed, and one last line with the counts.

usage: summarize_results.py FOLDER PRESET...   reads FOLDER/PRESET.xml; FOLDER/PRESET.broken stands for a failed build
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

# GoogleTest prints the message of GTEST_SKIP() behind the place: "file.cc:12: Skipped\nmessage\n".
GOOGLETEST_REASON = re.compile(r": Skipped\n(.*?)\n(?:\n|\[ )", re.DOTALL)
SCRIPT_REASON = re.compile(r"^(skipped, because.*)$", re.MULTILINE)
PREFIX = "skipped, because "


def was_skipped(case):
    """Not run on purpose; ctest gives the same status to a test whose program is missing."""
    element = case.find("skipped")
    return case.get("status") == "disabled" or (element is not None and element.get("message", "").startswith("SKIP_"))


def skip_reason(case):
    if case.get("status") == "disabled":
        return "it is disabled in the source"
    output = case.findtext("system-out") or ""
    found = GOOGLETEST_REASON.search(output) or SCRIPT_REASON.search(output)
    if not found:
        return "no reason was given"
    return " ".join(found.group(1).split()).removeprefix(PREFIX).removeprefix("because ")


def main():
    folder = pathlib.Path(sys.argv[1])
    passed, failed, skipped = 0, [], collections.defaultdict(list)
    for preset in sys.argv[2:]:
        path = folder / f"{preset}.xml"
        if (folder / f"{preset}.broken").exists() or not path.exists():
            failed.append(f"{preset}: did not build or did not run")
            continue
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        if not cases:
            failed.append(f"{preset}: no tests found")
        for case in cases:
            # Behind "#" CTest repeats the parameter that stands in the name already.
            name, status = f"{preset}: {case.get('name').split('  # ')[0]}", case.get("status")
            if status == "run":
                passed += 1
            elif status == "fail":
                failed.append(name)
            elif was_skipped(case):
                skipped[skip_reason(case)].append(name)
            else:
                failed.append(name)
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
