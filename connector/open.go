package connector

import (
	"encoding/json"

	"github.com/seed47132306/terrarium/internal/contain"
)

// Opened is a connector, and what it says of itself. That does not change, so it is read once.
type Opened struct {
	Connector Connector
	Reaches   string
	Endless   bool
	Needs     string // of [Exclusive]; empty: nothing
	File      string // of [UsesFile]; empty: none
}

// Open opens a connector. The kind may belong to another program: if it panics, or returns
// nothing, the error names the address.
func Open(kind Kind, settings json.RawMessage, address string) (o Opened, err error) {
	name := "the connector " + address
	err = contain.Call(name, func() error {
		c, err := kind.Open(settings)
		if err != nil {
			return err
		}
		if c == nil {
			return contain.Nothing(name)
		}
		o = Opened{Connector: c, Reaches: c.Reaches(), Endless: c.Endless()}
		if x, ok := c.(Exclusive); ok {
			o.Needs = x.Needs()
		}
		if x, ok := c.(UsesFile); ok {
			o.File = x.File()
		}
		return nil
	})
	return o, err
}
