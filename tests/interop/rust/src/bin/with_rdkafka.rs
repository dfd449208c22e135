//! The rdkafka crate, which is librdkafka, as a driver of the client matrix.

use polylog_client_drivers::{
    committed, emit, key, note, run, step, value, Given, Outcome, Positions, ALTERED_RETENTION,
    RETENTION,
};
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(30);

fn config(given: &Given) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", given.text("bootstrap"));
    config
}

struct Deliveries(Mutex<Vec<String>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        if let Err((error, _)) = result {
            self.0.lock().expect("deliveries").push(error.to_string());
        }
    }
}

fn produce(given: &Given) -> Outcome {
    let producer: BaseProducer<Deliveries> = config(given)
        .set("compression.type", given.text("codec"))
        .set("enable.idempotence", if given.number("idempotent") == 1 { "true" } else { "false" })
        .set("linger.ms", "20")
        .create_with_context(Deliveries(Mutex::new(Vec::new())))?;
    let count = given.number("count") as usize;
    for n in 0..count {
        let (key, value) = (key(n), value(given.text("prefix"), n));
        let partition = (n as i64 % given.number("partitions")) as i32;
        producer
            .send(BaseRecord::to(given.topic()).partition(partition).key(&key).payload(&value))
            .map_err(|(error, _)| error)?;
        producer.poll(Duration::ZERO);
    }
    producer.flush(WAIT)?;
    let problems = producer.context().0.lock().expect("deliveries").clone();
    match problems.first() {
        None => Ok(json!({ "count": count })),
        Some(problem) => Err(problem.clone().into()),
    }
}

fn reader(given: &Given, from: &[(i32, i64)]) -> Result<BaseConsumer, KafkaError> {
    let consumer: BaseConsumer = config(given)
        .set("group.id", "no-group")
        .set("enable.auto.commit", "false")
        .create()?;
    let mut list = TopicPartitionList::new();
    for (partition, offset) in from {
        list.add_partition_offset(given.topic(), *partition, Offset::Offset(*offset))?;
    }
    consumer.assign(&list)?;
    Ok(consumer)
}

fn read(given: &Given) -> Outcome {
    let from: Vec<(i32, i64)> =
        (0..given.number("partitions")).map(|p| (p as i32, 0)).collect();
    let consumer = reader(given, &from)?;
    let until = Instant::now() + WAIT;
    let mut count = 0;
    while count < given.number("count") {
        if Instant::now() > until {
            return Err(format!("only {count} records came").into());
        }
        if let Some(message) = consumer.poll(Duration::from_millis(200)) {
            let message = message?;
            emit(json!({ "record": [
                message.partition(), message.offset(),
                String::from_utf8_lossy(message.key().unwrap_or_default()),
                String::from_utf8_lossy(message.payload().unwrap_or_default()),
            ] }));
            count += 1;
        }
    }
    Ok(json!({ "count": count }))
}

/// Commits before partitions are given up.
struct Member {
    topic: String,
    positions: Arc<Mutex<Positions>>,
}

impl Member {
    fn commit(&self, consumer: &BaseConsumer<Self>) {
        let pending = self.positions.lock().expect("positions").take();
        if pending.is_empty() {
            return;
        }
        let mut list = TopicPartitionList::new();
        for (partition, offset) in &pending {
            let added = list.add_partition_offset(&self.topic, *partition, Offset::Offset(*offset));
            added.expect("an offset that was read");
        }
        match consumer.commit(&list, CommitMode::Sync) {
            Ok(()) => committed(&pending),
            Err(error) => note(error),
        }
    }
}

impl ClientContext for Member {}

impl ConsumerContext for Member {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if matches!(rebalance, Rebalance::Revoke(_)) {
            self.commit(consumer);
        }
    }
}

fn consume(given: &Given) -> Outcome {
    let positions = Arc::new(Mutex::new(Positions::new(given)));
    let mut settings = config(given);
    settings
        .set("group.id", given.text("group"))
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("reconnect.backoff.max.ms", "500")
        .set("group.protocol", given.text("protocol"));
    if given.text("protocol") == "classic" {
        settings.set("session.timeout.ms", "10000").set("heartbeat.interval.ms", "500");
    }
    let member: BaseConsumer<Member> = settings.create_with_context(Member {
        topic: given.topic().to_string(),
        positions: positions.clone(),
    })?;
    member.subscribe(&[given.topic()])?;
    let stopped = || positions.lock().expect("positions").stopped();
    while !stopped() {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(100) {
            match member.poll(Duration::from_millis(20)) {
                Some(Ok(m)) => {
                    let mut all = positions.lock().expect("positions");
                    all.record(m.partition(), m.offset(), m.payload().unwrap_or_default());
                }
                Some(Err(error)) => note(error),
                None => break,
            }
        }
        member.context().commit(&member);
    }
    member.context().commit(&member);
    drop(member);
    let count = positions.lock().expect("positions").count;
    Ok(json!({ "count": count }))
}

fn seek(given: &Given) -> Outcome {
    let mut asked = TopicPartitionList::new();
    asked.add_partition_offset(given.topic(), 0, Offset::Offset(given.number("time")))?;
    let found = reader(given, &[(0, 0)])?.offsets_for_times(asked, WAIT)?;
    let Some(Offset::Offset(offset)) = found.elements().first().map(|e| e.offset()) else {
        return Err("no offset".into());
    };
    let consumer = reader(given, &[(0, offset)])?;
    let message = consumer.poll(WAIT).ok_or("no record came")??;
    let text = String::from_utf8_lossy(message.payload().unwrap_or_default()).to_string();
    Ok(json!({ "offset": offset, "value": text }))
}

type Admin = AdminClient<DefaultClientContext>;

fn partitions(admin: &Admin, topic: &str) -> Result<usize, KafkaError> {
    let told = admin.inner().fetch_metadata(Some(topic), WAIT)?;
    Ok(told.topics()[0].partitions().len())
}

async fn retention(admin: &Admin, topic: &str) -> Outcome {
    let answers =
        admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &AdminOptions::new()).await?;
    let resource = answers.into_iter().next().ok_or("no answer")?.map_err(|e| e.to_string())?;
    Ok(json!(resource.get("retention.ms").and_then(|entry| entry.value.clone())))
}

fn accepted<T>(
    answers: Vec<Result<T, (String, rdkafka::types::RDKafkaErrorCode)>>,
) -> Result<(), String> {
    match answers.into_iter().find_map(Result::err) {
        None => Ok(()),
        Some((what, code)) => Err(format!("{what}: {code}")),
    }
}

async fn topic_steps(admin: &Admin, topic: &str) -> Outcome {
    let options = AdminOptions::new();
    let wanted =
        NewTopic::new(topic, 2, TopicReplication::Fixed(1)).set("retention.ms", RETENTION);
    accepted(admin.create_topics(&[wanted], &options).await?)?;
    step("create-topic", json!({}));
    step("describe-topic", json!({ "partitions": partitions(admin, topic)? }));
    step("describe-config", json!({ "value": retention(admin, topic).await? }));
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic))
        .set("retention.ms", ALTERED_RETENTION);
    for answer in admin.alter_configs(&[change], &options).await? {
        answer.map_err(|(_, code)| code.to_string())?;
    }
    step("alter-config", json!({ "value": retention(admin, topic).await? }));
    accepted(admin.create_partitions(&[NewPartitions::new(topic, 4)], &options).await?)?;
    step("create-partitions", json!({ "partitions": partitions(admin, topic)? }));
    Ok(json!({}))
}

async fn group_steps(admin: &Admin, given: &Given) -> Outcome {
    let group = given.text("group");
    let listed = admin.inner().fetch_group_list(None, WAIT)?;
    let names: Vec<&str> = listed.groups().iter().map(|g| g.name()).collect();
    step("list-groups", json!({ "groups": names }));
    let told = admin.inner().fetch_group_list(Some(group), WAIT)?;
    let state = told.groups().first().map(|g| g.state()).unwrap_or("");
    step("describe-group", json!({ "state": state }));
    let asked: BaseConsumer = config(given).set("group.id", group).create()?;
    let mut list = TopicPartitionList::new();
    list.add_partition(given.text("data"), 0);
    let found = asked.committed_offsets(list, WAIT)?;
    let offset = found.elements().first().and_then(|e| e.offset().to_raw());
    step("group-offsets", json!({ "offsets": { "0": offset } }));
    accepted(admin.delete_groups(&[group], &AdminOptions::new()).await?)?;
    step("delete-group", json!({}));
    Ok(json!({}))
}

async fn administer(given: &Given) -> Outcome {
    let admin: Admin = config(given).create()?;
    let options = AdminOptions::new();
    topic_steps(&admin, given.topic()).await?;
    group_steps(&admin, given).await?;
    let mut before = TopicPartitionList::new();
    before.add_partition_offset(given.text("data"), 0, Offset::Offset(5))?;
    let trimmed = admin.delete_records(&before, &options).await?;
    let low = trimmed.elements().first().and_then(|e| e.offset().to_raw());
    step("delete-records", json!({ "low": low }));
    accepted(admin.delete_topics(&[given.topic()], &options).await?)?;
    step("delete-topic", json!({}));
    let told = admin.inner().fetch_metadata(None, WAIT)?;
    let names: Vec<&str> = told.topics().iter().map(|t| t.name()).collect();
    step("list-topics", json!({ "topics": names }));
    Ok(json!({}))
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    run(|command, given| match command {
        "produce" => produce(given),
        "read" => read(given),
        "consume" => consume(given),
        "seek" => seek(given),
        "admin" => runtime.block_on(administer(given)),
        other => Err(format!("no command {other}").into()),
    });
}
