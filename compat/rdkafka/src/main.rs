//! The program of compat/README.md, with rdkafka: librdkafka from Rust.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::{Offset, TopicPartitionList};

const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
const BUFFER: usize = 1 << 20;
const MANY: usize = 10000; // records of one poll

type Done = Result<(), Box<dyn Error>>;

fn config(broker: &str) -> ClientConfig {
    let mut c = ClientConfig::new();
    c.set("bootstrap.servers", broker);
    c
}

/// Asks again what a broker that has only just started refuses: librdkafka leaves that to the caller.
fn patiently<T>(ask: impl Fn() -> Result<T, KafkaError>) -> Result<T, KafkaError> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let answer = ask();
        let code = answer.as_ref().err().and_then(KafkaError::rdkafka_error_code);
        let early = [RDKafkaErrorCode::NotLeaderForPartition, RDKafkaErrorCode::NotCoordinator];
        if code.is_none_or(|code| !early.contains(&code)) || Instant::now() > deadline {
            return answer;
        }
        std::thread::sleep(POLL);
    }
}

// ---------------------------------------------------------------- admin

fn admin(broker: &str) -> Result<AdminClient<DefaultClientContext>, KafkaError> {
    config(broker).create()
}

fn all_well(answers: Vec<Result<String, (String, RDKafkaErrorCode)>>) -> Done {
    for answer in answers {
        answer.map_err(|(topic, code)| format!("{topic}: {code}"))?;
    }
    Ok(())
}

fn create(broker: &str, topic: &str, n: i32) -> Done {
    let new = NewTopic::new(topic, n, TopicReplication::Fixed(1));
    all_well(block_on(admin(broker)?.create_topics([&new], &AdminOptions::new()))?)
}

fn delete(broker: &str, topic: &str) -> Done {
    all_well(block_on(admin(broker)?.delete_topics(&[topic], &AdminOptions::new()))?)
}

fn topics(broker: &str) -> Done {
    let consumer: BaseConsumer = config(broker).create()?;
    let metadata = consumer.fetch_metadata(None, TIMEOUT)?;
    let names: BTreeSet<_> = metadata.topics().iter().map(|t| t.name()).collect();
    names.iter().for_each(|name| println!("{name}"));
    Ok(())
}

fn partitions_of<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
) -> Result<Vec<i32>, KafkaError> {
    let metadata = consumer.fetch_metadata(Some(topic), TIMEOUT)?;
    Ok(metadata.topics()[0].partitions().iter().map(|p| p.id()).collect())
}

/// rdkafka's admin client has no such call: a consumer asks, which does not join.
fn committed(broker: &str, topic: &str, group: &str) -> Done {
    let consumer: BaseConsumer = config(broker).set("group.id", group).create()?;
    let mut asked = TopicPartitionList::new();
    for p in partitions_of(&consumer, topic)? {
        asked.add_partition(topic, p);
    }
    for p in patiently(|| consumer.committed_offsets(asked.clone(), TIMEOUT))?.elements() {
        p.error()?;
        if let Offset::Offset(offset) = p.offset() {
            println!("{} {}", p.partition(), offset);
        }
    }
    Ok(())
}

// ---------------------------------------------------------------- produce

/// What the broker acknowledged: per partition at offsets that rise by one.
#[derive(Default)]
struct Delivered {
    next: HashMap<i32, i64>,
    n: usize,
    fault: Option<String>,
}

#[derive(Default)]
struct Reports(Mutex<Delivered>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        let mut d = self.0.lock().unwrap();
        let fault = match result {
            Err((e, _)) => Some(e.to_string()),
            Ok(m) => {
                d.n += 1;
                let expected = d.next.insert(m.partition(), m.offset() + 1).unwrap_or(m.offset());
                (expected != m.offset()).then(|| format!("offset {} was to be {expected}", m.offset()))
            }
        };
        if d.fault.is_none() {
            d.fault = fault;
        }
    }
}

fn send(producer: &BaseProducer<Reports>, topic: &str, key: &str, value: &[u8]) -> Done {
    let mut record = BaseRecord::to(topic).key(key).payload(value);
    while let Err((e, again)) = producer.send(record) {
        if e.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
            return Err(e.into());
        }
        producer.poll(POLL);
        record = again;
    }
    producer.poll(Duration::ZERO);
    Ok(())
}

fn produce(broker: &str, topic: &str, codec: &str, path: &str, first: usize, mode: &str) -> Done {
    let producer: BaseProducer<Reports> = config(broker)
        .set("acks", "all")
        .set("enable.idempotence", (mode == "idempotent").to_string())
        .set("compression.type", codec)
        .set("linger.ms", "5")
        .set("message.timeout.ms", TIMEOUT.as_millis().to_string())
        .create_with_context(Reports::default())?;
    let data = std::fs::read(path)?;
    let lines: Vec<_> = data.strip_suffix(b"\n").unwrap_or(&data).split(|c| *c == b'\n').collect();
    for (i, line) in lines.iter().enumerate() {
        send(&producer, topic, &(first + i).to_string(), line)?;
    }
    producer.flush(TIMEOUT)?;
    let d = producer.context().0.lock().unwrap();
    if let Some(fault) = &d.fault {
        return Err(fault.clone().into());
    }
    if d.n != lines.len() {
        return Err(format!("{} of {} were delivered", d.n, lines.len()).into());
    }
    println!("produced {}", d.n);
    Ok(())
}

// ---------------------------------------------------------------- consume

fn consumer_config(broker: &str, group: &str) -> ClientConfig {
    let mut c = config(broker);
    c.set("group.id", group).set("enable.auto.commit", "false").set("check.crcs", "true");
    c
}

fn open(path: &str) -> std::io::Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(BUFFER, File::create(path)?))
}

fn write(out: &mut impl Write, m: &BorrowedMessage) -> std::io::Result<()> {
    write!(out, "{}\t{}\t", m.partition(), m.offset())?;
    out.write_all(m.key().unwrap_or_default())?;
    out.write_all(b"\t")?;
    out.write_all(m.payload().unwrap_or_default())?;
    out.write_all(b"\n")
}

fn consume(broker: &str, topic: &str, path: &str) -> Done {
    let consumer: BaseConsumer = consumer_config(broker, "none").create()?;
    let mut out = open(path)?;
    let mut from = TopicPartitionList::new();
    let mut behind = HashMap::new();
    for p in partitions_of(&consumer, topic)? {
        let (low, high) = patiently(|| consumer.fetch_watermarks(topic, p, TIMEOUT))?;
        if low < high {
            behind.insert(p, high);
        }
        from.add_partition_offset(topic, p, Offset::Beginning)?;
    }
    consumer.assign(&from)?;
    let mut n = 0;
    let mut deadline = Instant::now() + TIMEOUT;
    while !behind.is_empty() {
        if Instant::now() > deadline {
            return Err("no more records".into());
        }
        let Some(polled) = consumer.poll(POLL) else { continue };
        let m = polled?;
        write(&mut out, &m)?;
        n += 1;
        if behind.get(&m.partition()) == Some(&(m.offset() + 1)) {
            behind.remove(&m.partition());
        }
        deadline = Instant::now() + TIMEOUT;
    }
    out.flush()?;
    println!("consumed {n}");
    Ok(())
}

// ---------------------------------------------------------------- a member of a group

/// The partitions that the member has; each change is told.
#[derive(Default)]
struct Assignment(Mutex<BTreeSet<i32>>);

impl ClientContext for Assignment {}

impl ConsumerContext for Assignment {
    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let mut has = self.0.lock().unwrap();
        match rebalance {
            Rebalance::Assign(list) => has.extend(list.elements().iter().map(|p| p.partition())),
            Rebalance::Revoke(list) => list.elements().iter().for_each(|p| {
                has.remove(&p.partition());
            }),
            Rebalance::Error(e) => eprintln!("rebalance: {e}"),
        }
        let words: String = has.iter().map(|p| format!(" {p}")).collect();
        println!("assigned{words}");
    }
}

/// Whoever gets the partitions reads again what these failed to commit.
const REBALANCED: [RDKafkaErrorCode; 7] = [
    RDKafkaErrorCode::IllegalGeneration,
    RDKafkaErrorCode::UnknownMemberId,
    RDKafkaErrorCode::RebalanceInProgress,
    RDKafkaErrorCode::FencedMemberEpoch,
    RDKafkaErrorCode::StaleMemberEpoch,
    RDKafkaErrorCode::AssignmentLost,
    RDKafkaErrorCode::State,
];

fn commit(consumer: &BaseConsumer<Assignment>, topic: &str, next: &BTreeMap<i32, i64>) -> Done {
    let mut list = TopicPartitionList::new();
    for (p, offset) in next {
        list.add_partition_offset(topic, *p, Offset::Offset(*offset))?;
    }
    loop {
        match consumer.commit(&list, CommitMode::Sync) {
            Ok(()) => break,
            Err(e) => {
                eprintln!("commit: {e}");
                if e.rdkafka_error_code().is_some_and(|code| REBALANCED.contains(&code)) {
                    return Ok(());
                }
            } // the broker is away: again. The client waits between its tries.
        }
    }
    for (p, offset) in next {
        println!("committed {p} {offset}");
    }
    Ok(())
}

fn member(broker: &str, topic: &str, group: &str, path: &str, stop: &str, protocol: &str) -> Done {
    let mut settings = consumer_config(broker, group);
    settings.set("auto.offset.reset", "earliest").set("group.protocol", protocol);
    if protocol == "classic" {
        settings.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "1000");
    }
    let consumer: BaseConsumer<Assignment> = settings.create_with_context(Assignment::default())?;
    let mut out = open(path)?;
    consumer.subscribe(&[topic])?;
    while !Path::new(stop).exists() {
        let mut next = BTreeMap::new();
        let mut wait = POLL;
        for _ in 0..MANY {
            match consumer.poll(wait) {
                None => break,
                Some(Err(e)) => eprintln!("poll: {e}"),
                Some(Ok(m)) => {
                    write(&mut out, &m)?;
                    next.insert(m.partition(), m.offset() + 1);
                }
            }
            wait = Duration::ZERO;
        }
        out.flush()?;
        if !next.is_empty() {
            commit(&consumer, topic, &next)?;
        }
    }
    Ok(()) // what is dropped here closes itself, and leaves
}

// ---------------------------------------------------------------- which call

fn call(words: &[&str]) -> Done {
    match words {
        ["topics", broker] => topics(broker),
        ["create", broker, topic, n] => create(broker, topic, n.parse()?),
        ["delete", broker, topic] => delete(broker, topic),
        ["produce", broker, topic, codec, file, first, mode] => {
            produce(broker, topic, codec, file, first.parse()?, mode)
        }
        ["consume", broker, topic, out] => consume(broker, topic, out),
        ["member", broker, topic, group, out, stop, protocol] => {
            member(broker, topic, group, out, stop, protocol)
        }
        ["committed", broker, topic, group] => committed(broker, topic, group),
        _ => Err(format!("no call {words:?}").into()),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Err(e) = call(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        eprintln!("{e}");
        std::process::exit(1);
    }
}
