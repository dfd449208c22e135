"""kafka-python as a driver of the client matrix: one source for 2.0 and 3.x."""

import contract
import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

OLD = kafka.__version__.startswith("2.0")


def produce(a):
    more = {} if OLD else {"enable_idempotence": bool(a.idempotent)}
    producer = KafkaProducer(bootstrap_servers=a.bootstrap, acks="all", linger_ms=20,
                             compression_type=None if a.codec == "none" else a.codec, **more)
    sent = [producer.send(a.topic, contract.value_of(a.prefix, n).encode(),
                          contract.key_of(n).encode(), partition=n % a.partitions)
            for n in range(a.count)]
    for future in sent:
        future.get(30)
    producer.close()
    return {"count": a.count}


def assigned(a, partitions):
    consumer = KafkaConsumer(bootstrap_servers=a.bootstrap, group_id=None,
                             enable_auto_commit=False, consumer_timeout_ms=15000)
    where = [TopicPartition(a.topic, p) for p in range(partitions)]
    consumer.assign(where)
    return consumer, where


def read(a):
    consumer, where = assigned(a, a.partitions)
    consumer.seek_to_beginning(*where)
    count = 0
    for message in consumer:
        contract.emit(record=[message.partition, message.offset, message.key.decode(),
                              message.value.decode()])
        count += 1
        if count == a.count:
            break
    consumer.close()
    if count != a.count:
        raise RuntimeError(f"only {count} records came")
    return {"count": count}


def position(offset):
    return OffsetAndMetadata(offset, None) if OLD else OffsetAndMetadata(offset, "", -1)


class Listener(ConsumerRebalanceListener):
    """Commits before partitions are given up."""

    def __init__(self, commit, positions):
        self.commit, self.positions = commit, positions

    def on_partitions_revoked(self, revoked):
        self.commit()
        self.positions.lost([p.partition for p in revoked])

    def on_partitions_assigned(self, assigned):
        pass

    def on_partitions_lost(self, lost):
        self.positions.lost([p.partition for p in lost])


def consume(a):
    more = {}
    if a.protocol == "consumer":
        more["group_protocol"] = "consumer"
    else:
        more.update(session_timeout_ms=10000, heartbeat_interval_ms=500)
    consumer = KafkaConsumer(bootstrap_servers=a.bootstrap, group_id=a.group,
                             enable_auto_commit=False, auto_offset_reset="earliest",
                             reconnect_backoff_max_ms=500, **more)
    positions = contract.Positions(a)

    def commit():
        pending = positions.uncommitted()
        if not pending:
            return
        try:
            consumer.commit({TopicPartition(a.topic, p): position(o) for p, o in pending.items()})
            positions.committed(pending)
        except KafkaError as error:
            contract.note(error)

    consumer.subscribe([a.topic], listener=Listener(commit, positions))
    while not positions.stopped():
        for batch in consumer.poll(timeout_ms=100).values():
            for message in batch:
                positions.record(message.partition, message.offset, message.value)
        commit()
    commit()
    consumer.close()
    return {"count": positions.count}


def seek(a):
    consumer, (where,) = assigned(a, 1)
    found = consumer.offsets_for_times({where: a.time})[where]
    consumer.seek(where, found.offset)
    value = next(consumer).value.decode()
    consumer.close()
    return {"offset": found.offset, "value": value}


def admin_old(a, client, step):
    def partitions():
        (told,) = client.describe_topics([a.topic])
        return len(told["partitions"])

    def retention():
        resource = ConfigResource(ConfigResourceType.TOPIC, a.topic)
        (answer,) = client.describe_configs([resource])
        entries = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        return entries["retention.ms"]

    client.create_topics([NewTopic(a.topic, 2, 1,
                                   topic_configs={"retention.ms": contract.RETENTION})])
    step("create-topic")
    step("describe-topic", partitions=partitions())
    step("describe-config", value=retention())
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, a.topic, {
        "retention.ms": contract.ALTERED_RETENTION})])
    step("alter-config", value=retention())
    client.create_partitions({a.topic: NewPartitions(4)})
    step("create-partitions", partitions=partitions())
    step("list-groups", groups=[name for name, _ in client.list_consumer_groups()])
    (told,) = client.describe_consumer_groups([a.group])
    step("describe-group", state=told.state)
    offsets = client.list_consumer_group_offsets(a.group)
    step("group-offsets", offsets={p.partition: o.offset for p, o in offsets.items()})
    ((_, error),) = client.delete_consumer_groups([a.group])
    if error.errno != 0:
        raise RuntimeError(f"delete_consumer_groups: {error}")
    step("delete-group")


def admin_new(a, client, step):
    def partitions():
        (told,) = client.describe_topics([a.topic])
        return len(told["partitions"])

    def retention():
        told = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, a.topic)])
        return value_in(told, "retention.ms")

    client.create_topics([NewTopic(a.topic, 2, 1,
                                   topic_configs={"retention.ms": contract.RETENTION})])
    step("create-topic")
    step("describe-topic", partitions=partitions())
    step("describe-config", value=retention())
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, a.topic, {
        "retention.ms": contract.ALTERED_RETENTION})])
    step("alter-config", value=retention())
    client.create_partitions({a.topic: NewPartitions(4)})
    step("create-partitions", partitions=partitions())
    step("list-groups", groups=[g["group_id"] for g in client.list_groups()])
    told = client.describe_groups([a.group])
    step("describe-group", state=told[a.group]["group_state"])
    offsets = client.list_group_offsets({a.group: None})[a.group]
    step("group-offsets", offsets={p.partition: o.offset for p, o in offsets.items()})
    client.delete_groups([a.group])
    step("delete-group")
    where = TopicPartition(a.data, 0)
    step("delete-records", low=client.delete_records({where: 5})[where]["low_watermark"])


def value_in(told, name):
    """The value of a setting, wherever in the answer its name stands."""
    if isinstance(told, dict):
        if name in told:
            found = told[name]
            return found["value"] if isinstance(found, dict) else found
        told = list(told.values())
    if isinstance(told, (list, tuple)):
        for part in told:
            value = value_in(part, name)
            if value is not None:
                return value
    return None


def admin(a):
    client = KafkaAdminClient(bootstrap_servers=a.bootstrap)

    def step(name, **fields):
        contract.emit(step=name, **fields)

    (admin_old if OLD else admin_new)(a, client, step)
    client.delete_topics([a.topic])
    step("delete-topic")
    topics = client.list_topics()
    step("list-topics", topics=[t["name"] if isinstance(t, dict) else t for t in topics])
    client.close()


if __name__ == "__main__":
    contract.run({"produce": produce, "read": read, "consume": consume, "seek": seek,
                  "admin": admin})
