package webhook

import "net/http"

// Impatient makes the end of a webhook not wait until messages are durable.
func (r *Router) Impatient() { r.patience = 0 }

// InterruptsAfterBody ends a webhook when the body of a request has arrived.
func InterruptsAfterBody(w http.ResponseWriter) {
	a := &arrival{c: http.NewResponseController(w), now: true}
	a.arrived()
	a.interrupt()
}
