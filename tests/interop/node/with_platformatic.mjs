// @platformatic/kafka as a driver of the client matrix.
import {
  Admin, Consumer, Producer, stringDeserializers, stringSerializers,
} from "@platformatic/kafka";
import contract from "./contract.js";

const TOPIC_RESOURCE = 2;
const SET = 0;

function base(given) {
  return {
    clientId: "platformatic-driver",
    bootstrapBrokers: [given.bootstrap],
    retries: 30,
    retryDelay: 200,
    metadataMaxAge: 1000,
  };
}

async function produce(given) {
  const producer = new Producer({
    ...base(given), serializers: stringSerializers, idempotent: Boolean(given.idempotent),
  });
  const messages = Array.from({ length: given.count }, (_, n) => ({
    topic: given.topic,
    key: contract.keyOf(n),
    value: contract.valueOf(given.prefix, n),
    partition: n % given.partitions,
  }));
  await producer.send({ messages, acks: -1, compression: given.codec });
  await producer.close();
  return { count: given.count };
}

function consumer(given, group, more) {
  return new Consumer({
    ...base(given), groupId: group, deserializers: stringDeserializers, maxWaitTime: 200,
    autocommit: false, ...more,
  });
}

// A stream always belongs to a group here; this one reads alone and commits nothing.
async function lonely(given, options, each) {
  const reader = consumer(given, `${given.topic}-reader-${process.pid}`, {});
  const stream = await reader.consume({ topics: [given.topic], ...options });
  for await (const message of stream) {
    if (each(message)) break;
  }
  await reader.close(true);
}

async function read(given) {
  let count = 0;
  await lonely(given, { mode: "earliest" }, (m) => {
    contract.emit({ record: [m.partition, m.offset, m.key, m.value] });
    count += 1;
    return count === given.count;
  });
  return { count };
}

// One life of a member: until it is told to stop, or its stream ends with an error, as it does when
// a broker that comes back does not lead the partition yet. An application starts another then.
async function live(given, positions) {
  const more = given.protocol === "consumer"
    ? { groupProtocol: "consumer" }
    : { sessionTimeout: 10000, heartbeatInterval: 500, rebalanceTimeout: 15000 };
  const member = consumer(given, given.group, more);
  member.on("consumer:heartbeat:error", ({ error }) => contract.note(error));

  async function commit() {
    const pending = positions.take();
    if (pending.length === 0) return;
    try {
      await member.commit({ offsets: pending.map(([partition, offset]) => (
        { topic: given.topic, partition, offset: BigInt(offset), leaderEpoch: -1 })) });
      contract.emit({ committed: pending });
    } catch (error) {
      contract.note(error);
    }
  }

  let broken = false;
  try {
    const stream = await member.consume({
      topics: [given.topic], mode: "committed", fallbackMode: "earliest",
    });
    stream.on("error", (error) => {
      contract.note(error);
      broken = true;
    });
    stream.on("data", (m) => positions.record(m.partition, m.offset, m.value));
    while (!positions.stopped() && !broken) {
      await contract.sleep(100);
      await commit();
    }
    if (!broken) await stream.close();
    await commit();
  } catch (error) {
    contract.note(error);
  }
  await member.close(true).catch(contract.note);
}

async function consume(given) {
  const positions = new contract.Positions(given);
  while (!positions.stopped()) await live(given, positions);
  return { count: positions.count };
}

async function seek(given) {
  const asked = consumer(given, `${given.topic}-asks-${process.pid}`, {});
  const found = await asked.listOffsetsWithTimestamps({
    topics: [given.topic], timestamp: BigInt(given.time),
  });
  await asked.close(true);
  const offset = found.get(given.topic).get(0).offset;
  let value;
  await lonely(given, {
    mode: "manual", offsets: [{ topic: given.topic, partition: 0, offset }],
  }, (m) => {
    value = m.value;
    return true;
  });
  return { offset, value };
}

async function administer(given) {
  const admin = new Admin(base(given));
  const step = (name, fields) => contract.emit({ step: name, ...fields });
  const resource = { resourceType: TOPIC_RESOURCE, resourceName: given.topic };
  const partitions = async () => (await admin.metadata(
    { topics: [given.topic], forceUpdate: true })).topics.get(given.topic).partitionsCount;
  const retention = async () => {
    const [told] = await admin.describeConfigs({ resources: [resource] });
    return told.configs.find((c) => c.name === "retention.ms").value;
  };
  await admin.createTopics({
    topics: [given.topic], partitions: 2, replicas: 1,
    configs: [{ name: "retention.ms", value: contract.RETENTION }],
  });
  step("create-topic");
  step("describe-topic", { partitions: await partitions() });
  step("describe-config", { value: await retention() });
  await admin.incrementalAlterConfigs({ resources: [{
    ...resource,
    configs: [{ name: "retention.ms", configOperation: SET, value: contract.ALTERED_RETENTION }],
  }] });
  step("alter-config", { value: await retention() });
  await admin.createPartitions({ topics: [{ name: given.topic, count: 4, assignments: null }] });
  step("create-partitions", { partitions: await partitions() });
  step("list-groups", { groups: [...(await admin.listGroups()).keys()] });
  const told = (await admin.describeGroups({ groups: [given.group] })).get(given.group);
  step("describe-group", { state: told.state[0] + told.state.slice(1).toLowerCase() });
  const [offsets] = await admin.listConsumerGroupOffsets({ groups: [given.group] });
  step("group-offsets", { offsets: Object.fromEntries(
    offsets.topics[0].partitions.map((p) => [p.partitionIndex, p.committedOffset])) });
  await admin.deleteGroups({ groups: [given.group] });
  step("delete-group");
  const [trimmed] = await admin.deleteRecords({
    topics: [{ name: given.data, partitions: [{ partition: 0, offset: 5n }] }],
  });
  step("delete-records", { low: trimmed.partitions[0].lowWatermark });
  await admin.deleteTopics({ topics: [given.topic] });
  step("delete-topic");
  step("list-topics", { topics: await admin.listTopics() });
  await admin.close();
}

contract.run({ produce, read, consume, seek, admin: administer });
