"""Rust source as tokens, so that checks see code, comments and texts apart, and not how they are laid out."""

import re
from bisect import bisect_right
from dataclasses import dataclass

TOKEN = re.compile(
    r"""
    (?P<space> \s+ )
  | (?P<comment> //[^\n]* | /\* )
  | (?P<text> (?:br|cr|r)(?P<hashes>\#*)".*?"(?P=hashes) | [bc]?"(?:\\.|[^"\\])*" )
  | (?P<char> b?'(?:\\[^']+|[^'\\\n])' | b?'\\'' )
  | (?P<lifetime> '[A-Za-z_]\w* )
  | (?P<name> (?:r\#)?[A-Za-z_]\w* )
  | (?P<number> \d\w*(?:\.\d\w*)? )
  | (?P<sign> :: | -> | => | \.\.= | \.\. | . )
    """,
    re.VERBOSE | re.DOTALL,
)
ITEM_WORDS = set("async const enum extern fn impl macro_rules mod pub static struct trait type union unsafe use".split())
COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Token:
    kind: str  # comment, text, char, lifetime, name, number, sign
    text: str
    line: int


def tokens(source):
    """All tokens of a source, comments too, in order."""
    found, lines, position = [], line_starts(source), 0
    while position < len(source):
        match = TOKEN.match(source, position)
        kind, start, position = match.lastgroup, match.start(), match.end()
        if kind == "space":
            continue
        if match.group() == "/*":
            position = end_of_block_comment(source, position)
        found.append(Token(kind, source[start:position], bisect_right(lines, start)))
    return found


def line_starts(source):
    """Where each line begins."""
    return [0, *(match.end() for match in re.finditer("\n", source))]


def end_of_block_comment(source, position):
    """Where the block comment ends whose `/*` ends at `position`; such comments can be nested."""
    depth = 1
    for edge in COMMENT_EDGE.finditer(source, position):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(source)


def code_of(all_tokens):
    """The tokens without comments."""
    return [token for token in all_tokens if token.kind != "comment"]


def split_tests(code):
    """Parts code into what is built always and what is built for tests only, and names the modules `#[cfg(test)] mod name;`."""
    product, tests, test_modules = [], [], []
    position = 0
    while position < len(code):
        if not is_test_attribute(code, position):
            product.append(code[position])
            position += 1
            continue
        end = end_of_item(code, position)
        item = code[position:end]
        tests.extend(item)
        test_modules.extend(
            item[at + 1].text for at in range(len(item) - 2) if item[at].text == "mod" and item[at + 2].text == ";"
        )
        position = end
    return product, tests, test_modules


def is_test_attribute(code, position):
    """Whether `#[cfg(test)]` or `#[cfg(all(test, …))]` begins here."""
    if code[position].text != "#":
        return False
    words = [token.text for token in code[position : position + 7]]
    return words[:5] == ["#", "[", "cfg", "(", "test"] or words == ["#", "[", "cfg", "(", "all", "(", "test"]


def end_of_item(code, position):
    """The position behind the item, field or match arm that begins, with its attributes, at `position`."""
    while code[position].text == "#":
        position = end_of_group(code, position + 1)
    ends = (";",) if code[position].text in ITEM_WORDS else (";", ",")
    while position < len(code):
        text = code[position].text
        if text in ("(", "[", "{"):
            position = end_of_group(code, position)
            if text == "{":
                return position
            continue
        if text in (")", "]", "}"):
            return position
        position += 1
        if text in ends:
            return position
    return position


def end_of_group(code, position):
    """The position behind the bracket that closes the one at `position`."""
    depth = 0
    while position < len(code):
        if code[position].text in ("(", "[", "{"):
            depth += 1
        elif code[position].text in (")", "]", "}"):
            depth -= 1
        position += 1
        if depth == 0:
            return position
    return position


def crates_named(code):
    """Names that may be those of crates: the first part of a path, `use name` and `extern crate name`."""
    named = set()
    for at, token in enumerate(code):
        if token.kind != "name":
            continue
        before = code[at - 1].text if at > 0 else ""
        behind = code[at + 1].text if at + 1 < len(code) else ""
        is_later_part = before == "::" and at > 1 and (code[at - 2].kind == "name" or code[at - 2].text in (">", "$"))
        if (behind == "::" and not is_later_part) or before in ("use", "crate"):
            named.add(token.text.removeprefix("r#"))
    return named
