package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	maxHeader  = 16 << 10
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	// endTime bounds how long requests may take when the server ends.
	endTime = 10 * time.Second
)

// Serve serves a handler on a listener, with bounds on headers and time, until ctx ends.
// It closes the listener, and waits for the requests that are running. secure may be nil.
func Serve(ctx context.Context, listener net.Listener, h *Handler, secure *tls.Config) error {
	server := &http.Server{
		Handler: h, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, TLSConfig: secure,
		ErrorLog: slog.NewLogLogger(h.o.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() {
		if secure != nil {
			ended <- server.ServeTLS(listener, "", "")
		} else {
			ended <- server.Serve(listener)
		}
	}()
	select {
	case err := <-ended:
		h.End()
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	h.End()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	err := server.Shutdown(bounded)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	if serr := <-ended; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}
