package plugins_test

import (
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// merging is a world whose group_channel records its calls, and refuses them
// with code unless code is ok.
func merging(code *abi.Code) *world {
	return &world{channels: []string{"help"}, features: true, tool: func(t *turn, name, args string) (string, abi.Code) {
		if *code != abi.OK {
			return "", t.fail(*code, "no")
		}
		t.effects = append(t.effects, fmt.Sprintf("%s %s", name, args))
		return `{"channel":"h7"}`, abi.OK
	}}
}

func TestEnvoyFetchesHelpAndLetsItGo(t *testing.T) {
	ok := abi.OK
	got := run(t, builtin(t, "envoy"), merging(&ok),
		delivery{channel: "release"},
		delivery{channel: "contact", payload: "c9"},
		delivery{channel: "call", payload: "one", headers: headers},
		delivery{channel: "contact", payload: "c10"}, // for the next time
		delivery{channel: "call", payload: "two"},
		delivery{channel: "release"},
		delivery{channel: "release"},
		delivery{channel: "other", payload: "x"},
		delivery{channel: "call", payload: "three"},
	)
	wire := `group_channel {"action":"wire","direction":"listen","creature":"%s","channel":"help","alias":"help","merge":true}`
	equal(t, got,
		fmt.Sprintf(wire, "c9"), sent("help", "one", headers), sent("help", "two", ""),
		`group_channel {"action":"unwire","direction":"listen","creature":"c9","channel":"h7"}`,
		fmt.Sprintf(wire, "c10"), sent("help", "three", ""))
}

func TestEnvoyWithoutHelpFails(t *testing.T) {
	code := abi.Denied
	m, w := builtin(t, "envoy"), merging(&code)
	call := delivery{channel: "call", payload: "x"}
	for want, d := range map[abi.Code][]delivery{
		abi.NotFound: {call},
		abi.Denied:   {{channel: "contact", payload: "c9"}, call},
	} {
		w.state = nil
		records := play(t, m, w, false, d)
		if last := records[len(records)-1]; abi.CodeOf(last.err) != want || len(last.effects) > 0 || len(last.logs) == 0 {
			t.Errorf("%v: %v, %v, log %q", want, last.err, last.effects, last.logs)
		}
	}
}
