//! Writes record frames filled as RobustMQ 0.4.11 fills them (the archive by rkyv, the JSON by
//! serde_json), and beside them a table of what was put in. README.md says how to run it.

use bytes::Bytes;
use rkyv::{Archive, Serialize as ArchiveSerialize};
use serde::Serialize as JsonSerialize;
use std::fmt::Write as _;
use std::path::Path;

// The order and the types of the fields make the archive; its names don't show.
#[derive(Archive, ArchiveSerialize)]
struct Pair {
    name: String,
    value: String,
}

#[derive(Archive, ArchiveSerialize)]
struct Metadata {
    offset: u64,
    shard: String,
    segment: u32,
    headers: Option<Vec<Pair>>,
    key: Option<Bytes>,
    tags: Option<Vec<String>>,
    created_s: u64,
    expires_s: u64,
    data_crc: u32,
}

// Here the names are what counts.
#[derive(JsonSerialize, Default)]
struct Parts {
    mqtt: Option<Mqtt>,
    nats: Option<Nats>,
    mq9: Option<Nats>, // always null here
    amqp: Option<Nats>,
}

#[derive(JsonSerialize, Default)]
struct Mqtt {
    client_id: String,
    retain: bool,
    format_indicator: Option<u8>,
    response_topic: Option<String>,
    correlation_data: Option<Bytes>,
    content_type: Option<String>,
    user_properties: Vec<(String, String)>,
}

#[derive(JsonSerialize, Default)]
struct Nats {
    reply_to: Option<String>,
    header: Option<Bytes>,
}

struct Sample {
    metadata: Metadata,
    parts: Option<Parts>,
    data: Vec<u8>,
}

fn sample(offset: u64, data: &[u8]) -> Sample {
    Sample {
        metadata: Metadata {
            offset,
            shard: "cq1h2k3l4m5n6p7q8r9s-0".into(),
            segment: 0,
            headers: None,
            key: None,
            tags: None,
            created_s: 1_790_000_000 + offset,
            expires_s: 0,
            data_crc: 0, // set when it is written
        },
        parts: None,
        data: data.to_vec(),
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

fn pairs(texts: &[(&str, &str)]) -> Vec<Pair> {
    texts
        .iter()
        .map(|(name, value)| Pair { name: name.to_string(), value: value.to_string() })
        .collect()
}

fn chosen() -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut add = |data: &[u8], change: &dyn Fn(&mut Sample)| {
        let mut one = sample(samples.len() as u64, data);
        change(&mut one);
        samples.push(one);
    };
    add(b"plain", &|_| {});
    add(b"", &|_| {});
    add(b"key", &|one| one.metadata.key = Some(Bytes::from_static(b"k")));
    add(b"empty key", &|one| one.metadata.key = Some(Bytes::new()));
    add(b"long key", &|one| one.metadata.key = Some(Bytes::from(vec![0xff; 300])));
    add(b"no headers", &|one| one.metadata.headers = Some(vec![]));
    add(b"one header", &|one| one.metadata.headers = Some(pairs(&[("a", "b")])));
    add(b"headers", &|one| {
        one.metadata.headers = Some(pairs(&[
            ("", ""),
            ("eight888", "8"),
            ("nine99999", "a longer value than fits"),
            ("same", "first"),
            ("same", "second"),
            ("\u{fc}nic\u{f6}de", "\u{65e5}\u{672c}\u{8a9e}\u{306e}"),
        ]))
    });
    add(b"no tags", &|one| one.metadata.tags = Some(vec![]));
    add(b"tags", &|one| {
        one.metadata.tags = Some(strings(&["t", "", "exactly8", "a tag out of line"]))
    });
    add(b"expires", &|one| one.metadata.expires_s = 1_790_086_400);
    add(b"short shard", &|one| {
        one.metadata.shard = "s-11".into();
        one.metadata.segment = 4_294_967_295;
    });
    add(b"a shard name of 64 bytes", &|one| {
        // The length no longer fits beside the mark of an out-of-line string.
        one.metadata.shard = "x".repeat(62) + "-3";
    });
    add(b"a shard name of 300 bytes", &|one| one.metadata.shard = "y".repeat(298) + "-3");
    add(b"all", &|one| {
        one.metadata.headers = Some(pairs(&[("trace", "0af7651916cd43dd8448eb211c80319c")]));
        one.metadata.key = Some(Bytes::from_static(b"\x00\x01binary\xfe"));
        one.metadata.tags = Some(strings(&["tag"]));
        one.metadata.expires_s = 1;
    });
    add(b"empty parts", &|one| one.parts = Some(Parts::default()));
    add(b"mqtt, least", &|one| {
        one.parts = Some(Parts { mqtt: Some(Mqtt::default()), ..Parts::default() })
    });
    add(b"mqtt, all", &|one| {
        one.parts = Some(Parts {
            mqtt: Some(Mqtt {
                client_id: "sensor \"7\" \\ \u{1f600}".into(),
                retain: true,
                format_indicator: Some(1),
                response_topic: Some("answers/7".into()),
                correlation_data: Some(Bytes::from((0..=255).collect::<Vec<u8>>())),
                content_type: Some("text/plain".into()),
                user_properties: vec![
                    ("unit".into(), "K".into()),
                    ("unit".into(), "".into()),
                    ("\u{1}\n\t".into(), "\u{fc}".into()),
                ],
            }),
            ..Parts::default()
        })
    });
    add(b"mqtt, empty fields", &|one| {
        one.parts = Some(Parts {
            mqtt: Some(Mqtt {
                format_indicator: Some(0),
                response_topic: Some(String::new()),
                correlation_data: Some(Bytes::new()),
                content_type: Some(String::new()),
                user_properties: vec![(String::new(), String::new())],
                ..Mqtt::default()
            }),
            ..Parts::default()
        })
    });
    add(b"nats", &|one| {
        one.parts = Some(Parts {
            nats: Some(Nats {
                reply_to: Some("_INBOX.1".into()),
                header: Some(Bytes::from_static(b"NATS/1.0\r\n\r\n")),
            }),
            ..Parts::default()
        })
    });
    let large: Vec<u8> = (0..40_000u32).map(|i| (i % 251) as u8).collect();
    add(&large, &|_| {});
    samples
}

// xorshift64*: the same records whenever this runs.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    fn bytes(&mut self, end: u64) -> Vec<u8> {
        (0..self.below(end)).map(|_| self.below(256) as u8).collect()
    }
    fn text(&mut self, end: u64) -> String {
        const LETTERS: [&str; 6] = ["a", "Z", "-", "\u{e9}", "\u{4e2d}", "\u{1f4a1}"];
        (0..self.below(end)).map(|_| LETTERS[self.below(6) as usize]).collect()
    }
    fn some<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Option<T> {
        if self.one_in(2) { Some(make(self)) } else { None }
    }
}

fn random_sample(offset: u64, random: &mut Random) -> Sample {
    let data = random.bytes(40);
    let mut one = sample(offset, &data);
    one.metadata.shard = random.text(12) + "-7";
    one.metadata.segment = random.below(1 << 32) as u32;
    one.metadata.headers = random.some(|r| {
        (0..r.below(5)).map(|_| Pair { name: r.text(7), value: r.text(20) }).collect()
    });
    one.metadata.key = random.some(|r| Bytes::from(r.bytes(20)));
    one.metadata.tags = random.some(|r| (0..r.below(4)).map(|_| r.text(9)).collect());
    one.metadata.created_s = random.below(1 << 35);
    one.metadata.expires_s = if random.one_in(2) { random.below(1 << 35) } else { 0 };
    one.parts = random.some(|r| Parts {
        mqtt: r.some(|r| Mqtt {
            client_id: r.text(9),
            retain: r.one_in(2),
            format_indicator: r.some(|r| r.below(256) as u8),
            response_topic: r.some(|r| r.text(9)),
            correlation_data: r.some(|r| Bytes::from(r.bytes(9))),
            content_type: r.some(|r| r.text(9)),
            user_properties: (0..r.below(3)).map(|_| (r.text(9), r.text(9))).collect(),
        }),
        ..Parts::default()
    });
    one
}

fn write_frame(one: &Sample, out: &mut Vec<u8>) {
    let archive = rkyv::to_bytes::<rkyv::rancor::Error>(&one.metadata).unwrap();
    let json = one.parts.as_ref().map_or(Vec::new(), |parts| serde_json::to_vec(parts).unwrap());
    let total = archive.len() + json.len() + one.data.len();
    out.extend(one.metadata.offset.to_be_bytes());
    out.extend((total as u32).to_be_bytes());
    for part in [&archive[..], &json, &one.data] {
        out.extend((part.len() as u32).to_be_bytes());
        out.extend(part);
    }
}

// "-" for what is not there, else "x" and the bytes in hexadecimal.
fn hex(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "-".into(),
        Some(bytes) => bytes.iter().fold("x".into(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        }),
    }
}

// Lists are joined by commas behind a "[".
fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    "[".to_string() + &items.map(|item| hex(Some(item.as_bytes()))).collect::<Vec<_>>().join(",")
}

fn row(one: &Sample) -> String {
    let metadata = &one.metadata;
    let mqtt = one.parts.as_ref().and_then(|parts| parts.mqtt.as_ref());
    let text = |text: &Option<String>| hex(text.as_ref().map(|text| text.as_bytes()));
    let mut cells = vec![
        metadata.offset.to_string(),
        hex(Some(metadata.shard.as_bytes())),
        metadata.segment.to_string(),
        metadata.headers.as_ref().map_or("-".into(), |pairs| {
            list(pairs.iter().flat_map(|pair| [pair.name.as_str(), pair.value.as_str()]))
        }),
        hex(metadata.key.as_deref()),
        metadata.tags.as_ref().map_or("-".into(), |tags| list(tags.iter().map(String::as_str))),
        metadata.created_s.to_string(),
        metadata.expires_s.to_string(),
        hex(Some(&one.data)),
    ];
    if let Some(mqtt) = mqtt {
        cells.extend([
            hex(Some(mqtt.client_id.as_bytes())),
            mqtt.retain.to_string(),
            mqtt.format_indicator.map_or("-".into(), |value| value.to_string()),
            text(&mqtt.response_topic),
            hex(mqtt.correlation_data.as_deref()),
            text(&mqtt.content_type),
            list(mqtt.user_properties.iter().flat_map(|(name, value)| [name.as_str(), value])),
        ]);
    }
    cells.join("\t")
}

fn main() {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let mut samples = chosen();
    let mut random = Random(20_260_731);
    for _ in 0..200 {
        samples.push(random_sample(samples.len() as u64, &mut random));
    }
    let mut frames = Vec::new();
    let mut rows = String::new();
    for one in &mut samples {
        one.metadata.data_crc = crc32fast::hash(&one.data);
        write_frame(one, &mut frames);
        rows += &row(one);
        rows.push('\n');
    }
    std::fs::write(Path::new(&folder).join("records.msg"), frames).unwrap();
    std::fs::write(Path::new(&folder).join("records.tsv"), rows).unwrap();
}
