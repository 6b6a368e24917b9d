package subscribers_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/subscribers"
)

// Addresses that aren't of the public internet, in all forms that they can be written in,
// and the nearest that are.
func TestAddressesThatAreAllowed(t *testing.T) {
	t.Parallel()
	for _, text := range strings.Fields(`
		0.0.0.0 0.255.255.255 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254
		169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255
		198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
		:: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:10.0.0.1
		64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b::10.1.2.3 64:ff9b:1::1 64:ff9b:1:ffff:7f00::1 100::1
		2001::1 2001:0:7f00:1:: 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a00:1::1 3fff::1 5f00::1
		fc00::1 fd12:3456:789a::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 ff0e::1 4000::1 8000::1`) {
		if subscribers.Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is allowed", text)
		}
	}
	for _, text := range strings.Fields(`
		1.1.1.1 9.255.255.255 11.0.0.0 93.184.215.14 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255
		172.15.255.255 172.32.0.0 192.0.1.1 192.0.3.1 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255
		::ffff:1.1.1.1 64:ff9b::1.1.1.1 2001:200::1 2001:4860:4860::8888 2003::1 2606:4700::1111 2a00:1450::1 3ffe::1`) {
		if !subscribers.Public(netip.MustParseAddr(text)) {
			t.Errorf("%s isn't allowed", text)
		}
	}
	if subscribers.Public(netip.Addr{}) || subscribers.Public(netip.MustParseAddr("2606:4700::1111%eth0")) {
		t.Error("no address, or one of a zone, is allowed")
	}
}

// names is a DNS server that gives all names one address of IPv4; with none it knows no name.
func names(t *testing.T, address string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	var a [4]byte
	if address != "" {
		a = netip.MustParseAddr(address).As4()
	}
	go func() {
		question := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			end := 12 // after the header come the labels of the name, then type and class
			for end < n && question[end] != 0 {
				end += int(question[end]) + 1
			}
			end += 5
			answer := append([]byte(nil), question[:end]...)
			answer[2], answer[3] = 0x81, 0x80 // a response
			binary.BigEndian.PutUint16(answer[8:], 0)
			binary.BigEndian.PutUint16(answer[10:], 0)
			switch {
			case address == "":
				answer[3] |= 3 // no such name
			case binary.BigEndian.Uint16(question[end-4:]) == 1: // of IPv4; else there's none
				binary.BigEndian.PutUint16(answer[6:], 1)
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, a[:]...)
			}
			_, _ = server.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// A name is judged by the address that's dialled, so it's no use to give it a good one first.
// The same webhook arrives where all addresses are allowed.
func TestNameOfLoopback(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{false, true} {
		r := &receiver{t: t}
		r.Server = httptest.NewTLSServer(r.handler())
		t.Cleanup(r.Close)
		trusting := r.Client().Transport.(*http.Transport).TLSClientConfig
		d := open(t, func(o *subscribers.Options) {
			o.AllowPrivate, o.Resolver, o.TLS = private, names(t, "127.0.0.1"), trusting.Clone()
		})
		u, err := url.Parse(r.URL)
		if err != nil {
			t.Fatal(err)
		}
		made := d.subscribe(r, subscribers.Spec{URL: "https://example.com:" + u.Port() + "/hook?token=t0psecret"})
		d.work(d.Store)
		d.hold("gig", "ann")
		d.fanOut()
		d.attempted(made.ID, 1)
		problem := column[string](d, `SELECT status_code || ' ' || error FROM delivery_attempts`)[0]
		switch {
		case private:
			d.await(made.ID, "1 delivered")
		case len(r.webhooks()) > 0:
			t.Error("loopback was reached")
		case problem != "0 address_not_allowed: the host's address isn't one of the public internet":
			t.Errorf("the attempt says %q", problem)
		}
		if strings.Contains(d.log.String(), "t0psecret") {
			t.Error("a URL's query is in the log")
		}
	}
}

// Addresses that are reached without DNS are refused when they're dialled too: a row may be
// older than the rule.
func TestAddressesAreRefusedWhenDialled(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	port := r.URL[strings.LastIndex(r.URL, ":"):]
	d := open(t, func(o *subscribers.Options) { o.AllowPrivate = false })
	made := d.subscribe(nil, subscribers.Spec{URL: "https://example.com"})
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "localhost", "0.0.0.0", "[::]", "[64:ff9b::7f00:1]"} {
		d.exec(`UPDATE subscriptions SET url = $1`, "https://"+host+port)
		got, err := d.Try(d.ctx, "ann", "k", made.ID)
		if err != nil || got.Delivered || !strings.Contains(got.Error, "address_not_allowed") {
			t.Errorf("%s: %+v %v", host, got, err)
		}
	}
	d.exec(`UPDATE subscriptions SET url = 'http://example.com'`)
	if got, err := d.Try(d.ctx, "ann", "k", made.ID); err != nil || got.Error != "the URL must begin with https://" {
		t.Errorf("http: %+v %v", got, err)
	}
	if len(r.webhooks()) > 0 {
		t.Error("loopback was reached")
	}
}
