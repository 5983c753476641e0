package wasmbin_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// judge asks wazero whether modules are valid.
type judge struct{ rt wazero.Runtime }

func newJudge(t testing.TB) judge {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	t.Cleanup(func() {
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return judge{rt}
}

func (j judge) accepts(wasm []byte) error {
	ctx := context.Background()
	m, err := j.rt.CompileModule(ctx, wasm)
	if err != nil {
		return err
	}
	return m.Close(ctx)
}

// valid reads and validates a module.
func valid(wasm []byte, limits wasmbin.Limits) (*wasmbin.Module, error) {
	m, err := wasmbin.Read(wasm, limits)
	if err != nil {
		return nil, err
	}
	_, err = m.Validate(limits)
	return m, err
}
