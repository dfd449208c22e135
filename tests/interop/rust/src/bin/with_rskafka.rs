//! The rskafka crate as a driver of the client matrix.

use chrono::{DateTime, Utc};
use polylog_client_drivers::{emit, key, run, step, value, Given, Outcome};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use serde_json::json;
use std::collections::BTreeMap;

const BYTES_MAX: i32 = 1 << 20;
const TIMEOUT_MS: i32 = 20_000;

async fn client(given: &Given) -> Result<Client, rskafka::client::error::Error> {
    ClientBuilder::new(vec![given.text("bootstrap").to_string()]).build().await
}

async fn partition_of(
    client: &Client,
    topic: &str,
    partition: i32,
) -> Result<PartitionClient, rskafka::client::error::Error> {
    client.partition_client(topic, partition, UnknownTopicHandling::Retry).await
}

async fn produce(given: &Given) -> Outcome {
    let codec = match given.text("codec") {
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        _ => Compression::NoCompression,
    };
    let client = client(given).await?;
    let (count, partitions) = (given.number("count") as usize, given.number("partitions") as usize);
    for partition in 0..partitions {
        let records = (partition..count)
            .step_by(partitions)
            .map(|n| Record {
                key: Some(key(n).into_bytes()),
                value: Some(value(given.text("prefix"), n).into_bytes()),
                headers: BTreeMap::new(),
                timestamp: Utc::now(),
            })
            .collect();
        let to = partition_of(&client, given.topic(), partition as i32).await?;
        to.produce(records, codec).await?;
    }
    Ok(json!({ "count": count }))
}

async fn read(given: &Given) -> Outcome {
    let client = client(given).await?;
    let mut count = 0;
    for partition in 0..given.number("partitions") as i32 {
        let from = partition_of(&client, given.topic(), partition).await?;
        let end = from.get_offset(OffsetAt::Latest).await?;
        let mut next = from.get_offset(OffsetAt::Earliest).await?;
        while next < end {
            let (records, _) = from.fetch_records(next, 1..BYTES_MAX, 1000).await?;
            for r in records {
                emit(json!({ "record": [
                    partition, r.offset,
                    String::from_utf8_lossy(&r.record.key.unwrap_or_default()),
                    String::from_utf8_lossy(&r.record.value.unwrap_or_default()),
                ] }));
                next = r.offset + 1;
                count += 1;
            }
        }
    }
    if count != given.number("count") {
        return Err(format!("{count} records came").into());
    }
    Ok(json!({ "count": count }))
}

async fn seek(given: &Given) -> Outcome {
    let client = client(given).await?;
    let from = partition_of(&client, given.topic(), 0).await?;
    let when = DateTime::<Utc>::from_timestamp_millis(given.number("time")).ok_or("no such time")?;
    let offset = from.get_offset(OffsetAt::Timestamp(when)).await?;
    let (records, _) = from.fetch_records(offset, 1..BYTES_MAX, 5000).await?;
    let first = records.into_iter().next().ok_or("no record came")?;
    let text = String::from_utf8_lossy(&first.record.value.unwrap_or_default()).to_string();
    Ok(json!({ "offset": offset, "value": text }))
}

async fn administer(given: &Given) -> Outcome {
    let client = client(given).await?;
    let controller = client.controller_client()?;
    controller.create_topic(given.topic(), 2, 1, TIMEOUT_MS).await?;
    step("create-topic", json!({}));
    let topics = client.list_topics().await?;
    let made = topics.iter().find(|t| t.name == given.topic()).ok_or("not listed")?;
    step("describe-topic", json!({ "partitions": made.partitions.len() }));
    let trimmed = partition_of(&client, given.text("data"), 0).await?;
    trimmed.delete_records(5, TIMEOUT_MS).await?;
    let low = trimmed.get_offset(OffsetAt::Earliest).await?;
    step("delete-records", json!({ "low": low }));
    controller.delete_topic(given.topic(), TIMEOUT_MS).await?;
    step("delete-topic", json!({}));
    let names: Vec<String> = client.list_topics().await?.into_iter().map(|t| t.name).collect();
    step("list-topics", json!({ "topics": names }));
    Ok(json!({}))
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    run(|command, given| match command {
        "produce" => runtime.block_on(produce(given)),
        "read" => runtime.block_on(read(given)),
        "seek" => runtime.block_on(seek(given)),
        "admin" => runtime.block_on(administer(given)),
        other => Err(format!("no command {other}").into()),
    });
}
