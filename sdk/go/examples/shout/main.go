// Command shout is a creature that repeats messages in capital letters.
package main

import "github.com/seed47132306/terrarium/sdk/go/terrarium"

var creature = terrarium.Creature{Handle: func(t *terrarium.Turn) error {
	if t.Kind() != terrarium.KindMessage {
		return nil
	}
	payload := t.Payload()
	for i, c := range payload {
		if 'a' <= c && c <= 'z' {
			payload[i] = c - 'a' + 'A'
		}
	}
	_, err := t.SendAll(payload)
	return err
}}

func init() { terrarium.Register(creature) }

func main() {}
