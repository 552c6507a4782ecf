import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The program of compat/README.md, with Apache Kafka's own clients. */
public final class Client {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    private static final int BUFFER = 1 << 20;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "topics" -> topics(args[1]);
            case "create" -> create(args[1], args[2], Integer.parseInt(args[3]));
            case "delete" -> delete(args[1], args[2]);
            case "produce" -> produce(args[1], args[2], args[3], Path.of(args[4]), Long.parseLong(args[5]), args[6]);
            case "transact" -> transact(args[1], args[2], Path.of(args[3]));
            case "consume" -> consume(args[1], args[2], Path.of(args[3]));
            case "member" -> new Member(args).run();
            case "committed" -> committed(args[1], args[2], args[3]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static Properties properties(String broker, Object... more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", broker);
        for (int i = 0; i < more.length; i += 2)
            p.put(more[i], more[i + 1]);
        return p;
    }

    // ---------------------------------------------------------------- admin

    private static void topics(String broker) throws Exception {
        try (Admin admin = Admin.create(properties(broker))) {
            new TreeSet<>(admin.listTopics().names().get()).forEach(System.out::println);
        }
    }

    private static void create(String broker, String topic, int partitions) throws Exception {
        try (Admin admin = Admin.create(properties(broker))) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        }
    }

    private static void delete(String broker, String topic) throws Exception {
        try (Admin admin = Admin.create(properties(broker))) {
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }

    private static void committed(String broker, String topic, String group) throws Exception {
        try (Admin admin = Admin.create(properties(broker))) {
            Map<Integer, Long> offsets = new TreeMap<>();
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) -> {
                if (partition.topic().equals(topic))
                    offsets.put(partition.partition(), offset.offset());
            });
            offsets.forEach((partition, offset) -> System.out.println(partition + " " + offset));
        }
    }

    // ---------------------------------------------------------------- produce

    /** What the broker said of the records so far: the callbacks run on the producer's thread. */
    private static final class Delivered {
        final Map<Integer, Long> next = new HashMap<>();
        final AtomicReference<Exception> failure = new AtomicReference<>();
        long n;

        void take(RecordMetadata m, Exception e) {
            if (e == null) {
                Long expected = next.put(m.partition(), m.offset() + 1);
                n++;
                if (expected != null && expected != m.offset())
                    e = new IllegalStateException("offset " + m.offset() + " was to be " + expected);
            }
            if (e != null)
                failure.compareAndSet(null, e);
        }
    }

    private static void produce(String broker, String topic, String codec, Path file, long first, String mode)
            throws Exception {
        Delivered delivered = new Delivered();
        long key = first;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                properties(broker, "acks", "all", "enable.idempotence", mode.equals("idempotent"),
                           "compression.type", codec, "linger.ms", 5),
                new ByteArraySerializer(), new ByteArraySerializer())) {
            for (byte[] line : lines(file))
                producer.send(new ProducerRecord<>(topic, bytes(key++), line), delivered::take);
        }
        if (delivered.failure.get() != null)
            throw delivered.failure.get();
        if (delivered.n != key - first)
            throw new IllegalStateException(delivered.n + " of " + (key - first) + " were delivered");
        System.out.println("produced " + delivered.n);
    }

    private static byte[] bytes(long n) {
        return Long.toString(n).getBytes(StandardCharsets.US_ASCII);
    }

    /** Not of the contract: every second transaction of 1000 lines is aborted; prints how many lines are committed. */
    private static void transact(String broker, String topic, Path file) throws Exception {
        List<byte[]> lines = lines(file);
        int committed = 0;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                properties(broker, "transactional.id", topic), new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (int at = 0, turn = 0; at < lines.size(); turn++) {
                int end = Math.min(lines.size(), at + 1000);
                producer.beginTransaction();
                for (byte[] line : lines.subList(at, end))
                    producer.send(new ProducerRecord<>(topic, 0, null, line));
                producer.flush(); // or an abort would drop what is not sent
                if (turn % 2 == 0) {
                    producer.commitTransaction();
                    committed += end - at;
                } else {
                    producer.abortTransaction();
                }
                at = end;
            }
        }
        System.out.println("committed " + committed);
    }

    private static List<byte[]> lines(Path file) throws IOException {
        List<byte[]> lines = new ArrayList<>();
        byte[] all = Files.readAllBytes(file);
        for (int at = 0, end; at < all.length; at = end + 1) {
            end = at;
            while (all[end] != '\n')
                end++;
            lines.add(Arrays.copyOfRange(all, at, end));
        }
        return lines;
    }

    // ---------------------------------------------------------------- consume

    private static KafkaConsumer<byte[], byte[]> consumer(String broker, Object... more) {
        Properties p = properties(broker, more);
        p.put("enable.auto.commit", false);
        p.put("check.crcs", true);
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void write(OutputStream out, ConsumerRecord<byte[], byte[]> r) throws IOException {
        out.write((r.partition() + "\t" + r.offset() + "\t").getBytes(StandardCharsets.US_ASCII));
        out.write(r.key());
        out.write('\t');
        out.write(r.value());
        out.write('\n');
    }

    private static OutputStream open(Path out) throws IOException {
        return new BufferedOutputStream(Files.newOutputStream(out), BUFFER);
    }

    private static void consume(String broker, String topic, Path path) throws Exception {
        long n = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(broker, "auto.offset.reset", "none");
             OutputStream out = open(path)) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(i -> new TopicPartition(topic, i.partition())).collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + TIMEOUT.toNanos();
            while (ends.entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue())) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                for (ConsumerRecord<byte[], byte[]> r : records)
                    write(out, r);
                n += records.count();
                if (!records.isEmpty())
                    deadline = System.nanoTime() + TIMEOUT.toNanos();
                if (System.nanoTime() > deadline)
                    throw new IllegalStateException("nothing came for " + TIMEOUT);
            }
        }
        System.out.println("consumed " + n);
    }

    // ---------------------------------------------------------------- a member of a group

    private static final class Member implements ConsumerRebalanceListener {
        private final String topic;
        private final Path path;
        private final Path stop;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final TreeSet<Integer> has = new TreeSet<>();

        Member(String[] args) {
            topic = args[2];
            path = Path.of(args[4]);
            stop = Path.of(args[5]);
            Properties p = properties(args[1], "group.id", args[3], "auto.offset.reset", "earliest",
                                      "group.protocol", args[6]);
            if (args[6].equals("classic")) {
                p.put("session.timeout.ms", 6000);
                p.put("heartbeat.interval.ms", 1000);
            }
            p.remove("bootstrap.servers");
            consumer = consumer(args[1], p.entrySet().stream()
                .flatMap(e -> java.util.stream.Stream.of(e.getKey(), e.getValue())).toArray());
        }

        private void tell() {
            System.out.println("assigned" + has.stream().map(p -> " " + p).collect(Collectors.joining()));
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(p -> has.add(p.partition()));
            tell();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(p -> has.remove(p.partition()));
            tell();
        }

        void run() throws Exception {
            try (consumer; OutputStream out = open(path)) {
                consumer.subscribe(List.of(topic), this);
                while (!Files.exists(stop)) {
                    ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                    for (ConsumerRecord<byte[], byte[]> r : records)
                        write(out, r);
                    out.flush();
                    if (!records.isEmpty())
                        commit(records.nextOffsets());
                }
            }
        }

        private void commit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            for (;;) {
                try {
                    consumer.commitSync(offsets);
                    offsets.forEach((p, o) -> System.out.println("committed " + p.partition() + " " + o.offset()));
                    return;
                } catch (CommitFailedException | RebalanceInProgressException e) {
                    return; // whoever gets the partitions reads these again
                } catch (RetriableException e) {
                    // The broker is away; the client has waited for it, up to its default.api.timeout.ms.
                }
            }
        }
    }
}
