package httpcap

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// special are the ranges of addresses that no server on the public internet has, from
// IANA's registries of special-purpose addresses. They include the IPv6 ranges that embed
// IPv4 addresses, because where these lead depends on the network.
var special = func() (out []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24",
		"192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
	} {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}()

// global is the IPv6 range of all addresses on the public internet.
var global = netip.MustParsePrefix("2000::/3")

// public reports whether an address is on the public internet.
func public(a netip.Addr) bool {
	if a.Is4In6() || a.Zone() != "" || a.Is6() && !global.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsValid()
}

// mayReach reports whether the settings allow an address. named means that a pattern with
// this address as its host allows the request.
func (g *grant) mayReach(a netip.Addr, named bool) bool {
	plain := a.Unmap()
	if a.Zone() != "" {
		return false
	}
	for _, p := range g.addresses {
		if p.Contains(plain) {
			return true
		}
	}
	return named || public(a)
}

// refused is the error for an address that the settings do not allow.
func refused(host string, a netip.Addr) *abi.Error {
	what := host
	if a.IsValid() && a.String() != host {
		what += " has the address " + a.String() + ", which"
	}
	return &abi.Error{
		Code: abi.Denied, Op: "http", Message: what + " is not on the public internet",
		Remedy: "if creatures may reach it, list its address in the setting addresses", IDs: map[string]string{"host": host},
	}
}

// isNumber reports whether a host is an address in a notation that resolvers read in
// different ways: with parts left out, in octal or hexadecimal digits, or as one number. The
// last label of a name is never a number.
func isNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return true
	}
	hex := strings.HasPrefix(last, "0x") || strings.HasPrefix(last, "0X")
	for _, c := range []byte(last) {
		if c < '0' || c > '9' {
			return hex
		}
	}
	return true
}

// named reports whether a pattern has an address as its host, and allows a port.
func (g *grant) named(a netip.Addr, port string) bool {
	return slices.ContainsFunc(g.patterns, func(p pattern) bool { return p.addr == a && (p.port == "*" || p.port == port) })
}
