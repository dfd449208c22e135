// Package contract is what the drivers of the client matrix in Go take and print: see matrix.py.
package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

const (
	filler           = "polylog "
	Retention        = "3600000"
	AlteredRetention = "7200000"
)

// Given is the command line.
type Given struct {
	Bootstrap, Topic, Codec, Prefix, Group, Stop, Protocol, Data string
	Count, Partitions                                            int
	Time                                                         int64
	Idempotent                                                   bool
}

// Fields is a JSON object.
type Fields map[string]any

var output sync.Mutex

// Emit prints one line of JSON.
func Emit(fields Fields) {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// Step tells of one step of administration.
func Step(name string, fields Fields) {
	all := Fields{"step": name}
	for key, value := range fields {
		all[key] = value
	}
	Emit(all)
}

// Note tells of an error the program lives with.
func Note(err error) {
	if err != nil {
		Emit(Fields{"note": err.Error()})
	}
}

func Key(number int) string { return fmt.Sprintf("key-%d", number) }

func Value(prefix string, number int) string {
	text := fmt.Sprintf("%s %d %s", prefix, number, strings.Repeat(filler, number%20))
	return strings.TrimRight(text, " ")
}

// Positions is what a member has handed over, and so may commit.
type Positions struct {
	mutex sync.Mutex
	stop  string
	count int
	next  map[int32]int64
}

func NewPositions(given Given) *Positions {
	return &Positions{stop: given.Stop, next: map[int32]int64{}}
}

func (p *Positions) Stopped() bool {
	_, err := os.Stat(p.stop)
	return err == nil
}

func (p *Positions) Record(partition int32, offset int64, value []byte) {
	Emit(Fields{"record": []any{partition, offset, string(value)}})
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.next[partition] = offset + 1
	p.count++
}

// Take hands out what is to be committed, once.
func (p *Positions) Take() map[int32]int64 {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	taken := p.next
	p.next = map[int32]int64{}
	return taken
}

// Lost forgets partitions that another member may own now.
func (p *Positions) Lost(partitions []int32) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, partition := range partitions {
		delete(p.next, partition)
	}
}

func (p *Positions) Count() int { return p.count }

// Committed tells what the broker has acknowledged.
func Committed(offsets map[int32]int64) {
	pairs := [][]int64{}
	for partition, offset := range offsets {
		pairs = append(pairs, []int64{int64(partition), offset})
	}
	Emit(Fields{"committed": pairs})
}

func item(values map[string]string, name string, round int) string {
	items := strings.Split(values[name], ",")
	return items[round%len(items)]
}

func number(text string) int64 {
	if text == "" {
		return 0
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

// Run calls one of the commands for every item of the lists on the command line.
func Run(commands map[string]func(Given) (Fields, error)) {
	values := map[string]string{"protocol": "classic"}
	for n := 2; n+1 < len(os.Args); n += 2 {
		values[strings.TrimPrefix(os.Args[n], "--")] = os.Args[n+1]
	}
	rounds := 1
	for _, name := range []string{"topic", "codec", "prefix", "time"} {
		rounds = max(rounds, len(strings.Split(values[name], ",")))
	}
	for round := 0; round < rounds; round++ {
		given := Given{
			Bootstrap: values["bootstrap"], Topic: item(values, "topic", round),
			Codec: item(values, "codec", round), Prefix: item(values, "prefix", round),
			Group: values["group"], Stop: values["stop"], Protocol: values["protocol"],
			Data: values["data"], Count: int(number(values["count"])),
			Partitions: int(number(values["partitions"])),
			Time:       number(item(values, "time", round)),
			Idempotent: values["idempotent"] == "1",
		}
		done, err := commands[os.Args[1]](given)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if done == nil {
			done = Fields{}
		}
		Emit(Fields{"done": done})
	}
}
