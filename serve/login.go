package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/operations"
)

const (
	// cookieTime is how long a browser stays logged in.
	cookieTime = 12 * time.Hour
	// codeTime is how long a one-time code is valid.
	codeTime = 10 * time.Minute
	// maxCookies and maxCodes bound what is remembered for each caller. The oldest ones of the
	// caller are forgotten first.
	maxCookies = 100
	maxCodes   = 20
)

// digest is the hash under which a secret is kept, so that the time of a comparison reveals
// nothing about the secret.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// caller is the sender of a request.
type caller struct {
	rights operations.Rights
	// source is the digest of the token or certificate, also behind a code and a cookie made
	// from it. It is zero for the server itself.
	source digest
	// gone is closed when the caller's cookie is no longer valid; nil without a cookie.
	gone chan struct{}
	// expires is when the cookie is no longer valid; zero without a cookie.
	expires time.Time
}

// admission is what a code or cookie allows until it expires.
type admission struct {
	caller
	digest digest
}

// logins holds the valid codes and cookies, oldest first.
type logins struct {
	mu      sync.Mutex // guards the fields below
	codes   []admission
	cookies []admission
	now     func() time.Time
}

func newLogins() logins { return logins{now: time.Now} }

// add remembers a new secret.
func (l *logins) add(list *[]admission, most int, c caller, valid time.Duration) (secret string) {
	secret = rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	*list = append(*list, admission{caller{c.rights, c.source, make(chan struct{}), now.Add(valid)}, digestOf(secret)})
	same := 0
	for i := len(*list) - 1; i >= 0; i-- { // those of other callers stay
		a := (*list)[i]
		if a.source == c.source {
			same++
		}
		if a.source == c.source && same > most || !now.Before(a.expires) {
			revoke(list, i)
		}
	}
	return secret
}

// revoke takes an admission off a list, and ends what its cookie has opened.
func revoke(list *[]admission, i int) {
	close((*list)[i].gone)
	*list = slices.Delete(*list, i, i+1)
}

// find finds a secret. With take, the secret is then no longer valid.
func (l *logins) find(list *[]admission, secret string, take bool) (caller, bool) {
	d := digestOf(secret)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range *list {
		if subtle.ConstantTimeCompare(a.digest[:], d[:]) != 1 {
			continue
		}
		if take {
			revoke(list, i)
		}
		return a.caller, l.now().Before(a.expires)
	}
	return caller{}, false
}

// LoginCode returns a code for GET /login?code=CODE, which is valid once, for ten minutes,
// and logs a browser in with rights.
func (h *Handler) LoginCode(rights operations.Rights) string {
	return h.logins.add(&h.logins.codes, maxCodes, caller{rights: rights}, codeTime)
}

// LoginLink returns a link with a [Handler.LoginCode]; empty without [Options.Address].
func (h *Handler) LoginLink(rights operations.Rights) string {
	return h.link(h.LoginCode(rights))
}

// link is the link with a code; empty if there is no address to open.
func (h *Handler) link(code string) string {
	if h.o.Address == "" {
		return ""
	}
	return h.o.Address + "/login?code=" + code
}

// loginCode answers with a one-time code that has the rights of its caller, and with the link
// that it makes. Only a caller without a cookie may make one, so that a stolen cookie does not
// outlive its time.
func (h *Handler) loginCode(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err == nil && !trusted(r) && r.Header.Get("Authorization") == "" {
		err = refused("a login code needs a token", "send Authorization: Bearer TOKEN")
	}
	if err != nil {
		unauthorized(w, err)
		return
	}
	code := h.logins.add(&h.logins.codes, maxCodes, c, codeTime)
	answer(w, struct {
		Code string `json:"code"`
		Link string `json:"link,omitempty"`
	}{code, h.link(code)})
}

// login exchanges a one-time code for a cookie.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // HEAD, as a preview of a link sends it, would use the code up
		h.unknown(w, r)
		return
	}
	code := r.URL.Query().Get("code")
	if code == "" {
		fail(w, &abi.Error{Code: abi.InvalidArgument, Message: "the address has no login code", Remedy: "open the link that terrarium login DIR prints"})
		return
	}
	c, ok := h.logins.find(&h.logins.codes, code, true)
	if !ok {
		unauthorized(w, refused("the link is no longer valid", "a link is valid once; make another one with terrarium login DIR"))
		return
	}
	cookie := h.cookie(r, h.logins.add(&h.logins.cookies, maxCookies, c, cookieTime))
	cookie.MaxAge = int(cookieTime / time.Second)
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout makes a cookie invalid.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(h.cookieName(r)); err == nil {
		h.logins.find(&h.logins.cookies, c.Value, true)
	}
	cookie := h.cookie(r, "")
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	w.WriteHeader(http.StatusNoContent)
}

// cookie returns the cookie of the server at this port. Browsers send a cookie to every
// port of a host, so each server has a name of its own.
func (h *Handler) cookie(r *http.Request, value string) *http.Cookie {
	return &http.Cookie{Name: h.cookieName(r), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: h.o.Secure}
}

func (h *Handler) cookieName(r *http.Request) string {
	name := "terrarium"
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(addr.String()); err == nil {
			name += "-" + port
		}
	}
	if h.o.Secure {
		return "__Host-" + name
	}
	return name
}

// caller returns the sender of a request, and keeps its connection.
func (h *Handler) caller(r *http.Request) (caller, error) {
	c, err := h.admitted(r)
	if err == nil {
		keep(r)
	}
	return c, err
}

// admitted is caller for a request whose body is still to be read.
func (h *Handler) admitted(r *http.Request) (caller, error) {
	c, via, err := h.credentials(r)
	c.rights.Bounded, c.rights.Via = !trusted(r), via
	return c, err
}

// credentials returns the sender of a request, and how it connected.
func (h *Handler) credentials(r *http.Request) (c caller, via string, err error) {
	none := caller{}
	if trusted(r) {
		return caller{rights: operations.Rights{Scope: operations.Admin}}, "socket", nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return none, "", refused("the authorization is not a bearer token", "send Authorization: Bearer TOKEN")
		}
		c, err := h.bearer(strings.TrimSpace(secret))
		return c, "token", err
	}
	if c, err := r.Cookie(h.cookieName(r)); err == nil {
		if known, ok := h.logins.find(&h.logins.cookies, c.Value, false); ok {
			return known, "browser", nil
		}
		return none, "", refused("the browser is no longer logged in", "open a new link")
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && h.o.Certificates.Scope != 0 {
		return h.certified(r.TLS.VerifiedChains[0][0]), "certificate", nil
	}
	return none, "", refused("a token is missing", "send Authorization: Bearer TOKEN, or open the link that the server printed")
}

// certified returns the caller with a client certificate. Its name is the certificate's
// common name, unless the options have one for all.
func (h *Handler) certified(cert *x509.Certificate) caller {
	c := caller{rights: h.o.Certificates, source: sha256.Sum256(cert.Raw)}
	if name := cert.Subject.CommonName; c.rights.Name == "" && utf8.ValidString(name) {
		c.rights.Name = name
	}
	return c
}

// SetTokens replaces the tokens. If a token was removed or has other rights now, its
// requests and streams end, and the cookies and login codes that were made with it are no
// longer valid.
func (h *Handler) SetTokens(tokens []Token) {
	former := *h.tokens.Swap(&tokens)
	changed, removed := map[digest]bool{}, map[digest]bool{}
	for _, t := range former {
		d := digestOf(t.Secret)
		changed[d] = !slices.ContainsFunc(tokens, func(now Token) bool { return reflect.DeepEqual(now, t) })
		removed[d] = !slices.ContainsFunc(tokens, func(now Token) bool { return now.Secret == t.Secret })
	}
	maps.DeleteFunc(changed, func(_ digest, is bool) bool { return !is })
	h.logins.revokeOf(changed)
	h.callers.end(changed, removed)
}

// revokeOf revokes the codes and cookies of some sources.
func (l *logins) revokeOf(gone map[digest]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range []*[]admission{&l.codes, &l.cookies} {
		for i := len(*list) - 1; i >= 0; i-- {
			if gone[(*list)[i].source] {
				revoke(list, i)
			}
		}
	}
}

// bearer finds a token. It compares with all of them, so that the time it takes reveals
// nothing.
func (h *Handler) bearer(secret string) (caller, error) {
	d := digestOf(secret)
	var rights operations.Rights
	for _, t := range *h.tokens.Load() {
		known := digestOf(t.Secret)
		if subtle.ConstantTimeCompare(known[:], d[:]) == 1 {
			rights = t.Rights
		}
	}
	if rights.Scope == 0 {
		return caller{}, refused("the token is not known", "use a token of the server's token file")
	}
	return caller{rights: rights, source: d}, nil
}

// unauthorized answers a request without valid credentials.
func unauthorized(w http.ResponseWriter, err error) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="terrarium"`)
	failWith(w, http.StatusUnauthorized, err)
}
