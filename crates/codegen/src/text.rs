//! Text with indentation.

/// A growing source text.
#[derive(Debug)]
pub(crate) struct Text {
    out: String,
    depth: usize,
    unit: &'static str,
}

impl Text {
    /// `unit` is what one level of indentation looks like.
    pub fn new(unit: &'static str) -> Self {
        Self {
            out: String::new(),
            depth: 0,
            unit,
        }
    }

    /// Adds a line; an empty one stays without indentation.
    pub fn line(&mut self, line: impl AsRef<str>) -> &mut Self {
        let line = line.as_ref();
        if !line.is_empty() {
            for _ in 0..self.depth {
                self.out.push_str(self.unit);
            }
            self.out.push_str(line);
        }
        self.out.push('\n');
        self
    }

    pub fn blank(&mut self) -> &mut Self {
        self.line("")
    }

    /// Adds several lines as they are, at the current depth.
    pub fn lines(&mut self, lines: &str) -> &mut Self {
        for line in lines.lines() {
            self.line(line);
        }
        self
    }

    /// Adds `open`, what `body` writes one level deeper, and `close`.
    pub fn block(
        &mut self,
        open: impl AsRef<str>,
        close: impl AsRef<str>,
        body: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.line(open);
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line(close)
    }

    pub fn finish(self) -> String {
        self.out
    }
}
