//! The command `lightcone-loadgen`.
//!
//! Exit codes: 0 all went well; 1 the run could not be made, or calls failed or got lost; 2 the
//! verification failed.

use std::process::ExitCode;

use clap::Parser;
use lightcone_loadgen::{run, Options, Progress};

fn main() -> ExitCode {
    let options = Options::parse();
    let mut progress = |progress: Progress<'_>| match progress {
        Progress::Second(point) if options.json_lines => {
            println!("{}", serde_json::json!({ "second": point }));
        }
        Progress::Started if options.json_lines => println!("{}", serde_json::json!("started")),
        _ if options.quiet => {}
        Progress::Started => {}
        Progress::Second(point) => eprintln!("{point}"),
        Progress::Line(line) => eprintln!("{line}"),
    };
    let report = match run(&options, &mut progress) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::from(1);
        }
    };
    if options.json_lines {
        let histogram = report.histogram();
        println!(
            "{}",
            serde_json::json!({ "report": report.to_json(), "histogram_us": histogram })
        );
    } else if options.json {
        println!("{:#}", report.to_json());
    } else {
        print!("{report}");
    }
    match (report.is_verified(), report.is_clean()) {
        (false, _) => ExitCode::from(2),
        (true, false) => ExitCode::from(1),
        (true, true) => ExitCode::SUCCESS,
    }
}
