//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// x32 marks the calls of the ABI with 64-bit registers and 32-bit pointers.
const x32 = 1 << 30

// fourthAttacks are what fourthAttempts run.
var fourthAttacks = map[string]func([]string) error{
	// resizable is a victim that a harmless signal ends.
	"resizable": func([]string) error {
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, unix.SIGWINCH)
		go func() {
			<-ch
			os.Exit(0)
		}()
		return victim()
	},
	// everybody sends it to all processes of a user. Root's would be all there are.
	"everybody": func(a []string) error {
		if os.Getuid() == 0 {
			id, err := strconv.Atoi(a[0])
			if err != nil {
				return err
			}
			if err := unix.Setresuid(id, id, id); err != nil {
				return err
			}
		}
		return unix.Kill(-1, unix.SIGWINCH)
	},
	"int80wide": func([]string) error {
		path := filepath.Join(os.Getenv("WS"), "elf64")
		if err := os.WriteFile(path, elf64(), 0o755); err != nil {
			return err
		}
		out, err := exec.Command(path).Output()
		fmt.Print(string(out))
		return err
	},
	"x32": func([]string) error { return escapedIf(sys(x32|unix.SYS_GETPID, 0, 0, 0, 0)) },
}

// elf64 is elf32's program for the other class: its calls enter the kernel by
// the 32-bit door from a process that is not a 32-bit one.
func elf64() []byte {
	small := elf32()
	code := append([]byte{}, small[52+32:]...)
	const base, head = 0x400000, 64 + 56
	le := func(v uint64, n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
		return b
	}
	copy(code[11:15], le(base+head+31, 4))
	b := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0}
	for _, v := range []uint64{base + head, 64, 0} {
		b = append(b, le(v, 8)...)
	}
	b = append(b, 0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, 1, 0, 0, 0, 5, 0, 0, 0)
	for _, v := range []uint64{0, base, base, uint64(head + len(code)), uint64(head + len(code)), 0x1000} {
		b = append(b, le(v, 8)...)
	}
	return append(b, code...)
}
