package terrarium_test

import (
	"bytes"
	"fmt"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

// A creature that passes on messages in capital letters.
func Example() {
	shout := terrarium.Creature{Handle: func(t *terrarium.Turn) error {
		_, err := t.SendAll(bytes.ToUpper(t.Payload()))
		return err
	}}
	// In a module: func init() { terrarium.Register(shout) }

	f := terrariumtest.New(shout)
	f.Channels = []string{"loud"}
	err := f.Message("in", "hello")
	fmt.Println(f.Sent[0].Channel, f.Sent[0].Payload, err)
	// Output: loud HELLO <nil>
}
