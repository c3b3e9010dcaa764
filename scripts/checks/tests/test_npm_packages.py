import json
import tempfile
import unittest
from pathlib import Path

from checks import npm_packages


class Folder(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)

    def write(self, path, content):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content if isinstance(content, str) else json.dumps(content))
        return self.root / path

    def problems(self, manifest, allowed=()):
        self.write("package.json", manifest)
        return list(npm_packages.unused_dependencies(self.root, allowed))

    def test_imports_of_every_kind_count(self):
        self.write("src/a.ts", "import x from 'one/part';\nexport * from \"@two/x/y\";\nimport 'three';\nawait import(`four`);")
        self.write("src/b.cjs", "require('five'); require.resolve('six/package.json')")
        self.write("test/c.ts", '// @vitest-environment seven\nimport "./eight"; import "node:fs"; join("x", ".bin", "nine")')
        self.write("tsconfig.json", '{ "compilerOptions": { "types": ["ten"] } }')
        names = ["one", "@two/x", "three", "four", "five", "six", "seven", "nine", "ten", "@types/one", "@types/node"]
        found = self.problems({"devDependencies": dict.fromkeys([*names, "eight"], "1")})
        self.assertEqual(found, ["eight is named by no source and no script"])

    def test_scripts_run_programs(self):
        self.write("run.sh", "npx vitest run\n")
        names = ["@biomejs/biome", "typescript", "vitest", "vite"]
        manifest = {"scripts": {"lint": "biome check", "types": "tsc"}, "devDependencies": dict.fromkeys(names, "1")}
        self.assertEqual(self.problems(manifest), ["vite is named by no source and no script"])

    def test_folders_of_others_do_not_count(self):
        self.write("node_modules/a/index.js", "require('a')")
        self.write("inner/package.json", {})
        self.write("inner/index.js", "require('a')")
        self.assertEqual(self.problems({"dependencies": {"a": "1"}}), ["a is named by no source and no script"])

    def test_templates_name_packages_in_what_they_share(self):
        self.write("shared/page/src/a.vue", "import { ref } from 'vue';")
        self.write("mine/package.json", {"dependencies": {"vue": "1", "other": "1"}})
        found = list(npm_packages.unused_dependencies(self.root / "mine"))
        self.assertEqual(found, ["other is named by no source and no script"])

    def test_what_is_allowed_must_need_it(self):
        self.write("a.js", "require('used')")
        manifest = {"dependencies": {"used": "1", "unused": "1"}}
        self.assertEqual(self.problems(manifest, ["unused"]), [])
        self.assertEqual(
            self.problems(manifest, ["unused", "used", "gone"]),
            ["used is allowed to be unused, and is used", "gone is allowed to be unused, and is not declared"],
        )

    def test_a_lock_file_names_the_registry_by_nothing_but_checksums(self):
        packages = {
            "": {},
            "../sdk": {"license": "Apache-2.0"},
            "node_modules/sdk": {"link": True},
            "node_modules/a": {"integrity": "sha512-0", "license": "MIT"},
            "node_modules/a/node_modules/@b/c": {"integrity": "sha512-0", "resolved": "git+ssh://example.org/c"},
            "node_modules/d": {"license": "ISC"},
        }
        lock = self.write("package-lock.json", {"packages": packages})
        foreign = ["@b/c comes from git+ssh://example.org/c", "d has no checksum"]
        self.assertEqual(list(npm_packages.foreign_sources(lock)), foreign)
        self.assertEqual(list(npm_packages.licences_of_lock(lock)), [("a", "MIT"), ("@b/c", None), ("d", "ISC")])

    def test_licences_of_what_is_installed(self):
        self.write("node_modules/.pnpm/a@1/node_modules/a/package.json", {"name": "a", "version": "1", "license": "MIT"})
        self.write("node_modules/.pnpm/a@1/node_modules/a/dist/package.json", {"type": "module"})
        choice = [{"type": "MIT"}, {"type": "X"}]
        self.write("node_modules/@b/c/package.json", {"name": "@b/c", "version": "1", "licenses": choice})
        found = list(npm_packages.licences_of_folder(self.root / "node_modules"))
        self.assertEqual(sorted(found), [("@b/c", "MIT OR X"), ("a", "MIT")])


if __name__ == "__main__":
    unittest.main()
