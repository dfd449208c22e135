import com.google.gson.JsonObject;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * Drives RocketMQ's own message store on a directory, without a broker around it.
 *
 * <p>Arguments: "write", "read" or "rebuild", the store directory, then pairs of --name value:
 * --out (the file for the JSON lines; required), --spec (of "write"), --end shutdown|halt,
 * --log-bytes, --queue-bytes, --index-slots, --index-entries, --flush ASYNC_FLUSH|SYNC_FLUSH,
 * --index-safe true, --property-crc true.
 * Each result is one JSON line in --out, written before the next step; what RocketMQ itself logs
 * goes to standard error.
 */
public final class StoreHarness {
  private static final long DISPATCH_TIMEOUT_MS = 120_000;

  private final Map<String, String> options = new HashMap<>();
  private final OutputStream out;
  private final int logBytes;
  private DefaultMessageStore store;

  private StoreHarness(String[] arguments) throws IOException {
    for (int n = 2; n + 1 < arguments.length; n += 2) {
      options.put(arguments[n], arguments[n + 1]);
    }
    out = new FileOutputStream(options.get("--out"));
    logBytes = number("--log-bytes", 1024 * 1024 * 1024);
  }

  private int number(String name, int otherwise) {
    return options.containsKey(name) ? Integer.parseInt(options.get(name)) : otherwise;
  }

  DefaultMessageStore store() {
    return store;
  }

  int logBytes() {
    return logBytes;
  }

  String option(String name) {
    return options.get(name);
  }

  /** One line, by one write, so that a process killed at any time leaves whole lines. */
  void print(JsonObject line) throws IOException {
    out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
  }

  private MessageStoreConfig config(String folder) throws ReflectiveOperationException {
    MessageStoreConfig config = new MessageStoreConfig();
    config.setStorePathRootDir(folder);
    config.setStorePathCommitLog(folder + "/commitlog");
    config.setMappedFileSizeCommitLog(logBytes);
    config.setMappedFileSizeConsumeQueue(number("--queue-bytes", 300_000 * 20));
    config.setMaxHashSlotNum(number("--index-slots", 5_000_000));
    config.setMaxIndexNum(number("--index-entries", 20_000_000));
    config.setFlushDiskType(
        FlushDiskType.valueOf(options.getOrDefault("--flush", "ASYNC_FLUSH")));
    config.setMessageIndexSafe(Boolean.parseBoolean(options.get("--index-safe")));
    if (Boolean.parseBoolean(options.get("--property-crc"))) {  // 5.2.0 and later
      MessageStoreConfig.class.getMethod("setEnabledAppendPropCRC", boolean.class)
          .invoke(config, true);
    }
    // 5.5 goes back over so many files at most; a small log has many.
    for (Method method : MessageStoreConfig.class.getMethods()) {
      if (method.getName().equals("setCommitLogRecoverMaxNum")) {
        method.invoke(config, 100_000);
      }
    }
    config.setHaListenPort(0);
    config.setTimerWheelEnable(false);
    config.setDiskMaxUsedSpaceRatio(95);
    config.setMaxTransferCountOnMessageInMemory(1024);
    config.setMaxTransferBytesOnMessageInMemory(64 * 1024 * 1024);
    config.setMaxTransferCountOnMessageInDisk(1024);
    config.setMaxTransferBytesOnMessageInDisk(64 * 1024 * 1024);
    return config;
  }

  private void open(String folder) throws Exception {
    BrokerConfig broker = new BrokerConfig();
    ConcurrentMap<String, TopicConfig> topics = new ConcurrentHashMap<>();
    store = new DefaultMessageStore(config(folder), new BrokerStatsManager("polylog", false),
        (topic, queue, offset, tags, time, bitmap, properties) -> { }, broker, topics);
    JsonObject line = new JsonObject();
    line.addProperty("loaded", store.load());
    line.addProperty("recoveredTo", store.getMaxPhyOffset());
    print(line);
    if (!line.get("loaded").getAsBoolean()) {
      Runtime.getRuntime().halt(3);
    }
    store.start();
    waitForDispatch();
    line = new JsonObject();
    line.addProperty("started", true);
    line.addProperty("minPhysical", store.getMinPhyOffset());
    line.addProperty("maxPhysical", store.getMaxPhyOffset());
    print(line);
  }

  /** Until every record of the log has its queue and index entries. */
  void waitForDispatch() throws InterruptedException {
    long until = System.currentTimeMillis() + DISPATCH_TIMEOUT_MS;
    while (store.dispatchBehindBytes() > 0) {
      if (System.currentTimeMillis() > until) {
        throw new IllegalStateException(
            "dispatch still behind by " + store.dispatchBehindBytes() + " bytes");
      }
      Thread.sleep(10);
    }
    Thread.sleep(50);
  }

  private void close() throws Exception {
    if ("halt".equals(options.get("--end"))) {
      Runtime.getRuntime().halt(0);
    }
    waitForDispatch();
    store.shutdown();
    JsonObject line = new JsonObject();
    line.addProperty("closed", true);
    print(line);
    Runtime.getRuntime().halt(0);  // Some versions leave threads behind that never end.
  }

  private void run(String command, String folder) throws Exception {
    open(folder);
    switch (command) {
      case "write":
        new StoreWriter(this).run(options.get("--spec"));
        break;
      case "read":
        new StoreReader(this).readAll();
        break;
      case "rebuild":
        new StoreReader(this).queues();
        break;
      default:
        throw new IllegalArgumentException("unknown command " + command);
    }
    close();
  }

  public static void main(String[] arguments) {
    System.setOut(System.err);
    try {
      new StoreHarness(arguments).run(arguments[0], arguments[1]);
    } catch (Throwable problem) {
      problem.printStackTrace();
      Runtime.getRuntime().halt(2);
    }
  }
}
