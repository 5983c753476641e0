package mqtt_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/mqtt"
	"github.com/seed47132306/terrarium/connector/mqtt/mqtttest"
)

// TestInvalid opens sources with settings that a recipe must not have.
func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]any
		message  string
	}{
		"a user in the URL":        {map[string]any{"broker": "mqtt://it:secret@host"}, "a user in its URL"},
		"an odd URL":               {map[string]any{"broker": "mqtt://it:secret@ho st"}, "not a valid URL"},
		"another scheme":           {map[string]any{"broker": "http://host"}, `the scheme "http"`},
		"no scheme":                {map[string]any{"broker": "host:1883"}, "the scheme"},
		"a path":                   {map[string]any{"broker": "mqtt://host/path"}, "must consist of a scheme, a host and a port"},
		"a port that is too large": {map[string]any{"broker": "mqtt://host:70000"}, `the port "70000"`},
		"an unknown version":       {map[string]any{"version": "4"}, `no version "4"`},
		"no client id":             {map[string]any{"client_id": ""}, "client_id is empty"},
		"a client id with NUL":     {map[string]any{"client_id": "a\x00"}, "client_id is too long, or is not valid text"},
		"no topic":                 {map[string]any{"topics": []string{}}, "no topic"},
		"an odd filter":            {map[string]any{"topics": []string{"a/b#"}}, "not a topic filter"},
		"an odd level":             {map[string]any{"topics": []string{"a+/b"}}, "not a topic filter"},
		"an odd share":             {map[string]any{"topics": []string{"$share/a"}}, "not a topic filter"},
		"quality 3":                {map[string]any{"qos": 3}, "quality of service 3"},
		"no room":                  {map[string]any{"max_in_flight": 0}, "max_in_flight"},
		"a huge payload":           {map[string]any{"max_payload": 1 << 30}, "max_payload"},
		"a short session":          {map[string]any{"session": 1000}, "session is below"},
		"a short keep_alive":       {map[string]any{"keep_alive": 1000}, "keep_alive"},
		"a key without cert":       {map[string]any{"broker": "mqtts://host", "key": "/k"}, "cert and key"},
		"TLS without mqtts":        {map[string]any{"ca": "/ca"}, "need TLS"},
		"properties in 3.1.1":      {map[string]any{"version": "3.1.1", "key_property": "id"}, "no user properties"},
		"a password alone":         {map[string]any{"version": "3.1.1", "password": "secret"}, "without a username"},
	} {
		all := map[string]any{"broker": "mqtt://host", "client_id": "it", "topics": []string{"a"}}
		for setting, value := range c.settings {
			all[setting] = value
		}
		data, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		_, err = mqtt.Source{}.Open(data)
		if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), c.message) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTLS connects with the certificate of the broker, without it, and under another
// name.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil) // for its certificate, which is for example.com
	defer server.Close()
	b := start(t, mqtttest.Options{TLS: &tls.Config{Certificates: server.TLS.Certificates, ClientAuth: tls.RequestClientCert}})
	dir := t.TempDir()
	file := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert := file("cert", "CERTIFICATE", server.Certificate().Raw)
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key := file("key", "PRIVATE KEY", private)
	with := func(more map[string]any) json.RawMessage {
		more["broker"], more["topic"] = "mqtts://"+b.Address(), "a"
		return settings(t, b, more)
	}
	p := connectortest.NewPort()
	p.Deliver("one")
	for name, c := range map[string]struct {
		settings map[string]any
		message  string
	}{
		"an unknown certificate": {map[string]any{}, "certificate"},
		"another name":           {map[string]any{"ca": cert, "server_name": "terrarium.test"}, "terrarium.test"},
		"a missing ca":           {map[string]any{"ca": filepath.Join(dir, "none")}, "cannot read ca"},
		"a ca of no use":         {map[string]any{"ca": key}, "no certificate"},
		"a cert of no use":       {map[string]any{"ca": cert, "cert": key, "key": key}, "cannot use cert"},
	} {
		if err := open(t, mqtt.Sink{}, with(c.settings)).Run(t.Context(), p); abi.CodeOf(err) != abi.Unavailable || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", name, err)
		}
	}
	run(t, open(t, mqtt.Sink{}, with(map[string]any{"ca": cert, "server_name": "example.com", "cert": cert, "key": key})), p)
	await(t, p, func(v connectortest.View) bool { return v.Acked == 1 })
}
