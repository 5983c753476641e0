package main

import (
	"context"
	"encoding/binary"

	"github.com/seed47132306/terrarium/abi"
)

// nopHost implements hop in Go, to show the cost of the engine without Wasm.
type nopHost struct{}

func (nopHost) Compile(context.Context, []byte) (abi.Module, error) { return nopModule{}, nil }
func (nopHost) Close(context.Context) error                         { return nil }

type nopModule struct{}

var nopInfo abi.ModuleInfo

func (nopModule) Info() *abi.ModuleInfo       { return &nopInfo }
func (nopModule) Close(context.Context) error { return nil }
func (nopModule) Instantiate(context.Context, *abi.Limits, abi.Turn) (abi.Instance, error) {
	return &nopInstance{}, nil
}

type nopInstance struct{ memory [8]byte }

func (i *nopInstance) Handle(_ context.Context, t abi.Turn, kind abi.Kind, _ int) error {
	if kind != abi.KindMessage {
		return nil
	}
	payload, _ := t.Source(abi.SourcePayload)
	n := binary.LittleEndian.Uint64(payload)
	if n == 0 {
		return nil
	}
	binary.LittleEndian.PutUint64(i.memory[:], n-1)
	t.Send(abi.AllChannels, i.memory[:], nil)
	return nil
}

func (*nopInstance) Stop(context.Context, abi.Turn) error { return nil }
func (*nopInstance) MemoryBytes() int64                   { return 0 }
func (*nopInstance) FuelUsed() int64                      { return -1 }
func (*nopInstance) Close(context.Context) error          { return nil }
