import tempfile
import unittest
from pathlib import Path

from checks.rust_modules import Module


class Imports(unittest.TestCase):
    def taken(self, **files):
        """What the files of a crate take from each other; `a__b` is the file a/b.rs."""
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory)
            for name, text in files.items():
                path = source / f"{name.replace('__', '/')}.rs"
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
            found = Module(source / "lib.rs").read_file(source).taken()
            return {
                f"{file.relative_to(source)} -> {other.relative_to(source)}: {name}".replace(".rs", "")
                for file, other, name in found
                if file != other
            }

    def test_a_name_is_taken_from_the_file_that_defines_it(self):
        taken = self.taken(
            lib="mod a; mod b; pub use a::inner::Deep; pub use b::*; pub use foreign::Alien;",
            a__mod="pub mod inner; pub const HERE: u8 = 1; use inner::Deep as Renamed;",
            a__inner="pub struct Deep; use super::HERE; use crate::{Alien, Bee};",
            b="use crate::{a::{self, Renamed}, Deep}; pub struct Bee; fn f() { a::inner::g(); a::HERE }",
        )
        self.assertEqual(
            taken,
            {
                "lib -> a/inner: Deep",
                "lib -> b: *",
                "a/mod -> a/inner: Deep",
                "a/inner -> a/mod: HERE",
                "a/inner -> lib: Alien",
                "a/inner -> b: Bee",
                "b -> a/inner: Deep",
                "b -> a/inner: g",
                "b -> a/mod: HERE",
            },
        )

    def test_tests_and_visibilities_take_nothing(self):
        taken = self.taken(
            lib="mod a; mod b; #[cfg(test)] mod twin;",
            a="pub(in crate::b) struct A;\n#[cfg(test)]\nmod tests {\n use crate::b::B; }",
            b="pub struct B; #[cfg(test)] use crate::a::A; fn f() { for x in crate::a::all() {} } mod m { use super::super::a::A; }",
        )
        self.assertEqual(taken, {"b -> a: all", "b -> a: A"})


if __name__ == "__main__":
    unittest.main()
