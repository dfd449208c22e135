// franz-go with its admin package kadm as a driver of the client matrix.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"polylog.tests/interop/contract"
)

const wait = 30 * time.Second

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func client(given contract.Given, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(given.Bootstrap)}, more...)...)
}

func produce(given contract.Given) (contract.Fields, error) {
	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(20 * time.Millisecond),
		kgo.ProducerBatchCompression(codecs[given.Codec]),
	}
	if !given.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	producer, err := client(given, options...)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	records := make([]*kgo.Record, given.Count)
	for n := range records {
		records[n] = &kgo.Record{
			Topic: given.Topic, Partition: int32(n % given.Partitions),
			Key: []byte(contract.Key(n)), Value: []byte(contract.Value(given.Prefix, n)),
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return contract.Fields{"count": given.Count}, producer.ProduceSync(ctx, records...).FirstErr()
}

// reader consumes given partitions from given offsets, without a group.
func reader(given contract.Given, from map[int32]int64) (*kgo.Client, error) {
	where := map[int32]kgo.Offset{}
	for partition, offset := range from {
		where[partition] = kgo.NewOffset().At(offset)
	}
	return client(given, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{given.Topic: where}))
}

func read(given contract.Given) (contract.Fields, error) {
	from := map[int32]int64{}
	for partition := range given.Partitions {
		from[int32(partition)] = 0
	}
	consumer, err := reader(given, from)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	count := 0
	for count < given.Count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("only %d records came: %w", count, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			contract.Emit(contract.Fields{
				"record": []any{r.Partition, r.Offset, string(r.Key), string(r.Value)},
			})
			count++
		})
	}
	return contract.Fields{"count": count}, nil
}

func commit(member *kgo.Client, topic string, positions *contract.Positions) {
	pending := positions.Take()
	if len(pending) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	records := []*kgo.Record{}
	for partition, offset := range pending {
		records = append(records, &kgo.Record{
			Topic: topic, Partition: partition, Offset: offset - 1, LeaderEpoch: -1,
		})
	}
	if err := member.CommitRecords(ctx, records...); err != nil {
		contract.Note(err)
		return
	}
	contract.Committed(pending)
}

func consume(given contract.Given) (contract.Fields, error) {
	positions := contract.NewPositions(given)
	options := []kgo.Opt{
		kgo.ConsumerGroup(given.Group), kgo.ConsumeTopics(given.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsRevoked(func(_ context.Context, c *kgo.Client, lost map[string][]int32) {
			commit(c, given.Topic, positions)
			positions.Lost(lost[given.Topic])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			positions.Lost(lost[given.Topic])
		}),
	}
	ctx := context.Background()
	if given.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	} else {
		options = append(options, kgo.SessionTimeout(10*time.Second),
			kgo.HeartbeatInterval(500*time.Millisecond))
	}
	member, err := client(given, options...)
	if err != nil {
		return nil, err
	}
	for !positions.Stopped() {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		fetches := member.PollRecords(short, 200)
		cancel()
		fetches.EachError(func(_ string, _ int32, err error) {
			if err != context.DeadlineExceeded {
				contract.Note(err)
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			positions.Record(r.Partition, r.Offset, r.Value)
		})
		commit(member, given.Topic, positions)
		member.AllowRebalance()
	}
	commit(member, given.Topic, positions)
	member.CloseAllowingRebalance()
	return contract.Fields{"count": positions.Count()}, nil
}

func seek(given contract.Given) (contract.Fields, error) {
	asked, err := client(given)
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	listed, err := kadm.NewClient(asked).ListOffsetsAfterMilli(ctx, given.Time, given.Topic)
	if err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(given.Topic, 0)
	if found.Err != nil {
		return nil, found.Err
	}
	consumer, err := reader(given, map[int32]int64{0: found.Offset})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	fetches := consumer.PollRecords(ctx, 1)
	if err := fetches.Err(); err != nil {
		return nil, err
	}
	return contract.Fields{"offset": found.Offset, "value": string(fetches.Records()[0].Value)}, nil
}

func partitions(ctx context.Context, admin *kadm.Client, topic string) int {
	told, err := admin.ListTopics(ctx, topic)
	if err != nil {
		contract.Note(err)
	}
	return len(told[topic].Partitions)
}

func retention(ctx context.Context, admin *kadm.Client, topic string) string {
	told, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		contract.Note(err)
		return ""
	}
	resource, _ := told.On(topic, nil)
	for _, config := range resource.Configs {
		if config.Key == "retention.ms" {
			return config.MaybeValue()
		}
	}
	return ""
}

func administer(given contract.Given) (contract.Fields, error) {
	connected, err := client(given)
	if err != nil {
		return nil, err
	}
	defer connected.Close()
	admin := kadm.NewClient(connected)
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	for _, step := range []func(context.Context, *kadm.Client, contract.Given) error{
		topicSteps, groupSteps, deletingSteps,
	} {
		if err := step(ctx, admin, given); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func topicSteps(ctx context.Context, admin *kadm.Client, given contract.Given) error {
	value, altered := contract.Retention, contract.AlteredRetention
	configs := map[string]*string{"retention.ms": &value}
	if _, err := admin.CreateTopic(ctx, 2, 1, configs, given.Topic); err != nil {
		return err
	}
	contract.Step("create-topic", nil)
	contract.Step("describe-topic",
		contract.Fields{"partitions": partitions(ctx, admin, given.Topic)})
	contract.Step("describe-config", contract.Fields{"value": retention(ctx, admin, given.Topic)})
	answers, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: &altered},
	}, given.Topic)
	if err != nil {
		return err
	}
	if answers[0].Err != nil {
		return answers[0].Err
	}
	contract.Step("alter-config", contract.Fields{"value": retention(ctx, admin, given.Topic)})
	grown, err := admin.UpdatePartitions(ctx, 4, given.Topic)
	if err != nil {
		return err
	}
	if err := grown.Error(); err != nil {
		return err
	}
	contract.Step("create-partitions",
		contract.Fields{"partitions": partitions(ctx, admin, given.Topic)})
	return nil
}

func groupSteps(ctx context.Context, admin *kadm.Client, given contract.Given) error {
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	contract.Step("list-groups", contract.Fields{"groups": listed.Groups()})
	told, err := admin.DescribeGroups(ctx, given.Group)
	if err != nil {
		return err
	}
	contract.Step("describe-group", contract.Fields{"state": told[given.Group].State})
	fetched, err := admin.FetchOffsets(ctx, given.Group)
	if err != nil {
		return err
	}
	offsets := map[int32]int64{}
	fetched.Each(func(o kadm.OffsetResponse) { offsets[o.Partition] = o.At })
	contract.Step("group-offsets", contract.Fields{"offsets": offsets})
	if _, err := admin.DeleteGroup(ctx, given.Group); err != nil {
		return err
	}
	contract.Step("delete-group", nil)
	return nil
}

func deletingSteps(ctx context.Context, admin *kadm.Client, given contract.Given) error {
	before := kadm.Offsets{}
	before.AddOffset(given.Data, 0, 5, -1)
	trimmed, err := admin.DeleteRecords(ctx, before)
	if err != nil {
		return err
	}
	low, _ := trimmed.Lookup(given.Data, 0)
	contract.Step("delete-records", contract.Fields{"low": low.LowWatermark})
	if _, err := admin.DeleteTopic(ctx, given.Topic); err != nil {
		return err
	}
	contract.Step("delete-topic", nil)
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	contract.Step("list-topics", contract.Fields{"topics": topics.Names()})
	return nil
}

func main() {
	contract.Run(map[string]func(contract.Given) (contract.Fields, error){
		"produce": produce, "read": read, "consume": consume, "seek": seek, "admin": administer,
	})
}
