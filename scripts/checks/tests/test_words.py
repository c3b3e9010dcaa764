import unittest

from checks.words import riddles_in


class Riddles(unittest.TestCase):
    def lines(self, name, text):
        return [line for line, _ in riddles_in(name, text, name.endswith(".md"))]

    def test_words_are_found_in_prose_and_in_names(self):
        text = "// Whoever asks.\nfn it_says_nobody() {}\nstruct SaysNobody;\nconst NOBODY: u8 = 1;\n// everybody's\n"
        self.assertEqual(self.lines("crates/a/src/a.rs", text), [1, 2, 3, 4, 5])

    def test_parts_of_other_words_are_none(self):
        self.assertEqual(self.lines("crates/a/src/a.rs", "// the antibody of a task; who, some body, NoBody\n"), [])

    def test_names_of_files_and_types_are_looked_at(self):
        self.assertEqual(self.lines("crates/a/src/rest.rs", "let (first, rest) = split();\n"), [0])
        self.assertEqual(self.lines("crates/a/src/a.rs", "pub mod few;\nstruct Meaning;\nenum AskedRows {}\n"), [1, 2])
        self.assertEqual(self.lines("docs/rest.md", "A struct Meaning.\n"), [0])

    def test_quotes_in_pages_are_none(self):
        self.assertEqual(self.lines("docs/a.md", "guard: `nobody_waits`, and nobody\n"), [1])
        self.assertEqual(self.lines("docs/a.md", "guard: `nobody_waits`\n"), [])
        self.assertEqual(self.lines("crates/a/src/a.rs", "// `nobody_waits`\n"), [1])


if __name__ == "__main__":
    unittest.main()
