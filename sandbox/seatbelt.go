package sandbox

import (
	"fmt"
	"strings"
)

// seatbeltBase is what a program needs of macOS before it does anything.
const seatbeltBase = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") (subpath "/Library/Apple")
  (subpath "/private/var/db/dyld") (subpath "/private/etc/ssl") (literal "/") (literal "/private/etc/localtime") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read* file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger") (global-name "com.apple.trustd.agent"))
(allow ipc-posix-sem)
`

// seatbeltProfile writes the profile of a plan. Later rules win, so what is
// protected comes last.
func seatbeltProfile(p *plan, tmp string) string {
	var b strings.Builder
	b.WriteString(seatbeltBase)
	rule := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, r := range p.roots {
		where := seatbeltPath(r)
		rule("(allow file-read* %s)", where)
		if r.write {
			rule("(allow file-write* %s)", where)
		}
	}
	rule("(allow file-read* file-write* (subpath %s))", seatbeltQuote(tmp))
	if p.port != 0 {
		rule("(allow network-outbound (remote ip \"localhost:%d\"))", p.port)
	}
	for _, r := range p.roots {
		if !r.write {
			continue
		}
		for _, suffix := range p.guard.suffixes {
			name := seatbeltRegex(strings.Join(suffix, "/"))
			rule("(deny file-write* (regex #\"(?i)^%s/(.*/)?%s(/.*)?$\"))", seatbeltRegex(r.path), name)
		}
	}
	for _, path := range p.guard.paths {
		rule("(deny file-write* (subpath %s))", seatbeltQuote(path))
	}
	// Renaming a directory above a protected entry would take it out of reach
	// of the rules above.
	for _, pin := range p.pins {
		rule("(deny file-write-unlink (literal %s))", seatbeltQuote(pin))
	}
	return b.String()
}

func seatbeltPath(r root) string {
	if r.dir {
		return "(subpath " + seatbeltQuote(r.path) + ")"
	}
	return "(literal " + seatbeltQuote(r.path) + ")"
}

func seatbeltQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// seatbeltRegex escapes a name for the profile's regular expressions.
func seatbeltRegex(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^$"`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
