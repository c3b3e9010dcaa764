"""The modules of a Rust crate, and what its files take from each other: `mod`, `use` and paths, read as text.

Tests are left out. A name is taken from the file that defines it, however many `use` it comes through; one that such a chain leads
out of the crate, from the module that was asked for it. Methods, and macros without a path, are not seen.
"""

from checks.rust_text import code_of, end_of_group, split_tests, tokens

DEFINING = {"const", "enum", "fn", "static", "struct", "trait", "type", "union"}


class Module:
    def __init__(self, file, parent=None):
        self.file, self.parent = file, parent
        self.modules, self.uses, self.globs, self.paths, self.defined = {}, {}, [], [], set()

    def read_file(self, directory):
        """Reads the file of this module; those of its modules lie in the directory."""
        text = self.file.read_text(encoding="utf-8")
        # Most tests stand last in their file, and most of the time would be theirs.
        product, _, _ = split_tests(code_of(tokens(text.partition("\n#[cfg(test)]\nmod tests {")[0])))
        self.read(product, directory)
        return self

    def read(self, code, directory):
        at, depth, words = 0, 0, [token.text for token in code] + [""] * 3
        while at < len(code):
            if words[at] == "mod" and words[at + 2] == "{":
                end = end_of_group(code, at + 2)
                child = self.modules[words[at + 1]] = Module(self.file, self)
                child.read(code[at + 3 : end - 1], directory / words[at + 1])
                at = end
            elif words[at] == "mod" and words[at + 2] == ";":
                below = directory / words[at + 1]
                flat = directory / f"{words[at + 1]}.rs"
                self.modules[below.name] = Module(flat if flat.exists() else below / "mod.rs", self).read_file(below)
                at += 3
            elif words[at] == "use" and words[at + 1] != "<":
                end = words.index(";", at)
                self.read_use((), words[at + 1 : end])
                at = end
            elif words[at + 1] == "::" and code[at].kind == "name" and words[at - 1] != "::" and words[at - 2 : at] != ["(", "in"]:
                end = at
                while words[end + 1] == "::" and code[end + 2].kind == "name":
                    end += 2
                self.paths.append(tuple(words[at : end + 1 : 2]))
                at = end + 1
            else:
                depth += {"{": 1, "}": -1}.get(words[at], 0)
                if depth == 0 and words[at] in DEFINING:
                    self.defined.add(words[at + 1])
                at += 1

    def read_use(self, prefix, words):
        """Reads what stands between `use` and `;`, or one part between braces."""
        if "{" in words:
            brace, part, depth = words.index("{"), [], 0
            prefix += tuple(word for word in words[:brace] if word != "::")
            for word in [*words[brace + 1 : -1], ","]:
                depth += {"{": 1, "}": -1}.get(word, 0)
                if word != "," or depth > 0:
                    part.append(word)
                elif part:
                    self.read_use(prefix, part)
                    part = []
            return
        path = prefix + tuple(word for word in words if word != "::")
        name = path[-1]
        path = path[:-2] if "as" in path else path
        path = path[:-1] if path[-1] in ("self", "*") else path
        if name == "*":
            self.globs.append(path)
        else:
            # A trait that is named `_` has no name here that others could take.
            self.uses[path if name == "_" else path[-1] if name == "self" else name] = path

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
        for glob in self.globs if name not in self.defined and (self, name) not in seen else []:
            found = self.find(glob + path, seen | {(self, name)})
            if found and found[0] is not self and (not found[1] or found[1][0] in found[0].defined):
                return found
        return self, path

    def root(self):
        return self.parent.root() if self.parent else self

    def taken(self):
        """What this module and those below it take: (file, file that defines it, name)."""
        for path in (*self.uses.values(), *self.paths):
            found = self.find(path)
            # Who names a module takes nothing yet: what is taken out of it stands in another path.
            if found and found[1]:
                yield self.file, found[0].file, found[1][0]
        for found in filter(None, map(self.find, self.globs)):
            yield self.file, found[0].file, "*"
        for module in self.modules.values():
            yield from module.taken()
