//! A data directory that has a file of each kind, and what its server is asked.

use std::ops::Range;
use std::path::{Path, PathBuf};

use reqwest::RequestBuilder;
use tempfile::TempDir;

use crate::common::publishing::{created, publish};
use crate::common::{answer, config, TestServer, User};

/// Small, so that a few rows make several segments and snapshots.
const CONFIG: &str =
    "[commitlog]\nmax-segment-size = 8192\n\n[limits]\nsnapshot-log-bytes = 12000\n";
const HEADER_BYTES: usize = 4096;
const FRAME_HEADER_BYTES: usize = 52;

pub struct Directory {
    /// As a server leaves it that was stopped.
    pub stopped: TempDir,
    /// As one leaves it that was killed when it had acknowledged the last row.
    pub killed: TempDir,
    /// As it was some time before.
    pub older: TempDir,
    pub http: reqwest::Client,
    pub user: User,
    /// Rows of the table: one for each transaction from some place on.
    pub rows: usize,
    /// Paths, and SQL for those that take it. The rows and the changes come first.
    pub questions: Vec<(String, Option<&'static str>)>,
}

impl Directory {
    pub async fn make() -> Directory {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join("data")).expect("made");
        std::fs::write(root.path().join("data/config.toml"), CONFIG).expect("written");
        let mut server = TestServer::start_in(root, config(CONFIG)).await;
        let user = server.user().await;
        let other = server.user().await;
        for name in ["a", "b"] {
            created(&server, &user, name, "module").await;
            let program = format!("module {name}").leak();
            let updated = publish(&server, &user, &format!("/v1/database/{name}"), program).await;
            assert_eq!(updated.0, 200, "{}", updated.1);
        }
        let by = |request: RequestBuilder| answer(request.bearer_auth(&user.token));
        let role = format!("/v1/database/a/collaborators/{}", other.identity);
        let role = server.request("PUT", &role).body(r#"{"role":"reader"}"#);
        assert_eq!(by(role).await.0, 200);
        let set = server.request("PATCH", "/v1/database/a/environment");
        let set = set.header("spacetime-environment-secret", "KEY");
        let set = set.body(r#"{"KEY":"a secret","PLAIN":"a value"}"#);
        assert_eq!(by(set).await.0, 200);

        let (killed, older) = (TempDir::new().expect("made"), TempDir::new().expect("made"));
        let log = server.dir.path().join("data/replicas/1/log");
        let mut rows = 0;
        // Until the log has been cut behind two snapshots, and then some transactions more.
        let mut more = 15;
        while more > 0 {
            for name in ["a", "b"] {
                let add = server.request("POST", &format!("/v1/database/{name}/call/add"));
                let add = add.header("content-type", "application/json");
                let text = text_of(name, rows).repeat(30);
                let added = by(add.body(format!("[{rows},\"{text}\"]"))).await;
                assert_eq!(added.0, 200, "{}", added.1);
            }
            rows += 1;
            let first = segments(&log).remove(0);
            let is_trimmed = !first.ends_with("00000000000000000000.segment");
            if is_trimmed && segments(&log).len() > 1 {
                if more == 15 {
                    copy(server.dir.path(), older.path());
                }
                more -= 1;
            }
        }
        // A snapshot that is being written, or removed, would be copied in part.
        let state = || files(server.dir.path());
        loop {
            let before = state();
            copy(server.dir.path(), killed.path());
            let is_written = |path: &PathBuf| is_a(path, "tmp") && !path.ends_with("spare.tmp");
            if state() == before && !before.iter().any(is_written) {
                break;
            }
            std::fs::remove_dir_all(killed.path().join("data")).expect("removed");
        }
        let handle = server.handle.take().expect("it runs");
        handle.shutdown().await;
        let stopped = server.dir;
        let directory = Directory {
            questions: questions(stopped.path()),
            http: reqwest::Client::new(),
            stopped,
            killed,
            older,
            user,
            rows,
        };
        assert!(directory.questions.len() > 4);
        directory
    }

    /// Of the database that is asked, in a directory.
    pub fn last_segment_in(root: &Path) -> PathBuf {
        let mut segments = segments(&root.join("data/replicas/1/log"));
        segments.pop().expect("a segment")
    }
}

/// What the text of a row begins with, and of no other row.
pub fn text_of(database: &str, row: usize) -> String {
    format!("{database}{row} {database}{row} ")
}

fn questions(root: &Path) -> Vec<(String, Option<&'static str>)> {
    let replica = root.join("data/replicas/1");
    let name = |path: &Path| {
        path.file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    // Opening a database shortens its log up to the older snapshot.
    let snapshots = files(&replica.join("snapshots"));
    let mut manifests = snapshots.iter().filter(|path| is_a(path, "manifest"));
    let oldest: u64 = name(manifests.next().expect("a snapshot"))
        .parse()
        .expect("an offset");
    let mut questions = vec![
        ("/sql".to_owned(), Some("SELECT * FROM person")),
        (format!("/changes?follow=false&from={oldest}"), None),
        ("/sql".to_owned(), Some("SELECT * FROM st_env")),
        ("".to_owned(), None),
        ("/names".to_owned(), None),
        ("/collaborators".to_owned(), None),
    ];
    for program in files(&replica.join("programs")) {
        questions.push((format!("/programs/{}", name(&program)), None));
    }
    for (path, _) in &mut questions {
        path.insert_str(0, "/v1/database/a");
    }
    questions
}

pub fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let below = paths.map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    let mut files: Vec<PathBuf> = below.flatten().collect();
    files.sort();
    files
}

fn segments(log: &Path) -> Vec<PathBuf> {
    let mut segments = files(log);
    segments.retain(|path| is_a(path, "segment"));
    segments
}

fn is_a(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|of| of == extension)
}

/// Copies a directory, which a server may be changing.
pub fn copy(from: &Path, to: &Path) {
    for path in files(from) {
        let target = to.join(path.strip_prefix(from).expect("below"));
        std::fs::create_dir_all(target.parent().expect("a parent")).expect("made");
        match std::fs::copy(&path, &target) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied.expect("copied")),
        }
    }
}

/// A frame of a segment of format 2 (docs/on-disk-formats.md), and how many transactions it has.
#[derive(Clone)]
pub struct Frame {
    pub place: Range<usize>,
    pub transactions: usize,
}

impl Frame {
    pub fn header(&self) -> Range<usize> {
        self.place.start..self.place.start + FRAME_HEADER_BYTES
    }

    pub fn payload(&self) -> Range<usize> {
        self.header().end..self.place.end
    }
}

pub fn frames(segment: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut start = HEADER_BYTES;
    while segment.get(start..start + 4) == Some(b"LCF2") {
        let number = |at: usize| {
            u32::from_le_bytes(segment[start + at..][..4].try_into().expect("4 bytes")) as usize
        };
        let end = start + FRAME_HEADER_BYTES + number(8);
        frames.push(Frame {
            place: start..end,
            transactions: number(12),
        });
        start = end;
    }
    frames
}
