package hosts

import (
	"context"
	"encoding/json"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hosts/adapter"
)

// The messages of the adapter protocol; see package adapter.
type (
	Op         = adapter.Op
	Request    = adapter.Request
	Edge       = adapter.Edge
	Limits     = adapter.Limits
	Tool       = adapter.Tool
	Response   = adapter.Response
	Problem    = adapter.Problem
	Turn       = adapter.Turn
	EffectKind = adapter.EffectKind
	Effect     = adapter.Effect
)

// The operations of the adapter protocol, and the kinds of effects.
const (
	OpHello       = adapter.OpHello
	OpCheck       = adapter.OpCheck
	OpLoad        = adapter.OpLoad
	OpDeliver     = adapter.OpDeliver
	OpSend        = adapter.OpSend
	OpAdvance     = adapter.OpAdvance
	OpDrop        = adapter.OpDrop
	OpStop        = adapter.OpStop
	OpReset       = adapter.OpReset
	EffectSend    = adapter.EffectSend
	EffectSendTo  = adapter.EffectSendTo
	EffectRequest = adapter.EffectRequest
	EffectReply   = adapter.EffectReply
	EffectOutput  = adapter.EffectOutput
	EffectState   = adapter.EffectState
	EffectDelete  = adapter.EffectDelete
	EffectTimer   = adapter.EffectTimer
	EffectCancel  = adapter.EffectCancel
)

// Adapter operates a host. One goroutine at a time calls its methods.
type Adapter interface {
	// Do answers a request. An error means that the adapter can no longer be used.
	Do(ctx context.Context, r *Request) (*Response, error)
	// Close ends the host.
	Close(ctx context.Context) error
}

// limitsOf returns the limits of a request.
func limitsOf(l *Limits) (abi.Limits, error) {
	var out abi.Limits
	if l == nil {
		return out, nil
	}
	text, err := json.Marshal(*l)
	if err != nil {
		return out, err
	}
	plain := Limits{}
	for name, v := range *l {
		if name != "deadline" {
			plain[name] = v
		}
	}
	if text, err = json.Marshal(plain); err != nil {
		return out, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, err
	}
	return out, nil
}
