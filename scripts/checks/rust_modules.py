"""The modules of a Rust crate, and which of its files takes which names from which other: `mod`, `use` and paths, read as text.

Tests are left out. What a name is taken from is the file that defines it, however many `use` it comes through; a name that such
a chain leads out of the crate is taken from the module that was asked for it. Macros without a path and methods are not seen.
"""

from checks.rust_text import code_of, end_of_group, split_tests, tokens


class Module:
    def __init__(self, file, parent=None):
        self.file, self.parent = file, parent
        self.modules, self.uses, self.globs, self.paths = {}, {}, [], []

    def read_file(self, directory):
        """Reads the file of this module; those of its modules lie in the directory."""
        product, _, _ = split_tests(code_of(tokens(self.file.read_text(encoding="utf-8"))))
        self.read(product, directory)
        return self

    def read(self, code, directory):
        at, words = 0, [token.text for token in code] + [""] * 3
        while at < len(code):
            if words[at] == "mod" and words[at + 2] == "{":
                end = end_of_group(code, at + 2)
                child = self.modules[words[at + 1]] = Module(self.file, self)
                child.read(code[at + 3 : end - 1], directory / words[at + 1])
                at = end
            elif words[at] == "mod" and words[at + 2] == ";":
                below = directory / words[at + 1]
                flat, own = below.with_suffix(".rs"), below / "mod.rs"
                self.modules[below.name] = Module(flat if flat.exists() else own, self).read_file(below)
                at += 3
            elif words[at] == "use" and words[at + 1] != "<":
                end = words.index(";", at)
                self.read_use((), words[at + 1 : end])
                at = end
            elif words[at + 1] == "::" and code[at].kind == "name" and words[at - 1] not in ("::", "in"):
                end = at
                while words[end + 1] == "::" and code[end + 2].kind == "name":
                    end += 2
                self.paths.append(tuple(words[at : end + 1 : 2]))
                at = end + 1
            else:
                at += 1

    def read_use(self, prefix, words):
        """Reads what stands between `use` and `;`, or one part between braces."""
        if "{" not in words:
            names = [word for word in words if word != "::"]
            path, alias = prefix + tuple(names), names[-1]
            if "as" in names:
                path, alias = prefix + tuple(names[:-2]), names[-1]
            if path[-1] == "self":
                path, alias = path[:-1], path[-2] if alias == "self" else alias
            if alias == "*":
                self.globs.append(path[:-1])
            else:
                # What is named `_`, a trait, has no name here that others could take.
                self.uses[alias if alias != "_" else path] = path
            return
        brace = words.index("{")
        prefix += tuple(word for word in words[:brace] if word != "::")
        depth, part = 0, []
        for word in words[brace + 1 : -1] + [","]:
            depth += {"{": 1, "}": -1}.get(word, 0)
            if word != "," or depth > 0:
                part.append(word)
            elif part:
                self.read_use(prefix, part)
                part = []

    def find(self, path, seen=frozenset()):
        """The module that defines what a path in this module names, and what is left of the path there: nothing for a module."""
        name, rest = path[0], path[1:]
        if name in ("crate", "self", "super"):
            module = self if name == "self" else self.parent if name == "super" else self.root()
            return module.member(rest, seen) if rest else (module, ())
        return self.member(path, seen) if name in self.modules or name in self.uses else None

    def member(self, path, seen):
        name, rest = path[0], path[1:]
        if name in ("self", "super"):
            return self.find(path, seen)
        if name in self.modules and (rest or name not in self.uses):
            return self.modules[name].member(rest, seen) if rest else (self.modules[name], ())
        if name in self.uses and (self, name) not in seen:
            return self.find(self.uses[name] + rest, seen | {(self, name)}) or (self, path)
        return self, path

    def root(self):
        return self.parent.root() if self.parent else self

    def taken(self):
        """What this module and those below it take: (file, file that defines it, name)."""
        for path in (*self.uses.values(), *self.paths):
            found = self.find(path)
            # A module that is named takes nothing: what is taken out of it stands in another path.
            if found and found[1]:
                yield self.file, found[0].file, found[1][0]
        for path in self.globs:
            found = self.find(path)
            if found:
                yield self.file, found[0].file, "*"
        for module in self.modules.values():
            yield from module.taken()
