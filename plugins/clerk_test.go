package plugins_test

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/abi"
)

// asked returns a clerk's output for a task, and its reply.
func asked(t testing.TB, m abi.Module, task string) (output, reply string) {
	t.Helper()
	for _, e := range run(t, m, &world{features: true}, delivery{kind: abi.KindRequest, payload: task}) {
		verb, quoted, _ := strings.Cut(e, " ")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		switch verb {
		case "output":
			output = text
		case "reply":
			reply = text
		default:
			t.Errorf("the effect %s", e)
		}
	}
	return output, reply
}

func TestClerkFactors(t *testing.T) {
	m := builtin(t, "clerk")
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.Uint64Range(2, 1<<40).Draw(r, "n")
		task := fmt.Sprint("factor ", n)
		output, reply := asked(t, m, task)
		factors, ok := strings.CutPrefix(output, task+" = ")
		product, last := uint64(1), uint64(2)
		for _, text := range strings.Fields(factors) {
			p, err := strconv.ParseUint(text, 10, 64)
			if err != nil || p < last || !new(big.Int).SetUint64(p).ProbablyPrime(0) {
				t.Fatalf("%s: %s", output, text)
			}
			product, last = product*p, p
		}
		if !ok || reply != "" || product != n {
			t.Fatalf("%q, %q: the product is %d", output, reply, product)
		}
	})
}

func TestClerkSumsAndCounts(t *testing.T) {
	m := builtin(t, "clerk")
	texts := append([]string{"a b  c ", "\t\n"}, awkward[:5]...)
	for n := 50; n < 140; n++ { // around the ends of blocks
		texts = append(texts, strings.Repeat("y", n))
	}
	for _, text := range texts {
		if output, reply := asked(t, m, "sha256 "+text); output != fmt.Sprintf("sha256 %s = %x", text, sha256.Sum256([]byte(text))) || reply != "" {
			t.Errorf("%q, %q", output, reply)
		}
		if output, _ := asked(t, m, "words "+text); !strings.HasSuffix(output, fmt.Sprint(" = ", len(strings.Fields(text)))) {
			t.Errorf("%q", output)
		}
	}
}

func TestClerkOnNonsense(t *testing.T) {
	m := builtin(t, "clerk")
	for task, want := range map[string]string{
		"": "a task begins with", "dance 7": "a task begins with", "factor": "a task begins with", "factor 1": "factor takes", "factor frog": "factor takes",
		"factor 18446744073709551616": "factor takes", "factor -2": "factor takes", "factor 2 ": "factor takes",
	} {
		if output, reply := asked(t, m, task); output != "" || !strings.HasPrefix(reply, want) {
			t.Errorf("%q: %q, %q", task, output, reply)
		}
	}
	refuses(t, m, map[string]any{"x": 1}, `there is no attribute "x"`)
}
