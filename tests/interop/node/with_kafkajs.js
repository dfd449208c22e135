// kafkajs as a driver of the client matrix.
"use strict";
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } =
  require("kafkajs");
const contract = require("./contract.js");
CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
CompressionCodecs[CompressionTypes.LZ4] = new (require("kafkajs-lz4"))().codec;

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
};

function kafka(given) {
  return new Kafka({
    brokers: [given.bootstrap],
    clientId: "kafkajs-driver",
    logLevel: logLevel.NOTHING,
    retry: { retries: 30, initialRetryTime: 100, maxRetryTime: 500 },
  });
}

async function produce(given) {
  const producer = kafka(given).producer({ idempotent: Boolean(given.idempotent) });
  await producer.connect();
  const messages = Array.from({ length: given.count }, (_, n) => ({
    key: contract.keyOf(n),
    value: contract.valueOf(given.prefix, n),
    partition: n % given.partitions,
  }));
  await producer.send({
    topic: given.topic, acks: -1, compression: codecs[given.codec], messages,
  });
  await producer.disconnect();
  return { count: given.count };
}

// kafkajs has no consumer outside of a group; this one reads alone and commits nothing.
async function lonely(given, from, each) {
  const consumer = kafka(given).consumer({ groupId: `${given.topic}-reader-${process.pid}` });
  await consumer.connect();
  await consumer.subscribe({ topics: [given.topic], fromBeginning: true });
  const all = new Promise((resolve) => {
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        if (each(partition, message)) resolve();
      },
    });
  });
  if (from !== undefined) consumer.seek({ topic: given.topic, partition: 0, offset: from });
  await all;
  await consumer.disconnect();
}

async function read(given) {
  const seen = new Set();
  await lonely(given, undefined, (partition, message) => {
    const place = `${partition} ${message.offset}`;
    if (!seen.has(place)) {
      seen.add(place);
      contract.emit({ record: [partition, Number(message.offset), message.key.toString(),
        message.value.toString()] });
    }
    return seen.size === given.count;
  });
  return { count: seen.size };
}

async function consume(given) {
  const consumer = kafka(given).consumer({
    groupId: given.group,
    sessionTimeout: 10000,
    heartbeatInterval: 500,
    maxWaitTimeInMs: 200,
  });
  const positions = new contract.Positions(given);

  async function commit() {
    const pending = positions.take();
    if (pending.length === 0) return;
    try {
      await consumer.commitOffsets(pending.map(([partition, offset]) => (
        { topic: given.topic, partition, offset: String(offset) })));
      contract.emit({ committed: pending });
    } catch (error) {
      contract.note(error);
    }
  }

  consumer.on(consumer.events.CRASH, ({ payload }) => contract.note(payload.error));
  await consumer.connect();
  await consumer.subscribe({ topics: [given.topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
      for (const message of batch.messages) {
        positions.record(batch.partition, message.offset, message.value.toString());
        resolveOffset(message.offset);
      }
      await commit();
      await heartbeat();
    },
  });
  while (!positions.stopped()) await contract.sleep(50);
  await consumer.stop();
  await commit();
  await consumer.disconnect();
  return { count: positions.count };
}

async function seek(given) {
  const admin = kafka(given).admin();
  await admin.connect();
  const [found] = await admin.fetchTopicOffsetsByTimestamp(given.topic, given.time);
  await admin.disconnect();
  let value;
  await lonely(given, found.offset, (_, message) => {
    if (value === undefined && message.offset === found.offset) value = message.value.toString();
    return value !== undefined;
  });
  return { offset: Number(found.offset), value };
}

async function administer(given) {
  const admin = kafka(given).admin();
  await admin.connect();
  const step = (name, fields) => contract.emit({ step: name, ...fields });
  const partitions = async () =>
    (await admin.fetchTopicMetadata({ topics: [given.topic] })).topics[0].partitions.length;
  const retention = async () => {
    const told = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: given.topic }],
    });
    return told.resources[0].configEntries.find((e) => e.configName === "retention.ms").configValue;
  };
  await admin.createTopics({ waitForLeaders: true, topics: [{
    topic: given.topic, numPartitions: 2,
    configEntries: [{ name: "retention.ms", value: contract.RETENTION }],
  }] });
  step("create-topic");
  step("describe-topic", { partitions: await partitions() });
  step("describe-config", { value: await retention() });
  await admin.alterConfigs({ validateOnly: false, resources: [{
    type: ConfigResourceTypes.TOPIC, name: given.topic,
    configEntries: [{ name: "retention.ms", value: contract.ALTERED_RETENTION }],
  }] });
  step("alter-config", { value: await retention() });
  await admin.createPartitions({ topicPartitions: [{ topic: given.topic, count: 4 }] });
  step("create-partitions", { partitions: await partitions() });
  step("list-groups", { groups: (await admin.listGroups()).groups.map((g) => g.groupId) });
  const told = await admin.describeGroups([given.group]);
  step("describe-group", { state: told.groups[0].state });
  const [offsets] = await admin.fetchOffsets({ groupId: given.group, topics: [given.data] });
  step("group-offsets", { offsets: Object.fromEntries(
    offsets.partitions.map((p) => [p.partition, Number(p.offset)])) });
  await admin.deleteGroups([given.group]);
  step("delete-group");
  await admin.deleteTopicRecords({
    topic: given.data, partitions: [{ partition: 0, offset: "5" }],
  });
  const [left] = await admin.fetchTopicOffsets(given.data);
  step("delete-records", { low: Number(left.low) });
  await admin.deleteTopics({ topics: [given.topic] });
  step("delete-topic");
  step("list-topics", { topics: await admin.listTopics() });
  await admin.disconnect();
}

contract.run({ produce, read, consume, seek, admin: administer });
