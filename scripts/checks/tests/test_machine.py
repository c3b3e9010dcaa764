import unittest

from checks.machine import uses_of


class Uses(unittest.TestCase):
    def found(self, source):
        return [text for _, text in uses_of(source)]

    def test_threads_locks_clocks_and_waits_are_found(self):
        source = """
            use std::sync::{Arc, Mutex};
            use tokio::sync::mpsc;
            fn f() { std::thread::sleep(d); let t = Instant::now(); shared.state.lock().take(); a.recv(); }
        """
        found = self.found(source)
        for use in ("Mutex", "tokio", "std::thread", "thread::sleep", "Instant::now", ".lock(", ".recv("):
            self.assertIn(use, found)
        self.assertEqual(uses_of(source)[0], (2, "Mutex"))

    def test_answers_types_texts_and_tests_are_none(self):
        source = """
            use tokio::sync::oneshot::{self, error::TryRecvError};
            use std::time::Instant;
            // A Mutex, and Instant::now().
            fn f(due: Instant) -> &'static str { let _ = a.try_recv(); environment.instant(); "std::thread" }
            #[cfg(test)]
            mod tests { fn g() { std::thread::sleep(d); } }
        """
        self.assertEqual(self.found(source), [])


if __name__ == "__main__":
    unittest.main()
