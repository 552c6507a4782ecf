// The program of compat/README.md, with kafka-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"program"
)

type client struct{}

func main() {
	program.Main(client{})
}

// ---------------------------------------------------------------- admin

func with(broker string, do func(context.Context, *kafka.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), program.Timeout)
	defer cancel()
	return do(ctx, &kafka.Client{Addr: kafka.TCP(broker)})
}

func (client) Topics(broker string) error {
	return with(broker, func(ctx context.Context, cl *kafka.Client) error {
		answer, err := cl.Metadata(ctx, &kafka.MetadataRequest{})
		if err != nil {
			return err
		}
		var names []string
		for _, topic := range answer.Topics {
			names = append(names, topic.Name)
		}
		program.TellTopics(names)
		return nil
	})
}

func (client) Create(broker, topic string, n int) error {
	return with(broker, func(ctx context.Context, cl *kafka.Client) error {
		answer, err := cl.CreateTopics(ctx, &kafka.CreateTopicsRequest{
			Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: n, ReplicationFactor: 1}},
		})
		if err != nil {
			return err
		}
		return answer.Errors[topic]
	})
}

func (client) Delete(broker, topic string) error {
	return with(broker, func(ctx context.Context, cl *kafka.Client) error {
		answer, err := cl.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		if err != nil {
			return err
		}
		return answer.Errors[topic]
	})
}

func partitionsOf(ctx context.Context, cl *kafka.Client, topic string) ([]int, error) {
	answer, err := cl.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	var all []int
	for _, p := range answer.Topics[0].Partitions {
		all = append(all, p.ID)
	}
	return all, answer.Topics[0].Error
}

func (client) Committed(broker, topic, group string) error {
	return with(broker, func(ctx context.Context, cl *kafka.Client) error {
		partitions, err := partitionsOf(ctx, cl, topic)
		if err != nil {
			return err
		}
		for {
			offsets, err := fetchOffsets(ctx, cl, topic, group, partitions)
			if err == nil {
				program.TellOffsets(offsets)
			}
			if !errors.Is(err, kafka.GroupLoadInProgress) && !errors.Is(err, kafka.NotCoordinatorForGroup) {
				return err
			}
			time.Sleep(program.Poll) // kafka-go leaves it to the caller to ask again, until ctx ends
		}
	})
}

func fetchOffsets(ctx context.Context, cl *kafka.Client, topic, group string, partitions []int) (map[int]int64, error) {
	answer, err := cl.OffsetFetch(ctx, &kafka.OffsetFetchRequest{
		GroupID: group, Topics: map[string][]int{topic: partitions},
	})
	if err != nil {
		return nil, err
	}
	offsets := map[int]int64{}
	for _, p := range answer.Topics[topic] {
		if p.Error != nil {
			return nil, p.Error
		}
		if p.CommittedOffset >= 0 {
			offsets[p.Partition] = p.CommittedOffset
		}
	}
	return offsets, answer.Error
}

// ---------------------------------------------------------------- produce

var codecs = map[string]kafka.Compression{
	"none":   0,
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

func (client) Produce(broker, topic, codec string, lines [][]byte, first int, _ bool) error {
	var delivered program.Delivered
	writer := &kafka.Writer{
		Addr:         kafka.TCP(broker),
		Topic:        topic,
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: program.Poll / 20,
		Compression:  codecs[codec],
		Async:        true,
		Completion: func(messages []kafka.Message, err error) {
			for _, m := range messages {
				delivered.Take(m.Partition, m.Offset, err)
			}
		},
	}
	messages := make([]kafka.Message, len(lines))
	for i, line := range lines {
		messages[i] = kafka.Message{Key: program.Key(first + i), Value: line}
	}
	err := writer.WriteMessages(context.Background(), messages...)
	if err = errors.Join(err, writer.Close()); err != nil {
		return err
	}
	return delivered.Tell(len(lines))
}

// ---------------------------------------------------------------- consume

func reader(broker, topic string, partition int, offset int64) (*kafka.Reader, error) {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{broker},
		Topic:     topic,
		Partition: partition,
		MaxWait:   5 * program.Poll, // a Close waits for the fetch
	})
	return r, r.SetOffset(offset)
}

func (client) Consume(broker, topic string, out *program.Out) (n int, err error) {
	var ends []kafka.PartitionOffsets
	err = with(broker, func(ctx context.Context, cl *kafka.Client) error {
		partitions, err := partitionsOf(ctx, cl, topic)
		if err != nil {
			return err
		}
		var asked []kafka.OffsetRequest
		for _, p := range partitions {
			asked = append(asked, kafka.FirstOffsetOf(p), kafka.LastOffsetOf(p))
		}
		answer, err := cl.ListOffsets(ctx, &kafka.ListOffsetsRequest{
			Topics: map[string][]kafka.OffsetRequest{topic: asked},
		})
		if err == nil {
			ends = answer.Topics[topic]
		}
		return err
	})
	for _, p := range ends {
		if err = errors.Join(err, p.Error); err != nil {
			break
		}
		var read int
		read, err = readTo(broker, topic, p, out)
		n += read
	}
	return n, err
}

func readTo(broker, topic string, p kafka.PartitionOffsets, out *program.Out) (n int, err error) {
	r, err := reader(broker, topic, p.Partition, kafka.FirstOffset)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for next := p.FirstOffset; next < p.LastOffset; n++ {
		ctx, cancel := context.WithTimeout(context.Background(), program.Timeout)
		m, err := r.ReadMessage(ctx)
		cancel()
		if err != nil {
			return n, err
		}
		out.Record(m.Partition, m.Offset, m.Key, m.Value)
		next = m.Offset + 1
	}
	return n, nil
}

// ---------------------------------------------------------------- a member of a group

// member is one that is told of its partitions: kafka-go's own Reader of a group does not tell. One
// goroutine for each partition; one at a time writes and commits.
type member struct {
	broker, topic string
	lock          sync.Mutex
	out           *program.Out
}

func (client) Member(broker, topic, group string, out *program.Out, stop, _ string) error {
	consumer, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                group,
		Brokers:           []string{broker},
		Topics:            []string{topic},
		StartOffset:       kafka.FirstOffset,
		SessionTimeout:    program.Timeout / 10,
		HeartbeatInterval: program.Timeout / 60,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for !program.IsThere(stop) {
			time.Sleep(program.Poll)
		}
		cancel()
	}()
	m := &member{broker: broker, topic: topic, out: out}
	var has program.Assignment
	for {
		generation, err := consumer.Next(ctx)
		if ctx.Err() != nil {
			return consumer.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "join:", err) // it tries again
			continue
		}
		var partitions []int
		for _, p := range generation.Assignments[topic] {
			partitions = append(partitions, p.ID)
			generation.Start(func(ctx context.Context) { m.read(ctx, generation, p) })
		}
		has.Set(partitions...)
	}
}

// read ends with the generation, or ends it: then the member joins again.
func (m *member) read(ctx context.Context, generation *kafka.Generation, p kafka.PartitionAssignment) {
	r, err := reader(m.broker, m.topic, p.ID, p.Offset)
	if err != nil {
		fmt.Fprintln(os.Stderr, "read:", err)
		return
	}
	defer r.Close()
	for err == nil {
		var first kafka.Message
		if first, err = r.ReadMessage(ctx); err == nil {
			err = m.take(ctx, generation, r, first)
		}
	}
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "read:", p.ID, err)
	}
}

// take writes and commits what is at hand, which begins with the message.
func (m *member) take(ctx context.Context, generation *kafka.Generation, r *kafka.Reader, first kafka.Message) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	next := first.Offset + 1
	m.out.Record(first.Partition, first.Offset, first.Key, first.Value)
	for n := r.Stats().QueueLength; n > 0; n-- {
		message, err := r.ReadMessage(ctx)
		if err != nil {
			return err
		}
		m.out.Record(message.Partition, message.Offset, message.Key, message.Value)
		next = message.Offset + 1
	}
	if err := m.out.Flush(); err != nil {
		return err
	}
	offsets := map[int]int64{first.Partition: next}
	if err := generation.CommitOffsets(map[string]map[int]int64{m.topic: offsets}); err != nil {
		return err // whoever gets the partition reads these again
	}
	program.TellCommitted(offsets)
	return nil
}
