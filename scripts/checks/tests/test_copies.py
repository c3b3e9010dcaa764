import random
import unittest

from checks.copies import Finder


class Runs(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(7)
        self.theirs = [f"their{self.random.randrange(50)}" for _ in range(400)]
        self.finder = Finder(10)
        self.finder.add("file", self.theirs)

    def own(self, count):
        return [f"own{self.random.randrange(50)}" for _ in range(count)]

    def test_a_copy_is_found_wherever_it_begins(self):
        for start in range(0, 60):
            ours = [*self.own(5), *self.theirs[start : start + 23], *self.own(7)]
            (run,) = self.finder.runs(ours)
            self.assertEqual((run.ours, run.length, run.source, run.theirs), (5, 23, "file", start))

    def test_the_shortest_run_that_counts(self):
        for start in range(0, 60):
            self.assertEqual(len(list(self.finder.runs([*self.own(3), *self.theirs[start : start + 10], *self.own(3)]))), 1)
            self.assertEqual(list(self.finder.runs([*self.own(3), *self.theirs[start : start + 9], *self.own(3)])), [])

    def test_the_longest_of_several_is_told(self):
        self.finder.add("other", self.theirs[100:112] + ["end"])
        (run,) = self.finder.runs(self.theirs[100:120])
        self.assertEqual((run.length, run.source), (20, "file"))

    def test_copies_one_behind_the_other(self):
        ours = self.theirs[50:70] + self.theirs[200:230]
        self.assertEqual([(run.ours, run.length) for run in self.finder.runs(ours)], [(0, 20), (20, 30)])

    def test_short_texts_have_nothing_in_common(self):
        self.finder.add("short", ["a", "b"])
        self.assertEqual(list(self.finder.runs([])), [])
        self.assertEqual(list(self.finder.runs(["a", "b"])), [])


if __name__ == "__main__":
    unittest.main()
