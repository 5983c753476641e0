package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// What does not fit into the room of a question is counted and hashed, and no header is cut
// in the middle.
func TestWhatAQuestionShows(t *testing.T) {
	headers := map[string]string{"a": strings.Repeat("x", 9), "b": strings.Repeat("y", 30), "c": "z"}
	content := []byte(strings.Repeat("c", 100))
	sum := sha256.Sum256(content)
	for _, c := range []struct {
		room, content, headers, more int
	}{
		{1000, 100, 3, 0},
		{130, 100, 2, 1}, // b does not fit
		{105, 100, 1, 2},
		{100, 100, 0, 3},
		{60, 60, 0, 3},
		{0, 0, 0, 3},
		{-5, 0, 0, 3},
	} {
		var r ApprovalRow
		r.Show(content, headers, c.room)
		if len(r.Content) != c.content || r.Size != 100 || len(r.Headers) != c.headers || r.MoreHeaders != c.more || r.Shown() > max(c.room, 0) {
			t.Errorf("in %d bytes it shows %d bytes of %d, %d headers and leaves out %d", c.room, len(r.Content), r.Size, len(r.Headers), r.MoreHeaders)
		}
		for name, value := range r.Headers {
			if headers[name] != value {
				t.Errorf("the header %s is %q", name, value)
			}
		}
		want := ""
		if c.content < 100 {
			want = hex.EncodeToString(sum[:])
		}
		if r.ContentHash != want {
			t.Errorf("in %d bytes the hash is %q", c.room, r.ContentHash)
		}
	}
	var large ApprovalRow
	large.Show(make([]byte, MaxApprovalContent+1), headers, MaxCreatureContent)
	if len(large.Content) != MaxApprovalContent || large.ContentHash == "" || large.MoreHeaders != 3 {
		t.Errorf("a large content is shown with %d bytes", len(large.Content))
	}
}
