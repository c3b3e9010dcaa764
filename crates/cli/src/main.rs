//! The command `spacetime`.

fn main() -> std::process::ExitCode {
    lightcone_cli::cli::main()
}
