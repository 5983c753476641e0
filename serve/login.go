package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/operations"
)

// Token is a secret with what its bearer may do.
type Token struct {
	Secret string
	Scope  operations.Scope
}

// caller is the sender of a request.
type caller struct {
	scope operations.Scope
}

const (
	cookieName = "terrarium"
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
	caller  caller
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
func (l *logins) add(list *[]admission, most int, who caller, valid time.Duration) (secret string) {
	secret = rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, admission{digestOf(secret), who, l.now().Add(valid)})
	if len(*list) > most {
		*list = (*list)[len(*list)-most:]
	}
	return secret
}

// find finds a secret. With take, it is not valid any more.
func (l *logins) find(list *[]admission, secret string, take bool) (caller, bool) {
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
		return a.caller, l.now().Before(a.expires)
	}
	return caller{}, false
}

// LoginCode returns a code for GET /login?code=CODE, which is valid once, for ten minutes,
// and logs a browser in with a scope.
func (h *Handler) LoginCode(scope operations.Scope) string {
	return h.logins.add(&h.logins.codes, maxCodes, caller{scope}, codeTime)
}

// login exchanges a one-time code for a cookie.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	who, ok := h.logins.find(&h.logins.codes, r.URL.Query().Get("code"), true)
	if !ok {
		unauthorized(w, refused("the link is not valid any more", "a link is valid once; make another one with terrarium serve-link DIR"))
		return
	}
	cookie := h.cookie(h.logins.add(&h.logins.cookies, maxCookies, who, cookieTime))
	cookie.MaxAge = int(cookieTime / time.Second)
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout makes a cookie invalid.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		h.logins.find(&h.logins.cookies, c.Value, true)
	}
	cookie := h.cookie("")
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	w.WriteHeader(http.StatusNoContent)
}

func (h *Handler) cookie(value string) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: h.o.Secure}
}

// caller says who sent a request.
func (h *Handler) caller(r *http.Request) (caller, error) {
	if h.o.Trusted {
		return caller{operations.Admin}, nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return caller{}, refused("the authorization is not a bearer token", "send Authorization: Bearer TOKEN")
		}
		return h.bearer(strings.TrimSpace(secret))
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if who, ok := h.logins.find(&h.logins.cookies, c.Value, false); ok {
			return who, nil
		}
		return caller{}, refused("the browser is not logged in any more", "open a new link")
	}
	return caller{}, refused("a token is missing", "send Authorization: Bearer TOKEN, or open the link that the server printed")
}

// bearer finds a token. It compares with all of them, so that the time tells nothing.
func (h *Handler) bearer(secret string) (caller, error) {
	d := digestOf(secret)
	var who caller
	for _, t := range h.o.Tokens {
		known := digestOf(t.Secret)
		if subtle.ConstantTimeCompare(known[:], d[:]) == 1 {
			who = caller{t.Scope}
		}
	}
	if who.scope == 0 {
		return who, refused("the token is not known", "use the token in the server's token file")
	}
	return who, nil
}

// unauthorized answers a request without valid credentials.
func unauthorized(w http.ResponseWriter, err error) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="terrarium"`)
	failWith(w, http.StatusUnauthorized, err)
}
