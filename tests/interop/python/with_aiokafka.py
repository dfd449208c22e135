"""aiokafka as a driver of the client matrix."""

import asyncio

import contract
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError


async def produce(a):
    async with AIOKafkaProducer(bootstrap_servers=a.bootstrap, acks="all", linger_ms=20,
                                enable_idempotence=bool(a.idempotent),
                                compression_type=None if a.codec == "none" else a.codec) as p:
        sent = [await p.send(a.topic, contract.value_of(a.prefix, n).encode(),
                             contract.key_of(n).encode(), partition=n % a.partitions)
                for n in range(a.count)]
        await asyncio.gather(*sent)
    return {"count": a.count}


async def assigned(a, partitions):
    consumer = AIOKafkaConsumer(bootstrap_servers=a.bootstrap, enable_auto_commit=False)
    await consumer.start()
    where = [TopicPartition(a.topic, p) for p in range(partitions)]
    consumer.assign(where)
    return consumer, where


async def read(a):
    consumer, where = await assigned(a, a.partitions)
    await consumer.seek_to_beginning(*where)
    count = 0
    while count < a.count:
        message = await asyncio.wait_for(consumer.getone(), 20)
        contract.emit(record=[message.partition, message.offset, message.key.decode(),
                              message.value.decode()])
        count += 1
    await consumer.stop()
    return {"count": count}


class Listener(ConsumerRebalanceListener):
    """Commits before partitions are given up."""

    def __init__(self, commit, positions):
        self.commit, self.positions = commit, positions

    async def on_partitions_revoked(self, revoked):
        await self.commit()
        self.positions.lost([p.partition for p in revoked])

    async def on_partitions_assigned(self, assigned):
        pass


async def consume(a):
    consumer = AIOKafkaConsumer(bootstrap_servers=a.bootstrap, group_id=a.group,
                                enable_auto_commit=False, auto_offset_reset="earliest",
                                session_timeout_ms=10000, heartbeat_interval_ms=500)
    positions = contract.Positions(a)

    async def commit():
        pending = positions.uncommitted()
        if not pending:
            return
        try:
            await consumer.commit({TopicPartition(a.topic, p): o for p, o in pending.items()})
            positions.committed(pending)
        except KafkaError as error:
            contract.note(error)

    consumer.subscribe([a.topic], listener=Listener(commit, positions))
    await consumer.start()
    while not positions.stopped():
        for batch in (await consumer.getmany(timeout_ms=100)).values():
            for message in batch:
                positions.record(message.partition, message.offset, message.value)
        await commit()
    await commit()
    await consumer.stop()
    return {"count": positions.count}


async def seek(a):
    consumer, (where,) = await assigned(a, 1)
    found = (await consumer.offsets_for_times({where: a.time}))[where]
    consumer.seek(where, found.offset)
    message = await asyncio.wait_for(consumer.getone(), 20)
    await consumer.stop()
    return {"offset": found.offset, "value": message.value.decode()}


def refused(answer):
    """Answers carry their errors; the client raises for none of them."""
    rows = getattr(answer, "topic_errors", None) or getattr(answer, "topic_error_codes", None)
    wrong = [row for row in rows or () if row[1] != 0]
    if wrong:
        raise RuntimeError(f"refused: {wrong}")


async def admin(a):
    client = AIOKafkaAdminClient(bootstrap_servers=a.bootstrap)
    await client.start()

    def step(name, **fields):
        contract.emit(step=name, **fields)

    async def partitions():
        (told,) = await client.describe_topics([a.topic])
        return len(told["partitions"])

    async def retention():
        (answer,) = await client.describe_configs([
            ConfigResource(ConfigResourceType.TOPIC, a.topic)])
        return {entry[0]: entry[1] for entry in answer.resources[0][4]}["retention.ms"]

    refused(await client.create_topics([
        NewTopic(a.topic, 2, 1, topic_configs={"retention.ms": contract.RETENTION})]))
    step("create-topic")
    step("describe-topic", partitions=await partitions())
    step("describe-config", value=await retention())
    await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, a.topic, {
        "retention.ms": contract.ALTERED_RETENTION})])
    step("alter-config", value=await retention())
    refused(await client.create_partitions({a.topic: NewPartitions(4)}))
    step("create-partitions", partitions=await partitions())
    step("list-groups", groups=[g[0] for g in await client.list_consumer_groups()])
    (told,) = await client.describe_consumer_groups([a.group])
    step("describe-group", state=told.groups[0][2])
    offsets = await client.list_consumer_group_offsets(a.group)
    step("group-offsets", offsets={p.partition: o.offset for p, o in offsets.items()})
    where = TopicPartition(a.data, 0)
    lows = await client.delete_records({where: RecordsToDelete(before_offset=5)})
    step("delete-records", low=lows[where])
    refused(await client.delete_topics([a.topic]))
    step("delete-topic")
    step("list-topics", topics=await client.list_topics())
    await client.close()


def main(function):
    return lambda a: asyncio.run(function(a))


if __name__ == "__main__":
    contract.run({"produce": main(produce), "read": main(read), "consume": main(consume),
                  "seek": main(seek), "admin": main(admin)})
