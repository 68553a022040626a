//go:build linux

package sandbox_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

// services listens outside in every way a program could try to reach.
func services(h *host) {
	h.t.Helper()
	note := func(what string) {
		select {
		case h.got <- what:
		default:
		}
	}
	accept := func(l net.Listener, err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
		h.closers = append(h.closers, func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				note(l.Addr().String())
				_, _ = c.Write([]byte("ESCAPED\n"))
				_ = c.Close()
			}
		}()
	}
	packets := func(p net.PacketConn, err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
		h.closers = append(h.closers, func() { _ = p.Close() })
		go func() {
			buf := make([]byte, 512)
			for {
				if _, _, err := p.ReadFrom(buf); err != nil {
					return
				}
				note(p.LocalAddr().String())
			}
		}()
		if u, ok := p.LocalAddr().(*net.UDPAddr); ok {
			h.env["UDP"] = strconv.Itoa(u.Port)
		}
	}
	l, err := net.Listen("tcp", ":0")
	accept(l, err)
	h.env["TCP"] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	packets(net.ListenPacket("udp", ":0"))
	accept(net.Listen("unix", h.ws+"/agent.sock"))
	accept(net.Listen("unix", h.out+"/docker.sock"))
	accept(net.Listen("unixpacket", h.ws+"/packet.sock"))
	accept(net.Listen("unix", "@"+h.env["TOKEN"]))
	packets(net.ListenPacket("unixgram", h.ws+"/log.sock"))
	packets(net.ListenPacket("unixgram", "@d"+h.env["TOKEN"]))
	for _, s := range []string{h.ws + "/agent.sock", h.out + "/docker.sock", h.ws + "/packet.sock", h.ws + "/log.sock"} {
		_ = os.Chmod(s, 0o777)
	}
	h.env["ADDR4"] = "127.0.0.1"
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
				h.env["ADDR4"] = n.IP.String()
			}
		}
	}
}

func reachAttempts() []attempt {
	var list []attempt
	r := func(how, name, c string) { list = append(list, call(how, name, c).with(services).judged(received)) }
	r("unix socket", "in the workspace", "dial unix $WS/agent.sock")
	r("unix socket", "docker", "dial unix $OUT/docker.sock")
	r("unix socket", "packet", "dial unixpacket $WS/packet.sock")
	r("unix socket", "datagram", "send unixgram $WS/log.sock")
	r("unix socket", "reconnected pair", "pairdgram $WS/log.sock")
	r("unix socket", "pair with address", "pairsendto $WS/log.sock")
	r("unix socket", "by relative path", "dial unix ./agent.sock")
	r("unix socket", "through proc", "dial unix /proc/self/cwd/agent.sock")
	r("abstract socket", "stream", "dial unix @$TOKEN")
	r("abstract socket", "datagram", "send unixgram @d$TOKEN")
	r("tcp", "loopback", "dial tcp 127.0.0.1:$TCP")
	r("tcp", "loopback, version 6", "dial tcp [::1]:$TCP")
	r("tcp", "mapped address", "dial tcp [::ffff:127.0.0.1]:$TCP")
	r("tcp", "the host's own address", "dial tcp $ADDR4:$TCP")
	r("tcp", "unspecified address", "dial tcp 0.0.0.0:$TCP")
	r("tcp", "fast open", "fastopen $TCP")
	list = append(list, attempt{
		how: "tcp", name: "tcp/bash", setup: services, escaped: received,
		sh: `bash -c 'exec 3<>/dev/tcp/127.0.0.1/'$TCP'; cat <&3'`,
	})
	r("udp", "loopback", "send udp 127.0.0.1:$UDP")
	r("udp", "version 6", "send udp [::1]:$UDP")
	r("udp", "as a name server", "dns 127.0.0.1:$UDP")
	r("mptcp", "connect", "mptcp $TCP")
	list = append(list,
		call("raw socket", "icmp", "socket 2 3 1").asRoot(),
		call("raw socket", "packet", "socket 17 3 768").asRoot(),
		call("raw socket", "ip", "socket 2 3 255").asRoot(),
		call("netlink", "routes", "socket 16 3 0"),
		call("netlink", "devices", "socket 16 3 15"),
		call("netlink", "audit", "socket 16 3 9"),
		call("other families", "vsock", "socket 40 1 0"),
		call("other families", "kernel connection", "socket 44 3 0").asRoot(),
	)
	return append(list, proxyAttempts()...)
}

// proxied runs an attempt with a network through the proxy, whose names and
// addresses lead to a listener of the test: one declared host, the rest not.
func proxied(name, c string) attempt {
	a := call("egress", name, c).with(services).judged(received)
	a.spec = func(s *sandbox.Spec) {
		port := s.Env.Set["TCP"]
		s.Net = sandbox.Net{
			Mode: sandbox.NetHosts, Allow: []string{"good.test:" + port, "*.wild.test:" + port, "rebind.test:" + port, "inner.test:" + port},
			Deny: []string{"bad.wild.test"},
			Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
				switch name {
				case "rebind.test":
					return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
				case "inner.test":
					return []netip.Addr{netip.MustParseAddr("::ffff:169.254.169.254")}, nil
				}
				return []netip.Addr{netip.MustParseAddr("192.88.99.7")}, nil
			},
			Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "tcp", "127.0.0.1:"+port)
			},
			Ask: func(context.Context, egress.Request) egress.Answer { return egress.Refuse },
		}
	}
	return a
}

// proxyAttempts are made against the proxy from inside. Unconfined, the same
// program connects straight to the listener: nothing stands in between. The
// back-end without namespaces offers no network at all and is not asked.
func proxyAttempts() []attempt {
	var list []attempt
	for name, target := range map[string]string{
		"undeclared name": "evil.test", "apex of a wildcard": "wild.test", "denied below a wildcard": "bad.wild.test", "look-alike": "good.test.evil.test",
		"suffix": "notgood.test", "metadata address": "169.254.169.254", "mapped metadata": "[::ffff:169.254.169.254]", "loopback": "127.0.0.1",
		"private": "10.0.0.1", "decimal": "2130706433", "short form": "127.1", "rebound name": "rebind.test", "metadata behind a name": "inner.test",
		"nat64": "[64:ff9b::7f00:1]", "6to4": "[2002:7f00:1::1]", "teredo": "[2001:0:0:0:0:0:80ff:fffe]", "compatible": "[::7f00:1]",
		"loopback, version 6": "[::1]", "localhost": "localhost", "localhost with a dot": "localhost.", "octal": "0177.0.0.1", "hexadecimal": "0x7f.1",
		"unspecified": "0.0.0.0", "unspecified, version 6": "[::]", "public resolver": "8.8.8.8", "user before the host": "good.test@evil.test",
		"escaped end": "good.test%00.evil.test", "mapped private": "[::ffff:10.0.0.1]", "unique local": "[fd00::1]", "link-local": "[fe80::1]",
	} {
		list = append(list, proxied("connect: "+name, "connect "+target+" $TCP"), proxied("socks: "+name, "socks "+target+" $TCP"))
	}
	list = append(list,
		proxied("plain request", "plain evil.test evil.test $TCP"),
		proxied("host header unlike the target", "plain good.test evil.test $TCP"),
		proxied("port not declared", "connect good.test 22"),
		proxied("past the proxy", "dial tcp 127.0.0.1:$TCP"),
	)
	return list
}

func resourceAttempts() []attempt {
	lim := func(f func(*sandbox.Limits)) func(*sandbox.Spec) {
		return func(s *sandbox.Spec) { f(&s.Limits) }
	}
	over := func(what string) func(*host, string) bool { return contains("DONE " + what) }
	list := []attempt{
		call("exhaustion", "open files", "files 400").limited(lim(func(l *sandbox.Limits) { l.OpenFiles = 128 })).judged(over("files")),
		call("exhaustion", "file size", "bigfile 8").limited(lim(func(l *sandbox.Limits) { l.FileSize = 1 << 20 })).judged(over("bigfile")),
		call("exhaustion", "memory", "memory 600").limited(lim(func(l *sandbox.Limits) { l.Memory = 200 << 20 })).judged(over("memory")),
		call("exhaustion", "processes", "procs 120").limited(lim(func(l *sandbox.Limits) { l.Processes = 40 })).judged(over("procs")),
		call("exhaustion", "processor time", "spin 3").limited(lim(func(l *sandbox.Limits) { l.CPU = time.Second })).judged(over("spin")),
		call("exhaustion", "output", "flood 400").limited(lim(func(l *sandbox.Limits) { l.Output = 64 << 10 })).judged(over("flood")),
		call("exhaustion", "time", "nap 3").limited(lim(func(l *sandbox.Limits) { l.Wall = 300 * time.Millisecond })).judged(over("nap")),
		call("exhaustion", "silence", "nap 3").limited(lim(func(l *sandbox.Limits) { l.Idle = 300 * time.Millisecond })).judged(over("nap")),
	}
	return list
}

// victimObjects removes what a victim left in the kernel.
func victimObjects(pid int) {
	_ = os.Remove("/dev/shm/gh-" + strconv.Itoa(pid))
	name, err := unix.BytePtrFromString("gh-" + strconv.Itoa(pid))
	if err == nil {
		removeObjects(pid, name)
	}
}

func endProcess(pid string) {
	n, _ := strconv.Atoi(pid)
	if b, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil {
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
		if parent, _ := strconv.Atoi(f[1]); parent > 1 && parent != os.Getpid() {
			if c, _ := os.ReadFile("/proc/" + f[1] + "/cmdline"); strings.Contains(string(c), "MARK") {
				_ = unix.Kill(parent, unix.SIGKILL)
			}
		}
	}
	_ = unix.Kill(n, unix.SIGKILL)
}
