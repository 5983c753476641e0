package main

import "testing"

// Verdicts of policies are readable for every kind of subject.
func TestPolicyLine(t *testing.T) {
	for _, c := range []struct{ payload, name, want string }{
		{`{"effect":"warning","event":"send","policy":"budget","reason":"22 of 25","where":"b.hcl:18"}`, "asker",
			"policy budget (b.hcl:18) on send of asker: warning: 22 of 25"},
		{`{"effect":"audit","event":"send","policy":"short","reason":"too long","where":"a.hcl:9"}`, "",
			"policy short (a.hcl:9) on send: audit: too long"},
		{`{"effect":"ruled","event":"fail","policy":"enough","reason":"quarantine: 2 failures","where":"q.hcl:18"}`, "worker",
			"policy enough (q.hcl:18) on fail of worker: ruled: quarantine: 2 failures"},
		{`{"effect":"changed","event":"send","policy":"hide","where":"h.hcl:3"}`, "", "policy hide (h.hcl:3) on send: changed"},
	} {
		if got := policyLine([]byte(c.payload), c.name); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
