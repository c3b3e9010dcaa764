//! The module's log and its timers (spec 03 §9).

use std::borrow::Cow;

use lightcone_types::Timestamp;

use super::HostEnv;
use crate::{AbiError, ConsoleFrame, ConsoleLevel, ConsoleRecord};

impl HostEnv {
    /// `console_log`. `trace` gives the stack frames of a Panic record.
    pub fn console_log(
        &mut self,
        level: u32,
        target: Option<&[u8]>,
        filename: Option<&[u8]>,
        line_number: u32,
        message: &[u8],
        trace: impl FnOnce() -> Vec<ConsoleFrame>,
    ) {
        let level = ConsoleLevel::from_number(level);
        let longest = self.config.limits.console_message_bytes_max;
        let target = target.map(|text| lossy(text, longest));
        let filename = filename.map(|text| lossy(text, longest));
        let message = lossy(message, longest);
        let trace = (level == ConsoleLevel::Panic).then(trace);
        let line_number = (line_number != u32::MAX).then_some(line_number);
        self.log(
            level,
            target.as_deref(),
            filename.as_deref(),
            line_number,
            &message,
            trace.as_deref(),
        );
    }

    /// `console_timer_start`
    pub fn console_timer_start(&mut self, name: &[u8]) -> Result<u32, AbiError> {
        let limits = &self.config.limits;
        let name = lossy(name, limits.console_message_bytes_max).into_owned();
        self.timers.start(name, limits.console_timers_max)
    }

    /// `console_timer_end`: writes an Info record with the time that passed.
    pub fn console_timer_end(&mut self, timer: u32) -> Result<(), AbiError> {
        let (name, elapsed) = self.timers.end(timer)?;
        let message = format!("Timing span {name:?}: {elapsed:?}");
        self.log(ConsoleLevel::Info, None, None, None, &message, None);
        Ok(())
    }

    pub(super) fn log(
        &mut self,
        level: ConsoleLevel,
        target: Option<&str>,
        filename: Option<&str>,
        line_number: Option<u32>,
        message: &str,
        trace: Option<&[ConsoleFrame]>,
    ) {
        let most = self.config.limits.console_call_bytes_max;
        if self.console_bytes > most {
            return;
        }
        // The size of a record without its texts.
        const RECORD_OVERHEAD_BYTES: usize = 100;
        self.console_bytes += message.len()
            + target.map_or(0, str::len)
            + filename.map_or(0, str::len)
            + RECORD_OVERHEAD_BYTES;
        let mut record = ConsoleRecord {
            level,
            ts: Timestamp::now(),
            target,
            filename,
            line_number,
            function: self.function.as_deref(),
            message,
            trace,
        };
        if self.console_bytes > most {
            let note = format!("further records of this call were dropped: console-call-bytes-max = {most} [LC0725]");
            record.level = ConsoleLevel::Warn;
            record.message = &note;
            record.trace = None;
            return self.config.console.log(record);
        }
        self.config.console.log(record);
    }
}

/// Text of a module: cut to `bytes_max`, with U+FFFD for what is not UTF-8.
fn lossy(text: &[u8], bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return String::from_utf8_lossy(text);
    }
    // A character at the cut is dropped, not replaced.
    let mut end = bytes_max;
    while end > 0 && text[end] & 0xc0 == 0x80 && bytes_max - end < 3 {
        end -= 1;
    }
    Cow::Owned(format!(
        "{}... ({} bytes)",
        String::from_utf8_lossy(&text[..end]),
        text.len()
    ))
}
