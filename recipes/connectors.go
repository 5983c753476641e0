package recipes

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// connectorBlocks are the blocks that declare connectors. Their other attributes are settings
// of the kind.
func connectorBlocks() []Block {
	channel := func(doc string) []Attribute {
		return []Attribute{{Name: "channel", Type: "channel", Required: true, Doc: doc}, attrDescription}
	}
	return []Block{
		{Name: string(connector.Source), Labels: []string{"kind", "name"}, Repeated: true, Doc: "[input from outside](connectors.md), which is sent on a channel",
			Attributes: channel("the channel that gets the messages"), Others: "a setting of the [kind](connectors.md#sources)"},
		{Name: string(connector.Sink), Labels: []string{"kind", "name"}, Repeated: true, Doc: "[delivery](connectors.md) of the messages of a channel to the outside",
			Attributes: channel("the channel whose messages are delivered"), Others: "a setting of the [kind](connectors.md#sinks)"},
	}
}

// isConnector reports whether a type of block declares connectors.
func isConnector(block string) bool {
	return block == string(connector.Source) || block == string(connector.Sink)
}

// openContent reads the attributes of a block that can have any.
func (ds *declarations) openContent(t string, b *hcl.Block) *hcl.BodyContent {
	attributes, diags := b.Body.JustAttributes()
	for _, d := range diags {
		ds.hcl(t, d)
	}
	return &hcl.BodyContent{Attributes: attributes}
}

// connectors evaluates the sources and sinks that the recipe declares.
func (dec *decoder) connectors() {
	for _, direction := range []connector.Direction{connector.Source, connector.Sink} {
		for _, d := range dec.ordered[string(direction)] {
			if c := dec.connector(direction, d); c != nil {
				dec.deployment.Connectors = append(dec.deployment.Connectors, *c)
			}
		}
	}
}

// connector evaluates one declaration; nil after an error.
func (dec *decoder) connector(direction connector.Direction, d *declaration) *deploy.Connector {
	s := scope{title: d.title}
	dec.checkDescription(s, d)
	kind := dec.connectorKind(direction, d)
	if kind == nil {
		for _, name := range slices.Sorted(maps.Keys(d.content.Attributes)) {
			a := d.content.Attributes[name]
			dec.eval(s.secretly(), a.Expr) // for its mistakes
			dec.mention(a.Expr)
		}
		return nil
	}
	settings := kind.Settings()
	d.own = &Block{Name: d.kind, Attributes: append(SettingAttributes(settings), blockNamed[d.kind].Attributes...)}
	ok := dec.checkAttributes(s, d)
	out := &deploy.Connector{Direction: string(direction), Kind: deploy.ConnectorKind(kind.Name()), Name: dec.names + d.name}
	ok = dec.connectorChannel(s, d, out) && ok
	values := map[string]json.RawMessage{}
	var secret []string
	for _, setting := range settings {
		ok = dec.setting(s, d, setting, values, &secret) && ok
	}
	if !ok {
		return nil
	}
	if data, err := json.Marshal(values); err == nil {
		out.Settings = data
	}
	opened, err := connector.Open(kind, out.Settings, out.Address())
	if err != nil {
		dec.invalidSettings(s, d, err)
		return nil
	}
	if opened.Needs != "" {
		if other, taken := dec.needed[opened.Needs]; taken {
			dec.report(s, d.at, Diagnostic{Summary: "Needed twice", Detail: fmt.Sprintf("%s needs %s too.", other, opened.Needs), Remedy: "Keep one of them, or change its settings."})
			return nil
		}
		dec.needed[opened.Needs] = out.Address()
	}
	if opened.File != "" && !dec.opts.ShapeOnly && !dec.usesFile(s, d, direction, out.Address(), opened.File) {
		return nil
	}
	return out
}

// usedFile is a file that a connector reads or writes.
type usedFile struct {
	direction connector.Direction
	address   string
	path      string
}

// usesFile notes the file of a connector. It refuses one that a source reads and a sink writes:
// each message would come back as another one, without end.
func (dec *decoder) usesFile(s scope, d *declaration, direction connector.Direction, address, path string) bool {
	path = withoutLinks(path, mostLinks)
	for _, other := range dec.files {
		if other.direction == direction || !sameFile(other.path, path) {
			continue
		}
		does := map[connector.Direction]string{connector.Source: "reads", connector.Sink: "writes to"}
		dec.report(s, d.at, Diagnostic{Summary: "Reads what it writes",
			Detail: fmt.Sprintf("This %s %s %s, and %s %s it. What is written would come back as messages, without end.", direction, does[direction], path, other.address, does[other.direction]),
			Remedy: "Give one of them another file."})
		return false
	}
	dec.files = append(dec.files, usedFile{direction, address, path})
	return true
}

// mostLinks bounds the symbolic links that are followed, which may form a circle.
const mostLinks = 40

// withoutLinks resolves the symbolic links in a path, as far as it exists.
func withoutLinks(path string, most int) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir, name := filepath.Split(path)
	if name == "" || most == 0 {
		return path
	}
	if target, err := os.Readlink(path); err == nil { // to a file that does not exist
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		return withoutLinks(target, most-1)
	}
	return filepath.Join(withoutLinks(dir, most-1), name)
}

// sameFile reports whether two paths lead to the same file, which may have several names.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// connectorKind finds the kind of a declaration, or reports that there is none.
func (dec *decoder) connectorKind(direction connector.Direction, d *declaration) (found connector.Kind) {
	var names []string
	for _, k := range dec.opts.Connectors {
		if k.Direction() != direction {
			continue
		}
		if !slices.Contains(names, k.Name()) {
			names = append(names, k.Name())
		}
		if k.Name() == d.event {
			found = k // the last: programs can replace kinds
		}
	}
	if found == nil {
		dec.report(scope{title: d.title}, d.at, Diagnostic{Summary: "Unknown kind of " + string(direction),
			Detail: fmt.Sprintf("This program has no %s of the kind %q.", direction, d.event), Suggestion: nearest(d.event, names),
			Remedy: fmt.Sprintf("It has: %s.", enumerate(names))})
	}
	return found
}

// checkAttributes reports attributes that the kind does not have, and those that are missing.
func (dec *decoder) checkAttributes(s scope, d *declaration) bool {
	errors := len(dec.diags)
	var names []string
	known := map[string]bool{}
	for _, a := range d.own.Attributes {
		names, known[a.Name] = append(names, a.Name), true
	}
	misspelt := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(d.content.Attributes)) {
		if a := d.content.Attributes[name]; !known[name] {
			near := nearest(name, names)
			misspelt[near] = true
			dec.report(s, a.NameRange, Diagnostic{Summary: "Unsupported argument", Detail: fmt.Sprintf("An argument named %q is not expected here.", name), Suggestion: near,
				Remedy: fmt.Sprintf("A %s of the kind %s has: %s.", d.kind, d.event, enumerate(names))})
		}
	}
	for _, a := range d.own.Attributes {
		if a.Required && d.attr(a.Name) == nil && !misspelt[a.Name] && !dec.broken {
			dec.report(s, d.at, Diagnostic{Summary: "Missing required argument", Detail: fmt.Sprintf("The argument %q is required, but no definition was found.", a.Name), Remedy: fmt.Sprintf("Add it: %s.", a.Doc)})
		}
	}
	return len(dec.diags) == errors
}

// connectorChannel reads the channel.
func (dec *decoder) connectorChannel(s scope, d *declaration, out *deploy.Connector) bool {
	a := d.attr("channel")
	if a == nil {
		return false // which has been reported
	}
	v, ok := dec.eval(s, a.Expr)
	if !ok {
		dec.mention(a.Expr)
		return false
	}
	if out.Channel, ok = refAddress(v, "channel"); !ok {
		dec.wrongReference(s, a.Expr, v, "channel")
		return false
	}
	if _, ok = dec.channelNames[out.Channel]; !ok {
		dec.fault(s, a.Expr, "Unknown channel", fmt.Sprintf("No channel has the address %s.", out.Channel), "Refer to a channel that the recipe declares.")
	}
	return ok
}
