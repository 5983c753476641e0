package webhook

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// bodyTime bounds the time that a body may take to arrive.
	bodyTime = 30 * time.Second
	// refuseTime bounds how long the server reads the body of a refused request, to keep the
	// connection.
	refuseTime = time.Second
)

// arrival is the body of a request while it arrives.
//
// If a read fails, net/http ends the context of the connection, not only that of the
// request. After the body, net/http itself reads on, to notice the end of the connection,
// and a failure of that read has the same effect. But net/http may use the connection
// again, and then every later request on it fails. So a deadline may pass only while a
// body arrives, and the connection ends with that request.
type arrival struct {
	c *http.ResponseController

	mu  sync.Mutex // guards the rest
	now bool       // it is arriving
	cut bool
}

// interrupt ends the body, if it is still arriving.
func (a *arrival) interrupt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now {
		a.cut = true
		_ = a.c.SetReadDeadline(time.Unix(1, 0)) // not every server can
	}
}

// arrived notes that nothing reads the body now, and reports whether it was cut.
func (a *arrival) arrived() (cut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = false
	return a.cut
}

// errCut is the error of a body that was arriving when its webhook ended.
var errCut = errors.New("the webhook ended while the body arrived")

// readBody reads the body of a request of at most a number of bytes, until over ends.
func readBody(over context.Context, w http.ResponseWriter, q *http.Request, most int64) ([]byte, error) {
	if q.Body == http.NoBody { // net/http already reads on, to notice the end of the connection
		return nil, nil
	}
	a := &arrival{c: http.NewResponseController(w), now: true}
	_ = a.c.SetReadDeadline(time.Now().Add(bodyTime))
	stop := context.AfterFunc(over, a.interrupt)
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, most))
	stop()
	if a.arrived() {
		err = errCut // even if the body is complete, as the connection may have ended
	}
	if err != nil {
		lastOfConnection(w, q)
		return nil, err
	}
	_ = a.c.SetReadDeadline(time.Time{})
	return body, nil
}

// boundRefused bounds the time in which a body arrives that nothing reads.
func boundRefused(w http.ResponseWriter, q *http.Request) {
	if q.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refuseTime)) // not every server can
	}
}

// late reports whether a body did not arrive, as opposed to one that is malformed.
func late(err error) bool {
	var broken net.Error // such as a deadline, or a connection that was reset
	return errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF)
}
