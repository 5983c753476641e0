package mqtt

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// Versions of the protocol.
const (
	version5 = "5"
	version3 = "3.1.1"
)

const (
	defaultAlive = 30 * time.Second
	// maxSeconds is the longest duration that a packet has room for in 16 bits.
	maxSeconds = 1<<16 - 1
	maxText    = 1<<16 - 1
)

// link holds the settings of a connection, which sources and sinks have in common.
type link struct {
	Broker     string        `json:"broker"`
	Version    string        `json:"version"`
	ClientID   string        `json:"client_id"`
	Username   string        `json:"username"`
	Password   string        `json:"password"`
	CA         string        `json:"ca"`
	Cert       string        `json:"cert"`
	Key        string        `json:"key"`
	ServerName string        `json:"server_name"`
	KeepAlive  time.Duration `json:"keep_alive"`

	address  string        // host and port
	patience time.Duration // for answers of the broker; 0: ackTime
	host     string
	secure   bool
}

// linkSettings describe a link. needsID says whether it needs a client id.
func linkSettings(needsID bool) []capability.Setting {
	id := capability.Setting{Name: "client_id", Type: capability.Text, Required: needsID, Doc: "the name of the client at the broker, under which the broker keeps messages while nothing runs: no other client may have it"}
	if !needsID {
		id.Without, id.Doc = "the broker chooses one", "the name of the client at the broker: no other client may have it"
	}
	return []capability.Setting{
		{Name: "broker", Type: capability.Text, Required: true, Doc: "the broker, such as `\"mqtt://localhost:1883\"`, or `\"mqtts://broker.example:8883\"` with TLS; 1883 and 8883 are the default ports"},
		id,
		{Name: "version", Type: capability.Text, Choices: []string{version5, version3}, Default: `"5"`, Doc: "the version of the protocol"},
		{Name: "username", Type: capability.Text, Without: "none", Doc: "the name of the user"},
		{Name: "password", Type: capability.Text, Sensitive: true, Without: "none", Doc: "the password"},
		{Name: "ca", Type: capability.Path, Without: "those of the machine", Doc: "a file with the certificates that vouch for the broker, as PEM"},
		{Name: "cert", Type: capability.Path, Without: "none", Doc: "a file with the certificate of the client, as PEM; with `key`"},
		{Name: "key", Type: capability.Path, Without: "none", Doc: "a file with the key of the client's certificate, as PEM"},
		{Name: "server_name", Type: capability.Text, Without: "the host of `broker`", Doc: "the name that the broker's certificate must have"},
		{Name: "keep_alive", Type: capability.Duration, Default: `"30s"`, Doc: "a connection counts as lost if the broker sends nothing on it for one and a half times this duration; at least a second"},
	}
}

func invalid(message, remedy string) error {
	return &abi.Error{Code: abi.InvalidArgument, Message: message, Remedy: remedy}
}

// parse reads settings into a value that has the link, and checks the link.
func (l *link) parse(data json.RawMessage, into any) error {
	l.Version, l.KeepAlive = version5, defaultAlive
	if err := json.Unmarshal(data, into); err != nil {
		return plainly.JSON(nil, err)
	}
	if err := l.parseBroker(); err != nil {
		return err
	}
	for name, text := range map[string]string{"client_id": l.ClientID, "username": l.Username, "password": l.Password} {
		if len(text) > maxText || !validText(text) {
			return invalid(name+" is too long, or is not valid text", fmt.Sprintf("use UTF-8 of at most %d bytes without the character 0", maxText))
		}
	}
	switch {
	case l.Version != version5 && l.Version != version3:
		return invalid(fmt.Sprintf("there is no version %q", l.Version), `use "5" or "3.1.1"`)
	case l.Password != "" && l.Username == "" && !l.v5():
		return invalid("version 3.1.1 has no password without a username", "add username")
	case l.KeepAlive < time.Second || l.KeepAlive > maxSeconds*time.Second:
		return invalid("keep_alive is not between one second and 18 hours", `use "30s"`)
	case (l.Cert == "") != (l.Key == ""):
		return invalid("cert and key belong together", "give both, or none")
	case !l.secure && l.CA+l.Cert+l.ServerName != "":
		return invalid("ca, cert, key and server_name need TLS", "use a broker with mqtts://")
	}
	return nil
}

func (l *link) parseBroker() error {
	const remedy = `write it as "mqtt://HOST:PORT", or "mqtts://HOST:PORT" for TLS`
	u, err := url.Parse(l.Broker)
	if err != nil {
		return invalid("broker is not a valid URL", remedy) // which the error would show, with secrets
	}
	if u.User != nil {
		return invalid("broker has a user in its URL, which plans would show", "use username and password, with a sensitive variable for the password")
	}
	port := map[string]string{"mqtt": "1883", "mqtts": "8883"}[u.Scheme]
	if port == "" {
		return invalid(fmt.Sprintf("broker has the scheme %q", u.Scheme), remedy)
	}
	if u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return invalid("broker must consist of a scheme, a host and a port", remedy)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return invalid(fmt.Sprintf("broker has the port %q", port), "use a number from 1 to 65535")
	}
	l.host, l.address, l.secure = u.Hostname(), net.JoinHostPort(u.Hostname(), port), u.Scheme == "mqtts"
	return nil
}

func (l *link) v5() bool { return l.Version == version5 }

// tls returns the configuration for TLS. The files are read for each connection, so that
// a certificate can be renewed.
func (l *link) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: l.host}
	if l.ServerName != "" {
		c.ServerName = l.ServerName
	}
	if l.CA != "" {
		pem, err := os.ReadFile(l.CA)
		if err != nil {
			return nil, &abi.Error{Code: abi.Unavailable, Message: "cannot read ca", Err: err, Remedy: "correct the path or the permissions"}
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &abi.Error{Code: abi.Unavailable, Message: l.CA + " has no certificate", Remedy: "name a file with certificates as PEM"}
		}
	}
	if l.Cert != "" {
		pair, err := tls.LoadX509KeyPair(l.Cert, l.Key)
		if err != nil {
			return nil, &abi.Error{Code: abi.Unavailable, Message: "cannot use cert and key", Err: err, Remedy: "name a certificate and its key as PEM"}
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// validTopic reports whether a message can have a topic.
func validTopic(topic string) bool {
	return topic != "" && len(topic) <= maxText && validText(topic) && !strings.ContainsAny(topic, "+#")
}

// shared is the beginning of a filter of a shared subscription.
const shared = "$share/"

// validFilter reports whether a subscription can have a filter.
func validFilter(filter string) bool {
	if len(filter) > maxText || !validText(filter) {
		return false
	}
	if rest, ok := strings.CutPrefix(filter, shared); ok {
		group, topics, found := strings.Cut(rest, "/")
		if !found || group == "" || strings.ContainsAny(group, "+#") {
			return false
		}
		filter = topics
	}
	levels := strings.Split(filter, "/")
	for i, level := range levels {
		if strings.Contains(level, "+") && level != "+" || strings.Contains(level, "#") && (level != "#" || i != len(levels)-1) {
			return false
		}
	}
	return filter != ""
}

// matches reports whether a filter matches a topic.
func matches(filter, topic string) bool {
	if rest, ok := strings.CutPrefix(filter, shared); ok {
		_, filter, _ = strings.Cut(rest, "/")
	}
	if strings.HasPrefix(topic, "$") && !strings.HasPrefix(filter, "$") {
		return false
	}
	for {
		want, restFilter, more := strings.Cut(filter, "/")
		if want == "#" {
			return true
		}
		level, restTopic, deeper := strings.Cut(topic, "/")
		if want != "+" && want != level {
			return false
		}
		switch {
		case !more && !deeper:
			return true
		case more && !deeper:
			return restFilter == "#"
		case !more:
			return false
		}
		filter, topic = restFilter, restTopic
	}
}
