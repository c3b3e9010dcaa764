//! A bank in memory behind HTTP (spec chapter 09 §9 and §13) and behind binary frames over WebSocket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{json, Value};
use tokio_tungstenite::tungstenite::{accept, Message};

#[derive(Default)]
struct Bank {
    balances: Vec<i64>,
    initial_balance: i64,
    calls: u64,
    /// Connections that have made a request.
    connections: usize,
    /// Most transfers seen in one frame.
    frame_calls_max: usize,
}

impl Bank {
    /// Whether the transfer took place.
    fn transfer(&mut self, from: usize, to: usize, amount: i64) -> bool {
        self.calls += 1;
        assert!(from != to && amount > 0);
        if self.balances[from] < amount {
            return false;
        }
        self.balances[from] -= amount;
        self.balances[to] += amount;
        true
    }
}

/// How the mock behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Usual,
    /// Answers in chunks, as Node.js does when it is not told the length.
    Chunked,
    /// Fails every third transfer.
    Failing,
    /// Closes a connection after ten transfers on it.
    Closing,
}

/// A running mock; its threads end with the test.
pub struct MockRpc {
    pub address: SocketAddr,
    bank: Arc<Mutex<Bank>>,
}

impl MockRpc {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bank = Arc::new(Mutex::new(Bank::default()));
        let shared = bank.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, bank) = (stream.unwrap(), shared.clone());
                // A connection that breaks is the client's business.
                thread::spawn(move || serve(stream, &bank, manner));
            }
        });
        Self { address, bank }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn calls(&self) -> u64 {
        self.bank.lock().unwrap().calls
    }

    pub fn connections(&self) -> usize {
        self.bank.lock().unwrap().connections
    }

    pub fn frame_calls_max(&self) -> usize {
        self.bank.lock().unwrap().frame_calls_max
    }
}

fn serve(mut stream: TcpStream, bank: &Mutex<Bank>, manner: Manner) -> Option<()> {
    stream.set_nodelay(true).unwrap();
    let mut first = [0; 16];
    let peeked = stream.peek(&mut first).ok()?;
    if first[..peeked].starts_with(b"GET /rpc-ws ") {
        return serve_frames(stream, bank);
    }
    let mut input = Vec::new();
    let mut transfers = 0;
    loop {
        let (path, body) = read_request(&mut stream, &mut input)?;
        let mut bank = bank.lock().unwrap();
        let (status, answer) = answer(&mut bank, &path, &body, manner);
        let is_transfer = body.contains("transfer") || path.ends_with("/call/transfer");
        bank.connections += usize::from(is_transfer && transfers == 0);
        drop(bank);
        transfers += usize::from(is_transfer);
        let head = format!("HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\n");
        let rest = match manner {
            Manner::Chunked => format!(
                "transfer-encoding: chunked\r\n\r\n{:x}\r\n{answer}\r\n0\r\n\r\n",
                answer.len()
            ),
            Manner::Closing if transfers == 10 => {
                format!(
                    "connection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                    answer.len()
                )
            }
            _ => format!("content-length: {}\r\n\r\n{answer}", answer.len()),
        };
        stream.write_all((head + &rest).as_bytes()).ok()?;
        if manner == Manner::Closing && transfers == 10 {
            return Some(());
        }
    }
}

/// The next request; there must not be another one behind it.
fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(head_bytes) = request.parse(input).unwrap() {
            assert_eq!(request.method, Some("POST"));
            let header = |name: &str| {
                let found = request.headers.iter().find(|header| header.name == name);
                found.map(|header| String::from_utf8(header.value.to_vec()).unwrap())
            };
            let path = request.path.unwrap().to_owned();
            if path.contains("/call/") {
                assert_eq!(header("authorization").unwrap(), "Bearer secret");
            }
            let end = head_bytes + header("content-length").unwrap().parse::<usize>().unwrap();
            assert!(input.len() <= end, "requests are not pipelined");
            if input.len() == end {
                let body = String::from_utf8(input.split_off(head_bytes)).unwrap();
                input.clear();
                return Some((path, body));
            }
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).ok()? {
            0 => return None,
            read => input.extend_from_slice(&chunk[..read]),
        }
    }
}

fn answer(bank: &mut Bank, path: &str, body: &str, manner: Manner) -> (u16, String) {
    let number = |value: &Value| value.as_i64().unwrap();
    match path {
        "/v1/identity" => {
            return (
                200,
                json!({ "identity": "c2", "token": "secret" }).to_string(),
            )
        }
        "/v1/database/bank/call/transfer" => {
            let args: Vec<i64> = serde_json::from_str(body).unwrap();
            return match bank.transfer(args[0] as usize, args[1] as usize, args[2]) {
                true => (200, String::new()),
                false => (530, "insufficient_funds".into()),
            };
        }
        "/api/mutation?format=json" => {
            let request: Value = serde_json::from_str(body).unwrap();
            assert_eq!(request["path"], "transfer:transfer");
            let id = |name: &str| number(&request["args"][name]) as usize;
            bank.transfer(
                id("from_id"),
                id("to_id"),
                number(&request["args"]["amount"]),
            );
            let answer = json!({ "status": "success", "value": null });
            return (200, answer.to_string());
        }
        "/rpc" => {}
        other => return (404, format!("no route {other}")),
    }
    let request: Value = serde_json::from_str(body).unwrap();
    let args = &request["args"];
    let result = match request["name"].as_str().unwrap() {
        "seed" => {
            bank.initial_balance = number(&args["initialBalance"]);
            bank.balances = vec![bank.initial_balance; number(&args["accounts"]) as usize];
            return (200, json!({ "ok": true }).to_string());
        }
        "transfer" if manner == Manner::Failing && bank.calls % 3 == 2 => {
            bank.calls += 1;
            return (
                500,
                json!({ "ok": false, "error": "internal server error" }).to_string(),
            );
        }
        "transfer" => {
            let (from, to) = (number(&args["from_id"]), number(&args["to_id"]));
            let applied = bank.transfer(from as usize, to as usize, number(&args["amount"]));
            json!({ "applied": applied })
        }
        "balances" => {
            let from = number(&args["from"]) as usize;
            let page = bank.balances[from..].iter().map(i64::to_string);
            json!(page
                .take(number(&args["count"]) as usize)
                .collect::<Vec<_>>())
        }
        "verify" => {
            let changed = bank.balances.iter().filter(|b| **b != bank.initial_balance);
            json!({
                "accounts": bank.balances.len().to_string(),
                "total": bank.balances.iter().sum::<i64>().to_string(),
                "changed": changed.count().to_string(),
            })
        }
        other => panic!("unknown method {other}"),
    };
    (200, json!({ "ok": true, "result": result }).to_string())
}

fn serve_frames(stream: TcpStream, bank: &Mutex<Bank>) -> Option<()> {
    let mut socket = accept(stream).unwrap();
    loop {
        let Message::Binary(frame) = socket.read().ok()? else {
            continue;
        };
        let mut bank = bank.lock().unwrap();
        let mut answers = vec![];
        for record in frame.chunks_exact(20) {
            let field = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
            let amount = i64::from_le_bytes(record[12..].try_into().unwrap());
            let applied = bank.transfer(field(4) as usize, field(8) as usize, amount);
            answers.extend(&record[..4]);
            answers.push(u8::from(!applied));
        }
        bank.frame_calls_max = bank.frame_calls_max.max(frame.len() / 20);
        drop(bank);
        socket.send(Message::Binary(answers.into())).ok()?;
    }
}
