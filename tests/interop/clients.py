"""Stock clients as a test calls them: kcat, Kafka's Java tools, kafkajs, kafka-python."""

import json
import os
import subprocess

import dependencies

SECONDS = 120


class ClientFailed(Exception):
    """A client ended with an error, or said something it should not have."""


def run(command, given=None, check=True, seconds=SECONDS, **options):
    done = subprocess.run([str(part) for part in command], input=given, capture_output=True,
                          timeout=seconds, check=False, **options)
    if check and done.returncode != 0:
        text = (done.stderr or done.stdout).decode(errors="replace")[-2000:]
        raise ClientFailed(f"{command[0]} ended with {done.returncode}:\n{text}")
    return done


def kcat(broker, *arguments, given=None, check=True, seconds=SECONDS):
    """Runs kcat against `broker`; answers its standard output."""
    done = run(["kcat", "-b", broker.address, "-q", *arguments], given, check, seconds)
    return done.stdout if check else done


def kcat_consume(broker, topic, *arguments, layout="%s\n", partition=0):
    return kcat(broker, "-C", "-t", topic, "-p", partition, "-o", "beginning", "-e", "-u",
                "-f", layout, *arguments)


def java(main_class, *arguments, given=None, check=True, seconds=SECONDS):
    """Runs a class of the Kafka jars, or one of ours; answers the completed process."""
    jars = dependencies.kafka()
    log4j = dependencies.PINS / "log4j2.properties"
    command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1",
               f"-Dlog4j2.configurationFile={log4j}",
               "-cp", f"{dependencies.java_classes()}:{jars}/*", main_class, *arguments]
    return run(command, given, check, seconds)


def java_output(main_class, *arguments, **options):
    return java(main_class, *arguments, **options).stdout.decode()


def node(script, *arguments, seconds=SECONDS):
    """Runs one of the scripts in node/, with kafkajs to be had; answers its JSON."""
    folder = dependencies.node()
    env = dict(os.environ, NODE_PATH=str(folder / "node_modules"),
               KAFKAJS_NO_PARTITIONER_WARNING="1")
    done = run(["node", dependencies.HERE / "node" / script, *arguments], seconds=seconds, env=env)
    return json.loads(done.stdout.decode().splitlines()[-1])


def python_producer(broker, **options):
    dependencies.python()
    from kafka import KafkaProducer
    return KafkaProducer(bootstrap_servers=broker.address, **options)


def python_consumer(broker, topic, partition=0, **options):
    """A consumer with its partition assigned: no group is involved."""
    dependencies.python()
    from kafka import KafkaConsumer, TopicPartition
    consumer = KafkaConsumer(bootstrap_servers=broker.address, group_id=None,
                             enable_auto_commit=False, consumer_timeout_ms=15000, **options)
    where = TopicPartition(topic, partition)
    consumer.assign([where])
    consumer.seek_to_beginning(where)
    return consumer


def python_read(broker, topic, count, partition=0):
    """The first `count` messages as kafka-python sees them."""
    messages = []
    consumer = python_consumer(broker, topic, partition)
    try:
        for message in consumer:
            messages.append(message)
            if len(messages) == count:
                break
    finally:
        consumer.close()
    return messages
