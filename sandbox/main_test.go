//go:build linux

package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// cleanups run after all tests.
var cleanups []func()

func TestMain(m *testing.M) {
	sandbox.MaybeLaunch()
	if len(os.Args) > 3 && os.Args[1] == "gate" {
		gate(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) > 3 && os.Args[1] == "known-user" {
		fmt.Fprintln(os.Stderr, knownUser(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
	if len(os.Args) > 3 && os.Args[1] == "interactive" {
		o := sandbox.Options{Spec: sandbox.Spec{Command: []string{"/bin/sh", "-c", os.Args[3]}, Dir: os.Args[2]}, Interactive: true}
		code, _ := sandbox.Main(context.Background(), o, os.Stdin, os.Stdout, os.Stderr)
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "attack" {
		attack(os.Args[2], os.Args[3:])
		return
	}
	code := m.Run()
	for _, f := range cleanups {
		f()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
