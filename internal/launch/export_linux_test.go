package launch

import (
	"errors"
	"unsafe"
)

// Decode reads the wire form back into a Config, through the same view the
// second stage uses.
func Decode(b []byte) (*Config, error) {
	b = append([]byte(nil), b...)
	v := parse(b)
	if !v.ok {
		return nil, errors.New("malformed")
	}
	c := &Config{
		Path: text0(v.path), Argv: texts(v.argv), Env: texts(v.env), Dir: text0(v.dir), Umask: v.umask, Filter: v.filter.b, Notify: v.notify,
		HandledFS: v.handledFS, HandledNet: v.handledNet, Scoped: v.scoped, Listen: v.listen, Socket: string(v.socket.b), TTY: v.tty,
		Quiet: v.quiet, Want: v.want,
	}
	for v.rules.n > 0 {
		path, access := v.rules.rule()
		c.Rules = append(c.Rules, Rule{Path: text0(path), Access: access})
	}
	for v.limits.n > 0 {
		resource, value := v.limits.pair()
		c.Limits = append(c.Limits, Limit{Resource: uint32(resource), Value: value})
	}
	for v.namespaces.n > 0 {
		c.Namespaces = append(c.Namespaces, v.namespaces.num())
	}
	return c, nil
}

func text0(p *byte) string {
	n := 0
	for *after(p, n) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

func texts(table uintptr) []string {
	var list []string
	for at := *(*unsafe.Pointer)(unsafe.Pointer(&table)); ; at = unsafe.Add(at, 8) {
		p := *(**byte)(at)
		if p == nil {
			return list
		}
		list = append(list, text0(p))
	}
}
