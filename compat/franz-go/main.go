// The program of compat/README.md, with franz-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"program"
)

type client struct{}

func main() {
	program.Main(client{})
}

// ---------------------------------------------------------------- admin

func withAdmin(broker string, do func(context.Context, *kadm.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), program.Timeout)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		return err
	}
	defer cl.Close()
	return do(ctx, kadm.NewClient(cl))
}

func (client) Topics(broker string) error {
	return withAdmin(broker, func(ctx context.Context, admin *kadm.Client) error {
		topics, err := admin.ListTopics(ctx)
		if err == nil {
			program.TellTopics(topics.Names())
		}
		return err
	})
}

func (client) Create(broker, topic string, n int) error {
	return withAdmin(broker, func(ctx context.Context, admin *kadm.Client) error {
		_, err := admin.CreateTopic(ctx, int32(n), 1, nil, topic)
		return err
	})
}

func (client) Delete(broker, topic string) error {
	return withAdmin(broker, func(ctx context.Context, admin *kadm.Client) error {
		_, err := admin.DeleteTopic(ctx, topic)
		return err
	})
}

func (client) Committed(broker, topic, group string) error {
	return withAdmin(broker, func(ctx context.Context, admin *kadm.Client) error {
		answers, err := admin.FetchOffsets(ctx, group)
		if err = errors.Join(err, answers.Error()); err != nil {
			return err
		}
		offsets := map[int]int64{}
		for _, answer := range answers[topic] {
			offsets[int(answer.Partition)] = answer.At
		}
		program.TellOffsets(offsets)
		return nil
	})
}

// ---------------------------------------------------------------- produce

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func (client) Produce(broker, topic, codec string, lines [][]byte, first int, idempotent bool) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(broker),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(codecs[codec]),
		kgo.ProducerLinger(program.Poll / 20),
		kgo.RecordDeliveryTimeout(program.Timeout),
	}
	if !idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	cl, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer cl.Close()
	var delivered program.Delivered
	for i, line := range lines {
		record := &kgo.Record{Topic: topic, Key: program.Key(first + i), Value: line}
		cl.Produce(context.Background(), record, func(r *kgo.Record, err error) {
			delivered.Take(int(r.Partition), r.Offset, err)
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		return err
	}
	return delivered.Tell(len(lines))
}

// ---------------------------------------------------------------- consume

// ends are the partitions that have something, and where they end.
func ends(broker, topic string) (map[int32]int64, error) {
	all := map[int32]int64{}
	return all, withAdmin(broker, func(ctx context.Context, admin *kadm.Client) error {
		listed, err := admin.ListEndOffsets(ctx, topic)
		if err = errors.Join(err, listed.Error()); err != nil {
			return err
		}
		for p, end := range listed[topic] {
			if end.Offset > 0 {
				all[p] = end.Offset
			}
		}
		return nil
	})
}

func (client) Consume(broker, topic string, out *program.Out) (int, error) {
	behind, err := ends(broker, topic)
	if err != nil {
		return 0, err
	}
	begins := map[int32]kgo.Offset{}
	for p := range behind {
		begins[p] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: begins}))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	n := 0
	for len(behind) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), program.Timeout)
		fetches := cl.PollFetches(ctx)
		cancel()
		if err := fetches.Err(); err != nil {
			return n, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			out.Record(int(r.Partition), r.Offset, r.Key, r.Value)
			n++
			if r.Offset+1 == behind[r.Partition] {
				delete(behind, r.Partition)
			}
		})
	}
	return n, nil
}

// ---------------------------------------------------------------- a member of a group

// numbers are a topic's partitions, as the callbacks of a group have them.
func numbers(partitions map[string][]int32) []int {
	var all []int
	for _, some := range partitions {
		for _, p := range some {
			all = append(all, int(p))
		}
	}
	return all
}

func memberOptions(broker, topic, group, protocol string) []kgo.Opt {
	var has program.Assignment
	lost := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		has.Remove(numbers(partitions)...)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(broker),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			has.Add(numbers(partitions)...)
		}),
		kgo.OnPartitionsRevoked(lost),
		kgo.OnPartitionsLost(lost),
	}
	if protocol == "consumer" {
		return append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	return append(options, kgo.SessionTimeout(program.Timeout/10), kgo.HeartbeatInterval(program.Timeout/60))
}

func (client) Member(broker, topic, group string, out *program.Out, stop, protocol string) error {
	cl, err := kgo.NewClient(memberOptions(broker, topic, group, protocol)...)
	if err != nil {
		return err
	}
	defer cl.CloseAllowingRebalance()
	for !program.IsThere(stop) {
		if err := poll(cl, topic, out); err != nil {
			return err
		}
		cl.AllowRebalance()
	}
	return nil
}

func poll(cl *kgo.Client, topic string, out *program.Out) error {
	ctx, cancel := context.WithTimeout(context.Background(), program.Poll)
	defer cancel()
	fetches := cl.PollFetches(ctx)
	fetches.EachError(func(_ string, p int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			fmt.Fprintln(os.Stderr, "fetch:", p, err)
		}
	})
	next := map[int32]kgo.EpochOffset{}
	fetches.EachRecord(func(r *kgo.Record) {
		out.Record(int(r.Partition), r.Offset, r.Key, r.Value)
		next[r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
	})
	if err := out.Flush(); err != nil || len(next) == 0 {
		return err
	}
	return commit(cl, topic, next)
}

// Whoever gets the partitions reads again what these failed to commit.
var rebalanced = []error{
	kerr.RebalanceInProgress,
	kerr.IllegalGeneration,
	kerr.UnknownMemberID,
	kerr.FencedMemberEpoch,
	kerr.StaleMemberEpoch,
}

func commit(cl *kgo.Client, topic string, next map[int32]kgo.EpochOffset) error {
	for {
		err := tryCommit(cl, topic, next)
		switch {
		case err == nil:
			offsets := map[int]int64{}
			for p, at := range next {
				offsets[int(p)] = at.Offset
			}
			program.TellCommitted(offsets)
			return nil
		case slices.ContainsFunc(rebalanced, func(r error) bool { return errors.Is(err, r) }):
			return nil
		case !kerr.IsRetriable(err) && !kgo.IsRetryableBrokerErr(err) && !errors.Is(err, kgo.ErrRecordTimeout):
			return err
		}
		fmt.Fprintln(os.Stderr, "commit:", err) // the broker is away; the client has waited for it
	}
}

func tryCommit(cl *kgo.Client, topic string, next map[int32]kgo.EpochOffset) (failure error) {
	cl.CommitOffsetsSync(context.Background(), map[string]map[int32]kgo.EpochOffset{topic: next},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			if failure = err; err != nil {
				return // and there is no answer
			}
			for _, t := range answer.Topics {
				for _, p := range t.Partitions {
					failure = errors.Join(failure, kerr.ErrorForCode(p.ErrorCode))
				}
			}
		})
	return failure
}
