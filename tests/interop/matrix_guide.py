"""The recorded results of the client matrix, and docs/guide/clients.md made from them.

python3 matrix_guide.py writes the tables of the guide anew from matrix.json and matrix.py.
"""

import json

import dependencies
import matrix

RECORD = dependencies.HERE / "matrix.json"
GUIDE = dependencies.SOURCE_DIR / "docs/guide/clients.md"
BEGIN, END = "<!-- begin: made by tests/interop/matrix_guide.py -->", "<!-- end -->"


def recorded():
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def entry(client, cell, problem=None):
    """What the record says of a cell that ran."""
    told = {"result": "passed" if problem is None else "failed", "version": client.version}
    if cell == "produce":
        told["codecs"] = client.codecs
    if cell == "admin":
        told["steps"] = client.admin_steps
    if problem is not None:
        told["problem"] = problem.splitlines()[0][:300]
    return told


class Results:
    """What a run found: client -> cell -> result and seconds."""

    def __init__(self, clients):
        self.found = {name: {} for name in clients}

    def add(self, client, cell, problem, seconds):
        self.found[client.name][cell] = {"seconds": round(seconds, 1),
                                         **entry(client, cell, problem)}

    def write(self, path):
        path.write_text(json.dumps(self.found, indent=1) + "\n")

    def record(self):
        """Takes the results over into the record; cells that did not run keep theirs."""
        everything = recorded()
        for name, cells in self.found.items():
            kept = everything.setdefault(name, {})
            for cell, told in cells.items():
                kept[cell] = {k: v for k, v in told.items() if k != "seconds"}
        ordered = {name: {cell: everything[name][cell] for cell in matrix.FEATURES
                          if cell in everything[name]}
                   for name in matrix.CLIENTS if name in everything}
        RECORD.write_text(json.dumps(ordered, indent=1) + "\n")
        GUIDE.write_text(guide_text())

    def table(self):
        lines = []
        for name, cells in self.found.items():
            row = ", ".join(f"{cell} {told['result']} ({told['seconds']} s)"
                            for cell, told in cells.items())
            lines.append(f"{name}: {row}")
        return "\n".join(lines)


def _cell(client, feature, told):
    """The text of one cell, and the notes it needs."""
    if feature in client.gaps:
        return "–", [(client.gaps[feature], feature)]
    if told is None:
        return "not run", []
    if told["result"] != "passed":
        return "**fails**", [(told.get("problem", "it failed"), feature)]
    prefix = {"produce": "codec ", "admin": "admin "}.get(feature)
    missing = [(reason, gap) for gap, reason in client.gaps.items()
               if prefix and gap.startswith(prefix)]
    if not missing:
        return "yes", []
    return "partly", missing


def _row(*cells):
    return "| " + " | ".join(cells) + " |"


def tables():
    everything = recorded()
    lines = [_row("Client", "Version", *matrix.FEATURES.values()),
             _row(*["---"] * (len(matrix.FEATURES) + 2))]
    notes = []
    for name, client in matrix.CLIENTS.items():
        cells, of_client = [], {}
        for feature in matrix.FEATURES:
            text, missing = _cell(client, feature, everything.get(name, {}).get(feature))
            cells.append(text)
            for reason, gap in missing:
                of_client.setdefault(reason, []).append(matrix.FEATURES.get(gap, gap))
        lines.append(_row(client.title, client.version, *cells))
        notes += [f"- {client.title}: {', '.join(gaps)}: {reason}."
                  for reason, gaps in of_client.items()]
    return "\n".join([*lines, "", "What is missing, and why:", "", *notes])


def guide_text():
    text = GUIDE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


if __name__ == "__main__":
    GUIDE.write_text(guide_text())
