package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/operations"
)

const (
	// cookieTime is how long a browser stays logged in.
	cookieTime = 12 * time.Hour
	// codeTime is how long a one-time code is valid.
	codeTime = 10 * time.Minute
	// maxCookies and maxCodes bound what is remembered; the oldest are forgotten.
	maxCookies = 100
	maxCodes   = 20
)

// digest is the hash under which a secret is kept, so that comparing tells nothing about it.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// admission is what a code or cookie allows until it expires.
type admission struct {
	digest  digest
	rights  operations.Rights
	expires time.Time
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
func (l *logins) add(list *[]admission, most int, rights operations.Rights, valid time.Duration) (secret string) {
	secret = rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, admission{digestOf(secret), rights, l.now().Add(valid)})
	if len(*list) > most {
		*list = (*list)[len(*list)-most:]
	}
	return secret
}

// find finds a secret. With take, the secret is then no longer valid.
func (l *logins) find(list *[]admission, secret string, take bool) (operations.Rights, bool) {
	d := digestOf(secret)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range *list {
		if subtle.ConstantTimeCompare(a.digest[:], d[:]) != 1 {
			continue
		}
		if take {
			*list = append((*list)[:i:i], (*list)[i+1:]...)
		}
		return a.rights, l.now().Before(a.expires)
	}
	return operations.Rights{}, false
}

// LoginCode returns a code for GET /login?code=CODE, which is valid once, for ten minutes,
// and logs a browser in with rights.
func (h *Handler) LoginCode(rights operations.Rights) string {
	return h.logins.add(&h.logins.codes, maxCodes, rights, codeTime)
}

// loginCode answers with a one-time code that has the rights of its caller. Only a caller
// without a cookie may make one, so that a stolen cookie does not outlive its time.
func (h *Handler) loginCode(w http.ResponseWriter, r *http.Request) {
	rights, err := h.caller(r)
	if err == nil && !trusted(r) && r.Header.Get("Authorization") == "" {
		err = refused("a login code needs a token", "send Authorization: Bearer TOKEN")
	}
	if err != nil {
		unauthorized(w, err)
		return
	}
	answer(w, map[string]string{"code": h.LoginCode(rights)})
}

// login exchanges a one-time code for a cookie.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	rights, ok := h.logins.find(&h.logins.codes, r.URL.Query().Get("code"), true)
	if !ok {
		unauthorized(w, refused("the link is no longer valid", "a link is valid once; make another one with terrarium login DIR"))
		return
	}
	cookie := h.cookie(r, h.logins.add(&h.logins.cookies, maxCookies, rights, cookieTime))
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

// caller returns the rights of the sender of a request.
func (h *Handler) caller(r *http.Request) (operations.Rights, error) {
	rights, err := h.rightsOf(r)
	if err == nil {
		keep(r)
	}
	return rights, err
}

// rightsOf is caller for a request whose body is still to be read.
func (h *Handler) rightsOf(r *http.Request) (operations.Rights, error) {
	rights, err := h.admitted(r)
	rights.Bounded = !trusted(r)
	return rights, err
}

func (h *Handler) admitted(r *http.Request) (operations.Rights, error) {
	none := operations.Rights{}
	if trusted(r) {
		return operations.Rights{Scope: operations.Admin}, nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return none, refused("the authorization is not a bearer token", "send Authorization: Bearer TOKEN")
		}
		return h.bearer(strings.TrimSpace(secret))
	}
	if c, err := r.Cookie(h.cookieName(r)); err == nil {
		if rights, ok := h.logins.find(&h.logins.cookies, c.Value, false); ok {
			return rights, nil
		}
		return none, refused("the browser is no longer logged in", "open a new link")
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && h.o.Certificates.Scope != 0 {
		return h.o.Certificates, nil
	}
	return none, refused("a token is missing", "send Authorization: Bearer TOKEN, or open the link that the server printed")
}

// bearer finds a token. It compares with all of them, so that the time tells nothing.
func (h *Handler) bearer(secret string) (rights operations.Rights, err error) {
	d := digestOf(secret)
	for _, t := range h.o.Tokens {
		known := digestOf(t.Secret)
		if subtle.ConstantTimeCompare(known[:], d[:]) == 1 {
			rights = t.Rights
		}
	}
	if rights.Scope == 0 {
		return rights, refused("the token is not known", "use a token of the server's token file")
	}
	return rights, nil
}

// unauthorized answers a request without valid credentials.
func unauthorized(w http.ResponseWriter, err error) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="terrarium"`)
	failWith(w, http.StatusUnauthorized, err)
}
