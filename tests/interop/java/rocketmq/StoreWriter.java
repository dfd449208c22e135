import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Base64;
import org.apache.rocketmq.common.TopicFilterType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageResult;

/**
 * Puts what a file of JSON lines says.
 *
 * <p>A line has "op": "put" or "batch" (topic, queue, body in base64, properties, flag, sysFlag,
 * bornHost, bornTimestamp, storeHost, reconsumeTimes, prepared; a batch has "messages" with body
 * and properties of each), "wait" (for dispatch), "flush", "sleep" (ms) or "halt". "edge": N on a
 * put first fills the present log file so that exactly the message's length + N bytes remain in
 * it; the filling messages go to topic "Filler".
 */
final class StoreWriter {
  private static final int FIXED_BYTES = 91;
  private static final int FILLER_BYTES_MAX = 1024 * 1024;
  private static final String FILLER = "Filler";

  private final StoreHarness harness;
  private int number = 0;

  StoreWriter(StoreHarness harness) {
    this.harness = harness;
  }

  void run(String spec) throws Exception {
    Path path = Paths.get(spec);
    for (String text : Files.readAllLines(path, StandardCharsets.UTF_8)) {
      JsonObject line = new JsonParser().parse(text).getAsJsonObject();
      switch (line.get("op").getAsString()) {
        case "put":
          put(line);
          break;
        case "batch":
          putBatch(line);
          break;
        case "wait":
          harness.waitForDispatch();
          break;
        case "flush":
          harness.store().flush();
          break;
        case "sleep":
          Thread.sleep(line.get("ms").getAsLong());
          break;
        case "halt":
          Runtime.getRuntime().halt(0);
          break;
        default:
          throw new IllegalArgumentException(text);
      }
    }
  }

  private static InetSocketAddress host(JsonObject line, String name) throws Exception {
    String text = line.has(name) ? line.get(name).getAsString() : "127.0.0.1:10911";
    int colon = text.lastIndexOf(':');
    return new InetSocketAddress(InetAddress.getByName(text.substring(0, colon)),
        Integer.parseInt(text.substring(colon + 1)));
  }

  private static int number(JsonObject line, String name) {
    return line.has(name) ? line.get(name).getAsInt() : 0;
  }

  private static byte[] body(JsonObject line) {
    return line.has("body") ? Base64.getDecoder().decode(line.get("body").getAsString())
        : new byte[0];
  }

  private static Map<String, String> properties(JsonObject line) {
    Map<String, String> properties = new HashMap<>();
    if (line.has("properties")) {
      for (Map.Entry<String, JsonElement> entry
          : line.get("properties").getAsJsonObject().entrySet()) {
        properties.put(entry.getKey(), entry.getValue().getAsString());
      }
    }
    return properties;
  }

  private static void fill(MessageExtBrokerInner message, JsonObject line) throws Exception {
    message.setTopic(line.get("topic").getAsString());
    message.setQueueId(number(line, "queue"));
    message.setFlag(number(line, "flag"));
    message.setSysFlag(number(line, "sysFlag"));
    message.setBornHost(host(line, "bornHost"));
    message.setStoreHost(host(line, "storeHost"));
    message.setBornTimestamp(line.has("bornTimestamp") ? line.get("bornTimestamp").getAsLong()
        : System.currentTimeMillis());
    message.setReconsumeTimes(number(line, "reconsumeTimes"));
    if (line.has("prepared")) {
      message.setPreparedTransactionOffset(line.get("prepared").getAsLong());
    }
    message.setWaitStoreMsgOK(true);
    Map<String, String> properties = properties(line);
    MessageAccessor.setProperties(message, properties);
    message.setPropertiesString(MessageDecoder.messageProperties2String(properties));
    message.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(TopicFilterType.SINGLE_TAG,
        properties.get(MessageConst.PROPERTY_TAGS)));
  }

  /** The TOTALSIZE that the store will give to the message. */
  private static int size(MessageExtBrokerInner message) {
    byte[] topic = message.getTopic().getBytes(StandardCharsets.UTF_8);
    int hosts = 0;
    for (Object host : new Object[] {message.getBornHost(), message.getStoreHost()}) {
      hosts += ((InetSocketAddress) host).getAddress().getAddress().length - 4;
    }
    return FIXED_BYTES + (topic.length > 127 ? 1 : 0) + hosts + topic.length
        + message.getBody().length
        + message.getPropertiesString().getBytes(StandardCharsets.UTF_8).length;
  }

  /** Leaves exactly `wanted` bytes in the log file that is written to. */
  private void leave(int wanted) throws Exception {
    int smallest = FIXED_BYTES + FILLER.length();
    while (true) {
      long position = harness.store().getMaxPhyOffset();
      int remaining = harness.logBytes() - (int) (position % harness.logBytes());
      int missing = remaining - wanted;
      if (missing == 0) {
        return;
      }
      int body = Math.min(FILLER_BYTES_MAX, missing - smallest);
      if (body < 0) {
        body = remaining - smallest - 8 < 0 ? 8 : remaining - smallest - 8;  // on to a new file
      } else if (missing - smallest - body > 0 && missing - smallest - body < smallest) {
        body -= smallest;
      }
      JsonObject line = new JsonObject();
      line.addProperty("op", "put");
      line.addProperty("topic", FILLER);
      line.addProperty("body", Base64.getEncoder().encodeToString(new byte[body]));
      put(line);
    }
  }

  private void put(JsonObject line) throws Exception {
    MessageExtBrokerInner message = new MessageExtBrokerInner();
    fill(message, line);
    message.setBody(body(line));
    if (line.has("edge")) {
      leave(size(message) + line.get("edge").getAsInt());
    }
    print(line, harness.store().putMessage(message));
  }

  private void putBatch(JsonObject line) throws Exception {
    List<Message> messages = new ArrayList<>();
    int total = 0;
    for (JsonElement element : line.get("messages").getAsJsonArray()) {
      JsonObject one = element.getAsJsonObject();
      Message message = new Message(line.get("topic").getAsString(), body(one));
      MessageAccessor.setProperties(message, properties(one));
      messages.add(message);
      total += FIXED_BYTES + message.getTopic().length() + message.getBody().length
          + MessageDecoder.messageProperties2String(message.getProperties())
              .getBytes(StandardCharsets.UTF_8).length;
    }
    MessageExtBatch batch = new MessageExtBatch();
    fill(batch, line);
    batch.setBody(MessageDecoder.encodeMessages(messages));
    if (line.has("edge")) {
      leave(total + line.get("edge").getAsInt());
    }
    print(line, harness.store().putMessages(batch));
  }

  private void print(JsonObject asked, PutMessageResult result) throws Exception {
    JsonObject line = new JsonObject();
    line.addProperty("put", number++);
    line.add("topic", asked.get("topic"));
    line.addProperty("queue", number(asked, "queue"));
    line.addProperty("status", result.getPutMessageStatus().name());
    if (result.getAppendMessageResult() != null && result.isOk()) {
      line.addProperty("offset", result.getAppendMessageResult().getLogicsOffset());
      line.addProperty("id", result.getAppendMessageResult().getMsgId());
      line.addProperty("physical", result.getAppendMessageResult().getWroteOffset());
      line.addProperty("size", result.getAppendMessageResult().getWroteBytes());
      line.addProperty("stored", result.getAppendMessageResult().getStoreTimestamp());
      line.addProperty("count", result.getAppendMessageResult().getMsgNum());
    }
    harness.print(line);
  }
}
