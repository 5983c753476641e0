// Command oracle is a creature that asks and answers.
package main

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

var creature = terrarium.Creature{
	Init:   func(t *terrarium.Turn) error { return t.ConfigKnows() },
	Handle: handle,
}

func handle(t *terrarium.Turn) error {
	switch t.Kind() {
	case terrarium.KindMessage:
		return message(t)
	case terrarium.KindRequest:
		return answer(t)
	case terrarium.KindResult:
		head := "#" + strconv.FormatInt(t.Tag(), 10) + " " + t.ResultCode() + ": "
		return t.Send("answers", append([]byte(head), t.Payload()...))
	}
	return nil
}

func message(t *terrarium.Turn) error {
	text, err := t.Text()
	if err != nil {
		return err
	}
	words := strings.SplitN(text, " ", 3)
	switch {
	case len(words) == 3 && words[0] == "ask":
		return ask(t, words[1], words[2])
	case len(words) == 3 && words[0] == "tell":
		return t.SendTo(words[1], []byte(words[2]))
	case text == "draw":
		return draw(t)
	}
	channel := t.Channel()
	if t.Direct() {
		channel = "direct"
	}
	return t.Output([]byte(channel + " from " + cmp.Or(t.Sender(), "outside") + ": " + text))
}

func ask(t *terrarium.Turn, name, text string) error {
	tag, err := t.StateWhole("asked")
	if err != nil {
		return err
	}
	tag++
	if err := t.SetStateWhole("asked", tag); err != nil {
		return err
	}
	return t.Request(name, []byte(text), 1000, tag)
}

func draw(t *terrarium.Turn) error {
	var first, second [16]byte
	t.Random(first[:])
	t.Random(second[:])
	if bytes.Equal(first[:], second[:]) {
		return t.Output([]byte("same"))
	}
	return t.Output([]byte("different"))
}

func answer(t *terrarium.Turn) error {
	text, err := t.Text()
	if err != nil {
		return err
	}
	switch text {
	case "silence":
		return nil
	case "refuse":
		return &terrarium.Error{Code: terrarium.Denied, Text: "I refuse"}
	case "twice":
		if err := t.Reply([]byte("once")); err != nil {
			return err
		}
		return t.Reply([]byte("again"))
	}
	return t.Reply([]byte("you asked: " + text))
}

func init() { terrarium.Register(creature) }

func main() {}
