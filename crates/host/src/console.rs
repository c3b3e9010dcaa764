//! Console records of modules, and their form in the module log (spec 03 §9).

use serde::Serialize;

use lightcone_types::Timestamp;

/// The level of a console record (spec 03 §9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ConsoleLevel {
    /// 0
    Error,
    /// 1
    Warn,
    /// 2
    Info,
    /// 3, and any unknown number
    Debug,
    /// 4
    Trace,
    /// 101
    Panic,
}

impl ConsoleLevel {
    pub const PANIC_NUMBER: u8 = 101;

    /// Only the low 8 bits count.
    pub fn from_number(number: u32) -> ConsoleLevel {
        match number as u8 {
            0 => ConsoleLevel::Error,
            1 => ConsoleLevel::Warn,
            2 => ConsoleLevel::Info,
            4 => ConsoleLevel::Trace,
            ConsoleLevel::PANIC_NUMBER => ConsoleLevel::Panic,
            _ => ConsoleLevel::Debug,
        }
    }
}

/// A stack frame of a Panic record. The innermost comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConsoleFrame {
    /// The script or library of the function (JavaScript only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module_name: Option<String>,
    /// Demangled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub func_name: Option<String>,
}

/// A record of the module log. The order of the fields is the order of the keys.
#[derive(Clone, Debug, Serialize)]
pub struct ConsoleRecord<'a> {
    pub level: ConsoleLevel,
    #[serde(serialize_with = "micros")]
    pub ts: Timestamp,
    /// As the library passes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_number: Option<u32>,
    /// The canonical name of the function that runs, or ran last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<&'a str>,
    pub message: &'a str,
    /// Only in Panic records, and in all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<&'a [ConsoleFrame]>,
}

fn micros<S: serde::Serializer>(ts: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(ts.0)
}

impl ConsoleRecord<'_> {
    /// Appends one line of JSON with its line feed.
    pub fn write_json_line(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(&mut *out, self)
            .expect("strings and numbers always serialize into a vector");
        out.push(b'\n');
    }
}

/// The target of console records. It is called on the module's thread, so it must not wait.
pub trait ConsoleSink: Send + Sync {
    fn log(&self, record: ConsoleRecord<'_>);
}

#[derive(Clone, Copy, Debug, Default)]
pub struct NullConsole;

impl ConsoleSink for NullConsole {
    fn log(&self, _: ConsoleRecord<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(record: &ConsoleRecord<'_>) -> String {
        let mut out = Vec::new();
        record.write_json_line(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn records_have_the_captured_form() {
        // Both lines are quoted in spec 03 §9.3.
        let mut record = ConsoleRecord {
            level: ConsoleLevel::Error,
            ts: Timestamp(1795255066038478),
            target: Some("__spacetimedb__"),
            filename: Some("__spacetimedb__"),
            line_number: None,
            function: Some("ev"),
            message: "user err",
            trace: None,
        };
        assert_eq!(
            line(&record),
            "{\"level\":\"Error\",\"ts\":1795255066038478,\"target\":\"__spacetimedb__\",\"filename\":\"__spacetimedb__\",\
             \"function\":\"ev\",\"message\":\"user err\"}\n"
        );
        record = ConsoleRecord {
            level: ConsoleLevel::from_number(257),
            ts: Timestamp(1795255700507850),
            target: None,
            filename: None,
            line_number: Some(0),
            function: Some("ev"),
            message: "hello",
            trace: None,
        };
        assert_eq!(
            line(&record),
            "{\"level\":\"Warn\",\"ts\":1795255700507850,\"line_number\":0,\"function\":\"ev\",\"message\":\"hello\"}\n"
        );
    }

    #[test]
    fn a_panic_has_its_frames_at_the_end() {
        let frames = [ConsoleFrame {
            module_name: None,
            func_name: Some("core::panicking::panic".into()),
        }];
        let record = ConsoleRecord {
            level: ConsoleLevel::from_number(101),
            ts: Timestamp(1),
            target: None,
            filename: None,
            line_number: None,
            function: None,
            message: "a\"b\n",
            trace: Some(&frames),
        };
        assert_eq!(
            line(&record),
            "{\"level\":\"Panic\",\"ts\":1,\"message\":\"a\\\"b\\n\",\"trace\":[{\"func_name\":\"core::panicking::panic\"}]}\n"
        );
    }

    #[test]
    fn unknown_levels_are_debug() {
        assert_eq!(ConsoleLevel::from_number(3), ConsoleLevel::Debug);
        assert_eq!(ConsoleLevel::from_number(77), ConsoleLevel::Debug);
        assert_eq!(ConsoleLevel::from_number(256), ConsoleLevel::Error);
    }
}
