// Command scout is a creature that looks around and edits its graph.
package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

var creature = terrarium.Creature{Handle: handle}

func handle(t *terrarium.Turn) error {
	revision := strconv.FormatUint(t.AwarenessRevision(), 10)
	switch t.Kind() {
	case terrarium.KindStart:
		return t.Output([]byte(t.Self() + " starts at revision " + revision))
	case terrarium.KindGraphChanged:
		return t.Output([]byte("revision " + revision + ": listens on " + listens(t)))
	case terrarium.KindMessage:
		return command(t)
	}
	return nil
}

func listens(t *terrarium.Turn) string {
	var aliases []string
	for _, channel := range t.Awareness().Get("channels", "items").List() {
		if alias := channel.Get("listen"); alias != nil {
			aliases = append(aliases, alias.Text())
		}
	}
	if len(aliases) == 0 {
		return "nothing"
	}
	return strings.Join(aliases, ", ")
}

func command(t *terrarium.Turn) error {
	text, err := t.Text()
	if err != nil {
		return err
	}
	verb, rest, _ := strings.Cut(text, " ")
	first, second, two := strings.Cut(rest, " ")
	switch {
	case text == "title":
		line, _, _ := strings.Cut(t.AwarenessMarkdown(), "\n")
		return t.Output([]byte(line))
	case !t.HasFeature(terrarium.FeatureTools):
		return t.Output([]byte("no tools"))
	case text == "members":
		return members(t)
	case verb == "say" && two:
		_, err := t.SendChannel(terrarium.SendChannelArgs{Channel: first, Payload: []byte(second), Headers: []terrarium.Header{{Name: "tone", Value: "loud"}}})
		return report(t, "send_channel", err, "")
	case verb == "tell" && two:
		_, err := t.GroupSend(terrarium.GroupSendArgs{Creature: first, Payload: []byte(second)})
		return report(t, "group_send", err, "")
	case verb == "wire" && two:
		_, err := t.GroupChannel(terrarium.GroupChannelArgs{Action: "wire", Channel: first, Creature: t.Self(), Direction: "listen", Alias: second})
		return report(t, "group_channel", err, "wired "+first)
	case verb == "spawn" && two:
		result, err := t.GroupAddNode(terrarium.GroupAddNodeArgs{Species: first, Name: second})
		return report(t, "group_add_node", err, "spawned "+result.Get("name").Text())
	case rest != "" && !two:
		return edit(t, verb, rest, text)
	}
	return unknown(text)
}

// edit runs the commands that have one name.
func edit(t *terrarium.Turn, verb, name, text string) error {
	switch verb {
	case "make":
		_, err := t.GroupChannel(terrarium.GroupChannelArgs{Action: "create", Name: name})
		return report(t, "group_channel", err, "made "+name)
	case "stop":
		_, err := t.GroupStopNode(terrarium.GroupStopNodeArgs{Creature: name})
		return report(t, "group_stop_node", err, text)
	case "resume":
		_, err := t.GroupStartNode(terrarium.GroupStartNodeArgs{Creature: name})
		return report(t, "group_start_node", err, text)
	case "remove":
		_, err := t.GroupRemoveNode(terrarium.GroupRemoveNodeArgs{Creature: name})
		return report(t, "group_remove_node", err, text)
	case "route":
		content := true
		_, err := t.GroupWire(terrarium.GroupWireArgs{Action: "add", From: t.Self(), To: name, WithContent: &content})
		return report(t, "group_wire", err, "routed to "+name)
	}
	return unknown(text)
}

func unknown(text string) error { return errors.New("unknown command: " + text) }

func members(t *terrarium.Turn) error {
	result, err := t.GroupStatus(terrarium.GroupStatusArgs{})
	if err != nil {
		return report(t, "group_status", err, "")
	}
	var names []string
	for _, creature := range result.Get("creatures").List() {
		names = append(names, creature.Get("name").Text())
	}
	return t.Output([]byte("members: " + strings.Join(names, ", ")))
}

// report outputs what a tool did, if anything, or the code of its error.
func report(t *terrarium.Turn, tool string, err error, done string) error {
	var code terrarium.Code
	switch {
	case errors.As(err, &code):
		return t.Output([]byte(tool + ": " + code.Error()))
	case done == "":
		return nil
	}
	return t.Output([]byte(done))
}

//go:wasmexport terrarium_graph_changed
func graphChanged() {}

func init() { terrarium.Register(creature) }

func main() {}
