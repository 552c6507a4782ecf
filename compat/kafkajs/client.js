// The program of compat/README.md, with kafkajs.
'use strict'
const fs = require('node:fs')
const { Kafka, CompressionTypes, CompressionCodecs, Partitioners, logLevel } = require('kafkajs')
const lz4 = require('lz4-napi')
const snappy = require('snappy')
const { ZstdCodec } = require('zstd-codec')

const TIMEOUT = 60000 // ms
const LOOK = 100
const MANY = 1000 // records of one send
const BUFFER = 1 << 20

// ---------------------------------------------------------------- codecs: only gzip is kafkajs's own

const XERIAL = Buffer.from('\x82SNAPPY\0', 'latin1')

// Java's framing: a header of 16 bytes, then blocks with their sizes before them.
const unsnap = async data => {
  if (!data.subarray(0, 8).equals(XERIAL)) return snappy.uncompress(data)
  const blocks = []
  for (let at = 16; at < data.length; ) {
    const size = data.readInt32BE(at)
    blocks.push(await snappy.uncompress(data.subarray(at + 4, at + 4 + size)))
    at += 4 + size
  }
  return Buffer.concat(blocks)
}

const zstd = new Promise(done => ZstdCodec.run(z => done(new z.Streaming())))

CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async encoder => snappy.compress(encoder.buffer),
  decompress: unsnap,
})
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4.compressFrame(encoder.buffer),
  decompress: async data => lz4.decompressFrame(data),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async data => Buffer.from((await zstd).decompress(data)),
})

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

// ---------------------------------------------------------------- common

const connect = (broker, more = {}) => new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING, ...more })

const tell = (...words) => fs.writeSync(1, words.join(' ') + '\n')

const tellOffsets = (offsets, ...words) =>
  offsets.sort((a, b) => a.partition - b.partition).forEach(o => tell(...words, o.partition, o.offset))

// The file of records.
class Out {
  constructor(path) {
    this.fd = fs.openSync(path, 'w')
    this.parts = []
    this.size = 0
  }

  write(partition, message) {
    const head = Buffer.from(`${partition}\t${message.offset}\t`)
    const record = Buffer.concat([head, message.key, Buffer.from('\t'), message.value, Buffer.from('\n')])
    this.parts.push(record)
    this.size += record.length
    if (this.size > BUFFER) this.flush()
  }

  flush() {
    const all = Buffer.concat(this.parts)
    for (let at = 0; at < all.length; ) at += fs.writeSync(this.fd, all, at)
    this.parts = []
    this.size = 0
  }
}

const lines = path => {
  const data = fs.readFileSync(path)
  const all = []
  for (let at = 0, end; (end = data.indexOf(10, at)) >= 0; at = end + 1) all.push(data.subarray(at, end))
  return all
}

// ---------------------------------------------------------------- admin

const withAdmin = async (broker, work) => {
  const admin = connect(broker).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

const topics = async broker => (await withAdmin(broker, admin => admin.listTopics())).sort().forEach(t => tell(t))

const create = async (broker, topic, n) => {
  const topics = [{ topic, numPartitions: Number(n), replicationFactor: 1 }]
  if (!(await withAdmin(broker, admin => admin.createTopics({ topics, waitForLeaders: true }))))
    throw new Error(`${topic} is there already`)
}

const remove = (broker, topic) => withAdmin(broker, admin => admin.deleteTopics({ topics: [topic] }))

const committed = async (broker, topic, groupId) => {
  const [answer] = await withAdmin(broker, admin => admin.fetchOffsets({ groupId, topics: [topic] }))
  tellOffsets(answer.partitions.filter(p => Number(p.offset) >= 0))
}

// ---------------------------------------------------------------- produce

// kafkajs has no linger: a send is a batch for each partition in it.
const produce = async (broker, topic, codec, path, first, mode) => {
  const producer = connect(broker).producer({
    idempotent: mode === 'idempotent',
    maxInFlightRequests: 1,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  const all = lines(path).map((value, i) => ({ key: String(Number(first) + i), value }))
  const begins = {}
  for (let at = 0; at < all.length; at += MANY) {
    const messages = all.slice(at, at + MANY)
    const answers = await producer.send({ topic, acks: -1, timeout: TIMEOUT, compression: codecs[codec], messages })
    for (const { partition, baseOffset } of answers) {
      const begin = Number(baseOffset)
      if (begins[partition] >= begin) throw new Error(`partition ${partition}: offset ${begin} is not behind`)
      begins[partition] = begin
    }
  }
  await producer.disconnect()
  tell('produced', all.length)
}

// ---------------------------------------------------------------- consume

// kafkajs reads only as a member of a group: this one commits nothing.
const consume = async (broker, topic, path) => {
  const ends = await withAdmin(broker, admin => admin.fetchTopicOffsets(topic))
  const behind = new Map(ends.filter(e => e.low !== e.high).map(e => [e.partition, Number(e.high)]))
  const consumer = connect(broker).consumer({ groupId: `${topic}-${process.pid}` })
  const out = new Out(path)
  let n = 0
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await new Promise((done, fail) => {
    let timer = setTimeout(fail, TIMEOUT, new Error('no more records'))
    consumer.on(consumer.events.CRASH, e => fail(e.payload.error))
    consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        if (!behind.has(batch.partition)) return
        batch.messages.forEach(m => out.write(batch.partition, m))
        n += batch.messages.length
        timer.refresh()
        if (Number(batch.lastOffset()) + 1 === behind.get(batch.partition)) behind.delete(batch.partition)
        if (behind.size === 0) done()
      },
    }).catch(fail)
    if (behind.size === 0) done()
  })
  out.flush()
  await consumer.disconnect()
  tell('consumed', n)
}

// ---------------------------------------------------------------- a member of a group

// Whoever gets the partitions reads again what these failed to commit.
const rebalanced = ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']

// Whether the records are committed; the client's own tries wait for a broker that is away.
const commit = async (commitOffsets, running, topic, partition, offset) => {
  while (running()) {
    try {
      await commitOffsets({ topics: [{ topic, partitions: [{ partition, offset }] }] })
      tell('committed', partition, offset)
      return true
    } catch (e) {
      process.stderr.write(`commit: ${e}\n`)
      if (rebalanced.includes(e.type)) throw e // the runner joins again
      if (!e.retriable && e.name !== 'KafkaJSNumberOfRetriesExceeded') throw e
      await new Promise(done => setTimeout(done, LOOK))
    }
  }
  return false
}

const member = async (broker, topic, groupId, path, stop) => {
  const consumer = connect(broker).consumer({
    groupId,
    sessionTimeout: 6000,
    heartbeatInterval: 1000,
    retry: { restartOnFailure: async () => true },
  })
  const out = new Out(path)
  consumer.on(consumer.events.GROUP_JOIN, e => {
    tell(...['assigned', ...(e.payload.memberAssignment[topic] || []).sort((a, b) => a - b)])
  })
  consumer.on(consumer.events.CRASH, e => process.stderr.write(`crash: ${e.payload.error}\n`))
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, commitOffsetsIfNecessary, isRunning }) => {
      batch.messages.forEach(m => out.write(batch.partition, m))
      out.flush()
      const next = String(Number(batch.lastOffset()) + 1)
      if (await commit(commitOffsetsIfNecessary, isRunning, topic, batch.partition, next))
        resolveOffset(batch.lastOffset())
    },
  })
  while (!fs.existsSync(stop)) await new Promise(done => setTimeout(done, LOOK))
  await consumer.disconnect()
}

// ---------------------------------------------------------------- which call

const [name, ...words] = process.argv.slice(2)
const calls = { topics, create, delete: remove, produce, consume, member, committed }
calls[name](...words).then(
  () => process.exit(0),
  e => {
    process.stderr.write(`${(e && e.stack) || e}\n`.trimEnd() + `\n${e}\n`)
    process.exit(1)
  }
)
