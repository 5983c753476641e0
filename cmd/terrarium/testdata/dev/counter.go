// Command counter is a creature that numbers the messages that it passes on.
package main

import (
	"fmt"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

var creature = terrarium.Creature{Handle: handle}

func handle(t *terrarium.Turn) error {
	if t.Kind() != terrarium.KindMessage {
		return nil
	}
	// FAULT
	text, err := t.Text()
	if err != nil {
		return err
	}
	n, err := t.StateWhole("n")
	if err != nil {
		return err
	}
	if err := t.SetStateWhole("n", n+1); err != nil {
		return err
	}
	return t.Send("out", fmt.Appendf(nil, "VERSION %s %d", text, n+1))
}

func init() { terrarium.Register(creature) }

func main() {}
