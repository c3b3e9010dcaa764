//! The server program `spacetimedb-standalone`.

fn main() -> std::process::ExitCode {
    lightcone_cli::standalone::main()
}
