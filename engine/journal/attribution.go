package journal

import (
	"bytes"
	"context"
	"slices"
	"unicode/utf8"
)

// Attribution describes what made a change of the graph. Fields that are not known are
// empty. An attribution is part of the payload of the events that describe the change.
type Attribution struct {
	// the operation: connect, apply, …; tool for a turn in which a creature called group tools
	Call string `json:"call,omitempty"`
	By   string `json:"by,omitempty"` // name of the caller: that of its token or client certificate
	// how the caller connected: token, certificate, browser, socket, exec or command; start or
	// reload for the recipes of a service; absent if the process itself made the change in another way
	Via string `json:"via,omitempty"`
	// the creature whose turn made the change
	Creature CreatureID `json:"by_creature,omitempty"`
}

// attributionKey is the key of a context's attribution.
type attributionKey struct{}

// Attribute returns a context for the requests of a caller. Changes that are made with this
// context have the attribution in their events. Texts are cut after [MaxApprovalText] bytes.
func Attribute(ctx context.Context, a Attribution) context.Context {
	a.Call, a.By, a.Via = bounded(a.Call), bounded(a.By), bounded(a.Via)
	return context.WithValue(ctx, attributionKey{}, a)
}

// AttributionOf returns the attribution of a context's caller. Without one, it is zero.
func AttributionOf(ctx context.Context) Attribution {
	a, _ := ctx.Value(attributionKey{}).(Attribution)
	return a
}

func bounded(text string) string {
	if len(text) <= MaxApprovalText {
		return text
	}
	end := MaxApprovalText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// Encode returns the members that [Event.Attribute] adds. A change of many creatures
// encodes them only once.
func (a *Attribution) Encode() []byte { return JSON(a) }

// Attribute adds an encoded attribution to the payload of an event that describes a change
// of the graph. It does nothing to other events, nor to one that has this attribution.
func (ev *Event) Attribute(encoded []byte) {
	const empty = len(`{}`)
	if !ev.Kind.isAttributed() || len(encoded) <= empty || len(ev.Payload) <= empty || bytes.HasSuffix(ev.Payload, encoded[1:]) {
		return
	}
	ev.Payload = slices.Concat(ev.Payload[:len(ev.Payload)-1], []byte(","), encoded[1:])
}

// isAttributed reports whether events of the kind describe a change of the graph. Kinds that
// always accompany one of these have no attribution.
func (k EventKind) isAttributed() bool {
	switch k {
	case EventCreatureStarted, EventCreatureStopped, EventModuleReplaced, EventParentLinkChanged, EventTopologyChanged, EventWireAdded, EventWireRemoved,
		EventRecipeStopped, EventRecipeContinued:
		return true
	}
	return false
}
