import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * producer.py's twin with Apache Kafka's own client: BROKERS TOPIC NAME KEYS RATE CODEC OUT STOP [GIVEN_UP]. With
 * GIVEN_UP it has five requests in flight and gives up a record after a minute: that file gets its KEY and VALUE.
 */
public final class Load {
    private static final long TICK_MS = 20;
    private static final String PADDING = "x".repeat(150);

    private final OutputStream out;
    private final OutputStream givenUp; // null: nothing is
    private final AtomicReference<String> fault = new AtomicReference<>();
    private long ended; // records of which the client has told

    private Load(OutputStream out, OutputStream givenUp) {
        this.out = out;
        this.givenUp = givenUp;
    }

    private static Properties properties(String brokers, String codec, boolean givesUp) {
        Properties p = new Properties();
        p.put("bootstrap.servers", brokers);
        p.put("acks", "all");
        p.put("enable.idempotence", true);
        p.put("compression.type", codec);
        p.put("linger.ms", 5);
        p.put("max.in.flight.requests.per.connection", givesUp ? 5 : 1);
        p.put("delivery.timeout.ms", givesUp ? 60000 : Integer.MAX_VALUE);
        p.put("max.block.ms", 240000);
        p.put("request.timeout.ms", 10000);
        p.put("metadata.max.age.ms", 5000);
        p.put("reconnect.backoff.max.ms", 500);
        return p;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static void write(OutputStream to, String head, byte[] key, byte[] value) throws IOException {
        to.write(bytes(head));
        to.write(key);
        to.write('\t');
        to.write(value);
        to.write('\n');
    }

    /** On the producer's thread. */
    private void delivered(byte[] key, byte[] value, RecordMetadata at, Exception e) {
        try {
            if (e == null)
                write(out, at.partition() + "\t" + at.offset() + "\t", key, value);
            else if (givenUp != null && e instanceof TimeoutException)
                write(givenUp, "", key, value);
            else
                throw new IOException(new String(key, StandardCharsets.US_ASCII) + ": " + e);
            ended++;
        } catch (IOException x) {
            fault.compareAndSet(null, x.toString());
        }
    }

    private long run(KafkaProducer<byte[], byte[]> producer, String topic, String name, int keys, int rate, Path stop)
            throws Exception {
        long sent = 0;
        long begin = System.nanoTime();
        while (!Files.exists(stop) && fault.get() == null) {
            long due = (System.nanoTime() - begin) * rate / 1_000_000_000L;
            for (int i = 0; sent < due && i < 1000; i++, sent++) {
                byte[] key = bytes(name + "-" + sent % keys);
                long n = sent / keys;
                byte[] value = bytes(n + ":" + PADDING.substring(0, (int) (n * 31 % 150)));
                producer.send(new ProducerRecord<>(topic, key, value), (at, e) -> delivered(key, value, at, e));
            }
            Thread.sleep(TICK_MS);
        }
        return sent;
    }

    public static void main(String[] args) throws Exception {
        long sent;
        Load load;
        boolean givesUp = args.length > 8;
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(Path.of(args[6])));
                OutputStream givenUp = givesUp ? Files.newOutputStream(Path.of(args[8])) : null) {
            load = new Load(out, givenUp);
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                    properties(args[0], args[5], givesUp), new ByteArraySerializer(), new ByteArraySerializer())) {
                sent = load.run(producer, args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]),
                                Path.of(args[7]));
                if (load.fault.get() == null)
                    producer.flush();
            }
        }
        if (load.fault.get() != null || load.ended != sent) {
            System.err.println(load.ended + " of " + sent + " were acknowledged or given up: " + load.fault.get());
            System.exit(1);
        }
        System.out.println("produced " + sent);
    }
}
