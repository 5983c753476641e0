// Package serve offers a running [terrarium.Terrarium] over HTTP: the operations of
// package operations, the events as server-sent events, and a page for a browser.
//
// A caller sends a bearer token. A browser exchanges a one-time code for a cookie, which
// scripts cannot read. Requests under host names that are not allowed, or from pages of
// other origins, are refused before anything else, because a browser sends such requests
// on behalf of any page that it shows.
//
//   - handler.go: the routes, and what every answer has in common
//   - callers.go: the requests that are under way, and a fair share for each caller
//   - login.go: tokens, one-time codes and cookies
//   - events.go: the stream of events
//   - metrics.go: figures for Prometheus
//   - durations.go: histograms of how long turns took
//   - hub.go: events that are encoded once for many streams
//   - problem.go: errors as RFC 9457 describes them
//   - page.go: the files of the page
//   - tokens.go: the file of tokens
//   - conns.go: a bound on connections, beyond which unused ones are closed
//   - listen.go: the server, and bounds on headers and time
package serve
