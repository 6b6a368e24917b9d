package subscribers

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"github.com/tierledger/tierledger/fault"
)

// forbidden are the networks that aren't part of the public internet, by IANA's registries
// of special purposes: what's there may be ours, or nobody's.
var forbidden = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // shared by carriers
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, and where clouds keep their secrets
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocols
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // relays of 6to4
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and broadcast

	"2001::/23",     // protocols, Teredo among them, which carries IPv4
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4, which carries IPv4
	"3fff::/20",     // documentation
)

var (
	global6 = netip.MustParsePrefix("2000::/3")     // whatever else IPv6 has isn't public
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address is its last 32 bits
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// public tells whether an address is one of the public internet, also when it's written as
// an address of IPv6 that stands for one of IPv4.
func public(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !a.IsValid() || a.Is6() && !global6.Contains(a) {
		return false
	}
	for _, p := range forbidden {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// control refuses to dial what isn't public. It's asked for every address that a name has
// turned out to have, right before that is dialled: what the name had before counts for
// nothing.
func control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !public(to.Addr()) {
		return notAllowed(address)
	}
	return nil
}

func notAllowed(address string) *fault.Error {
	return ErrAddressNotAllowed.Because("%s isn't an address of the public internet", address).With("address", address)
}

// maxURL bounds a URL, in bytes.
const maxURL = 2000

// checkURL refuses what can't be a webhook's URL, and what names an address that isn't
// allowed. What a name's addresses are is looked at when it's dialled.
func checkURL(text string, allowPrivate bool) error {
	u, err := url.Parse(text)
	switch {
	case text == "" || len(text) > maxURL:
		return fault.BadField("url", "must have 1 to %d bytes", maxURL)
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return fault.BadField("url", "must be a URL such as https://example.com/webhooks")
	case u.Scheme != "https" && (u.Scheme != "http" || !allowPrivate):
		return fault.BadField("url", "must begin with https://")
	case !validPort(u.Port()):
		return fault.BadField("url", "must have a port from 1 to 65535, or none")
	case u.User != nil:
		return fault.BadField("url", "can't have a user or password: the signature tells who sends")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return fault.BadField("url", "can't have a fragment")
	case allowPrivate:
		return nil
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return notAllowed(host)
	}
	if a, err := netip.ParseAddr(host); err == nil && !public(a) {
		return notAllowed(host)
	}
	return nil
}

// validPort tells whether there can be a server at a port; "" is the scheme's.
func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

// dialer makes the connections of webhooks.
func dialer(allowPrivate bool, resolver *net.Resolver) *net.Dialer {
	d := &net.Dialer{Timeout: dialTimeout, Resolver: resolver}
	if !allowPrivate {
		d.ControlContext = control
	}
	return d
}
