"""Licence expressions (SPDX), and whether a list of allowed licences satisfies them."""

import re


def parse(expression):
    """An expression as nested tuples: ("and", …), ("or", …), or the name of a licence with its exception.

    The slash is how the registry wrote OR in former times.
    """
    words = re.findall(r"[()]|[^\s()/]+|/", expression)
    position = 0

    def peek():
        return words[position] if position < len(words) else None

    def take():
        nonlocal position
        position += 1
        return words[position - 1]

    def chain(operators, name, part):
        parts = [part()]
        while peek() in operators:
            take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else (name, *parts)

    def alternatives():
        return chain(("OR", "/"), "or", lambda: chain(("AND",), "and", single))

    def single():
        if peek() is None:
            raise ValueError(f"{expression!r} ends too early")
        if peek() == "(":
            take()
            inner = alternatives()
            if peek() != ")":
                raise ValueError(f"{expression!r} misses a bracket")
            take()
            return inner
        name = take()
        if peek() == "WITH":
            take()
            name = f"{name} WITH {take()}"
        return name

    parsed = alternatives()
    if peek() is not None:
        raise ValueError(f"{expression!r} goes on behind its end")
    return parsed


def parse_any(expression):
    """As `parse`; what is no expression (nothing, `SEE LICENSE IN …`) counts as the name of a licence that no list has."""
    try:
        return parse(expression or "")
    except ValueError:
        return f"{expression!r}"


def is_satisfied(parsed, allowed):
    """Whether who has only the allowed licences may use what is licensed so."""
    if isinstance(parsed, str):
        return parsed in allowed
    operator, *parts = parsed
    return (any if operator == "or" else all)(is_satisfied(part, allowed) for part in parts)


def names_in(parsed):
    """All licences that an expression names."""
    if isinstance(parsed, str):
        return {parsed}
    return set().union(*(names_in(part) for part in parsed[1:]))


def unsatisfied(licensed, allowed, exceptions=None):
    """What is licensed under nothing that is allowed, one sentence each.

    `licensed`: pairs of a thing's name and its expression, or None. `allowed`: licences for everything. `exceptions`: more
    licences for single names.
    """
    for name, expression in sorted(set(licensed), key=lambda pair: (pair[0], pair[1] or "")):
        if not is_satisfied(parse_any(expression), set(allowed) | set((exceptions or {}).get(name, ()))):
            yield f"{name} is licensed {expression or 'under nothing that its manifest names'}, which is not allowed"


def needless(licensed, allowed, exceptions):
    """What is allowed in vain, one sentence each, so that the lists stay short. Needs all things, not some."""
    seen = {name for _, expression in licensed for name in names_in(parse_any(expression))}
    for licence in sorted(set(allowed) - seen):
        yield f"{licence} is allowed, and nothing has this licence"
    excepted = {name for name, expression in licensed if not is_satisfied(parse_any(expression), set(allowed))}
    for name in sorted(set(exceptions) - excepted):
        yield f"{name} needs no exception"
