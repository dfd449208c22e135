import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Load for RocketMQ through its own client. One process for a whole benchmark, so that its code is
 * compiled once: reads commands from standard input, answers each with a line of JSON.
 *
 * <pre>
 * topic   TOPIC BROKER-ADDRESS QUEUES
 * produce TOPIC BROKER-NAME QUEUES RECORD-BYTES RECORDS-PER-BATCH CONNECTIONS IN-FLIGHT RECORDS
 *         SECONDS
 * rate    TOPIC BROKER-NAME QUEUES RECORD-BYTES CONNECTIONS RATE SECONDS
 * rounds  TOPIC BROKER-NAME QUEUES RECORD-BYTES RECORDS-PER-BATCH CONNECTIONS ROUNDS SECONDS
 * </pre>
 *
 * A broker that is busy refuses messages at once; they are sent again after a pause.
 */
public final class RocketmqLoad {
  private static final int TIMEOUT_MS = 30_000;
  private static final double WARM_SHARE = 0.1;

  private final String nameServer;
  private final List<DefaultMQProducer> producers = new ArrayList<>();
  private final AtomicLong accepted = new AtomicLong();
  private final AtomicLong retried = new AtomicLong();
  private final AtomicLong refused = new AtomicLong();
  private final AtomicLong unanswered = new AtomicLong();
  private final AtomicLong lastNs = new AtomicLong();
  private volatile String why = "";
  private int[] took = new int[1 << 16]; // tenths of microseconds
  private int samples;

  private RocketmqLoad(String nameServer) {
    this.nameServer = nameServer;
  }

  public static void main(String[] arguments) throws Exception {
    RocketmqLoad load = new RocketmqLoad(arguments[0]);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("{\"ready\": true}");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      try {
        System.out.println(load.answer(line.trim().split(" ")));
      } catch (Exception problem) {
        System.out.println("{\"failed\": \"" + quoted(problem.toString()) + "\"}");
      }
    }
    System.exit(0);
  }

  private static String quoted(String text) {
    return text.replaceAll("[\"\\\\\\p{Cntrl}]", "'");
  }

  private String answer(String[] words) throws Exception {
    if (words[0].equals("topic")) {
      makeTopic(words[1], words[2], Integer.parseInt(words[3]));
      return "{\"made\": true}";
    }
    String topic = words[1];
    String broker = words[2];
    int queues = Integer.parseInt(words[3]);
    int bytes = Integer.parseInt(words[4]);
    begin();
    long began = System.nanoTime();
    switch (words[0]) {
      case "produce":
        produce(topic, broker, queues, batch(topic, bytes, Integer.parseInt(words[5])),
            Integer.parseInt(words[6]), Integer.parseInt(words[7]), Long.parseLong(words[8]),
            Double.parseDouble(words[9]));
        break;
      case "rate":
        rate(topic, broker, queues, bytes, Integer.parseInt(words[5]),
            Double.parseDouble(words[6]), Double.parseDouble(words[7]));
        break;
      case "rounds":
        rounds(topic, broker, queues, batch(topic, bytes, Integer.parseInt(words[5])),
            Integer.parseInt(words[6]), Integer.parseInt(words[7]),
            Double.parseDouble(words[8]));
        break;
      default:
        throw new IllegalArgumentException(words[0]);
    }
    return result(began);
  }

  /** Straight at one broker; with the name server's way each of them would get the topic. */
  private void makeTopic(String topic, String address, int queues) throws Exception {
    TopicConfig config = new TopicConfig(topic);
    config.setReadQueueNums(queues);
    config.setWriteQueueNums(queues);
    need(1).get(0).getDefaultMQProducerImpl().getMqClientFactory().getMQClientAPIImpl()
        .createTopic(address, "TBW102", config, TIMEOUT_MS);
  }

  private List<DefaultMQProducer> need(int count) throws Exception {
    while (producers.size() < count) {
      DefaultMQProducer producer = new DefaultMQProducer("load");
      producer.setNamesrvAddr(nameServer);
      producer.setInstanceName("load-" + producers.size()); // a connection of its own
      producer.setVipChannelEnabled(false);
      producer.setSendMsgTimeout(TIMEOUT_MS);
      producer.setRetryTimesWhenSendAsyncFailed(0);
      producer.setCompressMsgBodyOverHowmuch(1 << 26);
      producer.setMaxMessageSize(4 << 20);
      producer.start();
      producers.add(producer);
    }
    return producers.subList(0, count);
  }

  private static List<Message> batch(String topic, int bytes, int records) {
    byte[] body = new byte[bytes];
    Arrays.fill(body, (byte) 'x');
    List<Message> messages = new ArrayList<>();
    for (int i = 0; i < records; i++) {
      messages.add(new Message(topic, body));
    }
    return messages;
  }

  private void begin() {
    accepted.set(0);
    retried.set(0);
    refused.set(0);
    unanswered.set(0);
    lastNs.set(System.nanoTime());
    samples = 0;
    why = "";
  }

  private synchronized void note(long tookNs) {
    if (samples == took.length) {
      took = Arrays.copyOf(took, took.length * 2);
    }
    took[samples++] = (int) Math.min(tookNs / 100, Integer.MAX_VALUE);
  }

  /** What becomes of one request. `settled` runs once; a busy broker is asked again before. */
  private final class Request implements SendCallback {
    final DefaultMQProducer producer;
    final List<Message> messages;
    final MessageQueue queue;
    final long dueNs;
    final boolean noted;
    final Runnable settled;

    Request(DefaultMQProducer producer, List<Message> messages, MessageQueue queue, long dueNs,
        boolean noted, Runnable settled) {
      this.producer = producer;
      this.messages = messages;
      this.queue = queue;
      this.dueNs = dueNs;
      this.noted = noted;
      this.settled = settled;
    }

    void send() {
      try {
        if (messages.size() == 1) {
          producer.send(new Message(messages.get(0).getTopic(), messages.get(0).getBody()), queue,
              this, TIMEOUT_MS);
        } else {
          producer.send(messages, queue, this, TIMEOUT_MS);
        }
      } catch (Exception problem) {
        onException(problem);
      }
    }

    @Override
    public void onSuccess(SendResult result) {
      long now = System.nanoTime();
      if (result.getSendStatus() == SendStatus.SEND_OK) {
        accepted.addAndGet(messages.size());
        lastNs.set(now);
        if (noted) {
          note(now - dueNs);
        }
      } else {
        refused.incrementAndGet(); // FLUSH_DISK_TIMEOUT: stored, not synced in time
        why = result.getSendStatus().toString();
      }
      settled.run();
    }

    @Override
    public void onException(Throwable problem) {
      String text = String.valueOf(problem.getMessage());
      boolean busy = text.contains("CODE: 2 ") || text.contains("BUSY") || text.contains("busy");
      if (busy && System.nanoTime() - dueNs < TIMEOUT_MS * 1_000_000L) {
        retried.incrementAndGet();
        LockSupport.parkNanos(1_000_000);
        send();
        return;
      }
      refused.incrementAndGet();
      why = text;
      settled.run();
    }
  }

  private void produce(String topic, String broker, int queues, List<Message> messages,
      int connections, int inFlight, long records, double seconds) throws Exception {
    List<DefaultMQProducer> all = need(connections);
    long until = System.nanoTime() + (long) (seconds * 1e9);
    Semaphore room = new Semaphore(connections * inFlight);
    long sent = 0;
    for (int next = 0; System.nanoTime() < until && (records == 0 || sent < records); next++) {
      if (!room.tryAcquire(100, java.util.concurrent.TimeUnit.MILLISECONDS)) {
        continue;
      }
      sent += messages.size();
      new Request(all.get(next % connections), messages,
          new MessageQueue(topic, broker, next % queues), System.nanoTime(), true, room::release)
          .send();
    }
    settle(room, connections * inFlight);
  }

  private void rate(String topic, String broker, int queues, int bytes, int connections,
      double rate, double seconds) throws Exception {
    List<DefaultMQProducer> all = need(connections);
    List<Message> one = batch(topic, bytes, 1);
    long total = (long) (rate * seconds);
    long began = System.nanoTime();
    long countFrom = began + (long) (seconds * WARM_SHARE * 1e9);
    int room = 1 << 20;
    Semaphore free = new Semaphore(room);
    for (long i = 0; i < total; i++) {
      long due = began + (long) (i * 1e9 / rate);
      for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
        LockSupport.parkNanos(left);
      }
      free.acquire();
      new Request(all.get((int) (i % connections)), one,
          new MessageQueue(topic, broker, (int) (i % queues)), due, due >= countFrom,
          free::release).send();
    }
    settle(free, room);
  }

  private void rounds(String topic, String broker, int queues, List<Message> messages,
      int connections, int rounds, double seconds) throws Exception {
    List<DefaultMQProducer> all = need(connections);
    long until = System.nanoTime() + (long) (seconds * 1e9);
    for (int round = 0; round < rounds && System.nanoTime() < until; round++) {
      Semaphore done = new Semaphore(0);
      long before = System.nanoTime();
      for (int queue = 0; queue < queues; queue++) {
        new Request(all.get(queue % connections), messages,
            new MessageQueue(topic, broker, queue), before, false, done::release).send();
      }
      done.acquire(queues);
      if (refused.get() > 0) {
        throw new IllegalStateException("refused: " + why);
      }
      note(System.nanoTime() - before);
    }
  }

  private void settle(Semaphore room, int all) throws InterruptedException {
    if (!room.tryAcquire(all, TIMEOUT_MS, java.util.concurrent.TimeUnit.MILLISECONDS)) {
      unanswered.set(all - room.availablePermits());
    }
  }

  private synchronized String result(long began) {
    Arrays.sort(took, 0, samples);
    double seconds = Math.max(1e-9, (lastNs.get() - began) / 1e9);
    return String.format(
        "{\"records\": %d, \"seconds\": %.6f, \"retried\": %d, \"refused\": %d, "
            + "\"unanswered\": %d, \"samples\": %d, \"p50_us\": %.1f, \"p99_us\": %.1f, "
            + "\"p999_us\": %.1f, \"max_us\": %.1f, \"why\": \"%s\"}",
        accepted.get(), seconds, retried.get(), refused.get(), unanswered.get(), samples,
        quantile(0.5), quantile(0.99), quantile(0.999), quantile(1), quoted(why));
  }

  private double quantile(double share) {
    return samples == 0 ? 0 : took[Math.min((int) (samples * share), samples - 1)] / 10.0;
  }
}
