// sarama as a driver of the client matrix.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"polylog.tests/interop/contract"
)

const wait = 30 * time.Second

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.Retry.Max = 60
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.Session.Timeout = 10 * time.Second
	return config
}

func produce(given contract.Given) (contract.Fields, error) {
	config := settings()
	config.Producer.Compression = codecs[given.Codec]
	config.Producer.Idempotent = given.Idempotent
	if given.Idempotent {
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer([]string{given.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, given.Count)
	for n := range messages {
		messages[n] = &sarama.ProducerMessage{
			Topic: given.Topic, Partition: int32(n % given.Partitions),
			Key:   sarama.StringEncoder(contract.Key(n)),
			Value: sarama.StringEncoder(contract.Value(given.Prefix, n)),
		}
	}
	return contract.Fields{"count": given.Count}, producer.SendMessages(messages)
}

func read(given contract.Given) (contract.Fields, error) {
	consumer, err := sarama.NewConsumer([]string{given.Bootstrap}, settings())
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	messages := make(chan *sarama.ConsumerMessage)
	for partition := range given.Partitions {
		part, err := consumer.ConsumePartition(given.Topic, int32(partition), sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		go func() {
			for message := range part.Messages() {
				messages <- message
			}
		}()
	}
	until := time.After(wait)
	for count := range given.Count {
		select {
		case m := <-messages:
			contract.Emit(contract.Fields{
				"record": []any{m.Partition, m.Offset, string(m.Key), string(m.Value)},
			})
		case <-until:
			return nil, fmt.Errorf("only %d records came", count)
		}
	}
	return contract.Fields{"count": given.Count}, nil
}

// member is what sarama calls a handler: it is told of every generation and every partition.
type member struct {
	positions *contract.Positions
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession,
	claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.positions.Record(message.Partition, message.Offset, message.Value)
			session.MarkMessage(message, "")
			if len(claim.Messages()) == 0 {
				session.Commit()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func consume(given contract.Given) (contract.Fields, error) {
	positions := contract.NewPositions(given)
	group, err := sarama.NewConsumerGroup([]string{given.Bootstrap}, given.Group, settings())
	if err != nil {
		return nil, err
	}
	go func() {
		for err := range group.Errors() {
			contract.Note(err)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for !positions.Stopped() {
			time.Sleep(50 * time.Millisecond)
		}
		cancel()
	}()
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{given.Topic}, &member{positions})
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return nil, err
		}
		if err != nil && ctx.Err() == nil {
			contract.Note(err)
			time.Sleep(200 * time.Millisecond)
		}
	}
	return contract.Fields{"count": positions.Count()}, group.Close()
}

func seek(given contract.Given) (contract.Fields, error) {
	client, err := sarama.NewClient([]string{given.Bootstrap}, settings())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	offset, err := client.GetOffset(given.Topic, 0, given.Time)
	if err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	part, err := consumer.ConsumePartition(given.Topic, 0, offset)
	if err != nil {
		return nil, err
	}
	select {
	case message := <-part.Messages():
		return contract.Fields{"offset": offset, "value": string(message.Value)}, part.Close()
	case <-time.After(wait):
		return nil, errors.New("no record came")
	}
}

func partitions(admin sarama.ClusterAdmin, topic string) (int, error) {
	told, err := admin.DescribeTopics([]string{topic})
	if err != nil {
		return 0, err
	}
	return len(told[0].Partitions), nil
}

func retention(admin sarama.ClusterAdmin, topic string) (string, error) {
	entries, err := admin.DescribeConfig(sarama.ConfigResource{
		Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"},
	})
	if err != nil {
		return "", err
	}
	return entries[0].Value, nil
}

func topicSteps(admin sarama.ClusterAdmin, given contract.Given) error {
	value, altered := contract.Retention, contract.AlteredRetention
	err := admin.CreateTopic(given.Topic, &sarama.TopicDetail{
		NumPartitions: 2, ReplicationFactor: 1,
		ConfigEntries: map[string]*string{"retention.ms": &value},
	}, false)
	if err != nil {
		return err
	}
	contract.Step("create-topic", nil)
	count, err := partitions(admin, given.Topic)
	if err != nil {
		return err
	}
	contract.Step("describe-topic", contract.Fields{"partitions": count})
	text, err := retention(admin, given.Topic)
	if err != nil {
		return err
	}
	contract.Step("describe-config", contract.Fields{"value": text})
	err = admin.IncrementalAlterConfig(sarama.TopicResource, given.Topic,
		map[string]sarama.IncrementalAlterConfigsEntry{
			"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &altered},
		}, false)
	if err != nil {
		return err
	}
	if text, err = retention(admin, given.Topic); err != nil {
		return err
	}
	contract.Step("alter-config", contract.Fields{"value": text})
	if err := admin.CreatePartitions(given.Topic, 4, nil, false); err != nil {
		return err
	}
	if count, err = partitions(admin, given.Topic); err != nil {
		return err
	}
	contract.Step("create-partitions", contract.Fields{"partitions": count})
	return nil
}

func groupSteps(admin sarama.ClusterAdmin, given contract.Given) error {
	listed, err := admin.ListConsumerGroups()
	if err != nil {
		return err
	}
	names := []string{}
	for name := range listed {
		names = append(names, name)
	}
	contract.Step("list-groups", contract.Fields{"groups": names})
	told, err := admin.DescribeConsumerGroups([]string{given.Group})
	if err != nil {
		return err
	}
	contract.Step("describe-group", contract.Fields{"state": told[0].State})
	fetched, err := admin.ListConsumerGroupOffsets(given.Group, map[string][]int32{given.Data: {0}})
	if err != nil {
		return err
	}
	block := fetched.GetBlock(given.Data, 0)
	contract.Step("group-offsets", contract.Fields{"offsets": map[int32]int64{0: block.Offset}})
	if err := admin.DeleteConsumerGroup(given.Group); err != nil {
		return err
	}
	contract.Step("delete-group", nil)
	return nil
}

func administer(given contract.Given) (contract.Fields, error) {
	client, err := sarama.NewClient([]string{given.Bootstrap}, settings())
	if err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if err := topicSteps(admin, given); err != nil {
		return nil, err
	}
	if err := groupSteps(admin, given); err != nil {
		return nil, err
	}
	if err := admin.DeleteRecords(given.Data, map[int32]int64{0: 5}); err != nil {
		return nil, err
	}
	low, err := client.GetOffset(given.Data, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	contract.Step("delete-records", contract.Fields{"low": low})
	if err := admin.DeleteTopic(given.Topic); err != nil {
		return nil, err
	}
	contract.Step("delete-topic", nil)
	topics, err := admin.ListTopics()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for name := range topics {
		names = append(names, name)
	}
	contract.Step("list-topics", contract.Fields{"topics": names})
	return nil, nil
}

func main() {
	contract.Run(map[string]func(contract.Given) (contract.Fields, error){
		"produce": produce, "read": read, "consume": consume, "seek": seek, "admin": administer,
	})
}
