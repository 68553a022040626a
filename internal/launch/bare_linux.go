package launch

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The stage runs with the Go runtime or without it (entry_linux_amd64.s), so
// nothing in it may allocate, panic on purpose, or make a system call that the
// scheduler is told of. These are the few helpers that takes.

const atFDCWD = ^uintptr(99) // AT_FDCWD

var (
	message [4096 + 512]byte
	options [3*4096 + 64]byte
)

// errno takes the third of a raw call's results.
func errno(_, _ uintptr, err unix.Errno) unix.Errno { return err }

func ptr(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }

// cstring is the address of a constant that ends in NUL.
func cstring(s string) *byte { return unsafe.StringData(s) }

func prctl(option, arg uintptr) unix.Errno {
	return errno(unix.RawSyscall6(unix.SYS_PRCTL, option, arg, 0, 0, 0, 0))
}

func exit(code uintptr) {
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}

// after is the byte n places behind p.
func after(p *byte, n int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), n)) }

// equal compares a C string.
func equal(p *byte, s string) bool {
	for i := range len(s) {
		if *after(p, i) != s[i] { // also ends at the NUL
			return false
		}
	}
	return *after(p, len(s)) == 0
}

// number reads a small decimal.
func number(p *byte) (int, bool) {
	n := 0
	for i := range 6 {
		c := *after(p, i)
		if c == 0 {
			return n, i > 0
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return 0, false
}

// text is written into a fixed place; what does not fit is left out and
// remembered.
type text struct {
	to   []byte
	n    int
	full bool
}

func (t *text) addByte(c byte) {
	if t.n+1 >= len(t.to) { // room for a NUL stays
		t.full = true
		return
	}
	t.to[t.n] = c
	t.n++
	t.to[t.n] = 0
}

func (t *text) add(s string) *text {
	for i := range len(s) {
		t.addByte(s[i])
	}
	return t
}

func (t *text) addC(p *byte) *text {
	for i := 0; *after(p, i) != 0 && !t.full; i++ {
		t.addByte(*after(p, i))
	}
	return t
}

func (t *text) addHex(v uint64) *text {
	shift := 60
	for shift > 0 && v>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		t.addByte("0123456789abcdef"[v>>shift&15])
	}
	return t
}

func (t *text) write(fd int) {
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&t.to[0])), uintptr(t.n))
}
