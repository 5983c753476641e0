// Package telemetry sends what a terrarium does to a collector of OpenTelemetry: a span for
// each turn and, from time to time, its counters and histograms. It speaks OTLP 1.x over HTTP with JSON,
// and is configured by the environment variables of OpenTelemetry.
//
// A turn is the child of the turn that sent the message it handles, even if a merge or a
// split has moved one of them to another graph. The trace of a message from outside begins
// with the turn that handles it, unless its header traceparent names a trace (W3C Trace
// Context). The ids of spans are made from the ids of events, so that a span can be found
// from an event, and an event from a span.
// The exporter subscribes to events like any other subscriber: it never delays a turn. If the
// collector is slow or cannot be reached, spans are left out, counted and reported in the log.
package telemetry
