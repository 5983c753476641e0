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

// Serve serves on a listener, with bounds on headers and time, until ctx ends. It closes
// the listener, and waits for the requests that are running. secure may be nil.
func (h *Handler) Serve(ctx context.Context, listener net.Listener, secure *tls.Config) error {
	h.t.Connectors().Webhooks() // from here on, requests can come
	return h.serve(ctx, listener, secure, false)
}

// ServeTrusted is [Handler.Serve] for a listener that only the user of the process can
// reach, such as a private Unix socket. Its requests need no token, and may do everything.
func (h *Handler) ServeTrusted(ctx context.Context, listener net.Listener) error {
	return h.serve(ctx, listener, nil, true)
}

type trustedKey struct{}

// trusted reports whether a request came over a trusted listener.
func trusted(r *http.Request) bool {
	is, _ := r.Context().Value(trustedKey{}).(bool)
	return is
}

func (h *Handler) serve(ctx context.Context, listener net.Listener, secure *tls.Config, trusted bool) error {
	server := &http.Server{
		Handler: h, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, TLSConfig: secure,
		ConnState: h.conns.note, ConnContext: h.conns.context,
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), trustedKey{}, trusted)
		},
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
