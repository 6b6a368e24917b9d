package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// loopbackPrincipal is who calls from this machine without a key, where that's
// allowed.
const loopbackPrincipal = "loopback"

// admit finds out who calls, and whether the route is for them.
func (a *api) admit(c *call) error {
	who, err := a.identify(c.request)
	if err != nil {
		return err
	}
	c.caller = who
	if who.roles&c.route.roles == 0 {
		return ErrForbidden.Because("%s has none of the roles that may do this", who.principal).
			With("roles", c.route.roles.names())
	}
	return nil
}

// identify finds out who calls: by key, or without one by being here.
func (a *api) identify(r *http.Request) (caller, error) {
	values := r.Header["Authorization"]
	if len(values) == 0 {
		if a.LoopbackAdmin && local(r) {
			return caller{loopbackPrincipal, admin}, nil
		}
		return caller{}, ErrUnauthenticated.Because("send the header Authorization: Bearer KEY")
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return caller{}, ErrUnauthenticated.Because("the Authorization header isn't Bearer KEY")
	}
	if a.Keys != nil {
		if who, ok := a.Keys.find(strings.TrimSpace(key)); ok {
			return who, nil
		}
	}
	return caller{}, ErrUnauthenticated.Because("the key isn't known")
}

// local tells whether a call comes from this machine and from no web page of
// another origin. The peer's address alone doesn't tell: a proxy here forwards for
// others, a browser here runs anybody's pages, and a name of theirs may be pointed
// at this machine.
func local(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || !loopbackHost(r.Host) {
		return false
	}
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header[header] != nil {
			return false
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err == nil && u.Host == r.Host
	}
	return true
}

// loopbackHost tells whether a Host header names this machine.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
