import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's own Java client as a driver of the client matrix; the same source for 3.9 and 4.x. */
public final class Driver {
  private static final String RETENTION = "3600000";
  private static final String ALTERED_RETENTION = "7200000";
  private static final Duration READ_MAX = Duration.ofSeconds(30);

  private final Map<String, String> given = new HashMap<>();

  private Driver(String[] arguments) {
    for (int n = 1; n + 1 < arguments.length; n += 2) {
      given.put(arguments[n].substring(2), arguments[n + 1]);
    }
  }

  private String topic() {
    return given.get("topic");
  }

  private int number(String name) {
    return Integer.parseInt(given.get(name));
  }

  // JSON, as much as is needed.

  private static String json(Object value) {
    if (value == null) {
      return "null";
    }
    if (value instanceof Number) {
      return value.toString();
    }
    if (value instanceof Map<?, ?> map) {
      return map.entrySet().stream()
          .map(e -> json(e.getKey().toString()) + ":" + json(e.getValue()))
          .collect(Collectors.joining(",", "{", "}"));
    }
    if (value instanceof Collection<?> list) {
      return list.stream().map(Driver::json).collect(Collectors.joining(",", "[", "]"));
    }
    StringBuilder text = new StringBuilder("\"");
    for (char c : value.toString().toCharArray()) {
      if (c == '"' || c == '\\') {
        text.append('\\').append(c);
      } else if (c < ' ') {
        text.append(String.format("\\u%04x", (int) c));
      } else {
        text.append(c);
      }
    }
    return text.append('"').toString();
  }

  private static synchronized void emit(Map<String, Object> fields) {
    System.out.println(json(fields));
    System.out.flush();
  }

  private static void done(Map<String, Object> fields) {
    emit(Map.of("done", fields));
  }

  private static void note(Exception error) {
    emit(Map.of("note", error.toString()));
  }

  // Producing and reading.

  private KafkaProducer<String, String> producer(String codec, boolean idempotent) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", given.get("bootstrap"));
    properties.put("compression.type", codec);
    properties.put("enable.idempotence", Boolean.toString(idempotent));
    properties.put("linger.ms", "20");
    properties.put("key.serializer", StringSerializer.class.getName());
    properties.put("value.serializer", StringSerializer.class.getName());
    return new KafkaProducer<>(properties);
  }

  private void produce() throws Exception {
    int count = number("count");
    int partitions = number("partitions");
    boolean idempotent = given.getOrDefault("idempotent", "0").equals("1");
    List<Future<?>> sent = new ArrayList<>();
    try (KafkaProducer<String, String> producer = producer(given.get("codec"), idempotent)) {
      for (int n = 0; n < count; n++) {
        String value = (given.get("prefix") + " " + n + " " + "polylog ".repeat(n % 20)).trim();
        sent.add(producer.send(new ProducerRecord<>(topic(), n % partitions, "key-" + n, value)));
      }
      producer.flush();
      for (Future<?> future : sent) {
        future.get();
      }
    }
    done(Map.of("count", count));
  }

  /**
   * Sends a text file line by line with the line's number as key, at a rate, while the broker may
   * come and go; a line counts as sent when it is acknowledged.
   */
  private void lines() throws Exception {
    List<String> lines = Files.readAllLines(Path.of(given.get("file")));
    int partitions = number("partitions");
    int rate = number("rate");
    List<Future<?>> sent = new ArrayList<>();
    long begun = System.nanoTime();
    try (KafkaProducer<String, String> producer = producer("lz4", true)) {
      for (int n = 0; n < lines.size(); n++) {
        long due = begun + n * 1_000_000_000L / rate;
        while (System.nanoTime() < due) {
          Thread.sleep(1);
        }
        sent.add(producer.send(
            new ProducerRecord<>(topic(), n % partitions, Integer.toString(n), lines.get(n))));
        if (n % 1000 == 999) {
          emit(Map.of("sent", n + 1));
        }
      }
      producer.flush();
      for (Future<?> future : sent) {
        future.get();
      }
    }
    done(Map.of("count", lines.size()));
  }

  private KafkaConsumer<String, String> consumer(Map<String, String> more) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", given.get("bootstrap"));
    properties.put("enable.auto.commit", "false");
    properties.put("auto.offset.reset", "earliest");
    properties.put("reconnect.backoff.max.ms", "500");
    properties.put("default.api.timeout.ms", "20000");
    properties.put("key.deserializer", StringDeserializer.class.getName());
    properties.put("value.deserializer", StringDeserializer.class.getName());
    properties.putAll(more);
    return new KafkaConsumer<>(properties);
  }

  private void read() {
    List<TopicPartition> all = new ArrayList<>();
    for (int p = 0; p < number("partitions"); p++) {
      all.add(new TopicPartition(topic(), p));
    }
    int count = 0;
    long until = System.nanoTime() + READ_MAX.toNanos();
    try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
      consumer.assign(all);
      consumer.seekToBeginning(all);
      while (count < number("count")) {
        if (System.nanoTime() > until) {
          throw new IllegalStateException("only " + count + " records came");
        }
        for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(200))) {
          emit(Map.of("record", List.of(r.partition(), r.offset(), r.key(), r.value())));
          count++;
        }
      }
    }
    done(Map.of("count", count));
  }

  private void seek() {
    TopicPartition where = new TopicPartition(topic(), 0);
    try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
      Map<TopicPartition, OffsetAndTimestamp> found =
          consumer.offsetsForTimes(Map.of(where, Long.parseLong(given.get("time"))));
      consumer.assign(List.of(where));
      consumer.seek(where, found.get(where).offset());
      long until = System.nanoTime() + READ_MAX.toNanos();
      while (System.nanoTime() < until) {
        for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(200))) {
          done(Map.of("offset", found.get(where).offset(), "value", r.value()));
          return;
        }
      }
    }
    throw new IllegalStateException("no record came");
  }

  // A member of a group.

  private final Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();

  private void commit(KafkaConsumer<String, String> consumer) {
    if (next.isEmpty()) {
      return;
    }
    Map<TopicPartition, OffsetAndMetadata> pending = new HashMap<>(next);
    try {
      consumer.commitSync(pending);
    } catch (InterruptException e) {
      throw e;
    } catch (KafkaException e) {
      note(e);
      return;
    }
    List<Object> pairs = new ArrayList<>();
    pending.forEach((where, o) -> pairs.add(List.of(where.partition(), o.offset())));
    emit(Map.of("committed", pairs));
    next.clear();
  }

  private void consume() {
    Map<String, String> settings = new HashMap<>();
    settings.put("group.id", given.get("group"));
    if (given.getOrDefault("protocol", "classic").equals("consumer")) {
      settings.put("group.protocol", "consumer");
    } else {
      settings.put("session.timeout.ms", "10000");
      settings.put("heartbeat.interval.ms", "500");
    }
    Path stop = Path.of(given.get("stop"));
    int count = 0;
    try (KafkaConsumer<String, String> consumer = consumer(settings)) {
      consumer.subscribe(List.of(topic()), new ConsumerRebalanceListener() {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
          commit(consumer);
          next.keySet().removeAll(partitions);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
          next.keySet().removeAll(partitions);
        }
      });
      while (!Files.exists(stop)) {
        for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(100))) {
          emit(Map.of("record", List.of(r.partition(), r.offset(), r.value())));
          next.put(new TopicPartition(r.topic(), r.partition()),
              new OffsetAndMetadata(r.offset() + 1));
          count++;
        }
        commit(consumer);
      }
      commit(consumer);
    }
    done(Map.of("count", count));
  }

  // Administration.

  private static void step(String name, Map<String, Object> fields) {
    Map<String, Object> all = new HashMap<>(fields);
    all.put("step", name);
    emit(all);
  }

  private int partitions(Admin client) throws Exception {
    return client.describeTopics(List.of(topic())).allTopicNames().get().get(topic())
        .partitions().size();
  }

  private String retention(Admin client) throws Exception {
    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic());
    return client.describeConfigs(List.of(resource)).all().get().get(resource)
        .get("retention.ms").value();
  }

  @SuppressWarnings("deprecation")
  private void admin() throws Exception {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", given.get("bootstrap"));
    String group = given.get("group");
    try (Admin client = Admin.create(properties)) {
      client.createTopics(List.of(new NewTopic(topic(), 2, (short) 1)
          .configs(Map.of("retention.ms", RETENTION)))).all().get();
      step("create-topic", Map.of());
      step("describe-topic", Map.of("partitions", partitions(client)));
      step("describe-config", Map.of("value", retention(client)));
      AlterConfigOp set = new AlterConfigOp(
          new ConfigEntry("retention.ms", ALTERED_RETENTION), AlterConfigOp.OpType.SET);
      client.incrementalAlterConfigs(Map.of(
          new ConfigResource(ConfigResource.Type.TOPIC, topic()), List.of(set))).all().get();
      step("alter-config", Map.of("value", retention(client)));
      client.createPartitions(Map.of(topic(), NewPartitions.increaseTo(4))).all().get();
      step("create-partitions", Map.of("partitions", partitions(client)));
      step("list-groups", Map.of("groups", client.listConsumerGroups().all().get().stream()
          .map(g -> g.groupId()).collect(Collectors.toList())));
      step("describe-group", Map.of("state", client.describeConsumerGroups(List.of(group)).all()
          .get().get(group).state().toString()));
      Map<Object, Object> offsets = new TreeMap<>();
      client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
          .forEach((where, o) -> offsets.put(where.partition(), o.offset()));
      step("group-offsets", Map.of("offsets", offsets));
      client.deleteConsumerGroups(List.of(group)).all().get();
      step("delete-group", Map.of());
      TopicPartition trimmed = new TopicPartition(given.get("data"), 0);
      step("delete-records", Map.of("low", client.deleteRecords(
          Map.of(trimmed, RecordsToDelete.beforeOffset(5))).lowWatermarks().get(trimmed).get()
          .lowWatermark()));
      client.deleteTopics(List.of(topic())).all().get();
      step("delete-topic", Map.of());
      step("list-topics", Map.of("topics", client.listTopics().names().get()));
    }
    done(Map.of());
  }

  private void run(String command) throws Exception {
    switch (command) {
      case "produce" -> produce();
      case "lines" -> lines();
      case "read" -> read();
      case "consume" -> consume();
      case "seek" -> seek();
      case "admin" -> admin();
      default -> throw new IllegalArgumentException(command);
    }
  }

  /** The same for every item of lists with commas; a list of one goes with all. */
  public static void main(String[] arguments) throws Exception {
    Map<String, String[]> lists = new HashMap<>();
    Driver driver = new Driver(arguments);
    for (String name : List.of("topic", "codec", "prefix", "time")) {
      if (driver.given.containsKey(name)) {
        lists.put(name, driver.given.get(name).split(","));
      }
    }
    int rounds = lists.values().stream().mapToInt(items -> items.length).max().getAsInt();
    for (int n = 0; n < rounds; n++) {
      for (Map.Entry<String, String[]> list : lists.entrySet()) {
        driver.given.put(list.getKey(), list.getValue()[n % list.getValue().length]);
      }
      driver.run(arguments[0]);
    }
    System.exit(0);
  }
}
