"""Figures as JSON and as a table for a README."""
import json
import pathlib

MET = {True: "yes", False: "**no**", None: "-"}


def table(rows):
    lines = ["| figure | measured | goal | met |", "|---|---|---|---|"]
    for row in rows:
        why = f" ({row['why']})" if row["why"] else ""
        lines.append(f"| {row['figure']}{why} | {row['value']} | {row['goal'] or '-'} | {MET[row['met']]} |")
    return "\n".join(lines)


def machine_line(known):
    gpu = f"{known['gpu']} ({known['memory_mib']} MiB), driver {known['driver']}, " if "gpu" in known else "no GPU, "
    torch = ", ".join(f"{name} {known[name]}" for name in ("torch", "cuda", "nccl") if name in known)
    return f"{known['date']}: {gpu}{known['processor']}, {known['cores']} cores, {known['host_gib']} GiB, {known['system']}; {torch or 'no torch'}; commit {known['commit']}"


def markdown(known, rows, notes):
    return "\n".join([machine_line(known), "", table(rows), *([""] + [f"- {note}" for note in notes] if notes else []), ""])


def write(folder, known, measurements, notes):
    """Both files anew: after each round, so that whatever ends the run leaves what there is."""
    rows = [row for measurement in measurements for row in measurement.rows()]
    folder = pathlib.Path(folder)
    everything = {"machine": known, "rows": rows, "notes": notes,
                  "details": {measurement.name: measurement.details() for measurement in measurements}}
    (folder / "figures.json").write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    text = markdown(known, rows, notes)
    (folder / "figures.md").write_text(text, encoding="utf-8")
    return rows, text
