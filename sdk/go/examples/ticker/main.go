// Command ticker is a creature that sets timers.
package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

var creature = terrarium.Creature{Init: start, Handle: handle}

const day = 86_400_000 // in milliseconds

type config struct{ every, limit int64 }

func read(t *terrarium.Turn) (c config, err error) {
	if err = t.ConfigKnows("every_ms", "limit"); err != nil {
		return c, err
	}
	if c.every, err = t.ConfigWhole("every_ms", 1, day, 1000); err != nil {
		return c, err
	}
	c.limit, err = t.ConfigWhole("limit", 0, 1_000_000, 0)
	return c, err
}

func start(t *terrarium.Turn) error {
	_, err := read(t)
	return err
}

func handle(t *terrarium.Turn) error {
	switch t.Kind() {
	case terrarium.KindStart:
		c, err := read(t)
		if err != nil {
			return err
		}
		return t.SetTimer("tick", c.every, c.every, []byte("tick"))
	case terrarium.KindTimer:
		if name := t.TimerName(); name != "tick" {
			_, err := t.SendAll(append([]byte(name+": "), t.Payload()...))
			return err
		}
		return tick(t)
	case terrarium.KindMessage:
		return command(t)
	}
	return nil
}

func tick(t *terrarium.Turn) error {
	c, err := read(t)
	if err != nil {
		return err
	}
	n, err := t.StateWhole("ticks")
	if err != nil {
		return err
	}
	n++
	if err := t.SetStateWhole("ticks", n); err != nil {
		return err
	}
	ticks := strconv.FormatInt(n, 10)
	if _, err := t.SendAll([]byte("tick " + ticks + " at " + strconv.FormatInt(t.Now()/1_000_000, 10))); err != nil {
		return err
	}
	if c.limit == 0 || n != c.limit {
		return nil
	}
	if _, err := t.CancelTimer("tick"); err != nil {
		return err
	}
	t.Log(terrarium.LevelInfo, "done after "+ticks+" ticks")
	return nil
}

func command(t *terrarium.Turn) error {
	text, err := t.Text()
	if err != nil {
		return err
	}
	if text == "stop" {
		was, err := t.CancelTimer("tick")
		if err != nil {
			return err
		}
		if was {
			t.Log(terrarium.LevelInfo, "stopped")
		} else {
			t.Log(terrarium.LevelInfo, "was not running")
		}
		return nil
	}
	if words := strings.SplitN(text, " ", 4); len(words) == 4 && words[0] == "in" {
		if ms, err := strconv.ParseInt(words[1], 10, 64); err == nil && ms >= 0 && ms <= day {
			return t.SetTimer(words[2], ms, 0, []byte(words[3]))
		}
	}
	return errors.New("unknown command: " + text)
}

func init() { terrarium.Register(creature) }

func main() {}
