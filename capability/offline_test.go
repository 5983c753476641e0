package capability_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/capability/httpcap"
)

// TestOffline proves that a capability that is offline sends nothing, and refuses the
// same requests as otherwise.
func TestOffline(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
	defer server.Close()
	settings, _ := json.Marshal(map[string][]string{"allow": {server.URL}})
	g, err := capability.Offline(httpcap.New()).Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	allowed := capability.Request{Head: []byte(`{"url":"` + server.URL + `"}`)}
	if err := g.Check(allowed); err != nil {
		t.Error(err)
	}
	if r := g.Do(t.Context(), capability.Call{Request: allowed}); r.Code != abi.Unavailable || r.Again {
		t.Errorf("%+v", r)
	}
	if err := g.Check(capability.Request{Head: []byte(`{"url":"http://example.com"}`)}); abi.CodeOf(err) != abi.Denied {
		t.Error(err)
	}
	if _, err := capability.Offline(httpcap.New()).Open(json.RawMessage(`{}`)); err == nil {
		t.Error("settings that are not valid were accepted")
	}
}
