"""Settings and quotas with Kafka's own ConfigCommand: for topics, brokers, groups, clients, users
and addresses, across a kill; and producers and consumers that keep to their rate."""

import time
import unittest

import clients
import testbed

CONFIG_COMMAND = "org.apache.kafka.tools.ConfigCommand"
MIB = 1 << 20


class Configs(testbed.BrokerTest):
    settings = {"log.retention.hours": 100}

    def configs(self, *arguments, **options):
        done = clients.java(CONFIG_COMMAND, "--bootstrap-server", self.broker.address, *arguments,
                            **options)
        return done.stdout.decode() + done.stderr.decode()

    def alter(self, *arguments, **options):
        return self.configs("--alter", *arguments, **options)

    def describe(self, *arguments):
        return self.configs("--describe", *arguments)

    def test_topics(self):
        topic = self.topic("with-configs")
        entity = ("--entity-type", "topics", "--entity-name", topic)
        self.assertIn("Completed updating", self.alter(
            *entity, "--add-config", "retention.ms=5000,cleanup.policy=[delete,compact]"))
        text = self.describe(*entity)
        self.assertIn("retention.ms=5000", text)
        self.assertIn("cleanup.policy=delete,compact", text)
        self.assertIn("DYNAMIC_TOPIC_CONFIG:retention.ms=5000", text)
        self.assertIn("STATIC_BROKER_CONFIG:log.retention.hours=100", text)
        self.alter(*entity, "--delete-config", "retention.ms")
        self.assertNotIn("retention.ms=5000", self.describe(*entity))
        everything = self.describe(*entity, "--all")
        self.assertIn("retention.ms=360000000", everything)
        self.assertIn("max.message.bytes=1048588", everything)
        refused = self.alter(*entity, "--add-config", "retention.ms=soon", check=False)
        self.assertIn("InvalidConfigurationException", refused)

    def test_brokers_and_their_defaults(self):
        topic = self.topic("by-default")
        default = ("--entity-type", "brokers", "--entity-default")
        one = ("--entity-type", "brokers", "--entity-name", "1")
        self.alter(*default, "--add-config", "log.segment.bytes=3000000,log.flush.interval.ms=77")
        self.alter(*one, "--add-config", "log.segment.bytes=2000000")
        text = self.describe(*one)
        self.assertRegex(text, r"log.segment.bytes=2000000 .*DYNAMIC_BROKER_CONFIG:"
                               r"log.segment.bytes=2000000, DYNAMIC_DEFAULT_BROKER_CONFIG:"
                               r"log.segment.bytes=3000000, DEFAULT_CONFIG:"
                               r"log.segment.bytes=1073741824")
        self.assertIn("log.segment.bytes=3000000", self.describe(*default))
        of_topic = ("--entity-type", "topics", "--entity-name", topic, "--all")
        self.assertIn("segment.bytes=2000000", self.describe(*of_topic))
        self.assertIn("polylog.flush=interval:77", self.describe(*of_topic))
        refused = self.alter(*one, "--add-config", "num.partitions=3", check=False)
        self.assertIn("InvalidRequestException: Cannot update these configs dynamically", refused)
        self.broker.kill9()
        self.broker.start()
        self.assertIn("segment.bytes=2000000", self.describe(*of_topic))
        self.alter(*one, "--delete-config", "log.segment.bytes")
        self.assertIn("segment.bytes=3000000", self.describe(*of_topic))
        self.alter(*default, "--delete-config", "log.segment.bytes,log.flush.interval.ms")
        self.assertIn("segment.bytes=1073741824", self.describe(*of_topic))
        self.assertIn("polylog.flush=ack", self.describe(*of_topic))

    def test_groups(self):
        entity = ("--entity-type", "groups", "--entity-name", "readers")
        self.alter(*entity, "--add-config", "consumer.session.timeout.ms=50000")
        self.assertIn("consumer.session.timeout.ms=50000", self.describe(*entity))
        refused = self.alter(*entity, "--add-config", "consumer.session.timeout.ms=1", check=False)
        self.assertIn("InvalidConfigurationException", refused)

    def test_quotas_of_users_clients_and_addresses(self):
        self.alter("--entity-type", "clients", "--entity-name", "c", "--add-config",
                   "producer_byte_rate=1048576,consumer_byte_rate=2097152")
        self.alter("--entity-type", "clients", "--entity-default", "--add-config",
                   "request_percentage=200")
        self.alter("--entity-type", "users", "--entity-name", "u", "--entity-type", "clients",
                   "--entity-default", "--add-config", "controller_mutation_rate=10")
        self.alter("--entity-type", "ips", "--entity-name", "10.0.0.1", "--add-config",
                   "connection_creation_rate=100")
        self.broker.kill9()
        self.broker.start()
        text = self.describe("--entity-type", "clients")
        self.assertIn("client-id 'c' are", text)
        self.assertIn("producer_byte_rate=1048576.0", text)
        self.assertIn("consumer_byte_rate=2097152.0", text)
        self.assertRegex(text, r"default client-id are request_percentage=200.0")
        self.assertIn("controller_mutation_rate=10.0",
                      self.describe("--entity-type", "users", "--entity-name", "u",
                                    "--entity-type", "clients", "--entity-default"))
        self.assertIn("connection_creation_rate=100.0", self.describe("--entity-type", "ips"))
        for kind, name in (("clients", "c"), ("ips", "10.0.0.1")):
            refused = self.alter("--entity-type", kind, "--entity-name", name, "--add-config",
                                 "no_such_rate=1", check=False)
            self.assertIn("no_such_rate", refused)
        self.alter("--entity-type", "clients", "--entity-name", "c", "--delete-config",
                   "producer_byte_rate,consumer_byte_rate")
        self.alter("--entity-type", "clients", "--entity-default", "--delete-config",
                   "request_percentage")
        self.assertNotIn("rate", self.describe("--entity-type", "clients"))


class Rates(testbed.BrokerTest):
    # Two windows of a second: a second's worth passes at once, and the rest at the rate.
    settings = {"quota.window.num": 2}

    def quota(self, client_id, setting):
        clients.java(CONFIG_COMMAND, "--bootstrap-server", self.broker.address, "--alter",
                     "--entity-type", "clients", "--entity-name", client_id, "--add-config",
                     setting)

    def produce(self, topic, client_id, records, size):
        started = time.monotonic()
        clients.kcat(self.broker, "-P", "-t", topic, "-p", 0, "-X", f"client.id={client_id}",
                     "-X", "batch.num.messages=100", given=(b"x" * size + b"\n") * records)
        return time.monotonic() - started

    def test_producers_and_consumers_keep_to_their_rate(self):
        topic = self.topic("rates")
        self.quota("slow", f"producer_byte_rate={MIB},consumer_byte_rate={2 * MIB}")
        free = self.produce(topic, "fast", 8 * 1024, 1023)
        slow = self.produce(topic, "slow", 8 * 1024, 1023)
        self.assertLess(free, 4)
        # 8 MiB at 1 MiB/s; a second's worth is free, and the last request's wait is nobody's.
        self.assertGreater(slow, 5)
        self.assertLess(slow, 14)
        started = time.monotonic()
        text = clients.kcat_consume(self.broker, topic, "-X", "client.id=slow", layout=".")
        took = time.monotonic() - started
        self.assertEqual(len(text), 16 * 1024)
        self.assertGreater(took, 5)  # 16 MiB at 2 MiB/s
        self.assertLess(took, 16)


if __name__ == "__main__":
    unittest.main()
