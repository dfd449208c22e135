"""Moves partition directories between a broker under test and a real Kafka.

Kafka decides topic ids and leader epochs, so the recipe is: let the receiver create the topics,
stop it, put the other's files into its partition directories keeping `partition.metadata`, bring
the root checkpoints in line, start it (Kafka 4.3 log format, "KRaft metadata log").
"""

import shutil
import time

import kafka_log

CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint",
               "log-start-offset-checkpoint")


def leader_epochs(broker, topics):
    with broker.connect() as connection:
        return [epoch for name, partitions in topics.items()
                for _, _, epoch in connection.wait_for_topic(name, partitions).partitions.values()]


def prepare_receiver(receiver, topics, configs=None, epoch_above=-1):
    """Starts the receiver, creates the topics, raises its leader epochs, stops it cleanly.

    Every start of a one-node Kafka opens a new leader epoch; a log that holds newer epochs than
    its leader would lose their history.
    """
    receiver.start()
    with receiver.connect() as connection:
        for name, partitions in topics.items():
            error, message = connection.create_topic(name, partitions, (configs or {}).get(name))
            if error != 0:
                raise ValueError(f"creating {name}: {error} {message}")
    while min(leader_epochs(receiver, topics)) <= epoch_above:
        receiver.restart()
    receiver.stop()


def wait_until_served(broker, topics, seconds=30):
    """A started Kafka answers before it leads its partitions."""
    until = time.monotonic() + seconds
    with broker.connect() as connection:
        for name, partitions in topics.items():
            for partition in range(partitions):
                while connection.list_offset(name, partition, -1).error != 0:
                    if time.monotonic() > until:
                        raise TimeoutError(f"{name}-{partition} is not served")
                    time.sleep(0.05)


def newest_epoch(log_dir, names):
    epochs = [epoch for name in names
              for epoch, _ in kafka_log.Partition(log_dir / name, decode=False).epochs]
    return max(epochs, default=0)


def replace_partitions(source, receiver_dir, names, clean):
    """Copies the partition directories `names`; `clean` keeps the receiver's clean-stop marker."""
    for name in names:
        target = receiver_dir / name
        metadata = (target / "partition.metadata").read_bytes()
        shutil.rmtree(target)
        shutil.copytree(source / name, target)
        (target / "partition.metadata").write_bytes(metadata)
    for checkpoint in CHECKPOINTS:
        values = kafka_log.offset_checkpoint(receiver_dir, checkpoint)
        theirs = kafka_log.offset_checkpoint(source, checkpoint)
        for name in names:
            values.pop(name, None)
            keep = clean or checkpoint == "log-start-offset-checkpoint"
            if keep and name in theirs:
                values[name] = theirs[name]
        write_checkpoint(receiver_dir / checkpoint, values)
    marker = receiver_dir / ".kafka_cleanshutdown"
    if not clean:
        marker.unlink(missing_ok=True)


def write_checkpoint(path, values):
    lines = []
    for name, offset in values.items():
        topic, partition = name.rsplit("-", 1)
        lines.append(f"{topic} {partition} {offset}\n")
    path.write_text(f"0\n{len(lines)}\n" + "".join(lines))


def partition_names(topics):
    return [f"{topic}-{partition}" for topic, count in topics.items() for partition in range(count)]
