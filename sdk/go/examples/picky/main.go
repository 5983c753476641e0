// Command picky is a creature that fails in every way that a creature can fail.
package main

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

var creature = terrarium.Creature{Init: start, Handle: handle}

type config struct {
	want   string
	most   int64
	strict bool
}

func read(t *terrarium.Turn) (c config, err error) {
	if err = t.ConfigKnows("want", "most", "strict"); err != nil {
		return c, err
	}
	if c.want, err = t.ConfigText("want"); err != nil {
		return c, err
	}
	if c.most, err = t.ConfigWhole("most", 1, 1000, 10); err != nil {
		return c, err
	}
	c.strict, err = t.ConfigBool("strict", false)
	return c, err
}

func start(t *terrarium.Turn) error {
	_, err := read(t)
	return err
}

func handle(t *terrarium.Turn) error {
	if t.Kind() != terrarium.KindMessage {
		return nil
	}
	c, err := read(t)
	if err != nil {
		return err
	}
	value, ok := t.Header("want")
	switch {
	case !ok:
		return &terrarium.Error{Code: terrarium.InvalidArgument, Text: "the header want is missing"}
	case value != c.want:
		return &terrarium.Error{Code: terrarium.InvalidArgument, Text: "the header want is " + value + ", not " + c.want}
	}
	text, err := t.Text()
	if err != nil {
		return err
	}
	return act(t, c, text)
}

func act(t *terrarium.Turn, c config, text string) error {
	switch text {
	case "echo":
		_, err := t.SendAll([]byte(text), append(t.Headers(), terrarium.Header{Name: "seen", Value: "yes"})...)
		return err
	case "big":
		return big(t)
	case "caught":
		var code terrarium.Code
		if errors.As(big(t), &code) {
			return t.Output([]byte("caught " + code.Error()))
		}
		return nil
	case "alias":
		return t.Send("nowhere", []byte("x"))
	case "key":
		return t.StateSet("", []byte("x"))
	case "missing":
		_, err := t.StateGet("missing")
		if errors.Is(err, terrarium.NotFound) {
			return t.Output([]byte("no state"))
		}
		return err
	case "fail":
		return errors.New("it went wrong")
	case "denied":
		return &terrarium.Error{Code: terrarium.Denied, Text: "not today"}
	case "panic":
		panic("out of cheese")
	case "loop":
		for {
		}
	case "fuel":
		if t.FuelLeft() >= 0 {
			return t.Output([]byte("counted"))
		}
		return t.Output([]byte("not counted"))
	case "log":
		t.Log(terrarium.LevelDebug, "a debug line")
		t.Log(terrarium.LevelInfo, "an info line")
		t.Log(terrarium.LevelWarn, "a warn line")
		t.Log(terrarium.LevelError, "an error line")
		return nil
	}
	if n := int64(len(text)); n > c.most {
		return &terrarium.Error{Code: terrarium.TooLarge, Text: "the payload has " + strconv.FormatInt(n, 10) +
			" bytes, and at most " + strconv.FormatInt(c.most, 10) + " are allowed"}
	}
	if c.strict {
		t.Log(terrarium.LevelInfo, "strict")
	}
	return t.Output([]byte(text))
}

func big(t *terrarium.Turn) error {
	return t.StateSet("big", bytes.Repeat([]byte("x"), 1<<20+1))
}

func init() { terrarium.Register(creature) }

func main() {}
