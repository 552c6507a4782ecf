// Package program is what the programs in Go have in common: the calls of compat/README.md, lines, records,
// and what a member tells.
package program

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	Timeout = 60 * time.Second
	Poll    = 100 * time.Millisecond
	buffer  = 1 << 20
)

// Lines are those of a file, each without its newline.
func Lines(path string) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(data, []byte("\n"))
	return lines[:len(lines)-1], nil
}

// Key is that of the line with this number.
func Key(n int) []byte {
	return strconv.AppendInt(nil, int64(n), 10)
}

// Delivered is what the broker acknowledged: per partition at offsets that rise by one.
type Delivered struct {
	lock sync.Mutex
	next map[int]int64
	n    int
	err  error
}

func (d *Delivered) Take(partition int, offset int64, err error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if expected, ok := d.next[partition]; err == nil && ok && expected != offset {
		err = fmt.Errorf("offset %d was to be %d", offset, expected)
	}
	if err != nil {
		if d.err == nil {
			d.err = err
		}
		return
	}
	if d.next == nil {
		d.next = map[int]int64{}
	}
	d.next[partition] = offset + 1
	d.n++
}

func (d *Delivered) Tell(sent int) error {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.err != nil {
		return d.err
	}
	if d.n != sent {
		return fmt.Errorf("%d of %d were delivered", d.n, sent)
	}
	fmt.Println("produced", sent)
	return nil
}

// Out is the file of records.
type Out struct {
	file *os.File
	*bufio.Writer
}

func OpenOut(path string) (*Out, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &Out{file, bufio.NewWriterSize(file, buffer)}, nil
}

// Record writes one; a failure is that of the next Flush.
func (o *Out) Record(partition int, offset int64, key, value []byte) {
	fmt.Fprintf(o, "%d\t%d\t%s\t%s\n", partition, offset, key, value)
}

func (o *Out) Close() error {
	if err := o.Flush(); err != nil {
		return err
	}
	return o.file.Close()
}

// Assignment is the partitions that a member has; each change is told.
type Assignment struct {
	lock sync.Mutex
	has  map[int]bool
}

func (a *Assignment) Add(partitions ...int) {
	a.change(partitions, true)
}

func (a *Assignment) Remove(partitions ...int) {
	a.change(partitions, false)
}

// Set replaces them all.
func (a *Assignment) Set(partitions ...int) {
	a.lock.Lock()
	a.has = nil
	a.lock.Unlock()
	a.Add(partitions...)
}

func (a *Assignment) change(partitions []int, has bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.has == nil {
		a.has = map[int]bool{}
	}
	for _, p := range partitions {
		a.has[p] = has
	}
	var all []int
	for p, has := range a.has {
		if has {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	fmt.Println(strings.TrimSuffix("assigned "+strings.Trim(fmt.Sprint(all), "[]"), " "))
}

// TellOffsets is a line for each partition, behind the words.
func TellOffsets(offsets map[int]int64, words ...any) {
	var partitions []int
	for p := range offsets {
		partitions = append(partitions, p)
	}
	slices.Sort(partitions)
	for _, p := range partitions {
		fmt.Println(append(words, p, offsets[p])...)
	}
}

func TellCommitted(offsets map[int]int64) {
	TellOffsets(offsets, "committed")
}

func TellTopics(topics []string) {
	slices.Sort(topics)
	for _, topic := range topics {
		fmt.Println(topic)
	}
}

func IsThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Client is the calls, each with its words in order.
type Client interface {
	Topics(broker string) error
	Create(broker, topic string, n int) error
	Delete(broker, topic string) error
	Produce(broker, topic, codec string, lines [][]byte, first int, idempotent bool) error
	Consume(broker, topic string, out *Out) (int, error)
	Member(broker, topic, group string, out *Out, stop, protocol string) error
	Committed(broker, topic, group string) error
}

// Main makes the call that the words of the command line say.
func Main(c Client) {
	if err := call(c, os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func call(c Client, name, broker string, words []string) error {
	switch name {
	case "topics":
		return c.Topics(broker)
	case "create":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		return c.Create(broker, words[0], n)
	case "delete":
		return c.Delete(broker, words[0])
	case "produce":
		return produce(c, broker, words)
	case "consume":
		return consume(c, broker, words)
	case "member":
		out, err := OpenOut(words[2])
		if err != nil {
			return err
		}
		if err = c.Member(broker, words[0], words[1], out, words[3], words[4]); err != nil {
			return err
		}
		return out.Close()
	case "committed":
		return c.Committed(broker, words[0], words[1])
	}
	return fmt.Errorf("no call %s", name)
}

func produce(c Client, broker string, words []string) error {
	lines, err := Lines(words[2])
	if err != nil {
		return err
	}
	first, err := strconv.Atoi(words[3])
	if err != nil {
		return err
	}
	return c.Produce(broker, words[0], words[1], lines, first, words[4] == "idempotent")
}

func consume(c Client, broker string, words []string) error {
	out, err := OpenOut(words[1])
	if err != nil {
		return err
	}
	n, err := c.Consume(broker, words[0], out)
	if err != nil {
		return err
	}
	fmt.Println("consumed", n)
	return out.Close()
}
