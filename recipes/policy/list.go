package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

var _ deploy.PolicyLister = (*Set)(nil)

// List implements [deploy.PolicyLister].
func (s *Set) List() []deploy.PolicyInfo {
	out := make([]deploy.PolicyInfo, 0, len(s.policies))
	for _, p := range s.policies {
		sum := sha256.Sum256([]byte(p.Source))
		info := deploy.PolicyInfo{
			Name: p.Name, On: p.On, Mode: p.Mode.String(), Enforce: "deny", OnError: p.OnError.String(), Where: fmt.Sprintf("%s:%d", p.File, max(p.Line, 1)),
			SHA256: hex.EncodeToString(sum[:]), Channels: slices.Clone(p.Channels), Creatures: slices.Clone(p.Creatures), Species: slices.Clone(p.Species), Isolated: p.Process,
		}
		if info.On == "" {
			info.On = journal.JudgeSend
		}
		if p.Audit {
			info.Enforce = "audit"
		}
		out = append(out, info)
	}
	return out
}

// String returns "deny", "warn" or "allow".
func (o OnError) String() string { return [...]string{"deny", "warn", "allow"}[o] }
