import tempfile
import unittest
from pathlib import Path

from checks import rust_packages


class Sources(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def problems(self, dependencies, **files):
        self.write("Cargo.toml", f'[package]\nname = "p"\n{dependencies}')
        for name, text in files.items():
            self.write({"build": "build.rs"}.get(name, f"src/{name}.rs"), text)
        return rust_packages.unused_dependencies(rust_packages.read_manifest(self.root / "Cargo.toml"))

    def test_a_dependency_that_is_named_nowhere_is_found(self):
        found = self.problems('[dependencies]\nused-one = "1"\nunused = "1"', lib="use used_one::a; // unused::b")
        self.assertEqual(found, ["unused of [dependencies] is named by no source"])

    def test_a_dependency_for_tests_is_not_one_of_the_product(self):
        found = self.problems('[dependencies]\na = "1"', lib="#[cfg(test)]\nmod tests { use a::b; }")
        self.assertEqual(found, ["a is named by tests only: it belongs in [dev-dependencies]"])

    def test_modules_for_tests_have_files_of_their_own(self):
        self.write("src/tests/deep.rs", "use b::c;")
        found = self.problems('[dev-dependencies]\na = "1"\nb = "1"', lib="#[cfg(test)]\nmod tests;", tests="use a::b; mod deep;")
        self.assertEqual(found, [])

    def test_the_other_kinds_are_looked_for_in_their_places(self):
        self.write("benches/speed.rs", "use bench::a;")
        self.write("inner/Cargo.toml", "")
        self.write("inner/src/lib.rs", "use elsewhere::a;")
        found = self.problems(
            '[dev-dependencies]\nbench = "1"\nelsewhere = "1"\n[build-dependencies]\nmade = "1"\nmissing = "1"',
            lib="use missing::a;",
            build="fn main() { made::f() }",
        )
        self.assertEqual(
            found,
            ["elsewhere of [dev-dependencies] is named by no source", "missing of [build-dependencies] is named by no source"],
        )

    def test_renamed_dependencies_are_known_by_their_new_name(self):
        self.assertEqual(self.problems('[dependencies]\nnew = { package = "old", version = "1" }', lib="use new::a;"), [])

    def test_a_dependency_of_one_platform_is_one(self):
        found = self.problems("[target.'cfg(unix)'.dependencies]\na = \"1\"", lib="")
        self.assertEqual(found, ["a of [dependencies] is named by no source"])

    def test_the_same_for_tests_must_add_something(self):
        once = 'a = {{ version = "1", features = ["{}"] }}'.format
        normal = f"[dependencies]\n{once('x')}\n[dev-dependencies]\n"
        self.assertEqual(self.problems(normal + once("y"), lib="use a::b;"), [])
        twice = self.problems(normal + once("x"), lib="use a::b;")
        self.assertEqual(twice, ["a is in [dependencies] already, and [dev-dependencies] adds nothing to it"])

    def test_what_is_ignored_must_need_it(self):
        ignored = '[dependencies]\na = "1"\n[package.metadata.cargo-machete]\nignored = ["a"]'
        self.assertEqual(self.problems(ignored, lib=""), [])
        self.assertEqual(self.problems(ignored, lib="use a::b;"), ["a need not be ignored by cargo-machete"])

    def test_what_no_package_inherits_is_found(self):
        self.write("root.toml", '[workspace.dependencies]\na = "1"\nb = "1"')
        self.write("Cargo.toml", '[package]\nname = "p"\n[dependencies]\na.workspace = true')
        package = rust_packages.read_manifest(self.root / "Cargo.toml")
        self.assertEqual(rust_packages.uninherited(self.root / "root.toml", [package]), ["b"])


LOCK = """
[[package]]
name = "ours"
version = "0.1.0"
dependencies = ["a 1.0.0", "tests"]

[[package]]
name = "a"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00"
dependencies = ["b"]

[[package]]
name = "a"
version = "0.9.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00"

[[package]]
name = "b"
version = "1.0.0"
source = "git+https://example.org/b"
dependencies = ["a 0.9.0"]

[[package]]
name = "tests"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
"""


class Locks(unittest.TestCase):
    def setUp(self):
        self.lock = rust_packages.Lock(LOCK)

    def test_what_tests_need_is_not_shipped(self):
        dependencies = [
            rust_packages.Dependency("dependencies", "renamed", "a", {}),
            rust_packages.Dependency("dev-dependencies", "tests", "tests", {}),
        ]
        package = rust_packages.Package(Path("Cargo.toml"), "ours", dependencies, [])
        shipped = {("a", "1.0.0"), ("b", "1.0.0"), ("a", "0.9.0")}
        self.assertEqual(self.lock.reachable([package], ("dependencies",)), shipped)
        self.assertEqual(self.lock.reachable([package], rust_packages.KINDS), shipped | {("tests", "1.0.0")})

    def test_only_the_registry_with_its_checksums_is_trusted(self):
        self.assertEqual(
            list(rust_packages.foreign_sources(self.lock)),
            ["b 1.0.0 comes from git+https://example.org/b", "tests 1.0.0 has no checksum"],
        )

    def test_older_versions_need_a_line(self):
        shipped = {("a", "1.0.0"), ("a", "0.9.0"), ("a", "0.10.0"), ("b", "1.0.0")}
        self.assertEqual(
            list(rust_packages.several_versions(shipped, ["a@0.9.0", "b@1.0.0"])),
            ["a 0.10.0 is built beside 1.0.0", "b@1.0.0 is in the list of skipped versions and need not be"],
        )


if __name__ == "__main__":
    unittest.main()
