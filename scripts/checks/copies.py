"""Finds what two bodies of text have in common: runs of equal items, which are tokens of code or words of prose.

Knows nothing of languages: who calls it cuts texts into items, and says how long a run must be to count.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    ours: int  # where it begins in our items
    length: int
    source: object  # the label of their text
    theirs: int  # where it begins in their items


class Finder:
    """An index of their texts, which tells where another text repeats at least `length_min` of their items in a row.

    Every run of that length has a block in it that begins at a multiple of half of it in their text. So only those blocks
    are in the index, and what is found is followed to both sides.
    """

    def __init__(self, length_min):
        self.length_min = length_min
        self.block = length_min // 2
        self.letters = {}  # an item as a character, so that a run of items is a piece of a string: quick to hash and compare
        self.texts = []  # (label, string)
        self.places = {}  # a block: where it stands, as (number of the text, position)

    def add(self, label, items):
        """Adds one of their texts."""
        text = self.encode(items)
        for start in range(0, len(text) - self.block + 1, self.block):
            self.places.setdefault(text[start : start + self.block], []).append((len(self.texts), start))
        self.texts.append((label, text))

    def runs(self, items):
        """The longest run from each place of ours on, in order, none inside of another."""
        text, position = self.encode(items), 0
        while position <= len(text) - self.block:
            places = self.places.get(text[position : position + self.block])
            found = max((self.extend(text, position, *place) for place in places), key=lambda run: run.length) if places else None
            if found is not None and found.length >= self.length_min:
                yield found
                position = found.ours + found.length
            else:
                position += 1

    def extend(self, text, position, number, start):
        """The whole run around a block that stands at `position` in ours and at `start` in theirs."""
        label, other = self.texts[number]
        ours, theirs = position, start
        while ours > 0 and theirs > 0 and text[ours - 1] == other[theirs - 1]:
            ours, theirs = ours - 1, theirs - 1
        end, other_end = position + self.block, start + self.block
        while end < len(text) and other_end < len(other) and text[end] == other[other_end]:
            end, other_end = end + 1, other_end + 1
        return Run(ours, end - ours, label, theirs)

    def encode(self, items):
        return "".join([self.letters.get(item) or self.letter(item) for item in items])

    def letter(self, item):
        number = len(self.letters) + 1
        # The numbers from 0xD800 on, of which Unicode makes no characters, are left out.
        return self.letters.setdefault(item, chr(number if number < 0xD800 else number + 0x800))
