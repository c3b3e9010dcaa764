//! Each file of a data directory is damaged, and a server is started on it: what it answers is right, or it says what is wrong.
//!
//! The table that it prints is in docs/simulation.md. `DAMAGE_TRIES` makes it longer, `DAMAGE_SEED` another one. A process of its own,
//! because it counts every panic in it.

#[path = "../common/mod.rs"]
mod common;
mod directory;
mod ways;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

use lightcone_server::{Server, ServerOptions};
use tokio::task::JoinSet;

use common::{answer, fake, json};
use directory::{copy, Directory};
use ways::{Damage, Random};

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
const AT_ONCE: usize = 4;

/// What a server answers that was started on a directory: the text, or what it says is wrong.
type Answers = Vec<Result<String, String>>;
/// Of the answers the rows of the table, and its changes. They come in the order in which they were made.
const ROWS: usize = 0;
const CHANGES: usize = 1;

/// In the order of the columns of the table.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    /// An error with a code.
    Refused,
    /// All answers are right, and what was damaged is set aside.
    Mended,
    Harmless,
    /// The end of the log is lost, where the damage is and nowhere else: it looks like a write that a crash has torn, or that never was.
    Torn,
    Wrong(String),
}

const COLUMNS: [&str; 6] = [
    "tried", "refused", "mended", "harmless", "torn end", "wrong",
];

impl Verdict {
    fn column(&self) -> usize {
        match self {
            Verdict::Refused => 1,
            Verdict::Mended => 2,
            Verdict::Harmless => 3,
            Verdict::Torn => 4,
            Verdict::Wrong(_) => 5,
        }
    }
}

async fn start_and_ask(root: &Path, asked: &Directory) -> Answers {
    let address = "127.0.0.1:0".parse().expect("address");
    let mut options = ServerOptions::new(address, root.join("data"), fake::engines());
    options.node.jwt_key_dir = Some(root.join("keys"));
    let handle = match Server::bind(options).await {
        Ok(handle) => handle,
        Err(error) => return vec![Err(error.to_string())],
    };
    let http = &asked.http;
    let base = format!("http://{}", handle.local_addr());
    let mut answers = Vec::new();
    for (path, sql) in &asked.questions {
        let request = match sql {
            Some(sql) => http.post(format!("{base}{path}")).body(*sql),
            None => http.get(format!("{base}{path}")),
        };
        let (status, text) = answer(request.bearer_auth(&asked.user.token)).await;
        answers.push(match (status, sql, text.split_once("event: end")) {
            (200, Some(_), _) => Ok(json(&text)[0]["rows"].to_string()),
            // Why a stream of changes has ended.
            (200, None, Some((_, why))) => Err(why.to_owned()),
            (200, None, None) => Ok(text),
            _ => Err(format!("{status} {text}")),
        });
    }
    handle.shutdown().await;
    answers
}

/// A code, or a token that is refused.
fn is_told(error: &str) -> bool {
    error.contains("[LC") || error.contains("\"LC") || error.starts_with("401 ")
}

fn judge(damage: &Damage, right: &Answers, found: &Answers, root: &Path) -> Verdict {
    for error in found.iter().filter_map(|answer| answer.as_ref().err()) {
        if !is_told(error) {
            return Verdict::Wrong(error.clone());
        }
    }
    let mut is_torn = false;
    for (number, (right, found)) in right.iter().zip(found).enumerate() {
        let (Ok(right), Ok(found)) = (right, found) else {
            continue;
        };
        let is_beginning = match number {
            ROWS => right.starts_with(found.trim_end_matches(']')),
            CHANGES => right.starts_with(found.as_str()),
            _ => false,
        };
        match right == found {
            true => {}
            false if is_beginning => is_torn = true,
            false => return Verdict::Wrong(format!("{found} instead of {right}")),
        }
    }
    if is_torn {
        let kept = rows(&found[ROWS]);
        return match damage.reaches_all_from(&directory::text_of("a", kept)) {
            true => Verdict::Torn,
            false => Verdict::Wrong(format!(
                "rows are lost from {kept} on, and the damage is elsewhere"
            )),
        };
    }
    if found.iter().any(Result::is_err) {
        return Verdict::Refused;
    }
    match directory::files(root)
        .iter()
        .any(|path| path.to_string_lossy().contains("damaged"))
    {
        true => Verdict::Mended,
        false => Verdict::Harmless,
    }
}

/// None can be counted where the question was refused.
fn rows(answer: &Result<String, String>) -> usize {
    let rows = answer.as_ref().map(|text| json(text));
    rows.map_or(0, |rows| rows.as_array().map_or(0, Vec::len))
}

async fn attempt(damage: Arc<Damage>, directory: Arc<Directory>, right: Arc<Answers>) -> Verdict {
    let root = tempfile::tempdir().expect("a directory");
    copy(&damage.root, root.path());
    damage.apply(root.path());
    let found = tokio::time::timeout(PATIENCE, start_and_ask(root.path(), &directory)).await;
    match found {
        Ok(found) => judge(&damage, &right, &found, root.path()),
        Err(_) => Verdict::Wrong("it hangs".to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_found_or_does_no_harm() {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let tries = number("DAMAGE_TRIES").unwrap_or(1) as usize;
    let seed: u64 = number("DAMAGE_SEED").unwrap_or(1);
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, SeqCst);
        before(info);
    }));
    let directory = Arc::new(Directory::make().await);
    let mut right = Vec::new();
    for root in [directory.stopped.path(), directory.killed.path()] {
        let sound = tempfile::tempdir().expect("a directory");
        copy(root, sound.path());
        right = start_and_ask(sound.path(), &directory).await;
        assert!(right.iter().all(Result::is_ok), "{right:?}");
        assert_eq!(rows(&right[ROWS]), directory.rows);
    }
    let right = Arc::new(right);
    let damages = ways::all(&directory, tries, &mut Random(seed));
    let mut waiting = damages.into_iter().map(Arc::new);
    let mut table: BTreeMap<&str, [usize; COLUMNS.len()]> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE {
            let Some(damage) = waiting.next() else {
                break;
            };
            let (directory, right) = (directory.clone(), right.clone());
            running.spawn(async move {
                let verdict = attempt(damage.clone(), directory, right).await;
                (damage, verdict)
            });
        }
        let Some(ended) = running.join_next().await else {
            break;
        };
        let (damage, verdict) = ended.expect("no panic");
        let row = table.entry(damage.row).or_default();
        row[0] += 1;
        row[verdict.column()] += 1;
        if let Verdict::Wrong(what) = verdict {
            wrong.push(format!("{damage}: {what}"));
        }
    }
    println!(
        "| | {} |\n|---|---|---|---|---|---|---|",
        COLUMNS.join(" | ")
    );
    for (row, counts) in &table {
        let counts = counts.map(|count| count.to_string());
        println!("| {row} | {} |", counts.join(" | "));
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(PANICS.load(SeqCst), 0, "panics");
    // A closing mark tells a stopped server's last transaction from a torn write.
    for (row, counts) in &table {
        let may_be_torn =
            row.starts_with(ways::LAST_OF_KILLED) || row.starts_with(ways::LAST_AS_WHOLE);
        assert!(counts[4] == 0 || may_be_torn, "{row}");
    }
}
