import importlib.util
import tempfile
import unittest
from pathlib import Path

from checks import provenance, rust_text

SCRIPT = Path(__file__).resolve().parents[2] / "check-provenance.py"
specification = importlib.util.spec_from_file_location("check_provenance", SCRIPT)
script = importlib.util.module_from_spec(specification)
specification.loader.exec_module(script)

THEIRS = """
/// A counter for whatever it is that a caller wants to have counted, one by one.
impl Counter {
    pub fn next(&mut self, step: u32) -> Result<u32, String> {
        let before = self.value;
        self.value = self.value.checked_add(step).ok_or("the counter has no room left")?;
        for listener in &self.listeners {
            listener.notify(before, self.value);
        }
        if self.value > self.limit { return Err(format!("{} is more than this counter may have", self.value)); }
        Ok(before)
    }
}
"""


def words(items):
    return [word for word, _ in items]


class Items(unittest.TestCase):
    def tokens(self, source):
        return rust_text.tokens(source)

    def test_headers_that_every_program_must_write_are_one_item(self):
        source = "impl fmt::Debug for A { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { body } }"
        items = words(provenance.code_items(self.tokens(source)))
        self.assertEqual(items[-5:-4] + items[-3:], ["fmt", "body", "}", "}"])
        self.assertTrue(items[-4].startswith("( & self , f :"))

    def test_the_shape_leaves_keywords_and_signs(self):
        items = provenance.shape_items(provenance.code_items(self.tokens("let x: u8 = f(\"a\", 'b', 1) as &'c T;")))
        self.assertEqual(" ".join(words(items)), "let name : name = name ( constant , constant , constant ) as & constant name ;")

    def test_prose_is_words_with_their_lines(self):
        items = provenance.prose_items(self.tokens("a\n/// It's one,\n// two.\nlet b = \"// three\";"))
        self.assertEqual(items, [("it's", 2), ("one", 2), ("two", 3)])

    def test_texts_end_where_a_value_is_put_in(self):
        pieces = provenance.text_items(self.tokens(r'f("no {name:?} in\n\"here\"", b"and there\0", r#"raw "text""#)'))
        self.assertEqual([words(piece) for piece in pieces], [["no"], ["in", "here"], ["and", "there"], ["raw", "text"]])

    def test_what_repeats_itself_is_told_from_what_does_not(self):
        self.assertTrue(provenance.is_repetitive("name :: name => name ,".split() * 12))
        self.assertFalse(provenance.is_repetitive([str(number) for number in range(64)]))


class Comparisons(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        root = Path(directory.name)
        (root / "lib.rs").write_text(THEIRS)
        (root / "README.md").write_text("This package counts things, and it does so *in the order* of their arrival.")
        (root / "chapter.txt").write_text("The answer is `the counter has no room left`.")
        self.comparison = script.Comparison()
        self.comparison.add_crate(root)
        self.comparison.add_interface(root / "chapter.txt")

    def kinds(self, source):
        return [kind for kind, *_ in self.comparison.finds_in_source(source)]

    def test_a_copy_is_found_also_in_another_layout(self):
        copied = THEIRS.replace("\n        ", " /* ours */ ")
        self.assertEqual(self.kinds(copied), ["code", "prose", "text"])

    def test_other_names_do_not_hide_a_copy(self):
        copied = THEIRS.split("\n", 2)[2]
        for old, new in [("value", "sum"), ("listener", "watcher"), ("before", "old"), ("step", "by"), ("counter", "meter")]:
            copied = copied.replace(old, new)
        self.assertEqual(self.kinds(copied), ["shape"])

    def test_texts_of_the_interface_are_free(self):
        self.assertEqual(self.kinds('f("the counter has no room left")'), [])
        self.assertEqual(self.kinds('f("{n} is more than this counter may have")'), ["text"])

    def test_documents_are_compared_with_comments_and_readme(self):
        (find,) = self.comparison.finds_in_document("# Ours\n\nIt does so in\nthe order of their arrival, and so on.\n")
        self.assertEqual(find[:2], ("prose", 3))
        self.assertEqual(list(self.comparison.finds_in_document("Things are counted in the order of arrival.")), [])

    def test_only_what_is_listed_is_allowed(self):
        finds = [("a.rs", ("code", 3, "theirs", "pub enum Kind { A , B }".split()))]
        entry = {"file": "a.rs", "kind": "code", "has": "enum Kind {", "items_max": 8}
        self.assertEqual(script.unexpected(finds, [entry]), ([], []))
        for other in ({"file": "b.rs"}, {"kind": "prose"}, {"has": "enum Other"}, {"items_max": 7}):
            left, needless = script.unexpected(finds, [entry | other])
            self.assertEqual((len(left), len(needless)), (1, 1))


if __name__ == "__main__":
    unittest.main()
