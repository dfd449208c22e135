"""Clients x features against the broker: every cell of docs/guide/clients.md is a test here.

The quick slice by default, POLYLOG_TEST_FULL=1 for every client. POLYLOG_MATRIX_CLIENTS=a,b and
POLYLOG_MATRIX_CELLS=x,y narrow a run. With POLYLOG_MATRIX_RECORD=1 the results are written to
matrix.json and the guide is made anew from it; otherwise they must agree with it.
"""

import os
import time
import unittest

import brokers
import matrix
import matrix_cells
import matrix_guide
import testbed

RECORD = os.environ.get("POLYLOG_MATRIX_RECORD") == "1"


def cells_of(client):
    only = os.environ.get("POLYLOG_MATRIX_CELLS")
    return [c for c in client.cells if not only or c in only.split(",")]


class Matrix(testbed.BrokerTest):
    settings = matrix_cells.SETTINGS

    @classmethod
    def prepare(cls):
        cls.results = matrix_guide.Results(matrix.chosen(testbed.FULL))

    def test_every_cell(self):
        bench = matrix_cells.Bench(self.broker, self.folder / "programs")
        self.addCleanup(bench.end_programs)
        for name in matrix.chosen(testbed.FULL):
            client = matrix.CLIENTS[name]
            for cell in cells_of(client):
                with self.subTest(client=name, cell=cell):
                    self.one(bench, client, cell)
        print(self.results.table(), flush=True)
        if not brokers.is_kafka():
            self.results.write(self.folder / "results.json")
            if RECORD:
                self.results.record()

    def one(self, bench, client, cell):
        begun = time.monotonic()
        problem = None
        try:
            matrix_cells.CELLS[cell](bench, client)
        except (matrix_cells.CellFailed, ValueError, OSError, brokers.BrokerFailed) as error:
            problem = f"{type(error).__name__}: {error}"
        finally:
            bench.end_programs()
            if not self.broker.alive():
                told = self.broker.tail()
                self.broker.close()
                self.broker.start()
                problem = problem or f"the broker is gone:\n{told}"
        seconds = time.monotonic() - begun
        self.results.add(client, cell, problem, seconds)
        print(f"{client.name} {cell}: {'ok' if problem is None else 'FAILED'} {seconds:.1f} s",
              flush=True)
        if problem is not None:
            self.fail(problem)


class Guide(unittest.TestCase):
    def test_the_guide_shows_what_is_recorded(self):
        self.assertEqual(matrix_guide.guide_text(), matrix_guide.GUIDE.read_text(),
                         "docs/guide/clients.md differs from matrix.json: "
                         "run matrix_guide.py to make it anew")

    def test_every_cell_of_the_table_ran_with_this_version_and_passed(self):
        recorded = matrix_guide.recorded()
        for name, client in matrix.CLIENTS.items():
            for cell in client.cells:
                with self.subTest(client=name, cell=cell):
                    self.assertEqual(recorded.get(name, {}).get(cell),
                                     matrix_guide.entry(client, cell))


if __name__ == "__main__":
    testbed.main()
