package wasmgen_test

import (
	"context"
	"fmt"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmrun"
	"strings"
	"testing"
)

func TestStat(t *testing.T) {
	n := map[string]int{}
	for seed := range uint64(300) {
		r, err := wasmrun.Runner{Refuel: true}.Run(context.Background(), wasmgen.GenerateBounded(wasmgen.Seeded(seed)))
		if err != nil {
			n["refused "+err.Error()]++
			continue
		}
		if seed < 6 {
			fmt.Println(strings.Join(r.Transcript, "\n"))
			fmt.Println("----")
		}
		for _, l := range r.Transcript {
			switch {
			case strings.HasPrefix(l, "memory"):
				n["mem"]++
			case strings.HasPrefix(l, "start"):
				n[l]++
			case strings.HasPrefix(l, "h"):
				n["host"]++
			case strings.HasPrefix(l, "again"):
				n["again"]++
			case strings.Contains(l, " = "):
				n["ok"]++
			default:
				_, x, _ := strings.Cut(l, ": ")
				n[x]++
			}
		}
	}
	for k, v := range n {
		fmt.Println(v, k)
	}
}
