package httpcap

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// TestClose proves that a grant keeps a connection for further requests, and that closing
// the grant closes the connection.
func TestClose(t *testing.T) {
	opened, closed := make(chan struct{}, 8), make(chan struct{}, 8)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened <- struct{}{}
		case http.StateClosed:
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	g := open(t, names{}, `{"allow":["`+s.URL+`/**"],"methods":["GET"]}`)
	for range 2 {
		if r := request(t, g, "GET", s.URL+"/", nil, ""); r.Code != abi.OK {
			t.Fatal(r.Code, r.Text)
		}
	}
	if len(opened) != 1 || len(closed) != 0 {
		t.Fatalf("%d connections for two requests, %d closed", len(opened), len(closed))
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	<-closed
}
