"""confluent-kafka, which is librdkafka, as a driver of the client matrix."""

import contract
from confluent_kafka import (Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer,
                             TopicPartition)
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource,
                                   NewPartitions, NewTopic)

SECONDS = 20


def produce(a):
    producer = Producer({"bootstrap.servers": a.bootstrap, "compression.type": a.codec,
                         "enable.idempotence": bool(a.idempotent), "acks": "all",
                         "linger.ms": 20})
    problems = []
    for n in range(a.count):
        producer.produce(a.topic, contract.value_of(a.prefix, n), contract.key_of(n),
                         partition=n % a.partitions,
                         on_delivery=lambda error, _: error and problems.append(str(error)))
    left = producer.flush(SECONDS * 3)
    if left or problems:
        raise RuntimeError(f"{left} not delivered, {problems[:3]}")
    return {"count": a.count}


def plain_consumer(a):
    return Consumer({"bootstrap.servers": a.bootstrap, "group.id": "no-group",
                     "enable.auto.commit": False})


def read(a):
    consumer = plain_consumer(a)
    consumer.assign([TopicPartition(a.topic, p, 0) for p in range(a.partitions)])
    count = 0
    while count < a.count:
        message = consumer.poll(SECONDS)
        if message is None:
            raise RuntimeError(f"only {count} records came")
        if message.error():
            raise KafkaException(message.error())
        contract.emit(record=[message.partition(), message.offset(), message.key().decode(),
                              message.value().decode()])
        count += 1
    consumer.close()
    return {"count": count}


def settings(a):
    values = {"bootstrap.servers": a.bootstrap, "group.id": a.group, "enable.auto.commit": False,
              "auto.offset.reset": "earliest", "group.protocol": a.protocol,
              "reconnect.backoff.max.ms": 500}
    if a.protocol == "classic":
        values.update({"session.timeout.ms": 10000, "heartbeat.interval.ms": 500})
    return values


def consume(a):
    consumer = Consumer(settings(a))
    positions = contract.Positions(a)

    def commit():
        pending = positions.uncommitted()
        if not pending:
            return
        try:
            consumer.commit(offsets=[TopicPartition(a.topic, p, o) for p, o in pending.items()],
                            asynchronous=False)
            positions.committed(pending)
        except KafkaException as error:
            contract.note(error)

    def given_up(_, partitions):
        commit()
        positions.lost([p.partition for p in partitions])

    def taken(_, partitions):
        positions.lost([p.partition for p in partitions])

    consumer.subscribe([a.topic], on_revoke=given_up, on_lost=taken)
    while not positions.stopped():
        for message in consumer.consume(200, 0.1):
            if message.error():
                contract.note(RuntimeError(str(message.error())))
            else:
                positions.record(message.partition(), message.offset(), message.value())
        commit()
    commit()
    consumer.close()
    return {"count": positions.count}


def seek(a):
    consumer = plain_consumer(a)
    (found,) = consumer.offsets_for_times([TopicPartition(a.topic, 0, a.time)], SECONDS)
    consumer.assign([TopicPartition(a.topic, 0, found.offset)])
    message = consumer.poll(SECONDS)
    consumer.close()
    return {"offset": found.offset, "value": message.value().decode()}


def first(futures):
    (future,) = futures.values()
    return future.result(SECONDS)


def admin(a):
    client = AdminClient({"bootstrap.servers": a.bootstrap})

    def step(name, **fields):
        contract.emit(step=name, **fields)

    def partitions():
        return len(client.list_topics(a.topic, SECONDS).topics[a.topic].partitions)

    def retention():
        resource = ConfigResource(ConfigResource.Type.TOPIC, a.topic)
        return first(client.describe_configs([resource]))["retention.ms"].value

    first(client.create_topics([NewTopic(a.topic, 2, 1,
                                         config={"retention.ms": contract.RETENTION})]))
    step("create-topic")
    step("describe-topic", partitions=partitions())
    step("describe-config", value=retention())
    entry = ConfigEntry("retention.ms", contract.ALTERED_RETENTION,
                        incremental_operation=AlterConfigOpType.SET)
    first(client.incremental_alter_configs([ConfigResource(
        ConfigResource.Type.TOPIC, a.topic, incremental_configs=[entry])]))
    step("alter-config", value=retention())
    first(client.create_partitions([NewPartitions(a.topic, 4)]))
    step("create-partitions", partitions=partitions())
    listed = client.list_consumer_groups().result(SECONDS)
    step("list-groups", groups=[g.group_id for g in listed.valid])
    told = first(client.describe_consumer_groups([a.group]))
    step("describe-group", state=told.state.name.capitalize())
    offsets = first(client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(a.group)]))
    step("group-offsets", offsets={t.partition: t.offset for t in offsets.topic_partitions})
    first(client.delete_consumer_groups([a.group]))
    step("delete-group")
    gone = first(client.delete_records([TopicPartition(a.data, 0, 5)]))
    step("delete-records", low=gone.low_watermark)
    first(client.delete_topics([a.topic]))
    step("delete-topic")
    step("list-topics", topics=list(client.list_topics(timeout=SECONDS).topics))


if __name__ == "__main__":
    contract.run({"produce": produce, "read": read, "consume": consume, "seek": seek,
                  "admin": admin})
