package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
)

// bind listens on the address.
func (f *serveFlags) bind(ctx context.Context) (net.Listener, error) {
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, usage("--listen %s: write it as ADDRESS:PORT, such as 127.0.0.1:7480", f.listen)
	}
	if n, err := strconv.Atoi(port); err == nil && (n < 0 || n > math.MaxUint16) {
		return nil, usage("--listen %s: a port is a number from 0 to %d", f.listen, math.MaxUint16)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && f.tlsCert == "" {
		return nil, usage("--listen %s: an address other than loopback needs TLS; add --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy", f.listen)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, failWith(exitUsage, &abi.Error{
			Code: abi.Unavailable, Message: "cannot listen on " + f.listen,
			Remedy: "end the process that uses the port, or choose another one with --listen; port 0 chooses a free one", Err: err,
		})
	}
	return listener, nil
}

// security returns the configuration of TLS, or nil without it, and the rights of client
// certificates.
func (f *serveFlags) security() (*tls.Config, operations.Rights, error) {
	none := operations.Rights{}
	if f.tlsCert == "" && f.tlsKey == "" {
		if f.tlsClients != "" {
			return nil, none, usage("--tls-client-ca: client certificates need --tls-cert and --tls-key")
		}
		return nil, none, nil
	}
	if f.tlsCert == "" || f.tlsKey == "" {
		return nil, none, usage("--tls-cert and --tls-key are used together: add the other one")
	}
	key, err := readPrivate(f.tlsKey)
	if err != nil {
		return nil, none, err
	}
	cert, err := os.ReadFile(f.tlsCert)
	if err != nil {
		return nil, none, usage("--tls-cert %s: %w", f.tlsCert, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, none, usage("--tls-cert %s: %w", f.tlsCert, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if f.tlsClients == "" {
		return config, none, nil
	}
	scope, ok := operations.ParseScope(f.tlsScope)
	if !ok {
		return nil, none, usage("--tls-client-scope %s: use read, operate or admin", f.tlsScope)
	}
	text, err := os.ReadFile(f.tlsClients)
	if err != nil {
		return nil, none, usage("--tls-client-ca %s: %w", f.tlsClients, err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, none, usage("--tls-client-ca %s: the file has no certificate in PEM form", f.tlsClients)
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return config, operations.Rights{Scope: scope}, nil
}

// private is the mode of files that only their owner can use.
const private = 0o600

// tokens reads the tokens, or makes one. Without a session directory and a file, nothing
// but the link logs in.
func (f *serveFlags) tokens() ([]serve.Token, error) {
	path := f.tokenPath()
	if path == "" {
		return nil, nil
	}
	list, err := readTokens(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeToken(path); err != nil {
			return nil, err
		}
		return readTokens(path)
	}
	return list, err
}

// tokenPath is the path of the token file, or empty without one.
func (f *serveFlags) tokenPath() string {
	if f.tokenFile == "" && f.session != "" {
		return filepath.Clean(f.session) + ".token"
	}
	return f.tokenFile
}

func makeToken(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if err != nil {
		return usage("--token-file %s: %w", path, err)
	}
	_, err = fmt.Fprintln(file, rand.Text())
	if err = errors.Join(err, file.Close()); err != nil {
		return failWith(exitFailed, errors.Join(err, os.Remove(path)))
	}
	return nil
}

// readTokens reads a file that only its owner can use.
func readTokens(path string) ([]serve.Token, error) {
	text, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	list, err := serve.ParseTokens(string(text))
	if err != nil {
		return nil, usage("--token-file %s: %w; write TOKEN [SCOPE [GRAPH...]] on each line, or name a file that does not exist yet, which is then created", path, err)
	}
	return list, nil
}

// readPrivate reads a file with a secret. It refuses one that other users can use. The
// error of a missing file is [fs.ErrNotExist].
func readPrivate(path string) ([]byte, error) {
	// Opening a pipe would wait for a writer.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, usage("%s is not a regular file; name another one", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, failWith(exitUsage, err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, usage("%s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, usage("%s is not a regular file; name another one", path)
	case othersCanUse(info):
		return nil, usage("other users can use the secret in %s: run chmod 600 on it, and replace the secret if it may have been read", path)
	}
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, usage("%s: %w", path, err)
	case len(text) > most:
		return nil, usage("%s has more than %d bytes; name another file", path, most)
	}
	return text, nil
}
