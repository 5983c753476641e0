// Command tally is a creature that counts words.
package main

import (
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

var creature = terrarium.Creature{Init: start, Handle: handle}

type config struct {
	step   int64
	prefix string
}

func read(t *terrarium.Turn) (c config, err error) {
	if err = t.ConfigKnows("step", "prefix"); err != nil {
		return c, err
	}
	if c.step, err = t.ConfigWhole("step", 1, 1_000_000, 1); err != nil {
		return c, err
	}
	c.prefix, err = t.ConfigText("prefix", "")
	return c, err
}

func start(t *terrarium.Turn) error {
	_, err := read(t)
	return err
}

const counts = "n/" // the state key of a count begins with it

func handle(t *terrarium.Turn) error {
	if t.Kind() != terrarium.KindMessage {
		return nil
	}
	text, err := t.Text()
	if err != nil {
		return err
	}
	if text == "?" {
		return list(t)
	}
	if key, ok := strings.CutPrefix(text, "-"); ok {
		return remove(t, key)
	}
	return add(t, text)
}

func list(t *terrarium.Turn) error {
	keys, err := t.StateList(counts)
	if err != nil {
		return err
	}
	var lines []byte
	for _, key := range keys {
		n, err := t.StateWhole(key)
		if err != nil {
			return err
		}
		lines = append(lines, strings.TrimPrefix(key, counts)+"="+strconv.FormatInt(n, 10)+"\n"...)
	}
	if len(lines) == 0 {
		lines = []byte("empty\n")
	}
	return t.Output(lines)
}

func remove(t *terrarium.Turn, key string) error {
	existed, err := t.StateDelete(counts + key)
	if err != nil {
		return err
	}
	if !existed {
		return t.Send("counts", []byte(key+" unknown"))
	}
	return t.Send("counts", []byte(key+" removed"))
}

func add(t *terrarium.Turn, key string) error {
	c, err := read(t)
	if err != nil {
		return err
	}
	n, err := t.StateWhole(counts + key)
	if err != nil {
		return err
	}
	n += c.step
	if err := t.SetStateWhole(counts+key, n); err != nil {
		return err
	}
	count := strconv.FormatInt(n, 10)
	return t.Send("counts", []byte(c.prefix+key+"="+count), terrarium.Header{Name: "count", Value: count})
}

func init() { terrarium.Register(creature) }

func main() {}
