import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageBatch;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.remoting.protocol.DataVersion;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.body.ConsumerOffsetSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.body.SubscriptionGroupWrapper;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.store.ConsumeQueueExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.index.IndexFile;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** Has RocketMQ's own store write a small store, and says what RocketMQ reads in it. */
public class Generator {
    static final int LOG_FILE_BYTES = 40960;
    static final long BORN = 1700000000000L;
    static Path root;

    public static void main(String[] arguments) {
        try {
            write(arguments);
            System.exit(0);  // the store's threads would go on
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    static void write(String[] arguments) throws Exception {
        root = Path.of(arguments[0]).toAbsolutePath();
        Files.createDirectories(root);
        List<String> rows = new ArrayList<>();
        writeStore("plain", false, rows);
        writeStore("crc", true, rows);
        Files.write(root.resolve("messages.tsv"), rows);
        writeExtensions();
        writeTables();
        writeHashes();
    }

    static DefaultMessageStore open(String name, boolean propertyCrc) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root.resolve(name).toString());
        config.setStorePathCommitLog(root.resolve(name).resolve("commitlog").toString());
        config.setMappedFileSizeCommitLog(propertyCrc ? 4096 : LOG_FILE_BYTES);
        config.setMappedFileSizeConsumeQueue(200);
        config.setMaxHashSlotNum(16);
        config.setMaxIndexNum(64);
        config.setHaListenPort(0);
        config.setTimerWheelEnable(false);
        config.setEnabledAppendPropCRC(propertyCrc);
        config.setDiskMaxUsedSpaceRatio(99);
        ConcurrentMap<String, TopicConfig> topics = new ConcurrentHashMap<>();
        DefaultMessageStore store = new DefaultMessageStore(config,
            new BrokerStatsManager("golden", true), (a, b, c, d, e, f, g) -> { },
            new BrokerConfig(), topics);
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        store.start();
        return store;
    }

    static <T extends MessageExtBrokerInner> T fill(T message, String topic, int queue, String body)
        throws Exception {
        MessageAccessor.setProperties(message, new HashMap<>());
        message.setTopic(topic);
        message.setQueueId(queue);
        message.setBody(body.getBytes(StandardCharsets.UTF_8));
        message.setBornTimestamp(BORN);
        message.setBornHost(new InetSocketAddress(InetAddress.getByName("10.0.0.1"), 50000));
        message.setStoreHost(new InetSocketAddress(InetAddress.getByName("192.168.1.2"), 10911));
        return message;
    }

    static MessageExtBrokerInner message(String topic, int queue, String body) throws Exception {
        return fill(new MessageExtBrokerInner(), topic, queue, body);
    }

    static void put(DefaultMessageStore store, MessageExtBrokerInner message) {
        message.setPropertiesString(
            MessageDecoder.messageProperties2String(message.getProperties()));
        check(store.putMessage(message));
    }

    static void check(PutMessageResult result) {
        if (!result.isOk()) {
            throw new IllegalStateException(result.toString());
        }
    }

    static void writeStore(String name, boolean propertyCrc, List<String> rows) throws Exception {
        DefaultMessageStore store = open(name, propertyCrc);
        MessageExtBrokerInner message = message("TopicTest", 3, "hello");
        message.setTags("TagA");
        message.setKeys("K1 K2");
        MessageAccessor.putProperty(message, "UNIQ_KEY", "7F00000100002A139C16073E5C610000");
        message.setFlag(7);
        put(store, message);

        message = message("TopicTest", 3, "");
        message.setTags("order-created");
        message.setReconsumeTimes(2);
        put(store, message);

        message = message("TopicTest", 0, "\u652f\u4ed8\ud83d\ude00");
        message.setTags("\u652f\u4ed8");
        message.setKeys("\u94a5 \ud83d\ude00");
        message.setSysFlag(0x1 | 0x300);
        message.putUserProperty("name", "\u503c");
        put(store, message);

        message = message("Hosts", 0, "born");
        message.setBornHost(
            new InetSocketAddress(InetAddress.getByName("2001:db8::1"), 50001));
        put(store, message);
        message = message("Hosts", 0, "both");
        message.setBornHost(
            new InetSocketAddress(InetAddress.getByName("2001:db8::1"), 50001));
        message.setStoreHost(
            new InetSocketAddress(InetAddress.getByName("2001:db8::2"), 10911));
        put(store, message);

        message = message("SCHEDULE_TOPIC_XXXX", 2, "later");
        message.setTags("TagA");
        message.setDelayTimeLevel(3);
        MessageAccessor.putProperty(message, "REAL_TOPIC", "TopicTest");
        MessageAccessor.putProperty(message, "REAL_QID", "3");
        put(store, message);

        message = message("TopicTest", 1, "committed");
        message.setSysFlag(0x8);
        message.setPreparedTransactionOffset(165);
        message.setKeys("K1");
        put(store, message);

        if (!propertyCrc) {
            writeRest(store);
        }
        Thread.sleep(1500);
        long end = store.getMaxPhyOffset();
        describe(store, name, end, rows);
        store.shutdown();
    }

    static void writeRest(DefaultMessageStore store) throws Exception {
        put(store, message("%RETRY%" + "g".repeat(120), 0, "127 bytes"));
        put(store, message("%RETRY%" + "g".repeat(121), 0, "128 bytes"));
        put(store, message("%RETRY%" + "g".repeat(248), 0, "255 bytes"));
        writeBatch(store, 5);
        // Leaves no room for the next one, so that the file ends with its end-of-file record.
        MessageExtBrokerInner message = message("Big", 0, "32767 bytes of properties");
        message.putUserProperty("p", "v".repeat(32764));
        put(store, message);
        message = message("Fill", 0, "f".repeat(6000));
        put(store, message);
        writeBatch(store, 3);
        for (int i = 0; i < 12; i++) {
            message = message("Many", 0, "m" + i);
            message.setKeys("many" + i % 3);
            put(store, message);
        }
    }

    static void writeBatch(DefaultMessageStore store, int count) throws Exception {
        List<Message> list = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message message = new Message("Batch", "tag" + i, "key" + i,
                ("b" + i).repeat(i * 100).getBytes(StandardCharsets.UTF_8));
            message.setFlag(i);
            message.setWaitStoreMsgOK(true);
            list.add(message);
        }
        MessageBatch batch = MessageBatch.generateFromList(list);
        byte[] body = batch.encode();
        Files.write(root.resolve("batch_body_" + count), body);
        MessageExtBatch message = fill(new MessageExtBatch(), "Batch", 0, "");
        message.setBody(body);
        check(store.putMessages(message));
    }

    /** What RocketMQ's own decoder reads, record by record. */
    static void describe(DefaultMessageStore store, String name, long end, List<String> rows)
        throws Exception {
        IndexFile hasher = new IndexFile(root.resolve("0").toString(), 1, 2, 0, 0);
        for (long at = 0; at < end; ) {
            SelectMappedBufferResult size = store.selectOneMessageByOffset(at, 8);
            ByteBuffer head = size.getByteBuffer();
            int bytes = head.getInt();
            int magic = head.getInt();
            size.release();
            if (magic == 0xcbd43194) {
                rows.add(String.join("\t", "blank", name, Long.toString(at),
                    Integer.toString(bytes)));
                at = (at / LOG_FILE_BYTES + 1) * LOG_FILE_BYTES;
                continue;
            }
            SelectMappedBufferResult record = store.selectOneMessageByOffset(at, bytes);
            MessageExt m = MessageDecoder.decode(record.getByteBuffer(), true, false);
            record.release();
            StringBuilder properties = new StringBuilder();
            Map<String, String> map = m.getProperties() == null ? Map.of() : m.getProperties();
            for (Map.Entry<String, String> e : new TreeMap<>(map).entrySet()) {
                properties.append(hex(e.getKey())).append('=');
                properties.append(hex(e.getValue())).append(',');
            }
            StringBuilder hashes = new StringBuilder();
            for (String key : keys(m)) {
                hashes.append(hasher.indexKeyHashMethod(m.getTopic() + "#" + key)).append(',');
            }
            String tags = map.get("TAGS");
            rows.add(String.join("\t", "message", name, Long.toString(at), Integer.toString(bytes),
                hex(m.getTopic()), Integer.toString(m.getQueueId()),
                Long.toString(m.getQueueOffset()), Integer.toString(m.getFlag()),
                Integer.toString(m.getSysFlag()), Integer.toString(m.getBodyCRC()),
                Long.toString(m.getBornTimestamp()), host(m.getBornHost()),
                Long.toString(m.getStoreTimestamp()), host(m.getStoreHost()),
                Integer.toString(m.getReconsumeTimes()),
                Long.toString(m.getPreparedTransactionOffset()),
                m.getBody() == null ? "" : hex(m.getBody()), properties.toString(),
                MessageDecoder.createMessageId(m.getStoreHost(), m.getCommitLogOffset()),
                hashes.toString(), Integer.toString(tags == null ? 0 : tags.hashCode()), "."));
            at += bytes;
        }
        hasher.destroy(0);
    }

    static List<String> keys(MessageExt m) {
        List<String> keys = new ArrayList<>();
        if (m.getProperties() == null) {
            return keys;
        }
        String unique = m.getProperty("UNIQ_KEY");
        if (unique != null) {
            keys.add(unique);
        }
        if (m.getKeys() != null) {
            for (String key : m.getKeys().split(" ")) {
                if (!key.isEmpty()) {
                    keys.add(key);
                }
            }
        }
        return keys;
    }

    static String host(java.net.SocketAddress address) {
        InetSocketAddress host = (InetSocketAddress) address;
        return hex(host.getAddress().getAddress()) + ":" + host.getPort();
    }

    static String hex(String text) {
        return hex(text.getBytes(StandardCharsets.UTF_8));
    }

    /** Long ones (ASCII here) as length and hash. */
    static String hex(byte[] bytes) {
        if (bytes.length > 255) {
            return bytes.length + "#" + new String(bytes, StandardCharsets.UTF_8).hashCode();
        }
        StringBuilder out = new StringBuilder();
        for (byte b : bytes) {
            out.append(String.format("%02x", b));
        }
        return out.toString();
    }

    static void writeExtensions() throws Exception {
        ConsumeQueueExt ext =
            new ConsumeQueueExt("Ext", 0, root.resolve("ext").toString(), 256, 64);
        List<String> rows = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            byte[] bits = i % 4 == 0 ? null : new byte[i];
            if (bits != null) {
                bits[i - 1] = (byte) (0x80 | i);
            }
            long address = ext.put(new ConsumeQueueExt.CqExtUnit(-5L * i, BORN + i, bits));
            rows.add(String.join("\t", Long.toString(address), Long.toString(-5L * i),
                Long.toString(BORN + i), bits == null ? "" : hex(bits), "."));
        }
        ext.flush(0);
        Files.write(root.resolve("ext.tsv"), rows);
    }

    static void writeTables() throws Exception {
        DataVersion version = new DataVersion();
        version.nextVersion(3);
        ConcurrentMap<String, TopicConfig> topics = new ConcurrentHashMap<>();
        topics.put("TopicTest", new TopicConfig("TopicTest", 8, 9, 6, 1));
        TopicConfig batch = new TopicConfig("Batch", 1, 1, 4);
        batch.setOrder(true);
        batch.getAttributes().put("queue.type", "BatchCQ");
        topics.put("Batch", batch);
        TopicConfigSerializeWrapper topicTable = new TopicConfigSerializeWrapper();
        topicTable.setTopicConfigTable(topics);
        topicTable.setDataVersion(version);
        save("topics.json", topicTable);

        SubscriptionGroupWrapper groupTable = new SubscriptionGroupWrapper();
        SubscriptionGroupConfig group = new SubscriptionGroupConfig();
        group.setGroupName("group");
        group.setRetryMaxTimes(5);
        group.setConsumeMessageOrderly(true);
        groupTable.getSubscriptionGroupTable().put("group", group);
        SubscriptionGroupConfig plain = new SubscriptionGroupConfig();
        plain.setGroupName("plain");
        groupTable.getSubscriptionGroupTable().put("plain", plain);
        groupTable.setDataVersion(version);
        save("subscriptionGroup.json", groupTable);

        ConsumerOffsetSerializeWrapper offsets = new ConsumerOffsetSerializeWrapper();
        ConcurrentMap<Integer, Long> queues = new ConcurrentHashMap<>();
        queues.put(0, 12L);
        queues.put(1, 9223372036854775807L);
        offsets.getOffsetTable().put("TopicTest@group", queues);
        offsets.getOffsetTable().put("%RETRY%group@group", new ConcurrentHashMap<>());
        offsets.setDataVersion(version);
        save("consumerOffset.json", offsets);

        DelayOffsets delays = new DelayOffsets();
        ConcurrentMap<Integer, Long> levels = new ConcurrentHashMap<>();
        levels.put(1, 100L);
        levels.put(18, 7L);
        delays.offsetTable = levels;
        delays.dataVersion = version;
        save("delayOffset.json", delays);
    }

    /** The members of the broker's table, which is in an artifact of its own. */
    public static class DelayOffsets extends RemotingSerializable {
        ConcurrentMap<Integer, Long> offsetTable;
        DataVersion dataVersion;

        public ConcurrentMap<Integer, Long> getOffsetTable() {
            return offsetTable;
        }

        public DataVersion getDataVersion() {
            return dataVersion;
        }
    }

    static void save(String name, RemotingSerializable table) throws Exception {
        Path folder = root.resolve("config");
        Files.createDirectories(folder);
        Files.writeString(folder.resolve(name), table.toJson(true));
    }

    /** String.hashCode of bytes that may be anything, read as UTF-8. */
    static void writeHashes() throws Exception {
        Random random = new Random(1);
        byte[][] pieces = {{'a'}, {(byte) 0x80}, {(byte) 0xbf}, {(byte) 0xc0}, {(byte) 0xc3},
            {(byte) 0xa4}, {(byte) 0xe0}, {(byte) 0xa0}, {(byte) 0xe4}, {(byte) 0xed},
            {(byte) 0xef}, {(byte) 0xf0}, {(byte) 0x90}, {(byte) 0x9f}, {(byte) 0xf4},
            {(byte) 0x8f}, {(byte) 0xf5}, {(byte) 0xff}};
        List<String> rows = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            ByteBuffer text = ByteBuffer.allocate(16);
            for (int n = 1 + random.nextInt(9); n > 0; n--) {
                text.put(pieces[random.nextInt(pieces.length)]);
            }
            byte[] bytes = new byte[text.position()];
            text.flip();
            text.get(bytes);
            rows.add(hex(bytes) + "\t" + new String(bytes, StandardCharsets.UTF_8).hashCode());
        }
        Files.write(root.resolve("hashes.tsv"), rows);
    }
}
