//! What one module instance may use. Every limit has a name, and the name is in the error that it causes.

/// Limits of one module instance. A configuration key or an error text writes the same name with dashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Longest time that one reducer call may run, in milliseconds. Measured in ticks of
    /// 10 ms, so a call ends at most two ticks late. The transaction is rolled back and the instance replaced.
    pub call_ms_max: u64,
    /// Longest time that the functions of the load phase (start function, `_initialize`, `__preinit__*`, `__setup__` and
    /// `__describe_module__`) may run together, in milliseconds.
    pub load_ms_max: u64,
    /// Most bytes of linear memory that an instance may hold. Growing beyond it fails as if the machine had no more
    /// memory, which most languages turn into a panic.
    pub memory_bytes_max: usize,
    /// Most elements that the tables of an instance (function pointers, not rows) may have together.
    pub table_elements_max: usize,
    /// Stack for guest code, in bytes. The thread that calls the module needs at least this much stack and
    /// 256 KiB for the host. An engine may read this once, when it is created.
    pub stack_bytes_max: usize,
    /// Most row iterators that a call may hold open at once.
    pub iterators_max: usize,
    /// Most bytes of rows that the open iterators of a call may hold together. A scan is a copy of the rows it found.
    pub iterator_bytes_max: usize,
    /// Most byte sources that a call may hold unread at once.
    pub sources_max: usize,
    /// Most bytes that a module may write into one sink (error texts, its own definition). Beyond it the write answers
    /// errno 9.
    pub sink_bytes_max: usize,
    /// Most console timers that an instance may have running.
    pub console_timers_max: usize,
    /// Longest console message, target, file name or timer name, in bytes. Longer ones are cut.
    pub console_message_bytes_max: usize,
    /// Most bytes of console records that one call may write. Later records of that call are dropped; the first
    /// dropped one leaves a note.
    pub console_call_bytes_max: usize,
    /// Most bytes of changes that the transactions of one procedure call may have committed together when it opens another
    /// one: they reach the log and subscribers when the call ends.
    pub procedure_bytes_max: usize,
}

impl Default for HostLimits {
    fn default() -> Self {
        HostLimits {
            call_ms_max: 10_000,
            load_ms_max: 10_000,
            memory_bytes_max: 1 << 30,
            table_elements_max: 1 << 20,
            stack_bytes_max: 512 << 10,
            iterators_max: 65_536,
            iterator_bytes_max: 1 << 30,
            sources_max: 65_536,
            sink_bytes_max: 64 << 20,
            console_timers_max: 1024,
            console_message_bytes_max: 64 << 10,
            console_call_bytes_max: 16 << 20,
            procedure_bytes_max: 64 << 20,
        }
    }
}
