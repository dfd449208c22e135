// kafka-go as a driver of the client matrix.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"polylog.tests/interop/contract"
)

const wait = 30 * time.Second

var codecs = map[string]kafka.Compression{
	"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func produce(given contract.Given) (contract.Fields, error) {
	next := 0
	writer := &kafka.Writer{
		Addr: kafka.TCP(given.Bootstrap), Topic: given.Topic, RequiredAcks: kafka.RequireAll,
		Compression: codecs[given.Codec], BatchTimeout: 20 * time.Millisecond, BatchSize: 1000,
		// It is asked once a message, in the order they were given.
		Balancer: kafka.BalancerFunc(func(_ kafka.Message, partitions ...int) int {
			partition := partitions[next%len(partitions)]
			next++
			return partition
		}),
	}
	messages := make([]kafka.Message, given.Count)
	for n := range messages {
		messages[n] = kafka.Message{
			Key: []byte(contract.Key(n)), Value: []byte(contract.Value(given.Prefix, n)),
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if err := writer.WriteMessages(ctx, messages...); err != nil {
		return nil, err
	}
	return contract.Fields{"count": given.Count}, writer.Close()
}

func reader(given contract.Given, partition int) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{given.Bootstrap}, Topic: given.Topic, Partition: partition,
		MaxWait: 200 * time.Millisecond, MaxBytes: 1 << 20,
	})
}

func read(given contract.Given) (contract.Fields, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	count := 0
	for partition := range given.Partitions {
		from := reader(given, partition)
		for range (given.Count + given.Partitions - 1 - partition) / given.Partitions {
			m, err := from.ReadMessage(ctx)
			if err != nil {
				return nil, fmt.Errorf("only %d records came: %w", count, err)
			}
			contract.Emit(contract.Fields{
				"record": []any{m.Partition, m.Offset, string(m.Key), string(m.Value)},
			})
			count++
		}
		if err := from.Close(); err != nil {
			return nil, err
		}
	}
	return contract.Fields{"count": count}, nil
}

func consume(given contract.Given) (contract.Fields, error) {
	positions := contract.NewPositions(given)
	member := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{given.Bootstrap}, GroupID: given.Group, Topic: given.Topic,
		MaxWait: 200 * time.Millisecond, MaxBytes: 1 << 20, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: 500 * time.Millisecond, SessionTimeout: 10 * time.Second,
		RebalanceTimeout: 10 * time.Second, JoinGroupBackoff: 500 * time.Millisecond,
		MaxAttempts: 10, ReadBackoffMax: 500 * time.Millisecond,
		ErrorLogger: kafka.LoggerFunc(func(text string, values ...any) {
			contract.Note(fmt.Errorf(text, values...))
		}),
	})
	var pending []kafka.Message
	commit := func() {
		if len(pending) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		// What the broker refuses is not told to the caller: nothing is printed as committed.
		contract.Note(member.CommitMessages(ctx, pending...))
		pending = nil
	}
	for !positions.Stopped() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		message, err := member.FetchMessage(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			commit()
			continue
		}
		if err != nil {
			contract.Note(err)
			continue
		}
		positions.Record(int32(message.Partition), message.Offset, message.Value)
		pending = append(pending, message)
		if len(pending) >= 50 {
			commit()
		}
	}
	commit()
	return contract.Fields{"count": positions.Count()}, member.Close()
}

func seek(given contract.Given) (contract.Fields, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	from := reader(given, 0)
	defer from.Close()
	if err := from.SetOffsetAt(ctx, time.UnixMilli(given.Time)); err != nil {
		return nil, err
	}
	offset := from.Offset()
	message, err := from.ReadMessage(ctx)
	if err != nil {
		return nil, err
	}
	return contract.Fields{"offset": offset, "value": string(message.Value)}, nil
}

// partitions counts them, once they are as many as asked for: Kafka's metadata follows its answers.
func partitions(ctx context.Context, client *kafka.Client, topic string, wanted int) (int, error) {
	for {
		told, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return 0, err
		}
		if count := len(told.Topics[0].Partitions); count >= wanted {
			return count, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func retention(ctx context.Context, client *kafka.Client, topic string) (string, error) {
	told, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			ConfigNames: []string{"retention.ms"},
		}},
	})
	if err != nil {
		return "", err
	}
	return told.Resources[0].ConfigEntries[0].ConfigValue, told.Resources[0].Error
}

func topicSteps(ctx context.Context, client *kafka.Client, given contract.Given) error {
	made, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: given.Topic, NumPartitions: 2, ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{
			{ConfigName: "retention.ms", ConfigValue: contract.Retention},
		},
	}}})
	if err != nil {
		return err
	}
	if err := made.Errors[given.Topic]; err != nil {
		return err
	}
	contract.Step("create-topic", nil)
	count, err := partitions(ctx, client, given.Topic, 2)
	if err != nil {
		return err
	}
	contract.Step("describe-topic", contract.Fields{"partitions": count})
	text, err := retention(ctx, client, given.Topic)
	if err != nil {
		return err
	}
	contract.Step("describe-config", contract.Fields{"value": text})
	altered, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: given.Topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
				Name: "retention.ms", Value: contract.AlteredRetention,
				ConfigOperation: kafka.ConfigOperationSet,
			}},
		}},
	})
	if err != nil {
		return err
	}
	if err := altered.Resources[0].Error; err != nil {
		return err
	}
	if text, err = retention(ctx, client, given.Topic); err != nil {
		return err
	}
	contract.Step("alter-config", contract.Fields{"value": text})
	grown, err := client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: given.Topic, Count: 4}},
	})
	if err != nil {
		return err
	}
	if err := grown.Errors[given.Topic]; err != nil {
		return err
	}
	if count, err = partitions(ctx, client, given.Topic, 4); err != nil {
		return err
	}
	contract.Step("create-partitions", contract.Fields{"partitions": count})
	return nil
}

func groupSteps(ctx context.Context, client *kafka.Client, given contract.Given) error {
	listed, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return err
	}
	names := []string{}
	for _, group := range listed.Groups {
		names = append(names, group.GroupID)
	}
	contract.Step("list-groups", contract.Fields{"groups": names})
	told, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{
		GroupIDs: []string{given.Group},
	})
	if err != nil {
		return err
	}
	contract.Step("describe-group", contract.Fields{"state": told.Groups[0].GroupState})
	fetched, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{
		GroupID: given.Group, Topics: map[string][]int{given.Data: {0}},
	})
	if err != nil {
		return err
	}
	offsets := map[int]int64{}
	for _, part := range fetched.Topics[given.Data] {
		offsets[part.Partition] = part.CommittedOffset
	}
	contract.Step("group-offsets", contract.Fields{"offsets": offsets})
	gone, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{
		GroupIDs: []string{given.Group},
	})
	if err != nil {
		return err
	}
	if err := gone.Errors[given.Group]; err != nil {
		return err
	}
	contract.Step("delete-group", nil)
	return nil
}

func administer(given contract.Given) (contract.Fields, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(given.Bootstrap), Timeout: wait}
	if err := topicSteps(ctx, client, given); err != nil {
		return nil, err
	}
	if err := groupSteps(ctx, client, given); err != nil {
		return nil, err
	}
	gone, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{given.Topic}})
	if err != nil {
		return nil, err
	}
	if err := gone.Errors[given.Topic]; err != nil {
		return nil, err
	}
	contract.Step("delete-topic", nil)
	names, err := namesWithout(ctx, client, given.Topic)
	contract.Step("list-topics", contract.Fields{"topics": names})
	return nil, err
}

// namesWithout lists the topics, once a deleted one is gone: Kafka's metadata follows its answers.
func namesWithout(ctx context.Context, client *kafka.Client, gone string) ([]string, error) {
	for {
		told, err := client.Metadata(ctx, &kafka.MetadataRequest{})
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, topic := range told.Topics {
			names = append(names, topic.Name)
		}
		if !slices.Contains(names, gone) {
			return names, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func main() {
	contract.Run(map[string]func(contract.Given) (contract.Fields, error){
		"produce": produce, "read": read, "consume": consume, "seek": seek, "admin": administer,
	})
}
