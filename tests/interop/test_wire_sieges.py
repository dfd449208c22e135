"""Malformed and hostile input on the Kafka port, each test named after its bug report."""

import io
import os
import socket
import struct
import threading
import time
import uuid
import zlib

import brokers
import clients
import dependencies
import kafka_wire
import testbed
from record_batch import decode_batches, encode_batch, encode_record, varint

dependencies.python()
import lz4.frame  # noqa: E402
import snappy  # noqa: E402
import zstandard  # noqa: E402

MEMORY = 512 << 20
MIB = 1 << 20
NOW = int(time.time() * 1000)


def frame(text):
    return bytes.fromhex(text.replace(" ", ""))


def exchange(port, data, seconds=3.0):
    """Sends bytes; answers (what came back, whether the broker closed the connection)."""
    got = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as link:
        link.sendall(data)
        try:
            while part := link.recv(65536):
                got += part
        except socket.timeout:
            return bytes(got), False
        except ConnectionResetError:
            pass
    return bytes(got), True


class Canary(threading.Thread):
    """An ordinary client that must not notice what the others do."""

    def __init__(self, broker, topic):
        super().__init__(daemon=True)
        self.broker, self.topic = broker, topic
        self.ended = threading.Event()
        self.failure, self.slowest, self.count = None, 0.0, 0

    def run(self):
        try:
            with self.broker.connect() as connection:
                while not self.ended.is_set():
                    before = time.monotonic()
                    answer = connection.produce(self.topic, 0, encode_batch([(NOW, None, b"c")]))
                    self.slowest = max(self.slowest, time.monotonic() - before)
                    if answer.error or answer.base_offset != self.count:
                        raise ValueError(f"canary got {answer}, expected {self.count}")
                    self.count += 1
                    time.sleep(0.01)
        except (OSError, ValueError) as problem:
            self.failure = repr(problem)

    def finish(self):
        self.ended.set()
        self.join(30)
        return self.failure


class Siege(testbed.BrokerTest):
    settings = {"log.retention.hours": -1}

    @classmethod
    def prepare(cls):
        if not brokers.is_kafka():
            cls.broker.memory_max = MEMORY

    def besiege(self, name, attack):
        """Runs `attack` beside a canary; answers how much resident memory grew."""
        canary = Canary(self.broker, self.topic(name))
        canary.start()
        before = self.broker.rss_bytes()
        attack()
        growth = self.broker.rss_bytes() - before
        failure = canary.finish()
        self.assertIsNone(failure)
        self.assertGreater(canary.count, 0)
        self.assertLess(canary.slowest, 5.0 if not brokers.is_kafka() else 60.0)
        return growth


class Malformed(Siege):
    """BR-65, BR-67."""

    def hostile_frames(self):
        billion = "ffffffff0f"
        with self.broker.connect() as connection:
            topic_id = connection.topic_id(self.hostile_topic).hex
        batch = encode_batch([(NOW, None, b"v")], count=2**31 - 1, last_offset_delta=2**31 - 2)
        name = self.hostile_topic.encode()
        produce = (struct.pack(">hhih", 0, 7, 9, 0) + struct.pack(">hhi", -1, -1, 1000)
                   + struct.pack(">ih", 1, len(name)) + name + struct.pack(">ii", 1, 0))
        bodies = {
            "metadata v1 array": frame("0003000100000001 0000 7fffffff"),
            "metadata v9 compact array": frame(f"0003000900000001 0000 00 {billion}"),
            "metadata v9 header tags": frame(f"0003000900000001 0000 {billion}"),
            "metadata v9 body tags": frame(f"0003000900000001 0000 00 01 00 00 00 {billion}"),
            "metadata v9 tag size": frame(f"0003000900000001 0000 00 01 00 00 00 01 00 {billion}"),
            "create topics nested": frame("0013000400000001 0000 00000001 0001 78 00000001 0001"
                                          "7fffffff"),
            "fetch v12 topics": frame("0001000c00000001 0000 00 ffffffff 00000001 00000001 00100000"
                                      f"00 00000000 ffffffff {billion}"),
            "fetch v13 partitions": frame("0001000d00000001 0000 00 ffffffff 00000001 00000001"
                                          f"00100000 00 00000000 ffffffff 02 {topic_id} {billion}"),
            "produce v9 string": frame(f"0000000900000001 0000 00 {billion}"),
            "produce records length": produce + struct.pack(">i", 2**31 - 1),
            "produce record count": produce + struct.pack(">i", len(batch)) + batch,
            "client id": frame("0003000100000001 7fff"),
            "list offsets": frame("0002000100000001 0000 ffffffff 7fffffff"),
        }
        return {name: struct.pack(">i", len(body)) + body for name, body in bodies.items()}

    def test_br65_huge_counts_reserve_nothing(self):
        self.hostile_topic = self.topic("br65-hostile")
        frames = self.hostile_frames()
        self.assertEqual(frames["metadata v1 array"],
                         frame("0000000e000300010000000100007fffffff"))

        def attack():
            for number in range(testbed.size(1000, 10000)):
                data = list(frames.values())[number % len(frames)]
                try:
                    with socket.create_connection(("127.0.0.1", self.broker.port), 5) as link:
                        link.sendall(data)
                        link.settimeout(5)
                        link.recv(4096)
                except ConnectionResetError:
                    pass

        growth = self.besiege("br65-canary", attack)
        self.assertLess(growth, 100 * MIB)
        for name, data in frames.items():
            with self.subTest(frame=name):
                answer, closed = exchange(self.broker.port, data)
                # Closed without a word, or answered with an error of ordinary size.
                self.assertTrue(closed or 4 < len(answer) < 1000, (answer, closed))

    def test_br65_a_hundred_connections_at_once(self):
        data = frame("0000000e000300010000000100007fffffff")
        links = []

        def attack():
            for _ in range(100):
                link = socket.create_connection(("127.0.0.1", self.broker.port), 5)
                links.append(link)
                # All but the last byte: the broker holds an unfinished frame for each.
                # Kafka reserves the whole frame: a hundred of these end its JVM.
                size = 1 * MIB if brokers.is_kafka() else 100 * MIB
                link.sendall(struct.pack(">i", size) + bytes(1000))
            for _ in range(100):
                with socket.create_connection(("127.0.0.1", self.broker.port), 5) as link:
                    link.sendall(data)

        growth = self.besiege("br65-many", attack)
        for link in links:
            link.close()
        self.assertLess(growth, 100 * MIB if not brokers.is_kafka() else 1 << 40)

    def test_br67_other_protocols_on_the_kafka_port(self):
        guesses = {
            "TLS": frame("16030100c8010000c40303") + os.urandom(197),
            "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "MQTT": frame("101000044d5154540502003c000003616263"),
        }

        def attack():
            for _ in range(50):
                for data in guesses.values():
                    exchange(self.broker.port, data)

        for name, data in guesses.items():
            with self.subTest(protocol=name):
                answer, closed = exchange(self.broker.port, data)
                self.assertEqual((answer, closed), (b"", True))
        self.assertLess(self.besiege("br67-canary", attack), 16 * MIB)
        if not brokers.is_kafka():
            lines = self.broker.log_text().splitlines()
            for name in guesses:
                named = [line for line in lines if name in line]
                self.assertGreater(len(named), 0, f"no line names {name}")
                self.assertLess(len(named), 20, f"{name} floods the log")

    def test_br67_openssl_client_ends_at_once(self):
        done = clients.run(["openssl", "s_client", "-connect", self.broker.address],
                            given=b"Q\n", check=False, seconds=10)
        self.assertNotEqual(done.returncode, 0)

    def test_oversized_negative_and_tiny_frames_close_the_connection(self):
        for size in (-1, -2**31, 104857601, 2**31 - 1, 0, 3):
            with self.subTest(size=size):
                data = struct.pack(">i", size) + bytes(max(0, min(size, 8)))
                answer, closed = exchange(self.broker.port, data)
                self.assertEqual((answer, closed), (b"", True))

    def test_unknown_key_and_version_close_the_connection(self):
        for api, version in ((12345, 0), (3, 99), (0, 2), (4, 0), (-1, 0)):
            with self.subTest(api=api, version=version):
                body = struct.pack(">hhih", api, version, 1, -1) + bytes(16)
                answer, closed = exchange(self.broker.port, struct.pack(">i", len(body)) + body)
                self.assertEqual((answer, closed), (b"", True))


class Negotiation(testbed.BrokerTest):
    """BR-68."""

    def test_br68_unknown_api_versions_version_is_answered_in_version_0(self):
        with self.connect() as connection:
            # The report's frame ends before the header's tagged fields; Kafka insists on them.
            request = frame("0000000a0012006300000007ffff")
            if brokers.is_kafka():
                request = frame("0000000b0012006300000007ffff00")
            connection.socket.sendall(request)
            reader = kafka_wire.Reader(connection.receive_frame())
            correlation, error, count = reader.get("ihi")
            self.assertEqual((correlation, error), (7, kafka_wire.UNSUPPORTED_VERSION))
            ranges = {key: (low, high) for key, low, high in
                      (reader.get("hhh") for _ in range(count))}
            reader.finish()
            self.assertEqual(ranges[18][0], 0)
            self.assertGreaterEqual(ranges[18][1], 3)
            # The connection stays open for the retry.
            connection.correlation = 7
            for version in range(min(4, ranges[18][1]), -1, -1):
                error, keys = connection.api_versions(version)
                self.assertEqual(error, 0)
                self.assertEqual(keys[0][0], 0, "librdkafka compresses only if Produce 0 is listed")

    def test_br68_illegal_software_name_is_an_invalid_request(self):
        for name in ("", "-x", "a b", "x" * 20 + "/"):
            with self.subTest(name=name), self.connect() as connection:
                body = kafka_wire.Writer(True).string(name).string("1").tags().data
                reader = connection.request(kafka_wire.API_VERSIONS, 3, body)
                self.assertEqual(reader.get("h"), kafka_wire.INVALID_REQUEST)
                self.assertEqual(connection.api_versions(3)[0], 0)

    def test_br68_kcat_lists(self):
        text = clients.kcat(self.broker, "-L", "-X", "api.version.request=true").decode()
        self.assertIn(f"at {self.broker.address}", text)


def bomb(codec, size):
    """One record whose value is `size` zero bytes, compressed in a stream."""
    head = encode_record(0, 0, None, b"")[:0]
    tail = varint(0)
    inner = b"\x00" + varint(0) + varint(0) + varint(-1) + varint(size)
    head = varint(len(inner) + size + len(tail)) + inner
    zeros = bytes(1 << 20)
    pieces = [head] + [zeros] * (size >> 20) + [tail]
    if codec == "gzip":
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        return b"".join(packer.compress(piece) for piece in pieces) + packer.flush()
    if codec == "zstd":
        sink = io.BytesIO()
        with zstandard.ZstdCompressor().stream_writer(sink, closefd=False) as writer:
            for piece in pieces:
                writer.write(piece)
        return sink.getvalue()
    if codec == "lz4":
        packer = lz4.frame.LZ4FrameCompressor(block_linked=False)
        return (packer.begin() + b"".join(packer.compress(piece) for piece in pieces)
                + packer.flush())
    return snappy.compress(b"".join(pieces))


class Bombs(Siege):
    """BR-74."""

    REFUSED = {kafka_wire.MESSAGE_TOO_LARGE, kafka_wire.CORRUPT_MESSAGE, kafka_wire.INVALID_RECORD}
    if brokers.is_kafka():  # 4.4 has no limit yet, and calls some bad streams an unknown error
        REFUSED |= {0, -1}
    settings = {"log.retention.hours": -1}
    if not brokers.is_kafka():
        settings["max.decompressed.message.bytes"] = 64 * MIB
    # As much as fits under the default max.message.bytes with each codec's best ratio.
    SIZES = {"gzip": 1000 * MIB, "zstd": 1024 * MIB, "lz4": 240 * MIB}

    def batch(self, codec, payload):
        return encode_batch([(NOW, None, b"")], codec, payload=payload)

    def test_br74_bombs_are_refused_after_bounded_work(self):
        topic = self.topic("br74")
        batches = [self.batch(codec, bomb(codec, size)) for codec, size in self.SIZES.items()]
        self.assertTrue(all(len(batch) < 1048588 for batch in batches))
        errors, lock = [], threading.Lock()

        def send(batch):
            with self.broker.connect(timeout=60) as connection:
                answer = connection.produce(topic, 0, batch)
                with lock:
                    errors.append(answer.error)

        def attack():
            threads = [threading.Thread(target=send, args=(batches[n % len(batches)],))
                       for n in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        cpu = self.broker.cpu_seconds()
        self.besiege("br74-canary", attack)
        self.assertEqual(len(errors), 20)
        self.assertEqual([e for e in errors if e not in self.REFUSED], [])
        if not brokers.is_kafka():
            self.assertLess(self.broker.cpu_seconds() - cpu, 20.0)
            self.assertLess(self.broker.peak_rss_bytes(), MEMORY)
            with self.connect() as connection:
                self.assertEqual(connection.list_offset(topic, 0, -1).offset, 0)

    def test_br74_lengths_that_claim_more_than_is_there(self):
        topic = self.topic("br74-lengths")
        with self.connect() as connection:
            for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
                plain = varint(2**31 - 1) + b"\x00" * 20
                packed = plain if codec == "none" else encode_batch(
                    [(NOW, None, b"")], codec)[61:]
                from record_batch import compress
                for what, payload in (("record length", compress(codec, plain)),
                                      ("cut", packed[:-3] if len(packed) > 4 else b"\x7f"),
                                      ("nothing", b"")):
                    with self.subTest(codec=codec, what=what):
                        answer = connection.produce(topic, 0, self.batch(codec, payload))
                        self.assertIn(answer.error, self.REFUSED)

    def test_br74_a_legal_ratio_is_accepted(self):
        topic = self.topic("br74-legal")
        with self.connect() as connection:
            for codec in ("gzip", "lz4", "zstd"):
                with self.subTest(codec=codec):
                    batch = encode_batch([(NOW, None, bytes(20000))] * 100, codec)
                    self.assertLess(len(batch), 20000 * 100 / 150)
                    self.assertEqual(connection.produce(topic, 0, batch).error, 0)


class FetchRecords(testbed.BrokerTest):
    """BR-19."""

    def test_br19_records_are_never_null(self):
        topic = self.topic("br19", 2)
        with self.connect() as connection:
            connection.produce(topic, 0, encode_batch([(NOW, None, b"x")] * 3))
            known = connection.topic_id(topic)
            for version in range(4, min(16, connection.max_version(kafka_wire.FETCH)) + 1):
                unknown = kafka_wire.UNKNOWN_TOPIC_ID if version >= 13 else kafka_wire.UNKNOWN_TOPIC
                cases = (("empty partition", topic, 1, 0, known, 0),
                         ("at the end", topic, 0, 3, known, 0),
                         ("out of range", topic, 0, 999999, known, kafka_wire.OFFSET_OUT_OF_RANGE),
                         ("negative offset", topic, 0, -5, known, kafka_wire.OFFSET_OUT_OF_RANGE),
                         ("unknown partition", topic, 77, 0, known, kafka_wire.UNKNOWN_TOPIC),
                         ("unknown topic", "br19-none", 0, 0, uuid.uuid4(), unknown))
                for what, name, partition, offset, topic_id, error in cases:
                    with self.subTest(version=version, case=what):
                        got = connection.fetch(name, partition, offset, version, max_wait_ms=1,
                                               topic_id=topic_id)
                        self.assertEqual((got.error, got.records_length), (error, 0))
                got = connection.fetch(topic, 0, 0, version, topic_id=known)
                self.assertEqual(len(decode_batches(got.records)), 1)

    def test_br19_kcat_reads_an_empty_topic_and_beyond_the_end(self):
        topic = self.topic("br19-kcat")
        self.assertEqual(clients.kcat_consume(self.broker, topic), b"")
        clients.kcat(self.broker, "-P", "-t", topic, given=b"one\ntwo\n")
        done = clients.kcat(self.broker, "-C", "-t", topic, "-o", "999999", "-e", check=False)
        self.assertNotIn(b"MessageSetSize", done.stderr)


if __name__ == "__main__":
    testbed.main()
