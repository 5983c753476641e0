package operations

import (
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/connector"
)

// ConnectorRecord describes a source or sink of a recipe that runs.
type ConnectorRecord struct {
	Direction  connector.Direction `json:"direction"`         // `source` or `sink`
	Kind       connector.KindName  `json:"kind"`              // kind of the connector
	Name       string              `json:"name"`              // name in the recipe
	Deployment string              `json:"deployment"`        // recipe that declares it
	Channel    string              `json:"channel"`           // address of the channel
	Reaches    string              `json:"reaches"`           // what it reads or writes
	State      connector.State     `json:"state"`             // `starting`, `working`, `retrying`, `ended` or `abandoned`
	Messages   int64               `json:"messages"`          // messages sent or delivered since the start of the process
	Repeated   int64               `json:"repeated"`          // messages that a source left out because it had taken them before
	Refused    int64               `json:"refused"`           // messages that were left out because of a policy or their size
	Failures   int64               `json:"failures"`          // times that it has failed since the start of the process
	Error      string              `json:"error,omitempty"`   // the last failure, while it is retrying
	Remedy     string              `json:"remedy,omitempty"`  // what to do about it
	Problem    string              `json:"problem,omitempty"` // the last message that was left out, and why
}

func connectorsOf(t *terrarium.Terrarium) []ConnectorRecord {
	var out []ConnectorRecord
	for _, s := range t.Connectors().Status() {
		out = append(out, ConnectorRecord(s))
	}
	return out
}
