import unittest

from checks import licences


class Expressions(unittest.TestCase):
    def test_and_binds_closer_than_or(self):
        self.assertEqual(licences.parse("MIT OR ISC AND Zlib"), ("or", "MIT", ("and", "ISC", "Zlib")))
        self.assertEqual(licences.parse("(MIT OR ISC) AND Zlib"), ("and", ("or", "MIT", "ISC"), "Zlib"))

    def test_the_old_form_and_exceptions(self):
        self.assertEqual(licences.parse("MIT/Apache-2.0"), ("or", "MIT", "Apache-2.0"))
        self.assertEqual(licences.parse("Apache-2.0 WITH LLVM-exception"), "Apache-2.0 WITH LLVM-exception")

    def test_what_is_no_expression_is_said(self):
        for text in ("", "MIT OR", "(MIT", "SEE LICENSE IN LICENSE.txt", "MIT)"):
            with self.assertRaises(ValueError, msg=text):
                licences.parse(text)

    def test_one_alternative_is_enough_and_all_parts_are_needed(self):
        self.assertTrue(licences.is_satisfied(licences.parse("GPL-2.0-only OR MIT"), {"MIT"}))
        self.assertFalse(licences.is_satisfied(licences.parse("GPL-2.0-only AND MIT"), {"MIT"}))
        self.assertFalse(licences.is_satisfied(licences.parse("Apache-2.0 WITH LLVM-exception"), {"Apache-2.0"}))


class Lists(unittest.TestCase):
    def test_what_does_not_fit_is_found(self):
        licensed = [("good", "MIT"), ("bad", "GPL-3.0-only"), ("none", None), ("file", "SEE LICENSE IN x")]
        self.assertEqual(
            list(licences.unsatisfied(licensed, {"MIT"})),
            [
                "bad is licensed GPL-3.0-only, which is not allowed",
                "file is licensed SEE LICENSE IN x, which is not allowed",
                "none is licensed under nothing that its manifest names, which is not allowed",
            ],
        )

    def test_what_is_allowed_in_vain_is_found(self):
        licensed = [("a", "MIT"), ("data", "CDLA-Permissive-2.0")]
        exceptions = {"data": ["CDLA-Permissive-2.0"], "gone": ["ISC"]}
        self.assertEqual(list(licences.unsatisfied(licensed, {"MIT"}, exceptions)), [])
        self.assertEqual(
            list(licences.needless(licensed, {"MIT", "Zlib"}, exceptions)),
            ["Zlib is allowed, and nothing has this licence", "gone needs no exception"],
        )


if __name__ == "__main__":
    unittest.main()
