import unittest

from checks import rust_text


def texts(source, kind=None):
    return [token.text for token in rust_text.tokens(source) if kind is None or token.kind == kind]


class Tokens(unittest.TestCase):
    def test_quotes_lifetimes_and_characters_are_told_apart(self):
        source = r"""let a: &'a str = r#"a "raw" // text"#; let b = ['"', '\'', '\\', b'x', '\u{1F600}']; 'outer: loop {}"""
        self.assertEqual(texts(source, "text"), ['r#"a "raw" // text"#'])
        self.assertEqual(texts(source, "char"), ["'\"'", r"'\''", r"'\\'", "b'x'", r"'\u{1F600}'"])
        self.assertEqual(texts(source, "lifetime"), ["'a", "'outer"])
        self.assertEqual(texts(source, "comment"), [])

    def test_comments_end_where_they_end(self):
        source = 'a /* b /* c */ "d */ e // f\ng "h // i" j'
        self.assertEqual(texts(source, "name"), ["a", "e", "g", "j"])
        self.assertEqual(texts(source, "comment"), ['/* b /* c */ "d */', "// f"])

    def test_tokens_know_their_line(self):
        found = rust_text.tokens('a\n/* b\n */ c "d\ne"\nf')
        self.assertEqual([(token.text, token.line) for token in found if token.kind == "name"], [("a", 1), ("c", 3), ("f", 5)])

    def test_ranges_and_numbers(self):
        self.assertEqual(texts("0..10 1.5e3 0xff_u8 1.max(2) a..=b"), "0 .. 10 1.5e3 0xff_u8 1 . max ( 2 ) a ..= b".split())


class Tests(unittest.TestCase):
    def split(self, source):
        product, tests, modules = rust_text.split_tests(rust_text.code_of(rust_text.tokens(source)))
        return rust_text.crates_named(product), rust_text.crates_named(tests), modules

    def test_what_is_for_tests_is_apart(self):
        source = """
            #[cfg(test)]
            use dev::a;
            #[cfg(test)]
            #[allow(unused)]
            mod tests { fn f() { more::g([1, 2]) } }
            #[cfg(all(test, unix))]
            pub mod twin;
            struct S { #[cfg(test)] field: field_dev::T, other: normal::T }
            #[cfg(not(test))]
            fn g() { product::h() }
        """
        product, tests, modules = self.split(source)
        self.assertEqual(product, {"normal", "product"})
        self.assertEqual(tests, {"dev", "more", "field_dev"})
        self.assertEqual(modules, ["twin"])

    def test_a_crate_is_the_first_part_of_a_path(self):
        source = "use one; use two::{a, b::c}; extern crate three; ::four::f(); x.y::<five::T>(); six::seven::eight; // nine::f\n"
        product, _, _ = self.split(source)
        self.assertEqual(product - {"b", "y"}, {"one", "two", "three", "four", "five", "six"})


if __name__ == "__main__":
    unittest.main()
