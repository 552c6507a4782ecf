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
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** producer.py's twin with Apache Kafka's own client: BROKERS TOPIC NAME KEYS RATE CODEC OUT STOP. */
public final class Load {
    private static final long TICK_MS = 20;
    private static final String PADDING = "x".repeat(150);

    private final OutputStream out;
    private final AtomicReference<String> fault = new AtomicReference<>();
    private long acknowledged;

    private Load(OutputStream out) {
        this.out = out;
    }

    private static Properties properties(String brokers, String codec) {
        Properties p = new Properties();
        p.put("bootstrap.servers", brokers);
        p.put("acks", "all");
        p.put("enable.idempotence", true);
        p.put("compression.type", codec);
        p.put("linger.ms", 5);
        p.put("delivery.timeout.ms", Integer.MAX_VALUE); // never given up
        p.put("max.block.ms", 240000);
        p.put("request.timeout.ms", 10000);
        p.put("metadata.max.age.ms", 5000);
        p.put("reconnect.backoff.max.ms", 500);
        return p;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    /** On the producer's thread. */
    private void delivered(byte[] key, byte[] value, RecordMetadata at, Exception e) {
        if (e != null) {
            fault.compareAndSet(null, new String(key, StandardCharsets.US_ASCII) + ": " + e);
            return;
        }
        acknowledged++;
        try {
            out.write(bytes(at.partition() + "\t" + at.offset() + "\t"));
            out.write(key);
            out.write('\t');
            out.write(value);
            out.write('\n');
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
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(Path.of(args[6])))) {
            load = new Load(out);
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                    properties(args[0], args[5]), new ByteArraySerializer(), new ByteArraySerializer())) {
                sent = load.run(producer, args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]),
                                Path.of(args[7]));
                if (load.fault.get() == null)
                    producer.flush();
            }
        }
        if (load.fault.get() != null || load.acknowledged != sent) {
            System.err.println(load.acknowledged + " of " + sent + " were acknowledged: " + load.fault.get());
            System.exit(1);
        }
        System.out.println("produced " + sent);
    }
}
