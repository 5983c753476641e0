package compilecost

import (
	"context"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// estimate reads and validates a module and estimates its cost.
func estimate(wasm []byte, limits Limits) (Cost, error) {
	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		return Cost{}, err
	}
	infos, err := m.Validate(wasmbin.Limits{})
	if err != nil {
		return Cost{}, err
	}
	return Estimate(m, infos, limits)
}

// Each of the worst shapes is refused while it is small, with the name of the
// function and a remedy, and refusing it is fast.
func TestWorstAreRefused(t *testing.T) {
	for _, s := range worst {
		t.Run(s.name, func(t *testing.T) {
			n := 1
			for ; n <= 1<<17; n *= 2 {
				m := s.make(n)
				_, err := Estimate(m, nil, Limits{})
				if err == nil {
					continue
				}
				if abi.CodeOf(err) != abi.TooLarge || !strings.Contains(err.Error(), "split it") {
					t.Errorf("the error is %v", err)
				}
				if size := len(m.Write()); size > 2<<20 {
					t.Errorf("it has %d bytes when it is refused", size)
				}
				return
			}
			t.Errorf("it is not refused at size %d", n)
		})
	}
}

// The terms match their definitions, on functions small enough to count by
// hand.
func TestTerms(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(c *code)
		want func(terms) (got, want int64, what string)
	}{
		{"nothing", func(*code) {}, func(t terms) (int64, int64, string) { return t.arguments, 0, "arguments" }},
		{"three branches search three blocks", func(c *code) {
			c.open(wasmbin.OpBlock).get(0).brIf(0).get(0).brIf(0).get(0).brIf(0).end()
		}, func(t terms) (int64, int64, string) {
			// 1+2+3 for the reads, 1 for the last; at the join one live local
			// is looked up twice along edges of length 1+2+3+4; one result at
			// the end.
			return t.lookups, 6 + 1 + 2*10, "lookups"
		}},
		{"an if passes what is live", func(c *code) {
			c.get(0).open(wasmbin.OpIf).num(1).set(0).end()
		}, func(t terms) (int64, int64, string) { return t.arguments, 2, "arguments" }},
		{"what is not live is not passed", func(c *code) {
			c.get(0).open(wasmbin.OpIf).num(1).set(1).end()
		}, func(t terms) (int64, int64, string) { return t.arguments, 2, "arguments" }},
		{"code that is never reached is free", func(c *code) {
			c.op(wasmbin.OpUnreachable).open(wasmbin.OpBlock).get(0).brIf(0).end()
		}, func(t terms) (int64, int64, string) { return t.lookups + t.arguments, 0, "lookups and arguments" }},
		{"addresses are passed down a chain", func(c *code) {
			c.open(wasmbin.OpBlock).get(0).load().brIf(0).get(0).load().brIf(0).end()
		}, func(t terms) (int64, int64, string) { return t.bounds, 1 + 2 + 2 + 1, "bounds" }},
		{"a call moves its argument and its result", func(c *code) {
			c.get(0).index(wasmbin.OpCall, 0).index(wasmbin.OpCall, 0).set(0)
		}, func(t terms) (int64, int64, string) { return t.moved, 4, "operands" }},
		{"targets are blocks of their own, also to one place", func(c *code) {
			c.open(wasmbin.OpBlock).get(0).index(wasmbin.OpBrTable, 3)
			c.b = append(c.b, 0, 0, 0, 0)
			c.end()
		}, func(t terms) (int64, int64, string) { return t.expanded, 4*bytesPerTarget + 2*3, "bytes" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := new(code)
			c.make(x)
			m := moduleOf(x.function(1))
			if _, err := m.Validate(wasmbin.Limits{}); err != nil {
				t.Fatal(err)
			}
			b := newBody(m)
			if !b.walk(0) {
				t.Fatal("it is not walked")
			}
			if got, want, what := c.want(b.terms(0)); got != want {
				t.Errorf("%d %s, want %d", got, what, want)
			}
		})
	}
}

// The estimate covers the compiler's allocations for many small things of one
// kind.
func TestEstimateCoversAllocation(t *testing.T) {
	for name, m := range map[string]*wasmbin.Module{
		"targets of a table":  tableToBlocks(100, 20_000),
		"operands of calls":   callsWithOperands(100, 250, wasmbin.OpCall),
		"operands of a table": callsWithOperands(100, 250, wasmbin.OpCallIndirect),
	} {
		t.Run(name, func(t *testing.T) {
			infos, err := m.Validate(wasmbin.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			cost, err := Estimate(m, infos, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if took := int64(compiled(t, m).bytes); took > cost.Bytes*3/2 || took < cost.Bytes/8 {
				t.Errorf("it took %d bytes; estimated are %d", took, cost.Bytes)
			}
		})
	}
}

// The compiler keeps the memory of a function for the next one, by kind, so functions
// that need different kinds need it at once.
func TestEstimateAddsWhatFunctionsNeedOfDifferentKinds(t *testing.T) {
	bytes := func(fs ...wasmbin.Code) int64 {
		cost, err := Estimate(moduleOf(fs...), nil, Limits{Time: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return cost.Bytes
	}
	body := func(name string, n int) wasmbin.Code {
		for _, s := range worst {
			if s.name == name {
				return s.make(n).Code[0]
			}
		}
		t.Fatalf("there is no shape %q", name)
		return wasmbin.Code{}
	}
	table, divisions := body("a table to a loop", 2000), body("divisions", 20_000)
	a, b := bytes(table), bytes(divisions)
	if both, turned := bytes(table, divisions), bytes(divisions, table); both < (a+b)*9/10 || turned != both {
		t.Errorf("together they need %d bytes, %d in the other order; alone %d and %d", both, turned, a, b)
	}
	if same := bytes(table, table); same > a*11/10 {
		t.Errorf("two of a kind need %d bytes, one %d", same, a)
	}
}

// The output of a toolchain is far below the limits.
func TestRealModulesPass(t *testing.T) {
	paths, err := filepath.Glob("../../../plugins/*/*.wasm")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	for _, p := range paths {
		wasm, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := estimate(wasm, Limits{})
		part := int64(20)
		if filepath.Base(p) == "js.wasm" {
			part = 10 // an interpreter, thirty times as large as the next
		}
		if err != nil || int64(cost.Time) > int64(DefaultLimits().Time)/part || int64(cost.Bytes) > int64(DefaultLimits().Bytes)/part {
			t.Errorf("%s costs %v: %v", filepath.Base(p), cost, err)
		}
	}
}

func TestLimitsAreKept(t *testing.T) {
	wasm := worst[0].make(1000).Write()
	cost, err := estimate(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := estimate(wasm, Limits{Time: 1, TimePerByte: 1}); abi.CodeOf(err) != abi.TooLarge {
		t.Errorf("with no time the error is %v", err)
	}
	wasm = worst[3].make(1000).Write()
	if cost, err = estimate(wasm, Limits{}); err != nil {
		t.Fatal(err)
	}
	if _, err := estimate(wasm, Limits{Bytes: cost.Bytes - 1}); abi.CodeOf(err) != abi.TooLarge {
		t.Errorf("with too little memory the error is %v", err)
	}
	if _, err := estimate(wasm, Limits{Bytes: cost.Bytes}); err != nil {
		t.Errorf("with enough memory the error is %v", err)
	}
}

// Every valid module can be estimated, with the same result twice.
func FuzzEstimate(f *testing.F) {
	for _, s := range worst {
		f.Add(s.make(3).Write())
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := wasmbin.Read(wasm, wasmbin.Limits{})
		if err != nil {
			return
		}
		infos, err := m.Validate(wasmbin.Limits{})
		if err != nil {
			return
		}
		first, err := Estimate(m, infos, Limits{})
		again, errAgain := Estimate(m, infos, Limits{})
		if first != again || (err == nil) != (errAgain == nil) || first.Time < 0 || first.Bytes < 0 {
			t.Errorf("it costs %v (%v) and %v (%v)", first, err, again, errAgain)
		}
	})
}

// BenchmarkCompileWorst compiles each of the worst shapes in the largest size
// that passes, and shows the ratio of real to estimated cost.
func BenchmarkCompileWorst(b *testing.B) {
	for _, s := range worst {
		b.Run(s.name, func(b *testing.B) {
			n := sort.Search(1<<17, func(n int) bool {
				_, err := estimate(s.make(n+1).Write(), Limits{})
				return err != nil
			})
			wasm := s.make(n).Write()
			cost, err := estimate(wasm, Limits{})
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			for b.Loop() {
				r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
				if _, err := r.CompileModule(ctx, wasm); err != nil {
					b.Fatal(err)
				}
				if err := r.Close(ctx); err != nil {
					b.Fatal(err)
				}
			}
			took := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(n), "size")
			b.ReportMetric(float64(len(wasm))/1024, "KiB")
			b.ReportMetric(took.Seconds(), "s/compile")
			b.ReportMetric(cost.Time.Seconds(), "estimated-s")
			b.ReportMetric(float64(cost.Bytes>>20), "estimated-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}
