package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

func (x *route) unauthorized(w http.ResponseWriter, q *http.Request) {
	x.port.Log().Debug("a webhook refuses a request without the secret", "path", x.Path, "from", q.RemoteAddr)
	remedy := "send the header Authorization: Bearer SECRET"
	if x.Auth == signature {
		remedy = "send the HMAC-SHA-256 of the body in the header " + x.SignatureHeader
	}
	fail(w, q, http.StatusUnauthorized, &abi.Error{Code: abi.NotPrivileged, Message: "the request does not prove that its sender knows the secret of the webhook", Remedy: remedy})
}

// knowsSecret compares hashes, so that the time does not depend on the secret or its length.
func (x *route) knowsSecret(q *http.Request) bool {
	values := q.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(x.Secret))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// givenSignature is the signature of a request, unless it is missing or malformed.
func (x *route) givenSignature(q *http.Request) ([]byte, bool) {
	values := q.Header.Values(x.SignatureHeader)
	if len(values) != 1 {
		return nil, false
	}
	given, err := hex.DecodeString(strings.TrimPrefix(values[0], "sha256="))
	return given, err == nil && len(given) == sha256.Size
}

// signed reports whether a body has the right signature.
func (x *route) signed(q *http.Request, body []byte) bool {
	given, ok := x.givenSignature(q)
	if !ok {
		return false
	}
	mac := hmac.New(sha256.New, []byte(x.Secret))
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}

func (x *route) acceptsType(q *http.Request) bool {
	if len(x.ContentTypes) == 0 {
		return true
	}
	kind, _, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	return err == nil && slices.Contains(x.ContentTypes, kind)
}
