// The program of compat/README.md, with sarama.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"program"
)

type client struct{}

func main() {
	program.Main(client{})
}

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	return c
}

// ---------------------------------------------------------------- admin

func withAdmin(broker string, do func(sarama.ClusterAdmin) error) error {
	admin, err := sarama.NewClusterAdmin([]string{broker}, config())
	if err != nil {
		return err
	}
	defer admin.Close()
	return do(admin)
}

func (client) Topics(broker string) error {
	cl, err := sarama.NewClient([]string{broker}, config())
	if err != nil {
		return err
	}
	defer cl.Close()
	topics, err := cl.Topics()
	if err == nil {
		program.TellTopics(topics)
	}
	return err
}

func (client) Create(broker, topic string, n int) error {
	return withAdmin(broker, func(admin sarama.ClusterAdmin) error {
		return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(n), ReplicationFactor: 1}, false)
	})
}

func (client) Delete(broker, topic string) error {
	return withAdmin(broker, func(admin sarama.ClusterAdmin) error {
		return admin.DeleteTopic(topic)
	})
}

// fetchOffsets are what the group has committed of all partitions.
func fetchOffsets(admin sarama.ClusterAdmin, topic, group string) (map[int]int64, error) {
	answer, err := admin.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		return nil, err
	}
	blocks := answer.Blocks[topic]
	if len(answer.Groups) > 0 {
		blocks = answer.Groups[0].Blocks[topic]
	}
	offsets := map[int]int64{}
	for p, block := range blocks {
		if block.Err != sarama.ErrNoError {
			return nil, block.Err
		}
		offsets[int(p)] = block.Offset
	}
	return offsets, nil
}

func (client) Committed(broker, topic, group string) error {
	return withAdmin(broker, func(admin sarama.ClusterAdmin) error {
		return patiently(func() error {
			offsets, err := fetchOffsets(admin, topic, group)
			if err == nil {
				program.TellOffsets(offsets)
			}
			return err
		})
	})
}

// What a broker answers that has only just started.
var early = []error{
	sarama.ErrNotLeaderForPartition,
	sarama.ErrNotCoordinatorForConsumer,
	sarama.ErrOffsetsLoadInProgress,
}

// patiently asks again where sarama gives up after some tries at once.
func patiently(ask func() error) error {
	deadline := time.Now().Add(program.Timeout)
	for {
		err := ask()
		isEarly := slices.ContainsFunc(early, func(e error) bool { return errors.Is(err, e) })
		if !isEarly || time.Now().After(deadline) {
			return err
		}
		time.Sleep(program.Poll)
	}
}

// ---------------------------------------------------------------- produce

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func (client) Produce(broker, topic, codec string, lines [][]byte, first int, idempotent bool) error {
	c := config()
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Compression = codecs[codec]
	c.Producer.Flush.Frequency = program.Poll / 20
	c.Producer.Return.Successes = true
	c.Producer.Idempotent = idempotent
	if idempotent {
		c.Net.MaxOpenRequests = 1 // what it asks for
	}
	producer, err := sarama.NewAsyncProducer([]string{broker}, c)
	if err != nil {
		return err
	}
	var delivered program.Delivered
	var reports sync.WaitGroup
	reports.Go(func() {
		for m := range producer.Successes() {
			delivered.Take(int(m.Partition), m.Offset, nil)
		}
	})
	reports.Go(func() {
		for e := range producer.Errors() {
			delivered.Take(0, 0, e)
		}
	})
	for i, line := range lines {
		key := sarama.ByteEncoder(program.Key(first + i))
		producer.Input() <- &sarama.ProducerMessage{Topic: topic, Key: key, Value: sarama.ByteEncoder(line)}
	}
	producer.AsyncClose()
	reports.Wait()
	return delivered.Tell(len(lines))
}

// ---------------------------------------------------------------- consume

func (client) Consume(broker, topic string, out *program.Out) (int, error) {
	cl, err := sarama.NewClient([]string{broker}, config())
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	consumer, err := sarama.NewConsumerFromClient(cl)
	if err != nil {
		return 0, err
	}
	defer consumer.Close()
	partitions, err := cl.Partitions(topic)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range partitions {
		end, err := endOf(cl, topic, p)
		if err != nil {
			return n, err
		}
		read, err := readTo(consumer, topic, p, end, out)
		n += read
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func endOf(cl sarama.Client, topic string, p int32) (end int64, err error) {
	err = patiently(func() error {
		end, err = cl.GetOffset(topic, p, sarama.OffsetNewest)
		return err
	})
	return end, err
}

func readTo(consumer sarama.Consumer, topic string, p int32, end int64, out *program.Out) (int, error) {
	pc, err := consumer.ConsumePartition(topic, p, sarama.OffsetOldest)
	if err != nil {
		return 0, err
	}
	defer pc.AsyncClose()
	for n, next := 0, int64(0); ; n++ {
		if next >= end {
			return n, nil
		}
		select {
		case m := <-pc.Messages():
			out.Record(int(p), m.Offset, m.Key, m.Value)
			next = m.Offset + 1
		case <-time.After(program.Timeout):
			return n, fmt.Errorf("partition %d: no record at %d", p, next)
		}
	}
}

// ---------------------------------------------------------------- a member of a group

// member is sarama's handler: one goroutine for each partition, one at a time writes and commits.
type member struct {
	topic, group string
	admin        sarama.ClusterAdmin
	has          program.Assignment
	lock         sync.Mutex
	out          *program.Out
	untold       map[int]int64 // marked, and committed by this Commit or by one for another partition
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	var partitions []int
	for _, p := range session.Claims()[m.topic] {
		partitions = append(partitions, int(p))
	}
	m.untold = map[int]int64{}
	m.has.Set(partitions...)
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.has.Set()
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for first := range claim.Messages() {
		if session.Context().Err() != nil {
			return nil
		}
		if err := m.take(session, claim, first); err != nil {
			return err
		}
	}
	return nil
}

// take writes and commits what is at hand, which begins with first.
func (m *member) take(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
	first *sarama.ConsumerMessage) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	last := first
	m.out.Record(int(first.Partition), first.Offset, first.Key, first.Value)
	for n := len(claim.Messages()); n > 0; n-- {
		last = <-claim.Messages()
		if last == nil { // closed, with nothing behind what was read
			return nil
		}
		m.out.Record(int(last.Partition), last.Offset, last.Key, last.Value)
	}
	if err := m.out.Flush(); err != nil {
		return err
	}
	session.MarkMessage(last, "")
	m.untold[int(last.Partition)] = last.Offset + 1
	m.commit(session)
	return nil
}

// commit tells what the coordinator says that it has: Commit waits for its answer, but keeps it.
func (m *member) commit(session sarama.ConsumerGroupSession) {
	for {
		session.Commit()
		offsets, err := fetchOffsets(m.admin, m.topic, m.group)
		if err == nil {
			m.tell(offsets)
			if len(m.untold) == 0 || session.Context().Err() != nil {
				return // in the other case whoever gets the partitions reads these again
			}
		}
		fmt.Fprintln(os.Stderr, "commit:", m.untold, err)
		time.Sleep(program.Poll)
	}
}

func (m *member) tell(offsets map[int]int64) {
	told := map[int]int64{}
	for p, offset := range m.untold {
		if offsets[p] >= offset {
			told[p] = offset
			delete(m.untold, p)
		}
	}
	program.TellCommitted(told)
}

func (client) Member(broker, topic, group string, out *program.Out, stop, _ string) error {
	c := config()
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = program.Timeout / 10
	c.Consumer.Group.Heartbeat.Interval = program.Timeout / 60
	consumer, err := sarama.NewConsumerGroup([]string{broker}, group, c)
	if err != nil {
		return err
	}
	return withAdmin(broker, func(admin sarama.ClusterAdmin) error {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			for !program.IsThere(stop) {
				time.Sleep(program.Poll)
			}
			cancel()
		}()
		m := &member{topic: topic, group: group, admin: admin, out: out}
		for ctx.Err() == nil { // one session after another
			err := consumer.Consume(ctx, []string{topic}, m)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return err
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "consume:", err)
				time.Sleep(program.Poll)
			}
		}
		return consumer.Close()
	})
}
