import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;
import org.apache.rocketmq.store.DefaultMessageFilter;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageFilter;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.queue.CqUnit;

/**
 * Prints all a store can say: its queues, every message of them by queue offset (with what the
 * message id, its time and its queue entry lead to), and what each key and each tag finds.
 */
final class StoreReader {
  private static final int MESSAGES_PER_CALL = 64;
  private static final long DAY_MS = 86_400_000L;

  private final StoreHarness harness;
  private final DefaultMessageStore store;
  private final Map<String, Set<String>> keys = new TreeMap<>();

  StoreReader(StoreHarness harness) {
    this.harness = harness;
    this.store = harness.store();
  }

  private TreeMap<String, TreeMap<Integer, ConsumeQueueInterface>> table() {
    TreeMap<String, TreeMap<Integer, ConsumeQueueInterface>> sorted = new TreeMap<>();
    store.getConsumeQueueTable().forEach((topic, queues) ->
        sorted.put(topic, new TreeMap<>(queues)));
    return sorted;
  }

  void queues() throws Exception {
    for (Map.Entry<String, TreeMap<Integer, ConsumeQueueInterface>> topic : table().entrySet()) {
      for (int queue : topic.getValue().keySet()) {
        JsonObject line = new JsonObject();
        line.addProperty("queues", topic.getKey());
        line.addProperty("queue", queue);
        line.addProperty("min", store.getMinOffsetInQueue(topic.getKey(), queue));
        line.addProperty("max", store.getMaxOffsetInQueue(topic.getKey(), queue));
        harness.print(line);
      }
    }
  }

  void readAll() throws Exception {
    queues();
    for (Map.Entry<String, TreeMap<Integer, ConsumeQueueInterface>> topic : table().entrySet()) {
      for (Map.Entry<Integer, ConsumeQueueInterface> queue : topic.getValue().entrySet()) {
        readQueue(topic.getKey(), queue.getKey(), queue.getValue());
      }
    }
    for (Map.Entry<String, Set<String>> topic : keys.entrySet()) {
      for (String key : topic.getValue()) {
        queryKey(topic.getKey(), key);
      }
    }
  }

  private List<MessageExt> get(String topic, int queue, long offset, MessageFilter filter,
      long[] next, String[] status) {
    List<MessageExt> found = new ArrayList<>();
    GetMessageResult result =
        store.getMessage("polylog", topic, queue, offset, MESSAGES_PER_CALL, filter);
    status[0] = result == null ? "null" : result.getStatus().name();
    next[0] = result == null ? offset : result.getNextBeginOffset();
    if (result != null) {
      for (ByteBuffer buffer : result.getMessageBufferList()) {
        found.add(MessageDecoder.decode(buffer, true, false));
      }
      result.release();
    }
    return found;
  }

  private void readQueue(String topic, int queue, ConsumeQueueInterface entries)
      throws Exception {
    Set<String> tags = new TreeSet<>();
    long[] next = {store.getMinOffsetInQueue(topic, queue)};
    long max = store.getMaxOffsetInQueue(topic, queue);
    String[] status = {""};
    while (next[0] < max) {
      long offset = next[0];
      for (MessageExt message : get(topic, queue, offset, null, next, status)) {
        if (message == null) {
          status[0] = "UNREADABLE";
          continue;
        }
        readMessage(message, entries);
        if (message.getTags() != null) {
          tags.add(message.getTags());
        }
      }
      if (!status[0].equals("FOUND")) {
        JsonObject line = new JsonObject();
        line.addProperty("missing", topic);
        line.addProperty("queue", queue);
        line.addProperty("offset", offset);
        line.addProperty("status", status[0]);
        line.addProperty("next", next[0]);
        harness.print(line);
        if (next[0] <= offset) {
          break;
        }
      }
    }
    for (String tag : tags) {
      readByTag(topic, queue, tag, max);
    }
  }

  private void readByTag(String topic, int queue, String tag, long max) throws Exception {
    SubscriptionData subscription = FilterAPI.buildSubscriptionData(topic, tag);
    JsonArray offsets = new JsonArray();
    long[] next = {store.getMinOffsetInQueue(topic, queue)};
    String[] status = {""};
    while (next[0] < max) {
      long offset = next[0];
      for (MessageExt message
          : get(topic, queue, offset, new DefaultMessageFilter(subscription), next, status)) {
        offsets.add(message.getQueueOffset());
      }
      if (next[0] <= offset) {
        break;
      }
    }
    JsonObject line = new JsonObject();
    line.addProperty("tag", tag);
    line.addProperty("topic", topic);
    line.addProperty("queue", queue);
    line.add("offsets", offsets);
    harness.print(line);
  }

  private static String host(SocketAddress address) {
    InetSocketAddress host = (InetSocketAddress) address;
    return host.getAddress().getHostAddress() + ":" + host.getPort();
  }

  private static boolean same(MessageExt one, MessageExt other) {
    return other != null && one.getTopic().equals(other.getTopic())
        && one.getQueueId() == other.getQueueId()
        && one.getQueueOffset() == other.getQueueOffset()
        && one.getCommitLogOffset() == other.getCommitLogOffset()
        && Arrays.equals(one.getBody(), other.getBody())
        && Objects.equals(one.getProperties(), other.getProperties());
  }

  private void readMessage(MessageExt message, ConsumeQueueInterface entries) throws Exception {
    String topic = message.getTopic();
    int queue = message.getQueueId();
    JsonObject line = new JsonObject();
    line.addProperty("message", topic);
    line.addProperty("queue", queue);
    line.addProperty("offset", message.getQueueOffset());
    line.addProperty("id", MessageDecoder.createMessageId(message.getStoreHost(),
        message.getCommitLogOffset()));
    line.addProperty("physical", message.getCommitLogOffset());
    line.addProperty("size", message.getStoreSize());
    line.addProperty("bodyCrc", message.getBodyCRC());
    line.addProperty("flag", message.getFlag());
    line.addProperty("sysFlag", message.getSysFlag());
    line.addProperty("bornTimestamp", message.getBornTimestamp());
    line.addProperty("bornHost", host(message.getBornHost()));
    line.addProperty("storeTimestamp", message.getStoreTimestamp());
    line.addProperty("storeHost", host(message.getStoreHost()));
    line.addProperty("reconsumeTimes", message.getReconsumeTimes());
    line.addProperty("prepared", message.getPreparedTransactionOffset());
    byte[] body = message.getBody();
    line.addProperty("body",
        Base64.getEncoder().encodeToString(body == null ? new byte[0] : body));
    JsonObject properties = new JsonObject();
    if (message.getProperties() != null) {
      message.getProperties().forEach(properties::addProperty);
    }
    line.add("properties", properties);
    CqUnit entry = entries.get(message.getQueueOffset());
    if (entry != null) {
      line.addProperty("entryPhysical", entry.getPos());
      line.addProperty("entrySize", entry.getSize());
      line.addProperty("entryTags", entry.getTagsCode());
    }
    line.addProperty("foundById",
        same(message, store.lookMessageByOffset(message.getCommitLogOffset())));
    line.addProperty("atOrAfter",
        store.getOffsetInQueueByTime(topic, queue, message.getStoreTimestamp()));
    line.addProperty("atOrBefore", store.getOffsetInQueueByTime(topic, queue,
        message.getStoreTimestamp(), BoundaryType.UPPER));
    harness.print(line);
    noteKeys(message);
  }

  private void noteKeys(MessageExt message) {
    Set<String> known = keys.computeIfAbsent(message.getTopic(), topic -> new TreeSet<>());
    String unique = message.getProperty(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX);
    if (unique != null) {
      known.add(unique);
    }
    if (message.getKeys() != null) {
      for (String key : message.getKeys().split(" ")) {
        if (!key.isEmpty()) {
          known.add(key);
        }
      }
    }
  }

  /** What the index leads to: the store compares hashes only, its caller topic and key. */
  private void queryKey(String topic, String key) throws Exception {
    QueryMessageResult result = store.queryMessage(topic, key, MESSAGES_PER_CALL, 0,
        System.currentTimeMillis() + DAY_MS);
    JsonArray found = new JsonArray();
    if (result != null) {
      for (ByteBuffer buffer : result.getMessageBufferList()) {
        found.add(MessageDecoder.decode(buffer, false, false).getCommitLogOffset());
      }
      result.release();
    }
    JsonObject line = new JsonObject();
    line.addProperty("key", key);
    line.addProperty("topic", topic);
    line.add("found", found);
    harness.print(line);
  }
}
