//! What the drivers of the client matrix in Rust take and print: see matrix.py for the contract.

use serde_json::{json, Value};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

pub const RETENTION: &str = "3600000";
pub const ALTERED_RETENTION: &str = "7200000";
const FILLER: &str = "polylog ";

pub type Outcome = Result<Value, Box<dyn std::error::Error>>;

/// The command line, one item of its lists at a time.
#[derive(Clone)]
pub struct Given(HashMap<String, String>);

impl Given {
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or("")
    }

    pub fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    pub fn topic(&self) -> &str {
        self.text("topic")
    }

    fn items(&self) -> Vec<Given> {
        let lists: Vec<(&str, Vec<String>)> = ["topic", "codec", "prefix", "time"]
            .into_iter()
            .filter(|name| self.0.contains_key(*name))
            .map(|name| (name, self.text(name).split(',').map(String::from).collect()))
            .collect();
        let rounds = lists.iter().map(|(_, items)| items.len()).max().unwrap_or(1);
        (0..rounds)
            .map(|n| {
                let mut one = self.clone();
                for (name, items) in &lists {
                    one.0.insert(name.to_string(), items[n % items.len()].clone());
                }
                one
            })
            .collect()
    }
}

pub fn emit(fields: Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{fields}").and_then(|()| out.flush()).expect("standard output");
}

pub fn step(name: &str, fields: Value) {
    let mut all = json!({ "step": name });
    if let (Some(into), Some(from)) = (all.as_object_mut(), fields.as_object()) {
        into.extend(from.clone());
    }
    emit(all);
}

pub fn note(error: impl std::fmt::Display) {
    emit(json!({ "note": error.to_string() }));
}

pub fn key(number: usize) -> String {
    format!("key-{number}")
}

pub fn value(prefix: &str, number: usize) -> String {
    format!("{prefix} {number} {}", FILLER.repeat(number % 20)).trim_end().to_string()
}

/// What a member has handed over, and so may commit: partition -> next offset.
pub struct Positions {
    stop: String,
    pub count: usize,
    next: BTreeMap<i32, i64>,
}

impl Positions {
    pub fn new(given: &Given) -> Self {
        Positions { stop: given.text("stop").to_string(), count: 0, next: BTreeMap::new() }
    }

    pub fn stopped(&self) -> bool {
        std::path::Path::new(&self.stop).exists()
    }

    pub fn record(&mut self, partition: i32, offset: i64, value: &[u8]) {
        emit(json!({ "record": [partition, offset, String::from_utf8_lossy(value)] }));
        self.next.insert(partition, offset + 1);
        self.count += 1;
    }

    /// Hands out what is to be committed, once.
    pub fn take(&mut self) -> BTreeMap<i32, i64> {
        std::mem::take(&mut self.next)
    }
}

pub fn committed(offsets: &BTreeMap<i32, i64>) {
    let pairs: Vec<(i32, i64)> = offsets.iter().map(|(p, o)| (*p, *o)).collect();
    emit(json!({ "committed": pairs }));
}

/// Calls `command` with its name for every item of the lists on the command line.
pub fn run(command: impl Fn(&str, &Given) -> Outcome) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut values = HashMap::from([("protocol".to_string(), "classic".to_string())]);
    for pair in arguments[1..].chunks_exact(2) {
        values.insert(pair[0].trim_start_matches("--").to_string(), pair[1].clone());
    }
    for given in Given(values).items() {
        match command(&arguments[0], &given) {
            Ok(done) => emit(json!({ "done": done })),
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(1);
            }
        }
    }
}
