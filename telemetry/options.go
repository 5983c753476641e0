package telemetry

import (
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// Options configures an [Exporter].
type Options struct {
	Traces  string // the URL that gets spans; "" means none
	Metrics string // the URL that gets counters; "" means none
	// Headers go with every request, such as those that authenticate.
	Headers map[string]string
	// Resource describes the process: attributes such as service.name.
	Resource map[string]string
	// Timeout bounds one request to the collector, with its retries. The default is ten seconds.
	Timeout time.Duration
	// Interval is the time between two exports of the counters. The default is one minute.
	Interval time.Duration
	// Log gets what cannot be sent. Nil discards it.
	Log *slog.Logger
}

// Enabled reports whether anything is to be sent.
func (o *Options) Enabled() bool { return o.Traces != "" || o.Metrics != "" }

// FromEnvironment reads the variables that the OpenTelemetry specification defines for
// exporters: OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER (otlp or none),
// OTEL_METRIC_EXPORT_INTERVAL, and OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL, _HEADERS and
// _TIMEOUT. The endpoint and the protocol can also be set for one signal, as in
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT. env has the form of os.Environ. Without an endpoint,
// nothing is sent.
//
// The only protocol is http/json. The error has the code [abi.InvalidArgument], and names
// the variable.
func FromEnvironment(env []string) (Options, error) {
	v := variables{}
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, "OTEL_") {
			v[name] = strings.TrimSpace(value)
		}
	}
	o := Options{Headers: map[string]string{}, Resource: map[string]string{"service.name": "terrarium"}}
	if strings.EqualFold(v["OTEL_SDK_DISABLED"], "true") {
		return o, nil
	}
	var err error
	if o.Traces, err = v.endpoint("TRACES", "v1/traces"); err != nil {
		return o, err
	}
	if o.Metrics, err = v.endpoint("METRICS", "v1/metrics"); err != nil || !o.Enabled() {
		return o, err
	}
	if o.Headers, err = v.pairs("OTEL_EXPORTER_OTLP_HEADERS"); err != nil {
		return o, err
	}
	resource, err := v.pairs("OTEL_RESOURCE_ATTRIBUTES")
	if err != nil {
		return o, err
	}
	maps.Copy(o.Resource, resource)
	if name := v["OTEL_SERVICE_NAME"]; name != "" {
		o.Resource["service.name"] = name
	}
	if o.Timeout, err = v.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT"); err != nil {
		return o, err
	}
	o.Interval, err = v.milliseconds("OTEL_METRIC_EXPORT_INTERVAL")
	return o, err
}

// variables are those of the environment whose names begin with OTEL_.
type variables map[string]string

// endpoint returns the URL for a signal. The general endpoint is a prefix of it.
func (v variables) endpoint(signal, path string) (string, error) {
	switch exporter := v["OTEL_"+signal+"_EXPORTER"]; exporter {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", wrong("OTEL_"+signal+"_EXPORTER", exporter, "use otlp or none")
	}
	name := "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"
	text := v[name]
	if text == "" {
		name = "OTEL_EXPORTER_OTLP_ENDPOINT"
		if text = v[name]; text == "" {
			return "", nil
		}
		text = strings.TrimSuffix(text, "/") + "/" + path
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", wrong(name, redacted(v[name]), "use the address of a collector, such as http://localhost:4318")
	}
	for _, protocol := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := v[protocol]; p != "" && p != "http/json" {
			return "", wrong(protocol, p, "use http/json, which collectors accept at the same port as http/protobuf")
		}
	}
	return text, nil
}

// pairs reads a list such as name=value,name=value, with percent-encoded values.
func (v variables) pairs(name string) (map[string]string, error) {
	out := map[string]string{}
	for _, entry := range strings.Split(v[name], ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		key, value, ok := strings.Cut(entry, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			// The value may be a secret.
			return nil, wrong(name, "", "use a list such as name=value,name=value")
		}
		out[key] = decoded
	}
	return out, nil
}

func (v variables) milliseconds(name string) (time.Duration, error) {
	if v[name] == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v[name], 10, 31)
	if err != nil || n == 0 {
		return 0, wrong(name, v[name], "use a number of milliseconds")
	}
	return time.Duration(n) * time.Millisecond, nil
}

// redacted returns the address of a collector without a password, or "" if it cannot tell
// where one is.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.Host == "" && strings.Contains(address, "@") {
		return ""
	}
	return u.Redacted()
}

func wrong(name, value, remedy string) error {
	message := name + " is not valid"
	if value != "" {
		message = fmt.Sprintf("%s is %.100q", name, value)
	}
	return &abi.Error{Code: abi.InvalidArgument, Op: "telemetry", Message: message, Remedy: remedy}
}
