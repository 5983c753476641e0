package deploy

import "encoding/json"

// ConnectorKind is a kind of connector. Programs can add others. It is stable.
type ConnectorKind string

// Connector is a source or a sink that a recipe has declared. The engine does not use it:
// package terrarium runs the connectors, beside the engine.
type Connector struct {
	Direction string // "source" or "sink"
	Kind      ConnectorKind
	Name      string          // unique among the sources, or the sinks, of the deployment
	Channel   string          // address
	Settings  json.RawMessage // a JSON object; may have sensitive values, which no store keeps
}

// Address is the address of the declaration.
func (c *Connector) Address() string { return c.Direction + "." + string(c.Kind) + "." + c.Name }
