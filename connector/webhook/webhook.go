// Package webhook is the source of the kind webhook: each request to a path becomes a message.
// A request is answered with 202 once its message is durable. Requests need a secret: as a
// bearer token, or as the key of a signature.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// Prefix is the beginning of the path of every webhook.
const Prefix = "/hooks/"

// New returns the kind, whose sources take requests from a router.
func New(r *Router) connector.Kind { return kind{r} }

// KindName is the name of the kind.
const KindName connector.KindName = "webhook"

type kind struct{ router *Router }

func (kind) Name() string { return string(KindName) }

func (kind) Direction() connector.Direction { return connector.Source }

// Ways in which a request shows that its sender knows the secret.
const (
	bearer    = "bearer"
	signature = "hmac-sha256"
)

// Bounds and defaults of settings.
const (
	defaultBody  = 1 << 20
	minSecret    = 16
	defaultKey   = "Idempotency-Key"
	signedHeader = "X-Hub-Signature-256"
)

func (kind) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "path", Type: capability.Text, Required: true, Doc: "the path of the requests, such as `\"/hooks/orders\"`"},
		{Name: "secret", Type: capability.Text, Required: true, Sensitive: true, Doc: fmt.Sprintf("the secret, at least %d bytes", minSecret)},
		{Name: "auth", Type: capability.Text, Choices: []string{bearer, signature}, Default: `"` + bearer + `"`, Doc: "how a request proves that its sender knows the secret. `bearer`: the header `Authorization: Bearer SECRET`. `hmac-sha256`: a signature of the body, in hexadecimal digits, with or without `sha256=` before them"},
		{Name: "signature_header", Type: capability.Text, Default: `"` + signedHeader + `"`, Doc: "the header with the signature"},
		{Name: "method", Type: capability.Text, Choices: []string{"POST", "PUT"}, Default: `"POST"`, Doc: "the method of the requests"},
		{Name: "max_body", Type: capability.Size, Default: `"1MiB"`, Doc: "the largest body of a request"},
		{Name: "content_types", Type: capability.Texts, Without: "any", Doc: "the allowed content types, such as `[\"application/json\"]`"},
		{Name: "key_header", Type: capability.Text, Default: `"` + defaultKey + `"`, Doc: fmt.Sprintf("the header with the key of a request. Requests with the same key are taken once; the last %d keys are remembered, even after a kill", connector.WindowSize)},
		{Name: "headers", Type: capability.Texts, Without: "none", Doc: "headers of the request that become headers of the message, in lower case"},
	}
}

type settings struct {
	Path            string   `json:"path"`
	Secret          string   `json:"secret"`
	Auth            string   `json:"auth"`
	SignatureHeader string   `json:"signature_header"`
	Method          string   `json:"method"`
	MaxBody         int64    `json:"max_body"`
	ContentTypes    []string `json:"content_types"`
	KeyHeader       string   `json:"key_header"`
	Headers         []string `json:"headers"`
}

var pathPattern = regexp.MustCompile(`^/hooks/[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*$`)

var headerPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

func (k kind) Open(data json.RawMessage) (connector.Connector, error) {
	s := settings{Auth: bearer, SignatureHeader: signedHeader, Method: http.MethodPost, MaxBody: defaultBody, KeyHeader: defaultKey}
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, plainly.JSON(nil, err)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return &source{s, k.router}, nil
}

func (s *settings) check() error {
	invalid := func(message, remedy string) error {
		return &abi.Error{Code: abi.InvalidArgument, Message: message, Remedy: remedy}
	}
	switch {
	case !pathPattern.MatchString(s.Path) || slices.ContainsFunc(strings.Split(s.Path, "/"), func(part string) bool { return part == "." || part == ".." }):
		return invalid(fmt.Sprintf("the path %q is not valid", s.Path), `use /hooks/ and a name, such as "/hooks/orders"`)
	case len(s.Secret) < minSecret:
		return invalid(fmt.Sprintf("the secret is shorter than %d bytes", minSecret), "use a random one, such as the output of openssl rand -hex 32")
	case s.MaxBody > deploy.MaxMessage/2:
		return invalid(fmt.Sprintf("max_body is more than %d bytes", deploy.MaxMessage/2), "use a smaller value; the body becomes a message, whose size is limited")
	}
	for i, text := range s.ContentTypes {
		kind, parameters, err := mime.ParseMediaType(text)
		if err != nil || !strings.Contains(kind, "/") || len(parameters) > 0 {
			return invalid(fmt.Sprintf("%q is not a content type without parameters", text), `write the type and the subtype, such as "application/json"; requests may have parameters, such as charset`)
		}
		s.ContentTypes[i] = kind // in lower case
	}
	for _, name := range append([]string{s.SignatureHeader, s.KeyHeader}, s.Headers...) {
		if !headerPattern.MatchString(name) {
			return invalid(fmt.Sprintf("%q is not the name of a header", name), "use letters, digits and hyphens")
		}
	}
	for _, name := range s.Headers {
		if strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Cookie") {
			return invalid("the header "+name+" contains secrets, which would become part of messages", "remove it from headers")
		}
	}
	return nil
}

type source struct {
	settings
	router *Router
}

func (s *source) Reaches() string { return "takes " + s.Method + " " + s.Path }

func (s *source) Endless() bool { return true }

// Needs implements [connector.Exclusive].
func (s *source) Needs() string { return "the path " + s.Path }

// Run implements [connector.Connector].
func (s *source) Run(ctx context.Context, p connector.Port) error {
	r, err := newRoute(ctx, s, p)
	if err != nil {
		return err
	}
	defer r.giveUp()
	defer r.end()
	if err := s.router.add(r); err != nil {
		return err
	}
	defer s.router.remove(r)
	if !s.router.Served() {
		p.Log().Info("a webhook takes requests only while terrarium serve runs the recipe", "path", s.Path)
	}
	select {
	case <-s.router.serving:
		p.Working()
		select {
		case err := <-r.failed:
			return err
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	return nil
}
