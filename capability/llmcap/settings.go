// Package llmcap is the capability llm: requests to a language model with OpenAI's chat
// completions API, which many servers offer.
//
// Requests go through the client of package httpcap. So the same checks protect the
// network of the machine, and the key is removed from everything that a server sends
// back. A grant has one endpoint. A creature chooses the model, the messages and the
// functions that the model may call, and gets the complete answer; if the server streams
// it, this package puts the parts together. The engine enforces the budgets of tokens and
// of money; see [capability.Meter].
package llmcap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/capability/httpcap"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// Kind is the capability. The zero value is ready for use.
type Kind struct{}

// New returns the capability.
func New() Kind { return Kind{} }

// Name implements [capability.Kind].
func (Kind) Name() string { return "llm" }

// Bounds and defaults of settings.
const (
	defaultTimeout     = 2 * time.Minute
	defaultRetries     = 5
	defaultBackoff     = time.Second
	defaultBackoffMax  = time.Minute
	defaultConcurrency = 8
	defaultMaxTokens   = 4096
	defaultMaxRequest  = 1 << 20
	defaultMaxResponse = 512 << 10 // below the default of the limit message, with its frame
	mostMaxTokens      = 1 << 24
	mostMaxResponse    = 16 << 20
	mostModels         = 64

	// streamOverhead is how many times larger a stream may be than the answer: servers send
	// a few hundred bytes for each token.
	streamOverhead = 64
	mostStream     = 64 << 20
)

// Settings implements [capability.Kind].
func (Kind) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "endpoint", Type: capability.Text, Required: true, Doc: "the base URL of the API, to which `/chat/completions` is appended: `\"https://api.example.com/v1\"`"},
		{Name: "models", Type: capability.Texts, Required: true, Doc: "the models that may be used; requests that name no model use the first"},
		{Name: "key", Type: capability.Text, Sensitive: true, Without: "none", Doc: "the key, which is sent as `Authorization: Bearer …`; creatures do not see it, and its value may be sensitive"},
		{Name: "headers", Type: capability.TextMap, Sensitive: true, Doc: "further headers that every request gets; their values may be sensitive"},
		{Name: "prices", Type: capability.TextMap, Doc: "for each model, the prices of a million tokens of the prompt and of the answer, in any currency: `{ small = \"0.15 0.60\" }`"},
		{Name: "tokens_per_creature", Type: capability.Count, Without: "not bounded", Doc: "the [budget](llm.md#budgets) of tokens of each creature"},
		{Name: "tokens_per_graph", Type: capability.Count, Without: "not bounded", Doc: "the budget of tokens of all creatures of a graph together"},
		{Name: "money_per_creature", Type: capability.Text, Without: "not bounded", Doc: "the budget of money of each creature, in the currency of `prices`: `\"2.50\"`"},
		{Name: "money_per_graph", Type: capability.Text, Without: "not bounded", Doc: "the budget of money of all creatures of a graph together"},
		{Name: "max_tokens", Type: capability.Count, Default: "4096", Doc: "the largest number of tokens in an answer; a request may set a smaller one"},
		{Name: "max_tokens_name", Type: capability.Text, Choices: []string{"max_tokens", "max_completion_tokens"}, Default: `"max_tokens"`, Doc: "the name that the server uses for `max_tokens`"},
		{Name: "stream", Type: capability.Flag, Default: "true", Doc: "whether the server sends the answer in parts, so that proxies do not close the connection as idle; creatures get the answer complete"},
		{Name: "timeout", Type: capability.Duration, Default: `"2m"`, Doc: "how long an attempt may take"},
		{Name: "retries", Type: capability.Count, Default: "5", Doc: "how many more attempts a request gets after the first"},
		{Name: "backoff", Type: capability.Duration, Default: `"1s"`, Doc: "the pause before the second attempt; it doubles each time. A `Retry-After` header can make it longer"},
		{Name: "backoff_max", Type: capability.Duration, Default: `"1m"`, Doc: "the longest pause"},
		{Name: "on_failure", Type: capability.Text, Choices: []string{"result", "dead_letter"}, Default: `"result"`, Doc: "what a request becomes when its last attempt has failed: a result for the creature, or a [dead letter](limits.md#after-a-failure)"},
		{Name: "max_request", Type: capability.Size, Default: `"1MiB"`, Doc: "the largest request"},
		{Name: "max_response", Type: capability.Size, Default: `"512KiB"`, Doc: "the largest answer. Answers are messages, so the limit `message` of the creature bounds them too"},
		{Name: "rate", Type: capability.Count, Without: "not bounded", Doc: "attempts per second, for all creatures together"},
		{Name: "concurrency", Type: capability.Count, Default: "8", Doc: "attempts at the same time, for all creatures together"},
		{Name: "addresses", Type: capability.Texts, Without: "only those on the public internet", Doc: "addresses and ranges, by number, that the name of the endpoint may resolve to although they are not on the public internet"},
		{Name: "proxy", Type: capability.Text, Without: "none", Doc: "the URL of a proxy, or `environment`; see [`http`](recipes.md#http)"},
		{Name: "scripted", Type: capability.Text, Without: "the endpoint answers", Doc: "[rules](llm.md#without-a-server) that answer in place of the endpoint, in JSON, to try out a recipe without a server: `file(\"model.json\")`; an empty text means none"},
		{Name: "ca", Type: capability.Text, Without: "those of the system", Doc: "certificates of trusted authorities, in PEM, instead of those of the system"},
	}
}

// settings are the attributes of a block.
type settings struct {
	Endpoint          string            `json:"endpoint"`
	Models            []string          `json:"models"`
	Key               *string           `json:"key"`
	Headers           map[string]string `json:"headers"`
	Prices            map[string]string `json:"prices"`
	TokensPerCreature int64             `json:"tokens_per_creature"`
	TokensPerGraph    int64             `json:"tokens_per_graph"`
	MoneyPerCreature  string            `json:"money_per_creature"`
	MoneyPerGraph     string            `json:"money_per_graph"`
	MaxTokens         int64             `json:"max_tokens"`
	MaxTokensName     string            `json:"max_tokens_name"`
	Stream            *bool             `json:"stream"`
	Timeout           time.Duration     `json:"timeout"`
	Retries           *int              `json:"retries"`
	Backoff           time.Duration     `json:"backoff"`
	BackoffMax        time.Duration     `json:"backoff_max"`
	OnFailure         string            `json:"on_failure"`
	MaxRequest        int64             `json:"max_request"`
	MaxResponse       int64             `json:"max_response"`
	Rate              int               `json:"rate"`
	Concurrency       int               `json:"concurrency"`
	Addresses         []string          `json:"addresses"`
	Proxy             string            `json:"proxy"`
	CA                string            `json:"ca"`
	Scripted          string            `json:"scripted"`
}

// grant implements [capability.Grant].
type grant struct {
	settings
	url                       string // of the chat completions
	prices                    map[string]price
	moneyCreature, moneyGraph int64 // millionths; 0: not bounded
	http                      capability.Grant
	keyIsPlain                bool     // it is sent without encryption
	rules                     []rule   // of a scripted model
	secrets                   []string // what answers must not contain
}

func invalid(message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "llm", Message: message, Remedy: remedy}
}

// Open implements [capability.Kind].
func (Kind) Open(raw json.RawMessage) (capability.Grant, error) {
	g := &grant{prices: map[string]price{}}
	if err := json.Unmarshal(raw, &g.settings); err != nil {
		return nil, invalid("the settings cannot be read: "+plainly.JSON(nil, err).Error(), "correct them")
	}
	for _, step := range []func() error{g.readEndpoint, g.readModels, g.readBudgets, g.readNumbers, g.readScripted, g.openHTTP} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

const endpointRemedy = `write the base URL of the API, such as "https://api.example.com/v1"`

func (g *grant) readEndpoint() error {
	u, err := url.Parse(g.Endpoint)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Opaque != "":
		return invalid("endpoint is not the URL of a server", endpointRemedy)
	case u.User != nil:
		return invalid("endpoint has a user or password, which does not belong in a URL", "use key")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return invalid("endpoint has a query or a fragment", endpointRemedy+"; a key belongs in key")
	case strings.Contains(g.Endpoint, "*"):
		return invalid("endpoint contains a *, but it must be one URL", endpointRemedy)
	case strings.HasSuffix(u.Path, "/chat/completions"):
		return invalid("endpoint ends in /chat/completions, which terrarium appends itself", "remove it")
	}
	g.url = strings.TrimSuffix(g.Endpoint, "/") + "/chat/completions"
	a, err := netip.ParseAddr(u.Hostname())
	g.keyIsPlain = u.Scheme == "http" && (err != nil || !a.IsLoopback())
	return nil
}

func (g *grant) readModels() error {
	if len(g.Models) == 0 || len(g.Models) > mostModels {
		return invalid(fmt.Sprintf("models names %d models; it must name 1 to %d", len(g.Models), mostModels), `name the models that creatures may use, such as models = ["small"]`)
	}
	for i, m := range g.Models {
		if m == "" || len(m) > 200 || strings.ContainsFunc(m, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return invalid("models has "+quote(m)+", which is not the name of a model", "write the name that the server uses")
		}
		if slices.Contains(g.Models[:i], m) {
			return invalid("models names "+quote(m)+" twice", "name it once")
		}
	}
	if g.Key != nil && strings.TrimSpace(*g.Key) == "" {
		return invalid("key is empty", "set the variable that it comes from, or leave key out if the server needs none")
	}
	return nil
}

func (g *grant) readNumbers() error {
	for _, n := range []struct {
		name        string
		value, most int64
	}{
		{"max_tokens", g.MaxTokens, mostMaxTokens}, {"max_response", g.MaxResponse, mostMaxResponse}, {"concurrency", int64(g.Concurrency), 10_000},
		{"tokens_per_creature", g.TokensPerCreature, mostBudget}, {"tokens_per_graph", g.TokensPerGraph, mostBudget},
	} {
		if n.value < 0 || n.value > n.most {
			return invalid(n.name+" is out of range", fmt.Sprintf("use at most %d", n.most))
		}
	}
	g.MaxTokens, g.MaxResponse = cmp.Or(g.MaxTokens, defaultMaxTokens), cmp.Or(g.MaxResponse, defaultMaxResponse)
	g.MaxRequest, g.Timeout = cmp.Or(g.MaxRequest, defaultMaxRequest), cmp.Or(g.Timeout, defaultTimeout)
	g.Backoff, g.BackoffMax = cmp.Or(g.Backoff, defaultBackoff), cmp.Or(g.BackoffMax, defaultBackoffMax)
	g.Concurrency = cmp.Or(g.Concurrency, defaultConcurrency)
	if g.MaxTokensName = cmp.Or(g.MaxTokensName, "max_tokens"); g.MaxTokensName != "max_tokens" && g.MaxTokensName != "max_completion_tokens" {
		return invalid("max_tokens_name is "+quote(g.MaxTokensName), "write max_tokens or max_completion_tokens")
	}
	if g.Retries == nil {
		n := defaultRetries
		g.Retries = &n
	}
	return nil
}

// retryOn are the statuses after which a request is tried again.
var retryOn = []string{"408", "409", "425", "429", "500", "502", "503", "504", "529"}

func (g *grant) openHTTP() error {
	headers := map[string]string{}
	for name, value := range g.Headers {
		if strings.EqualFold(name, "authorization") && g.Key != nil {
			return invalid("headers sets "+quote(name)+", which key sets", "use one of the two")
		}
		if strings.EqualFold(name, "content-type") || strings.EqualFold(name, "accept") {
			return invalid("headers sets "+quote(name)+", which the client sets", "leave it out")
		}
		headers[name] = value
	}
	if g.Key != nil {
		headers["authorization"] = "Bearer " + *g.Key
	}
	raw, err := json.Marshal(map[string]any{
		"allow": []string{g.url}, "methods": []string{"POST"}, "headers": headers, "addresses": g.settings.Addresses, "timeout": g.Timeout, "retries": g.Retries,
		"backoff": g.Backoff, "backoff_max": g.BackoffMax, "retry_on": retryOn, "on_failure": g.OnFailure, "max_request": g.MaxRequest,
		"max_response": min(max(g.MaxResponse*streamOverhead, 1<<20), mostStream), "rate": g.Rate, "concurrency": g.Concurrency, "proxy": g.Proxy, "ca": g.CA,
	})
	if err != nil {
		return invalid("the settings cannot be used: "+err.Error(), "correct them")
	}
	g.secrets = secretsOf(headers)
	g.http, err = httpcap.New().Open(raw)
	return err
}

// Close closes the connections that wait for further requests.
func (g *grant) Close() error {
	if c, ok := g.http.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Limits implements [capability.Grant].
func (g *grant) Limits() capability.Limits { return g.http.Limits() }

// Allows implements [capability.Grant].
func (g *grant) Allows() []string {
	where := " at " + g.Endpoint
	if g.rules != nil {
		where = ", scripted"
	}
	out := []string{"models " + strings.Join(g.Models, ", ") + where}
	for _, b := range g.Budgets() {
		if b.Creature > 0 {
			out = append(out, "up to "+shown(b.Unit, b.Creature)+" per creature")
		}
		if b.Graph > 0 {
			out = append(out, "up to "+shown(b.Unit, b.Graph)+" per graph")
		}
	}
	if g.Proxy != "" {
		out = append(out, "through the proxy "+g.Proxy)
	}
	return out
}

// Warnings implements [capability.Grant].
func (g *grant) Warnings() []capability.Warning {
	if g.rules != nil {
		return nil // nothing is sent
	}
	var out []capability.Warning
	for _, w := range g.http.Warnings() {
		if w.Setting != "headers" { // a more precise warning follows
			out = append(out, w)
		}
	}
	if g.keyIsPlain && (g.Key != nil || len(g.Headers) > 0) {
		out = append(out, capability.Warning{Setting: "endpoint", Text: "The key and the messages are sent without encryption.", Remedy: "Use https."})
	}
	if g.Key != nil && len(*g.Key) < 8 {
		out = append(out, capability.Warning{Setting: "key", Text: "The key is too short to be removed from the answers of the server.", Remedy: "Check that the variable contains the whole key."})
	}
	if len(g.Budgets()) == 0 {
		out = append(out, capability.Warning{Text: "No budget limits how many tokens creatures use.", Remedy: "Set tokens_per_creature or tokens_per_graph."})
	}
	return out
}
