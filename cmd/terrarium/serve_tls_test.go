//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	pair := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// serials numbers the certificates.
var serials atomic.Int64

// issue returns a certificate and its key. The first certificate of an authority is its own.
func (a *authority) issue(c *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore = big.NewInt(serials.Add(1)), time.Now().Add(-time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// client returns a certificate for a client, which is valid until a time.
func (a *authority) client(until time.Time) tls.Certificate {
	return a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "client"}, NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// writePEM writes a certificate and, in a private file, its key.
func writePEM(t *testing.T, dir, name string, c *tls.Certificate) {
	t.Helper()
	write(t, dir, name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})))
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, name+"-key.pem"), text, private); err != nil {
		t.Fatal(err)
	}
}

// A service with TLS has the certificate that it was given. It takes a token, or a client
// certificate of the authority that was named, and no others.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "pond.hcl", pond)
	own, clients, strangers := newAuthority(t, "own"), newAuthority(t, "clients"), newAuthority(t, "strangers")
	server := own.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "pond"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	writePEM(t, dir, "server", &server)
	writePEM(t, dir, "clients", &tls.Certificate{Certificate: [][]byte{clients.cert.Raw}, PrivateKey: clients.key})
	s := startService(t, dir, nil, "pond.hcl", "--tls-cert", "server.pem", "--tls-key", "server-key.pem", "--tls-client-ca", "clients.pem", "--tls-client-scope", "operate")
	if !strings.HasPrefix(s.address, "https://127.0.0.1:") {
		t.Fatalf("the address is %s", s.address)
	}
	// client returns a client that trusts an authority.
	client := func(trusts *authority, c ...tls.Certificate) *http.Client {
		config := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: c}
		config.RootCAs.AddCert(trusts.cert)
		return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	}
	args := map[string]string{"status": "{}", "send": `{"channel":"lines","payload":"x"}`, "stop_creature": `{"creature":"echo"}`, "apply": `{"recipe":"pond.hcl"}`}
	good := clients.client(time.Time{})
	for _, c := range []struct {
		name             string
		client           *http.Client
		token, operation string
		status           int
	}{
		{"a token", client(own), s.token, "send", http.StatusOK},
		{"neither a token nor a certificate", client(own), "", "status", http.StatusUnauthorized},
		{"a wrong token", client(own), s.token + "x", "status", http.StatusUnauthorized},
		{"a client certificate", client(own, good), "", "status", http.StatusOK},
		{"a client certificate, within its scope", client(own, good), "", "stop_creature", http.StatusOK},
		{"a client certificate, with more than its scope", client(own, good), "", "apply", http.StatusForbidden},
		{"a client certificate and a token", client(own, good), s.token, "send", http.StatusOK},
		{"a client certificate and a wrong token", client(own, good), s.token + "x", "status", http.StatusUnauthorized},
	} {
		if status, text, err := post(t.Context(), c.client, s.address, c.token, c.operation, args[c.operation]); err != nil || status != c.status {
			t.Errorf("%s: %d, %v, want %d: %s", c.name, status, err, c.status, text)
		}
	}
	if status, text, err := post(t.Context(), client(own), s.address, s.token, "history", `{"graph":"echo","kinds":["topology_changed"]}`); err != nil || status != http.StatusOK || strings.Count(text, `"call":"stop_creature","by":"client","via":"certificate"`) != 1 {
		t.Errorf("%d, %v: %s does not name the certificate once", status, err, text)
	}

	// A client refuses the service if it trusts others, and the service a client certificate
	// that is not valid, even with a token.
	var unknown x509.UnknownAuthorityError
	if _, _, err := post(t.Context(), client(strangers), s.address, s.token, "status", "{}"); !errors.As(err, &unknown) {
		t.Errorf("a client that trusts another authority: %v", err)
	}
	for name, c := range map[string]tls.Certificate{
		"of another authority":  strangers.client(time.Time{}),
		"that has expired":      clients.client(time.Now().Add(-time.Minute)),
		"of the service itself": server,
		"without an authority":  {Certificate: good.Certificate, PrivateKey: newAuthority(t, "thief").key},
	} {
		forced := client(own)
		forced.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
		if status, _, err := post(t.Context(), forced, s.address, s.token, "status", "{}"); err == nil {
			t.Errorf("a client certificate %s: %d", name, status)
		}
	}

	// Old protocols are refused, and requests without TLS never reach an operation.
	old := client(own)
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
	if status, _, err := post(t.Context(), old, s.address, s.token, "status", "{}"); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.2: %d, %v", status, err)
	}
	if status, text, err := post(t.Context(), s.client, strings.Replace(s.address, "https:", "http:", 1), s.token, "status", "{}"); err != nil || status != http.StatusBadRequest || strings.Contains(text, "echo") {
		t.Errorf("without TLS: %d, %v: %s", status, err, text)
	}
	if code := s.signal(syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
}
