import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Writes transactions that commit, abort and interleave to partition 0 of a topic.
 *
 * <p>Arguments: bootstrap server, topic, compression type, "open" to leave a last transaction open.
 */
public final class TransactionWriter {
  private static final int TIMEOUT_MS = 900_000;

  private TransactionWriter() {}

  private static KafkaProducer<String, String> producer(
      String[] arguments, String transactionalId) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", arguments[0]);
    properties.put("compression.type", arguments[2]);
    properties.put("key.serializer", StringSerializer.class.getName());
    properties.put("value.serializer", StringSerializer.class.getName());
    properties.put("linger.ms", "0");
    if (transactionalId != null) {
      properties.put("transactional.id", transactionalId);
      properties.put("transaction.timeout.ms", Integer.toString(TIMEOUT_MS));
    }
    return new KafkaProducer<>(properties);
  }

  private static void send(KafkaProducer<String, String> producer, String topic, String what,
      int count) throws Exception {
    List<java.util.concurrent.Future<?>> sent = new ArrayList<>();
    for (int n = 0; n < count; n++) {
      sent.add(producer.send(new ProducerRecord<>(topic, 0, "k" + n, what + " " + n)));
    }
    producer.flush();
    for (java.util.concurrent.Future<?> future : sent) {
      future.get();
    }
  }

  public static void main(String[] arguments) throws Exception {
    String topic = arguments[1];
    boolean open = arguments.length > 3 && arguments[3].equals("open");
    KafkaProducer<String, String> plain = producer(arguments, null);
    KafkaProducer<String, String> first = producer(arguments, topic + "-first");
    KafkaProducer<String, String> second = producer(arguments, topic + "-second");
    first.initTransactions();
    second.initTransactions();
    send(plain, topic, "plain before", 3);

    first.beginTransaction();
    send(first, topic, "committed alone", 5);
    first.commitTransaction();

    second.beginTransaction();
    send(second, topic, "aborted alone", 4);
    second.abortTransaction();

    // Two at once, with plain records between; the earlier one ends last.
    first.beginTransaction();
    send(first, topic, "committed around", 2);
    second.beginTransaction();
    send(second, topic, "aborted inside", 3);
    send(plain, topic, "plain between", 2);
    send(first, topic, "committed around again", 2);
    second.abortTransaction();
    second.beginTransaction();
    send(second, topic, "committed inside", 2);
    second.commitTransaction();
    first.commitTransaction();

    // Aborted with several batches, then the same producer commits.
    first.beginTransaction();
    send(first, topic, "aborted one", 1);
    send(first, topic, "aborted two", 1);
    first.abortTransaction();
    first.beginTransaction();
    send(first, topic, "committed last", 1);
    first.commitTransaction();
    send(plain, topic, "plain after", 2);

    if (open) {
      first.beginTransaction();
      send(first, topic, "still open", 3);
      send(plain, topic, "plain behind the open one", 2);
      Runtime.getRuntime().halt(0);
    }
    plain.close();
    first.close();
    second.close();
  }
}
